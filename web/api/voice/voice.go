// Package voice transcribes speech while it is spoken, over a WebSocket.
package voice

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"gatehouse/core"
	"gatehouse/core/voice"
	"gatehouse/core/voice/hearing"
	"gatehouse/web"
	"gatehouse/web/api/stream"
	"gatehouse/web/auth"
)

const (
	maxMessage = 64 << 10         // bytes: two seconds of audio
	maxOwn     = 5                // streams of a user, so that others find some free
	idle       = 60 * time.Second // without a message
	patience   = 10 * time.Second // for one write to a client
)

// Hearer transcribes (hearing.Hearer).
type Hearer interface {
	On() bool
	Live(ctx context.Context, user int64, emit func(voice.Event)) (s *voice.Stream, end func(), err error)
}

// Options for New. All are needed.
type Options struct {
	Hearer  Hearer
	Streams *stream.Streams
	Clock   core.Clock
	Log     *slog.Logger
}

// An API serves the route.
type API struct {
	o   Options
	own *web.Slots // streams, by user
}

// New returns an API.
func New(o Options) *API { return &API{o, web.NewSlots(maxOwn)} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{"GET /api/voice": a.voice}
}

// voice reports whether speech is transcribed; a WebSocket is a stream of it.
func (a *API) voice(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeChat)
	if err != nil {
		return err
	}
	if r.Header.Get("Upgrade") == "" {
		return web.WriteJSON(w, http.StatusOK, map[string]any{"available": a.o.Hearer.On(), "sample_rate": voice.Rate, "max_streams": hearing.MaxStreams})
	}
	defer web.Outlast(r.Context())()
	release, err := a.o.Streams.Take(p.Caller())
	if err != nil {
		return err
	}
	defer release()
	free, ok := a.own.Take(strconv.FormatInt(p.User, 10))
	if !ok {
		return &web.Problem{Fault: web.TooManyRequests, RetryAfter: web.RetrySoon,
			Detail: fmt.Sprintf("%d streams of yours are being transcribed: end one of them", maxOwn)}
	}
	defer free()
	ctx, cancel := context.WithCancelCause(web.Lasting(r.Context()))
	defer cancel(nil)
	defer a.o.Streams.Watch(auth.Narrow(r, auth.ScopeChat), func() { cancel(errAccess) })()
	defer web.OnStopping(r.Context(), func() { cancel(web.ErrStopping) })()
	c := &client{ctx: ctx, cancel: cancel}
	s, end, err := a.o.Hearer.Live(ctx, p.User, c.text)
	if err != nil {
		return a.refusal(err)
	}
	defer end()
	// It refuses pages of other origins, as the site does before.
	if c.conn, err = websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled}); err != nil {
		a.o.Log.Debug("a stream of speech was not opened", "err", err) // it has answered
		return nil
	}
	defer func() { _ = c.conn.CloseNow() }()
	c.conn.SetReadLimit(maxMessage)
	a.o.Log.Debug("a stream of speech ended", "err", c.serve(s))
	return nil
}

// refusal returns err, where too much is asked for with the time after which there is room:
// of a quota when the day ends.
func (a *API) refusal(err error) error {
	if core.KindOf(err) != core.Busy {
		return err
	}
	wait := web.RetrySoon
	if errors.Is(err, voice.ErrQuota) {
		now := a.o.Clock.Now().UTC()
		wait = now.Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	}
	return &web.Problem{Fault: web.TooManyRequests, RetryAfter: wait, Detail: core.TextOf(err), Err: err}
}

var (
	errAccess = errors.New("the caller lost access")
	errIdle   = errors.New("no audio came for a minute")
	errForm   = core.Errorf(core.Invalid, `messages are binary, of 16-bit samples, or {"type":"stop"}`)
)

// A client is the other side of a stream.
type client struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	conn   *websocket.Conn
}

// serve passes audio to s until the client stops, and ends the connection.
func (c *client) serve(s *voice.Stream) error {
	err := c.receive(s)
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		c.send(map[string]any{"type": "done"})
		return c.conn.Close(websocket.StatusNormalClosure, "")
	}
	code, message := "failed", "the transcription failed"
	switch {
	case core.KindOf(err) == core.Invalid:
		code, message = "invalid", core.TextOf(err)
	case errors.Is(err, voice.ErrQuota):
		code, message = "quota", voice.ErrQuota.Error()
	case errors.Is(err, voice.ErrTooLong):
		code, message = "too_long", err.Error()
	case errors.Is(err, errIdle), errors.Is(err, web.ErrStopping), errors.Is(err, errAccess):
		code, message = "ended", err.Error()
	}
	c.send(map[string]any{"type": "error", "code": code, "message": message})
	_ = c.conn.Close(websocket.StatusPolicyViolation, code)
	return err
}

// A message is one of the client's; err ends them.
type message struct {
	text bool
	data []byte
	err  error
}

// messages reads until the connection ends or serve has ended: a Read that is
// cancelled would end the connection before the reason is sent.
func (c *client) messages(ended <-chan struct{}) <-chan message {
	out := make(chan message)
	go func() {
		for {
			kind, data, err := c.conn.Read(context.WithoutCancel(c.ctx))
			select {
			case out <- message{kind == websocket.MessageText, data, err}:
			case <-ended:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// receive passes audio to s until the client stops.
func (c *client) receive(s *voice.Stream) error {
	ended := make(chan struct{})
	defer close(ended)
	in := c.messages(ended)
	late := time.NewTimer(idle)
	defer late.Stop()
	for {
		late.Reset(idle)
		var m message
		select {
		case m = <-in:
		case <-s.Done():
			return s.Write(nil)
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-late.C:
			return errIdle
		}
		switch {
		case m.err != nil:
			return m.err
		case m.text:
			var order struct{ Type string }
			if json.Unmarshal(m.data, &order) != nil || order.Type != "stop" {
				return errForm
			}
			return nil
		case len(m.data)%2 != 0:
			return errForm
		}
		pcm := make([]int16, len(m.data)/2)
		for i := range pcm {
			pcm[i] = int16(binary.LittleEndian.Uint16(m.data[2*i:]))
		}
		if err := s.Write(pcm); err != nil {
			return err
		}
	}
}

// text sends the text of a segment.
func (c *client) text(e voice.Event) {
	c.send(map[string]any{"type": "text", "segment": e.Segment, "start": e.Start.Seconds(), "end": e.End.Seconds(),
		"confirmed": e.Confirmed, "tentative": e.Tentative, "interim": e.Interim, "final": e.Final})
}

// send writes an event, also one about the end of the stream.
func (c *client) send(event map[string]any) {
	data, err := json.Marshal(event)
	if err != nil {
		c.cancel(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), patience)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, data); err != nil {
		c.cancel(err)
	}
}
