package answer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/refusal"
)

// A Writer gives an answer to the client. Exactly one of Fail and Finish is
// called, after Open and Text.
type Writer interface {
	Open() // something happens: the answer begins, though no text of it has come
	Text(s string)
	Fail(p *web.Problem) error
	Finish(end End) error
	Close() // releases what is open; always called
}

// An End is how a run ended that gave an answer.
type End struct {
	Reason string // of a completion: stop, length or content_filter
	Usage  core.Usage
}

// A Call is one request on its way to its answer.
type Call struct {
	Desk    *Desk
	R       *http.Request
	Run     string
	Session string
	Param   string // the field that holds the conversation, for errors
	// Detached: the run goes on when the client goes away, which ends the answer.
	Detached bool

	gone    atomic.Bool // the client has disconnected
	revoked atomic.Bool // the key, or the session, holds no more
}

// Gone stops the run: the client takes nothing any more.
func (c *Call) Gone() {
	c.gone.Store(true)
	if !c.Detached {
		c.Desk.Runs.Abort(c.Session)
	}
}

// Answer stores the turn and gives its run's answer to the Writer that open returns.
// It follows the run to its end also when the client has gone: it is stopped then, as
// no one could come back for it, and counts against the caller's limit until it has ended.
func (c *Call) Answer(in core.Inbound, open func(ctx context.Context) (Writer, error)) error {
	ctx, stop := context.WithCancel(context.WithoutCancel(c.R.Context()))
	defer stop()
	defer c.Desk.Authenticator.Watch(auth.Narrow(c.R, auth.ScopeChat), func() { c.revoke(stop) })()
	events := c.Desk.Follower.Follow(ctx, bus.Follow{Session: c.Session})
	if err := c.Desk.Inbox.Put(c.R.Context(), []core.Inbound{in}, nil); err != nil {
		stop()
		for range events { // the bus forgets a reader when its iteration ends
			break
		}
		return fmt.Errorf("put turn: %w", err)
	}
	defer context.AfterFunc(c.R.Context(), func() { c.leave(ctx, stop) })()
	out, err := open(ctx)
	if err != nil {
		return err
	}
	defer out.Close()
	res := Reader{Out: out, Param: c.Param}
	for e, err := range events {
		if err != nil {
			res.bad = refusal.Lost(err)
			break
		}
		if c.gone.Load() && !c.Detached {
			c.Desk.Runs.Abort(c.Session)
		}
		if e.Run == c.Run && res.Take(e) {
			break
		}
	}
	if c.revoked.Load() {
		res.bad = refusal.New(web.Unauthorized, "", "", "The API key is no longer valid.")
	}
	return res.End()
}

// leave stops the run whose client has gone; one that has not begun is stopped
// at its first event. A stop of the server ends the wait for it.
func (c *Call) leave(ctx context.Context, stop func()) {
	c.Gone()
	if c.Detached || errors.Is(context.Cause(c.R.Context()), web.ErrStopping) {
		stop()
	}
	select {
	case <-web.Stopping(ctx):
		stop()
	case <-ctx.Done():
	}
}

// revoke stops the run whose caller's key or session is gone.
func (c *Call) revoke(stop func()) {
	c.revoked.Store(true)
	c.Desk.Runs.Abort(c.Session)
	stop()
}

// Patient lifts the time limits of an answer that is one JSON body and waits for its run.
func Patient(w http.ResponseWriter) error {
	if err := web.LongLived(w); err != nil {
		return fmt.Errorf("wait for run: %w", err)
	}
	return nil
}
