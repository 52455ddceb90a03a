package mcp

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/web"
)

// An answer is a ResponseWriter whose writes have a time limit each, and which can send
// comments between the events of a stream.
type answer struct {
	w  http.ResponseWriter
	rc *http.ResponseController

	mu  sync.Mutex // guards below, and writing
	err error      // of the first write that failed, or that there are no more
}

func newAnswer(w http.ResponseWriter) *answer {
	return &answer{w: w, rc: http.NewResponseController(w)}
}

func (a *answer) Header() http.Header { return a.w.Header() }

func (a *answer) WriteHeader(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.w.WriteHeader(status)
	}
}

// Write writes b, which is one event of a stream or a part of another answer.
func (a *answer) Write(b []byte) (n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return 0, a.err
	}
	_ = a.rc.SetWriteDeadline(time.Now().Add(web.Patience)) // lifting it worked, so does setting it
	n, a.err = a.w.Write(b)
	return n, a.err
}

func (a *answer) FlushError() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return a.err
	}
	return a.rc.Flush()
}

// close makes later writes fail: the request has ended.
func (a *answer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = http.ErrHandlerTimeout
	}
}

// comment sends a comment.
func (a *answer) comment() {
	if _, err := a.Write([]byte(":\n\n")); err == nil {
		_ = a.FlushError() // the next write has its error
	}
}

// beat sends a comment now, since some clients send nothing else until the answer has begun,
// and at every heartbeat until stop is called. The answer must be a stream of one call, which
// has no result yet.
func (a *answer) beat(clock core.Clock) (stop func()) {
	a.comment()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-clock.After(web.Heartbeat):
				a.comment()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// A reply is a ResponseWriter in this process: it keeps the answer, or gives the data of a
// stream's events to event.
type reply struct {
	header http.Header
	status int
	body   []byte // also what of an event has come
	event  func(data []byte)
	most   int // bytes of body
}

func (p *reply) Header() http.Header { return p.header }

func (p *reply) WriteHeader(status int) {
	if p.status == 0 && status >= 200 {
		p.status = status
	}
}

func (p *reply) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if len(p.body)+len(b) > p.most {
		return 0, io.ErrShortWrite
	}
	p.body = append(p.body, b...)
	if p.event != nil && p.streams() {
		p.body = events(p.body, p.event)
	}
	return len(b), nil
}

// streams reports whether the answer is a stream of events.
func (p *reply) streams() bool {
	return strings.HasPrefix(p.header.Get("Content-Type"), "text/event-stream")
}

// A stream in this process has no time limits, and nothing to flush.
func (p *reply) SetReadDeadline(time.Time) error  { return nil }
func (p *reply) SetWriteDeadline(time.Time) error { return nil }
func (p *reply) FlushError() error                { return nil }

// events calls event with the data of each whole event in b, and returns the rest.
func events(b []byte, event func(data []byte)) (rest []byte) {
	for {
		head, tail, whole := bytes.Cut(b, []byte("\n\n"))
		if !whole {
			return b
		}
		var data []byte
		for line := range bytes.Lines(head) {
			if d, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte("data: ")); ok {
				data = append(data, d...)
			}
		}
		if len(data) > 0 {
			event(data)
		}
		b = tail
	}
}
