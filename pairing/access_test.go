package pairing

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
)

func TestBlockLeavesNothing(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	_, err := w.gate.Block(ctx, v.Request, panel)
	w.ok(err)
	w.mail.said()
	for _, in := range []core.Inbound{dm("tg", "7", "x"), command("tg", "7", "claim", "x"), inGroup(dm("tg", "7", "x"), "g")} {
		wantAction(t, w.put(in), core.Forget)
	}
	if said := w.mail.said(); len(said) != 0 {
		t.Fatalf("a blocked person was told %q", said)
	}
	wantAction(t, w.put(dm("tg2", "7", "x")), core.Hold) // another bot's block is not this one's
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel))
	wantAction(t, w.put(dm("tg2", "7", "x")), core.Forget)
	w.ok(w.gate.People.Unblock(ctx, "*", "telegram", "7", panel))
	w.ok(w.gate.People.Unblock(ctx, "tg", "telegram", "7", panel))
	wantAction(t, w.put(dm("tg", "7", "x")), core.Hold)
	wantKind(t, w.gate.People.Unblock(ctx, "tg", "telegram", "7", panel), core.NotFound)
}

func TestBlockTakesAccess(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel))
	w.ok(w.gate.People.Unblock(ctx, "*", "telegram", "7", panel))
	if got := w.trust(dm("tg", "7", "")); got != core.Stranger {
		t.Fatalf("unblocking gave %v back", got)
	}
	if !slices.Contains(w.runs.runs, "tg/2") {
		t.Fatalf("blocking stopped nothing: %v", w.runs.runs)
	}
}

