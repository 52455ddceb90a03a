package guard

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
)

// After a crash nobody waits for what was asked: a yes would do nothing, and
// the person's next message is a message.
func TestWhatACrashLeftOpenIsClosedAtTheStart(t *testing.T) {
	s := newStation(t)
	waits := s.begun(ownersTurn)
	question := s.open(ask.Ask{Kind: ask.KindQuestion, Run: "r", Bot: "tg", Chat: "d", User: 7, Asker: 7, ExpiresAt: s.clock.Now().Add(time.Minute)})
	choice := s.open(ask.Ask{Kind: ask.KindChoice, Run: "r2", Bot: "tg", Chat: "d", User: 7, ExpiresAt: s.clock.Now().Add(time.Minute)})
	pairing := s.open(ask.Ask{Kind: ask.KindPairing, Run: "p"})
	s.ok(s.guard.Abandon(ctx))
	for _, a := range []ask.Ask{waits, question} {
		if got := s.board.outcome(a.ID); len(got) != 1 {
			t.Errorf("%s is shown as %q", a.Kind, got)
		}
	}
	wantKind(t, s.guard.Press(ctx, waits.ID, ask.OptionOnce, owner), core.Conflict)
	s.ok(s.db.Tx(ctx, func(tx *store.Tx) error {
		if _, open, err := s.store.Waiting(ctx, tx, "tg", "d", 7); err != nil || open {
			t.Errorf("the next message would be an answer: %v", err)
		}
		return nil
	}))
	for _, a := range []ask.Ask{choice, pairing} {
		if got, err := s.store.ByID(ctx, s.db, a.ID); err != nil || got.State != ask.Open {
			t.Errorf("%s: %+v %v", a.Kind, got, err)
		}
	}
}

// People known by their group alone share an id: what one is allowed is this
// once, and strangers who knock are not their questions.
func TestAGrantIsNeverTheWholeGroups(t *testing.T) {
	s := newStation(t)
	for i := range guestDaily {
		s.open(ask.Ask{Kind: ask.KindPairing, Run: fmt.Sprint(i)})
	}
	somebody := permission.Profile{Trust: core.Vault, Session: "g", Run: "r0", CanAsk: true, Bot: "tg", Chat: "g"}
	done := s.allow(ctx, somebody, bashTool, "ls")
	r := s.asked()
	if len(r.SuggestedGrants) != 0 {
		t.Errorf("suggested: %+v", r.SuggestedGrants)
	}
	wantKind(t, s.guard.Grant(ctx, r.ID, "ls", owner), core.Invalid)
	s.ok(s.guard.Grant(ctx, r.ID, "", owner))
	if v := <-done; v.err != nil || v.d.Verdict != permission.Allow {
		t.Errorf("%+v", v)
	}
	s.ok(s.db.Tx(ctx, func(tx *store.Tx) error { // of an older version
		_, err := tx.Exec(ctx, `INSERT INTO tool_grants (id, session_id, user_id, trust, kind, pattern, ask, granted_by, created_at)
			VALUES ('x', 'g', 0, $1, 'bash', 'ls', '', '', '')`, core.Vault)
		return err
	}))
	if d, err := s.guard.Decide(ctx, s.db, somebody, bashTool, json.RawMessage(`{}`), access(bashTool, "ls")); err != nil || d.Verdict != permission.MustAsk {
		t.Errorf("%+v %v", d, err)
	}
}
