package answer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"gatehouse/web"
)

// OpenAfter is when a stream begins that nothing has come for, so that proxies
// and clients see it live. Until something comes or this has passed, a failure
// still has an HTTP status.
const OpenAfter = 5 * time.Second

// A Live is an answer as a stream, opened by its first content or after OpenAfter.
// It is safe for concurrent use.
type Live struct {
	c     *Call
	w     http.ResponseWriter
	first func()
	done  chan struct{}   // the wait to open has ended
	ctx   context.Context // of that wait
	stop  func()          // ends it

	mu   sync.Mutex // of what follows: the wait opens too
	s    *web.Stream
	err  error
	over bool
	free func() bool
}

// Live returns a stream that Wait has wait. first sends what every stream begins with.
func (c *Call) Live(ctx context.Context, w http.ResponseWriter, first func()) *Live {
	ctx, cancel := context.WithCancel(ctx)
	return &Live{c: c, w: w, first: first, done: make(chan struct{}), ctx: ctx, stop: cancel}
}

// Wait opens the stream after OpenAfter, unless it is open or over by then. It is called
// once, when first may be called by another goroutine.
func (l *Live) Wait() {
	wait := l.c.Desk.Clock.After(OpenAfter)
	go func() {
		defer close(l.done)
		select {
		case <-wait:
			l.Do(func() {})
		case <-l.ctx.Done():
		}
	}()
}

// Do opens the stream, unless it is open, and has f send.
func (l *Live) Do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	f()
}

// begin opens the stream once; mu is held.
func (l *Live) begin() {
	if l.s != nil || l.err != nil || l.over {
		return
	}
	if l.s, l.err = web.OpenStream(l.w, l.c.R, web.StreamOptions{Pulse: l.c.Desk.pulse, Metrics: l.c.Desk.Metrics, Plain: true}); l.err != nil {
		l.c.gone.Store(true)
		return
	}
	l.free = context.AfterFunc(l.s.Context(), l.c.Gone) // a reader that takes nothing is as good as gone
	l.first()
}

// Send sends v as JSON, under an event's name where there is one; within Do, first
// or the function of Fail only. Without a stream it does nothing.
func (l *Live) Send(event string, v any) {
	if l.s == nil {
		return
	}
	body, err := json.Marshal(v)
	if err == nil {
		err = l.s.SendEvent(event, body)
	}
	if err != nil && l.err == nil {
		l.err = err
	}
}

// Fail answers with a status where nothing was sent, else has f send the error.
func (l *Live) Fail(p *web.Problem, f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.s == nil && l.err == nil {
		l.over = true
		if err := web.Hurry(l.w); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		return p
	}
	f()
	return p
}

// Finish has f send the end. An error means that there was no stream.
func (l *Live) Finish(f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	f()
	if l.s == nil {
		return fmt.Errorf("open stream: %w", l.err)
	}
	return nil
}

// SendText sends text as it is; see Send.
func (l *Live) SendText(text string) {
	if l.s != nil {
		_ = l.s.Send("", []byte(text)) // the client may be gone
	}
}

// Close ends the stream.
func (l *Live) Close() {
	l.stop()
	<-l.done
	if l.s != nil {
		l.free()
		l.s.Close()
	}
}
