package guard

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/store"
)

// What was granted while trust full held for a time covers nothing in the next
// such time, also where the word came late; other levels and earlier grants stay.
func TestGrantsOfATimeAtTrustFullEndWithIt(t *testing.T) {
	s := newStation(t)
	grant := func(p permission.Profile, what, pattern string) {
		done := s.allow(ctx, p, writeTool, what)
		s.ok(s.guard.Grant(ctx, s.asked().ID, pattern, owner))
		<-done
		s.resolved("granted", "operator via chat")
	}
	decides := func(p permission.Profile, what string) permission.Verdict {
		d, err := s.guard.Decide(ctx, s.db, p, writeTool, json.RawMessage(`{}`), access(writeTool, what))
		s.ok(err)
		return d.Verdict
	}
	below := ownersTurn
	below.Trust = core.Vault
	grant(ownersTurn, "Early/a.md", "Early/**/*") // in the panel, say
	s.clock.Advance(time.Minute)
	raised := ownersTurn
	raised.Since = s.clock.Now()
	grant(raised, "Notes/a.md", "Notes/**/*")
	grant(below, "Notes/a.md", "Notes/**/*")
	if got := decides(raised, "Notes/b.md"); got != permission.Allow {
		t.Errorf("while it holds: %v", got)
	}
	if got := decides(raised, "Early/b.md"); got != permission.MustAsk {
		t.Errorf("by a grant from before: %v", got)
	}
	s.clock.Advance(time.Minute)
	s.ok(s.db.Tx(ctx, func(tx *store.Tx) error {
		return s.guard.Lapse(ctx, tx, raised.Session, raised.User, core.Full, raised.Since)
	}))
	grant(raised, "Late/a.md", "Late/**/*") // asked while it held
	s.clock.Advance(time.Minute)
	raised.Since = s.clock.Now()
	for _, c := range []struct {
		p    permission.Profile
		what string
		want permission.Verdict
	}{
		{raised, "Notes/b.md", permission.MustAsk}, {raised, "Late/b.md", permission.MustAsk}, {ownersTurn, "Notes/b.md", permission.MustAsk},
		{below, "Notes/b.md", permission.Allow}, {ownersTurn, "Early/b.md", permission.Allow},
	} {
		if got := decides(c.p, c.what); got != c.want {
			t.Errorf("trust %s since %v, %s: %v, want %v", c.p.Trust, c.p.Since, c.what, got, c.want)
		}
	}
}

// A call that waited for a word when its run ended was not made; one that was
// allowed may have been. An id that a model used before is another call's.
func TestACallWithoutApprovalWasNotBegun(t *testing.T) {
	s := newStation(t)
	gone, leave := context.WithCancel(ctx)
	waits := s.allow(gone, ownersTurn, writeTool, "Notes/a.md")
	began := s.clock.Now()
	s.asked()
	leave()
	<-waits
	notBegun := func(run string, since time.Time) bool {
		t.Helper()
		calls, err := s.guard.NotBegun(ctx, run, since)
		s.ok(err)
		return calls["call"]
	}
	if !notBegun("r", began) || notBegun("other", began) || notBegun("r", began.Add(time.Second)) || notBegun("r", time.Time{}) {
		t.Error("nobody allowed it, in that run, at that time")
	}
	s.clock.Advance(time.Minute)
	done := s.allow(ctx, ownersTurn, writeTool, "Notes/a.md")
	s.ok(s.guard.Grant(ctx, s.asked().ID, "", owner))
	<-done
	if notBegun("r", s.clock.Now()) {
		t.Error("it was allowed")
	}
}