func TestWhatAllListedPeopleMayDoIsReadHoweverManyRowsThatIs(t *testing.T) {
	w := newWorld(t)
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		for user := 10; user < 710; user++ {
			if _, err := tx.Exec(ctx, `INSERT INTO users (id, display, created_at) VALUES ($1, $2, '')`, user, fmt.Sprint("Person ", user)); err != nil {
				return err
			}
			for n := range map[bool]int{true: 2, false: 30}[user != 10] {
				if _, err := tx.Exec(ctx, `INSERT INTO access (bot, user_id, scope, place, trust_level, at) VALUES ('tg', $1, 'group', $2, 'vault', '')`, user, fmt.Sprint("g", n)); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	rows, err := w.gate.People.PersonsWithAccess(ctx, 1000)
	w.ok(err)
	of := map[int64]int{}
	for _, p := range rows {
		of[p.User] = len(p.Access)
	}
	if len(of) != 700 || of[10] != 20 || of[11] != 2 || of[709] != 2 {
		t.Errorf("%d people; of the first %d, of the second %d, of the last %d", len(of), of[10], of[11], of[709])
	}
	if rows, err = w.gate.People.PersonsWithAccess(ctx, 5); err != nil || len(rows) != 5 || rows[0].User != 709 || rows[4].User != 705 || len(rows[4].Access) != 2 || rows[0].Access[0].Display != "Person 709" {
		t.Errorf("of five people: %+v, %v", rows, err)
	}
}

func TestRevokedIsRefusedStoppedAndCoolsOff(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	queued := dm("tg", "7", "in the queue")
	wantAction(t, w.put(queued), core.Run)
	n, err := w.gate.People.Revoke(ctx, "tg", "7", panel)
	if n != 1 || err != nil {
		t.Fatalf("revoked %d, %v", n, err)
	}
	if got := w.trust(queued); got != core.Stranger {
		t.Fatalf("what waited still runs at %v", got)
	}
	if !slices.Equal(w.runs.runs, []string{"tg/2"}) {
		t.Fatalf("stopped %v", w.runs.runs)
	}
	wantAction(t, w.put(dm("tg", "7", "x")), core.Drop)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	wantAction(t, w.put(inGroup(dm("tg", "7", "x"), "g")), core.Drop) // nor by way of a group
	_, err = w.gate.People.Revoke(ctx, "tg", "7", panel)
	wantKind(t, err, core.NotFound)
	w.clock.Advance(CoolOff + time.Minute)
	wantAction(t, w.put(dm("tg", "7", "x")), core.Hold)
	if n := w.audits("access.revoke"); n != 1 {
		t.Fatalf("%d audit rows for one revocation", n)
	}
}

func TestRemoveAccessOfOneRow(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	rows, err := w.gate.People.Access(ctx, 0)
	w.ok(err)
	if len(rows) != 1 || rows[0].PlatformUserID != "7" || rows[0].Platform != "telegram" || rows[0].Trust != core.Vault || rows[0].Display != "P7" {
		t.Fatalf("access %+v", rows)
	}
	w.ok(w.gate.People.RemoveAccess(ctx, rows[0].ID, panel))
	wantKind(t, w.gate.People.RemoveAccess(ctx, rows[0].ID, panel), core.NotFound)
	wantAction(t, w.put(dm("tg", "7", "x")), core.Drop)
}

func TestPlatformNameMeansItsOnlyBot(t *testing.T) {
	w := newWorld(t)
	_, err := w.gate.People.Revoke(ctx, "telegram", "7", panel)
	wantKind(t, err, core.Invalid) // there are two
	in := dm("dc", "9", "hi")
	in.From.Platform = "discord"
	v := w.put(in)
	_, err = w.gate.Approve(ctx, v.Request, core.Approval{}, panel)
	w.ok(err)
	if n, err := w.gate.People.Revoke(ctx, "discord", "9", panel); n != 1 || err != nil {
		t.Fatalf("revoked %d, %v", n, err)
	}
}

func TestAccessEnds(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "a"))
	_, err := w.gate.Approve(ctx, v.Request, core.Approval{ExpiresAt: w.clock.Now().Add(-time.Second)}, panel)
	wantKind(t, err, core.Invalid)
	_, err = w.gate.Approve(ctx, v.Request, core.Approval{Trust: core.Full}, panel)
	wantKind(t, err, core.Invalid)
	_, err = w.gate.Approve(ctx, v.Request, core.Approval{Scope: core.ScopeGroup}, panel)
	wantKind(t, err, core.Invalid)
	_, err = w.gate.Approve(ctx, v.Request, core.Approval{ExpiresAt: w.clock.Now().Add(24 * time.Hour)}, panel)
	w.ok(err)
	if v := w.put(dm("tg", "7", "b")); v.Trust != core.Sandboxed {
		t.Fatalf("the preset is %v", v.Trust)
	}
	w.clock.Advance(24 * time.Hour)
	if got := w.trust(dm("tg", "7", "b")); got != core.Stranger {
		t.Fatalf("after the end %v", got)
	}
	wantAction(t, w.put(dm("tg", "7", "c")), core.Hold) // a stranger again, who may ask
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy bots.Policy
		want   core.Verdict
	}{
		{bots.Policy{DM: bots.Pairing}, core.Verdict{Action: core.Hold}},
		{bots.Policy{}, core.Verdict{Action: core.Hold}},
		{bots.Policy{DM: bots.Allowlist}, core.Verdict{}},
		{bots.Policy{DM: bots.Allowlist, Allowed: []string{"8"}}, core.Verdict{}},
		{bots.Policy{DM: bots.Allowlist, Allowed: []string{"7"}}, core.Verdict{Action: core.Run, Trust: core.Sandboxed}},
		{bots.Policy{DM: bots.Allowlist, Allowed: []string{"7"}, DMTrust: core.Vault}, core.Verdict{Action: core.Run, Trust: core.Vault}},
		{bots.Policy{DM: bots.Allowlist, Allowed: []string{""}}, core.Verdict{}},
		{bots.Policy{DM: bots.Open}, core.Verdict{Action: core.Run, Trust: core.Sandboxed}},
		{bots.Policy{DM: bots.Open, DMTrust: core.Full}, core.Verdict{Action: core.Run, Trust: core.Sandboxed}}, // no one has decided about them
		{bots.Policy{DM: bots.Disabled}, core.Verdict{}},
		{bots.Policy{DM: "everyone"}, core.Verdict{}}, // a word nobody knows opens nothing
	} {
		t.Run(fmt.Sprintf("%s %v", c.policy.DM, c.policy.Allowed), func(t *testing.T) {
			w := newWorld(t)
			w.pol["tg"] = c.policy
			got := w.put(dm("tg", "7", "x"))
			got.Request = ""
			if got != c.want {
				t.Fatalf("%+v, want %+v", got, c.want)
			}
			if said := w.mail.said(); len(said) > 0 && c.want.Action != core.Hold {
				t.Fatalf("told %q", said)
			}
			if c.want.Action == core.Run {
				id, role, err := w.gate.People.User(ctx, w.db, peer("7"))
				if id < 2 || role != "guest" || err != nil {
					t.Fatalf("whom a policy lets in is user %d, %q, %v: their things would be shared", id, role, err)
				}
				w.put(dm("tg", "8", "y"))
				if other, _, _ := w.gate.People.User(ctx, w.db, peer("8")); other == id {
					t.Fatal("two people are one user")
				}
			}
		})
	}
}
func TestOnlyTheOwnerDecidesAboutTheOwner(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	admin := core.Actor{User: 5, Via: "chat"}
	_, err := w.gate.People.Revoke(ctx, "tg", "1", admin)
	wantKind(t, err, core.Denied)
	wantKind(t, w.gate.People.BlockUser(ctx, "*", "telegram", "1", admin), core.Denied)
	rows, err := w.gate.People.Access(ctx, 0)
	w.ok(err)
	wantKind(t, w.gate.People.RemoveAccess(ctx, rows[0].ID, admin), core.Denied)
	_, err = w.gate.People.Revoke(ctx, "tg", "1", panel) // a stolen account
	w.ok(err)
	if _, role, _ := w.gate.People.User(ctx, w.db, peer("1")); role != "guest" {
		t.Fatalf("a revoked account is still %q", role)
	}
	wantAction(t, w.put(inGroup(command("tg", "1", "enable", ""), "g")), core.Drop)
}

