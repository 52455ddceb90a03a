package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Heartbeat is how often an idle stream sends a comment, so that proxies and
// readers know that it lives.
const Heartbeat = 15 * time.Second

// Patience is how long one write to a stream may take. A reader that takes
// nothing for so long is cut off and may come back with Last-Event-ID.
const Patience = 10 * time.Second

// keptRoom is how much room for the next event a stream keeps.
const keptRoom = 512

// StreamOptions for OpenStream and Stream.Run; the zero value works.
type StreamOptions struct {
	Pulse    *Pulse        // the source of its heartbeats; nil: its own
	Metrics  *Metrics      // nil: not counted
	Patience time.Duration // 0: Patience
	// Endless: the stream has no end of its own, so it ends as soon as the
	// server begins to stop; others may finish within the server's grace.
	Endless bool
	// Plain: blank lines take the place of comments, for clients that read a comment
	// as a part of the data.
	Plain bool
}

// A Stream is one answer of text/event-stream. Send and Close may be called
// from different goroutines; Close must be called.
type Stream struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	o       StreamOptions
	leave   func()         // the pulse
	stop    func() bool    // the server's stop
	beats   sync.WaitGroup // heartbeats that are being written
	beating sync.Mutex     // one of them at a time

	mu  sync.Mutex // guards below, and writing
	to  wire
	buf bytes.Buffer
	err error
	cut bool // a write failed, perhaps in an event
}

// A wire is where a stream is written.
type wire interface {
	// write sends b and waits until the reader's side has taken it, at most patience.
	write(b []byte, patience time.Duration) error
	// begin and end are written around each piece.
	begin(*bytes.Buffer)
	end(*bytes.Buffer)
	// close ends the stream; after a cut nothing can be written.
	close(cut bool)
}

// ErrSlowReader ends the context of a stream that its client did not read.
var ErrSlowReader = errors.New("the reader of the stream is disconnected or too slow")

// OpenStream sends the headers and begins the heartbeats. From then on the
// request has no time limit of its own: each write has one. The caller closes the
// stream; with an error there is none, and the reader is gone.
func OpenStream(w http.ResponseWriter, r *http.Request, o StreamOptions) (*Stream, error) {
	eventHeaders(w.Header())
	if err := LongLived(w); err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	w.WriteHeader(http.StatusOK)
	return newStream(r.Context(), &answer{w, http.NewResponseController(w)}, o, nil)
}

func eventHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx: pass each event on at once
}

// newStream writes head and the stream's first bytes. ctx ends it. After an error
// nothing of it is left.
func newStream(ctx context.Context, to wire, o StreamOptions, head []byte) (*Stream, error) {
	if o.Pulse == nil {
		o.Pulse = NewPulse(nil)
	}
	if o.Metrics == nil {
		o.Metrics = unregistered()
	}
	if o.Patience == 0 {
		o.Patience = Patience
	}
	s := &Stream{o: o, to: to, stop: func() bool { return true }}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	o.Metrics.streams.Inc()
	if o.Endless {
		s.stop = OnStopping(ctx, func() { s.cancel(ErrStopping) })
	}
	s.leave = o.Pulse.join(s.beat)        // before the first bytes: who has read them may count on it
	if err := s.begin(head); err != nil { // the reader is gone already
		s.Close()
		return nil, err
	}
	return s, nil
}

// begin writes head and the first comment.
func (s *Stream) begin(head []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(head)
	return s.comment("open")
}

// LongLived lifts the server's time limits from the answer w belongs to, for
// one that waits for a run.
func LongLived(w http.ResponseWriter) error {
	rc := http.NewResponseController(w)
	if err := rc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	return rc.SetWriteDeadline(time.Time{})
}

// Hurry gives the writing of an answer that waited Patience from now.
func Hurry(w http.ResponseWriter) error {
	return http.NewResponseController(w).SetWriteDeadline(time.Now().Add(Patience))
}

// Context ends with the request, when the reader is gone or too slow, and when
// the server stops.
func (s *Stream) Context() context.Context { return s.ctx }

var oneLine = strings.NewReplacer("\n", "", "\r", "", "\x00", "") // fixed

// Send writes one event: its id (when not empty) and its data, a data line per
// line. An error means that the reader is gone.
func (s *Stream) Send(id string, data []byte) error { return s.send("id: ", id, data) }

// SendEvent writes one event like Send, with its name in place of an id.
func (s *Stream) SendEvent(name string, data []byte) error { return s.send("event: ", name, data) }

func (s *Stream) send(field, value string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to.begin(&s.buf)
	if value != "" {
		s.buf.WriteString(field)
		s.buf.WriteString(oneLine.Replace(value))
		s.buf.WriteByte('\n')
	}
	if bytes.IndexByte(data, '\r') >= 0 {
		data = bytes.ReplaceAll(data, []byte("\r"), nil)
	}
	for line := range bytes.Lines(data) {
		s.buf.WriteString("data: ")
		s.buf.Write(bytes.TrimSuffix(line, []byte("\n")))
		s.buf.WriteByte('\n')
	}
	s.buf.WriteByte('\n')
	return s.write()
}

// comment writes what is no event; mu is held.
func (s *Stream) comment(text string) error {
	s.to.begin(&s.buf)
	if !s.o.Plain {
		s.buf.WriteString(": " + text + "\n")
	}
	s.buf.WriteByte('\n')
	return s.write()
}

// write sends the buffer; mu is held. The deadline is the kernel's and so the
// machine's time, not the injected clock's.
func (s *Stream) write() error {
	defer s.empty()
	if s.err == nil {
		s.err = context.Cause(s.ctx)
	}
	if s.err != nil {
		return s.err
	}
	s.to.end(&s.buf)
	if err := s.to.write(s.buf.Bytes(), s.o.Patience); err != nil {
		s.err = fmt.Errorf("%w: %w", ErrSlowReader, err)
		s.cut = true
		s.cancel(s.err)
	}
	return s.err
}

// fail breaks the stream off.
func (s *Stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.cut = err, true
}

// empty leaves room for the next event, and not for a large one.
func (s *Stream) empty() {
	if s.buf.Reset(); s.buf.Cap() > keptRoom {
		s.buf = bytes.Buffer{}
	}
}

// beat writes a comment next to anyone who keeps the pulse, unless one waits to be
// written already.
func (s *Stream) beat() {
	if !s.beating.TryLock() {
		return
	}
	s.beats.Go(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.beating.Unlock() // a client that has read this one can expect the next
		_ = s.comment("")  // ends ctx
	})
}

// Close ends the stream and waits for its heartbeat.
func (s *Stream) Close() {
	s.leave()
	s.stop()
	s.cancel(nil)
	s.beats.Wait()
	s.to.close(s.cut)
	s.o.Metrics.streams.Dec()
}

// An answer is written through net/http.
type answer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

func (a *answer) begin(*bytes.Buffer) {}
func (a *answer) end(*bytes.Buffer)   {}
func (a *answer) close(bool)          {}

func (a *answer) write(b []byte, patience time.Duration) error {
	_ = a.rc.SetWriteDeadline(time.Now().Add(patience)) // lifting it worked, so does setting it
	if _, err := a.w.Write(b); err != nil {
		return err
	}
	return a.rc.Flush()
}
