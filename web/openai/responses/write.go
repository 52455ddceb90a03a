package responses

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"gatehouse/web"
	"gatehouse/web/openai/answer"
	"gatehouse/web/openai/refusal"
)

// A keeper stores what an answer has become. It is the Writer of a response that no
// client waits for.
type keeper struct {
	c    *call
	ctx  context.Context // of what is stored
	over bool            // the run has ended: a lost answer will not be found
	said strings.Builder
}

func (k *keeper) Open()         {}
func (k *keeper) Close()        {}
func (k *keeper) Text(s string) { k.said.WriteString(s) }

// keep stores the end of a run and returns the outcome.
func (k *keeper) keep(end answer.End) (outcome, error) {
	o := ended(end, k.said.String(), k.c.a.Desk.Clock.Now().Unix())
	return o, k.c.a.end(k.ctx, k.c.row, o)
}

// keepFailure stores why there is no answer, unless the run may still end otherwise:
// its events are read again then.
func (k *keeper) keepFailure(p *web.Problem) (outcome, error) {
	o := broken(p, k.said.String(), k.c.a.Desk.Clock.Now().Unix())
	if k.unsure(p) {
		return o, nil
	}
	return o, k.c.a.end(k.ctx, k.c.row, o)
}

// unsure reports whether the run may end otherwise than with p.
func (k *keeper) unsure(p *web.Problem) bool {
	return !k.over && (p.Fault.Slug == web.Unauthorized.Slug || refusal.IsLost(p))
}

func (k *keeper) Finish(end answer.End) error {
	_, err := k.keep(end)
	return err
}

func (k *keeper) Fail(p *web.Problem) error {
	_, err := k.keepFailure(p)
	return err
}

// whole answers with one object.
type whole struct {
	keeper
	w http.ResponseWriter
}

func (o *whole) Fail(p *web.Problem) error {
	if _, err := o.keepFailure(p); err != nil {
		return err
	}
	if err := web.Hurry(o.w); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return p
}

func (o *whole) Finish(end answer.End) error {
	out, err := o.keep(end)
	if err != nil {
		return err
	}
	if err := web.Hurry(o.w); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return web.WriteJSON(o.w, http.StatusOK, object(o.c.row, &o.c.q, out))
}
