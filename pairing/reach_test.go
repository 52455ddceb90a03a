package pairing

import (
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
)

// TestReachIsWhomTheOwnerLetIn: a person in their direct chat while the access
// holds, a group while it is enabled, on that bot; nobody else.
func TestReachIsWhomTheOwnerLetIn(t *testing.T) {
	w := newWorld(t)
	var ann int64
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) (err error) {
		if ann, err = w.gate.People.Ensure(ctx, tx, "telegram", "7", "Ann"); err != nil {
			return err
		}
		return w.gate.People.Put(ctx, tx, people.Grant{Bot: "tg", User: ann, Scope: core.ScopeDM, Trust: core.Sandboxed, Chat: "7", ExpiresAt: core.Stamp(w.clock.Now().Add(time.Hour)), At: core.Stamp(w.clock.Now())})
	}))
	w.ok(w.gate.Places.Enable(ctx, "tg", "-1", "Garden", core.Sandboxed, panel))
	other := ann + 1
	reach := func(bot, chat, place string, whose *int64) bool {
		t.Helper()
		ok, err := w.gate.People.Reach(ctx, w.db, core.Address{Bot: bot, Chat: chat, Place: place}, whose)
		w.ok(err)
		return ok
	}
	check := func(when string, person, group bool) {
		t.Helper()
		if got := reach("tg", "7", "", nil); got != person {
			t.Errorf("%s: the person is reached: %v", when, got)
		}
		if got := reach("tg", "7", "", &ann); got != person {
			t.Errorf("%s: the person reaches themselves: %v", when, got)
		}
		if got := reach("tg", "-1/5", "-1", nil); got != group {
			t.Errorf("%s: the group is reached: %v", when, got)
		}
		for _, no := range [][2]string{{"tg2", "7"}, {"dc", "7"}, {"tg", "8"}, {"tg", ""}} {
			if reach(no[0], no[1], "", nil) {
				t.Errorf("%s: %v is reached", when, no)
			}
		}
		if reach("tg", "7", "", &other) || reach("tg", "-1", "-1", &ann) || reach("tg2", "-1", "-1", nil) {
			t.Errorf("%s: somebody reaches more than their own", when)
		}
	}
	check("let in", true, true)
	w.ok(w.gate.Places.Disable(ctx, "tg", "-1", panel))
	check("group disabled", true, false)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { // as a block would be that took no access
		_, err := tx.Exec(ctx, `INSERT INTO blocks (platform, platform_user_id, bot, at) VALUES ('telegram', '7', '*', '')`)
		return err
	}))
	check("blocked", false, false)
	w.ok(w.gate.People.Unblock(ctx, "*", "telegram", "7", panel))
	check("unblocked", true, false)
	w.clock.Advance(time.Hour)
	check("expired", false, false)
}

// The topics of a direct chat are one chat: who wrote in one last is reached in the others,
// and in no other chat.
func TestReachIsTheWholeDirectChatWithItsTopics(t *testing.T) {
	w := newWorld(t)
	for i, last := range []string{"7", "7/12"} {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
			ann, err := w.gate.People.Ensure(ctx, tx, "telegram", "7", "Ann")
			if err != nil {
				return err
			}
			return w.gate.People.Put(ctx, tx, people.Grant{Bot: "tg", User: ann, Scope: core.ScopeDM, Trust: core.Sandboxed, Chat: last, At: core.Stamp(w.clock.Now())})
		}))
		for _, c := range []struct {
			to core.Address
			ok bool
		}{
			{core.Address{Chat: "7"}, true},
			{core.Address{Chat: "7/12", Thread: "12"}, true},
			{core.Address{Chat: "7/13", Thread: "13"}, true},
			{core.Address{Chat: "7/12"}, i == 1}, // as the last one is stored
			{core.Address{Chat: "7/13"}, false},
			{core.Address{Chat: "71"}, false},
			{core.Address{Chat: "71/12", Thread: "12"}, false},
			{core.Address{Chat: "%"}, false},
			{core.Address{}, false},
			{core.Address{Chat: "/12", Thread: "12"}, false},
		} {
			c.to.Bot = "tg"
			ok, err := w.gate.People.Reach(ctx, w.db, c.to, nil)
			w.ok(err)
			if ok != c.ok {
				t.Errorf("%+v is reached: %v (they wrote last in %s)", c.to, ok, last)
			}
		}
	}
}
