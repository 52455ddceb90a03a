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

	"gatehouse/core"
)

// Heartbeat is how often an idle stream sends a comment, so that proxies and
// readers know that it lives.
const Heartbeat = 15 * time.Second

// Patience is how long one write to a stream may take. A reader that takes
// nothing for so long is cut off and may come back with Last-Event-ID.
const Patience = 10 * time.Second

// StreamOptions for OpenStream; the zero value works.
type StreamOptions struct {
	Clock    core.Clock    // for heartbeats; nil: the system's
	Metrics  *Metrics      // nil: not counted
	Patience time.Duration // 0: Patience
	// Endless: the stream has no end of its own, so it ends as soon as the
	// server begins to stop; others may finish within the server's grace.
	Endless bool
}

// A Stream is one answer of text/event-stream. Send and Close may be called
// from different goroutines; Close must be called.
type Stream struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	o      StreamOptions
	rc     *http.ResponseController
	done   chan struct{}

	mu  sync.Mutex // guards below, and writing
	w   http.ResponseWriter
	buf bytes.Buffer
	err error
}

// ErrSlowReader ends the context of a stream whose reader took nothing.
var ErrSlowReader = errors.New("the reader of the stream is gone or too slow")

// OpenStream sends the headers and begins the heartbeats. From then on the
// request has no time limit of its own: each write has one.
func OpenStream(w http.ResponseWriter, r *http.Request, o StreamOptions) (*Stream, error) {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Metrics == nil {
		o.Metrics = unregistered()
	}
	if o.Patience == 0 {
		o.Patience = Patience
	}
	s := &Stream{o: o, w: w, rc: http.NewResponseController(w), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(r.Context())
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx: pass each event on at once
	if err := LongLived(w); err != nil {
		s.cancel(nil)
		return nil, fmt.Errorf("open stream: %w", err)
	}
	w.WriteHeader(http.StatusOK)
	o.Metrics.streams.Inc()
	go s.beat(Stopping(r.Context()), o.Clock.After(Heartbeat))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.WriteString(": open\n\n")
	return s, s.write()
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

// Send writes one event: its id (when not empty) and its data, a data line per
// line. An error means that the reader is gone.
func (s *Stream) Send(id string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		s.buf.WriteString("id: ")
		s.buf.WriteString(strings.NewReplacer("\n", "", "\r", "", "\x00", "").Replace(id))
		s.buf.WriteByte('\n')
	}
	for line := range bytes.Lines(bytes.ReplaceAll(data, []byte("\r"), nil)) {
		s.buf.WriteString("data: ")
		s.buf.Write(bytes.TrimSuffix(line, []byte("\n")))
		s.buf.WriteByte('\n')
	}
	s.buf.WriteByte('\n')
	return s.write()
}

// write sends the buffer; mu is held. The deadline is the kernel's and so the
// machine's time, not the injected clock's.
func (s *Stream) write() error {
	defer s.buf.Reset()
	if s.err == nil {
		s.err = context.Cause(s.ctx)
	}
	if s.err != nil {
		return s.err
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.o.Patience)) // lifting it worked, so does setting it
	_, err := s.w.Write(s.buf.Bytes())
	if err == nil {
		err = s.rc.Flush()
	}
	if err != nil {
		s.err = fmt.Errorf("%w: %w", ErrSlowReader, err)
		s.cancel(s.err)
	}
	return s.err
}

// beat writes comments until the stream closes. The first wait is begun by
// OpenStream, before the stream's first bytes.
func (s *Stream) beat(stop <-chan struct{}, tick <-chan time.Time) {
	defer close(s.done)
	if !s.o.Endless {
		stop = nil
	}
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-stop:
			s.cancel(ErrStopping)
			return
		case <-tick:
			tick = s.o.Clock.After(Heartbeat)
			s.mu.Lock()
			s.buf.WriteString(": \n\n")
			_ = s.write() // ends ctx
			s.mu.Unlock()
		}
	}
}

// Close ends the stream and waits for its heartbeat.
func (s *Stream) Close() {
	s.cancel(nil)
	<-s.done
	s.o.Metrics.streams.Dec()
}
