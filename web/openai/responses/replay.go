package responses

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/response"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

// join follows the run of a response that another request began, from its first event to
// its end, and gives its answer to the Writer that open returns. in is the run's turn where
// that may not be in the inbox yet; else nil. over reports whether the run had ended: its
// events are those that are still kept.
func (c *call) join(in *core.Inbound, open func(ctx context.Context) (answer.Writer, error)) (over bool, err error) {
	ctx, stop := context.WithCancel(c.R.Context())
	defer stop()
	defer c.Desk.Authenticator.Watch(auth.Narrow(c.R, auth.ScopeChat), stop)()
	stream := c.Desk.Follower.Follow(ctx, bus.Follow{Session: c.Session, JustEnded: true})
	_, over, err = c.a.Runs.Run(ctx, c.Run)
	if err == nil && !over && in != nil { // it is stored once, however often it is put
		err = c.Desk.Inbox.Put(ctx, []core.Inbound{*in}, nil)
	}
	var out answer.Writer
	if err == nil {
		out, err = open(c.R.Context())
	}
	if err != nil || over {
		stop()
		for range stream { // the bus forgets a reader when its iteration ends
			break
		}
		if err != nil {
			return over, err
		}
		stream = c.Desk.Follower.Follow(c.R.Context(), bus.Follow{Session: c.Session, Run: c.Run})
	}
	defer out.Close()
	rd := answer.Reader{Out: out, Param: "input"}
	for entry, err := range stream {
		if err != nil || entry.Run == c.Run && rd.Take(entry) {
			break
		}
	}
	return over, rd.End()
}

// replay answers with the stream of a response from the beginning, without what the client
// has of it: of a run that is going on or ended a short time ago. The caller counts it as an
// answer that is waited for.
func (a *API) replay(w http.ResponseWriter, c *call, after int, in *core.Inbound) error {
	over, err := c.join(in, func(ctx context.Context) (answer.Writer, error) {
		e := newEvents(ctx, c, w, after)
		e.replayed = true
		return e, nil
	})
	if p, ok := errors.AsType[*web.Problem](err); ok && over && refusal.IsLost(p) {
		return refusal.New(web.Invalid, "invalid_value", "stream", "Invalid 'stream': the events of this response are no longer kept. Retrieve it without 'stream'.")
	}
	return err
}

// repeated returns the response that an earlier request with the same Idempotency-Key
// began; found is false without one.
func (a *API) repeated(ctx context.Context, user int64, k *once) (row response.Row, found bool, err error) {
	row, err = a.Rows.Repeated(ctx, user, responseID(k.run))
	if core.KindOf(err) == core.NotFound {
		begun, _, err := a.Runs.Run(ctx, k.run)
		if err == nil && !begun {
			begun, err = a.Runs.Queued(ctx, answer.UpdateID(k.run))
		}
		if err == nil && begun {
			err = gone()
		}
		return row, false, err
	}
	if err == nil && row.Body != k.body {
		err = refusal.Final(refusal.New(web.Conflict, "idempotency_key_reused", "", "This Idempotency-Key was used with another body."))
	}
	return row, err == nil, err
}

// gone refuses a repeat of what cannot be answered again.
func gone() error {
	return refusal.Final(refusal.New(web.Conflict, "idempotency_key_reused", "", "This Idempotency-Key was used for a response that is no longer stored."))
}

// repeat answers as the request did that began the response, or with it if it is still
// going on. Nothing is asked again.
func (a *API) repeat(w http.ResponseWriter, r *http.Request, asked *asked, row response.Row) error {
	row, err := a.settle(r.Context(), row)
	if err != nil {
		return err
	}
	q := asked.q
	if !row.Hidden {
		if _, q, err = a.find(r.Context(), row.User, row.ID, ""); err != nil {
			return err
		}
		q.Stream = asked.q.Stream
	} else if row.State != response.Open {
		return gone()
	}
	w.Header().Set("X-Run-Id", row.Run)
	var in *core.Inbound
	if row.State == response.Open {
		if in, err = a.turnOf(r.Context(), asked, row); err != nil {
			return err
		}
	}
	c := a.again(r, row, q)
	switch {
	case q.Stream:
		return a.replay(w, c, -1, in)
	case !q.Background:
		return c.wait(w, in)
	case in != nil:
		if err := a.Desk.Inbox.Put(r.Context(), []core.Inbound{*in}, nil); err != nil {
			return fmt.Errorf("put turn: %w", err)
		}
	}
	return a.show(r.Context(), w, row, &q)
}

// turnOf returns the turn of a response whose request may not have stored it: nil where it
// has.
func (a *API) turnOf(ctx context.Context, asked *asked, row response.Row) (*core.Inbound, error) {
	queued, err := a.Runs.Queued(ctx, answer.UpdateID(row.Run))
	if err != nil || queued {
		return nil, err
	}
	t, err := a.prepare(ctx, row.User, &asked.q)
	if err == nil && row.Number == 1 && t.number > 1 { // it began a session of its own
		err = a.branch(ctx, row.User, &asked.q, &t)
	}
	if err != nil {
		return nil, err
	}
	in := a.inbound(asked, &t, row)
	return &in, nil
}

// wait answers with the whole response once it has ended.
func (c *call) wait(w http.ResponseWriter, in *core.Inbound) error {
	if o, ok, err := outcomeOf(c.row); err != nil {
		return err
	} else if ok && (o.Status == completed || o.Status == incomplete) {
		return web.WriteJSON(w, http.StatusOK, object(c.row, &c.q, o))
	}
	over, err := c.join(in, func(ctx context.Context) (answer.Writer, error) {
		if err := answer.Patient(w); err != nil {
			return nil, err
		}
		return &whole{keeper{c: c, ctx: ctx}, w}, nil
	})
	if p, ok := errors.AsType[*web.Problem](err); ok && over && refusal.IsLost(p) && !c.row.Hidden {
		return c.a.show(c.R.Context(), w, c.row, &c.q) // why it failed is stored
	}
	return err
}
