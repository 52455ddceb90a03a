package admin_test

import (
	"context"
	"net/url"
	"slices"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/permission/raise"
)

// raiseWorld plays the raises of a world.
type raiseWorld struct{ *world }

func (w raiseWorld) Raises(context.Context) ([]raise.Raise, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.raises), w.broken
}

func (w raiseWorld) Confirm(_ context.Context, id string, d time.Duration, by core.Actor) (raise.Raise, error) {
	r, err := w.decideRaise(id, raise.Asked, "confirm for "+d.String(), by)
	r.For = d
	return r, err
}

func (w raiseWorld) Deny(_ context.Context, id string, by core.Actor) error {
	_, err := w.decideRaise(id, raise.Asked, "deny", by)
	return err
}

func (w raiseWorld) End(_ context.Context, id string, by core.Actor) error {
	_, err := w.decideRaise(id, raise.Held, "end", by)
	return err
}

func (w *world) decideRaise(id, state, what string, by core.Actor) (r raise.Raise, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.raises, func(r raise.Raise) bool { return r.ID == id && r.State == state })
	if i < 0 {
		return r, core.Errorf(core.Conflict, "that is decided or over already; the audit log says how")
	}
	r = w.raises[i]
	w.raises = slices.Delete(w.raises, i, i+1)
	w.note(by, "raise %s: %s", id, what)
	return r, nil
}

func TestTrustFullForATimeIsConfirmedDeniedAndEndedOnThePage(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/approvals")
	a.has(t, "Trust full is asked for", `data-left="860"`, `name="minutes" value="20" checked`, `name="minutes" value="240"`, "At trust full", "Confirmed by operator via panel",
		`action="/admin/approvals/raises/f2/confirm"`, `formaction="/admin/approvals/raises/f2/deny"`, `action="/admin/approvals/raises/f1/end"`, "commands without the sandbox")
	s.get("/admin").has(t, "The owner asks for trust full for a time")

	a = s.post("/admin/approvals/raises/f2/confirm", url.Values{"minutes": {"100000"}})
	a.has(t, "choose how long trust full holds")
	a = s.post("/admin/approvals/raises/f2/confirm", url.Values{"minutes": {"30"}})
	a.has(t, "Confirmed: trust full for 30 min")
	a.lacks(t, "raises/f2/")
	s.post("/admin/approvals/raises/f2/deny", nil).has(t, "That is decided or over already")
	s.post("/admin/approvals/raises/f1/end", nil).has(t, "Trust full is over there")
	if did := s.world.done(); !slices.Equal(did, []string{"raise f2: confirm for 30m0s", "raise f1: end"}) {
		t.Errorf("done: %q", did)
	}
	if by := s.world.lastActor(); by.User != core.Operator || by.Via != "panel" {
		t.Errorf("by %+v", by)
	}
}