// Whatever ends somebody's access ends what tools they were allowed, in the same
// transaction; an access that only gets other terms does not.
func TestWhatSomebodyWasAllowedEndsWithTheirAccess(t *testing.T) {
	var lost []int64
	inTx := func(_ context.Context, _ *store.Tx, user int64) error {
		lost = append(lost, user)
		return nil
	}
	const user = 2
	for name, c := range map[string]struct {
		ends bool
		do   func(w *world, access int64)
	}{
		"revoked": {true, func(w *world, _ int64) {
			_, err := w.gate.People.Revoke(ctx, "tg", "7", panel)
			w.ok(err)
		}},
		"removed": {true, func(w *world, id int64) { w.ok(w.gate.People.RemoveAccess(ctx, id, panel)) }},
		"blocked": {true, func(w *world, _ int64) { w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel)) }},
		"expired, then approved": {true, func(w *world, id int64) {
			w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{ExpiresAt: w.clock.Now().Add(time.Hour)}, panel))
			w.clock.Advance(2 * time.Hour)
			w.admit("tg", "7", core.Vault)
		}},
		"expired, then given": {true, func(w *world, id int64) {
			w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{ExpiresAt: w.clock.Now().Add(time.Hour)}, panel))
			w.clock.Advance(2 * time.Hour)
			w.ok(w.gate.People.GiveAccess(ctx, user, "tg", "", core.Approval{Trust: core.Vault}, panel))
		}},
		"expired, then prolonged": {true, func(w *world, id int64) {
			w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{ExpiresAt: w.clock.Now().Add(time.Hour)}, panel))
			w.clock.Advance(2 * time.Hour)
			w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{}, panel))
		}},
		"prolonged in time": {false, func(w *world, id int64) {
			w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{ExpiresAt: w.clock.Now().Add(time.Hour)}, panel))
			w.clock.Advance(30 * time.Minute)
			w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{}, panel))
		}},
		"given another place": {false, func(w *world, _ int64) {
			w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
			w.ok(w.gate.People.GiveAccess(ctx, user, "tg", "g", core.Approval{Trust: core.Sandboxed}, panel))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) { o.Ungrant = inTx })
			w.admit("tg", "7", core.Vault)
			rows, err := w.gate.People.Access(ctx, 0)
			w.ok(err)
			lost = nil
			c.do(w, rows[0].ID)
			if ended := slices.Contains(lost, user); ended != c.ends {
				t.Errorf("what they were allowed ended: %t, want %t", ended, c.ends)
			}
		})
	}
}
