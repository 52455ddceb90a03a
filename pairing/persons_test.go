package pairing

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
)

// linked is a person with an account on both platforms and access on each.
func (w *world) linked() int64 {
	w.t.Helper()
	w.admit("tg", "7", core.Vault)
	user := w.idOf("telegram", "7")
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ('discord', '70', $1, 'P on Discord', $2)`, user, core.Stamp(tx.Time()))
		return err
	}))
	w.ok(w.gate.People.GiveAccess(ctx, user, "dc", "", core.Approval{Trust: core.Sandboxed}, panel))
	return user
}

func (w *world) idOf(platform, id string) (user int64) {
	w.t.Helper()
	w.ok(w.db.Get(ctx, &user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id))
	return user
}

func dmOnDiscord(id string) core.Inbound {
	in := dm("dc", id, "hello")
	in.From.Platform = "discord"
	return in
}

func TestLinkedAccountsAreOnePersonInTheList(t *testing.T) {
	w := newWorld(t)
	user := w.linked()
	w.claim("tg", "1")
	list, err := w.gate.People.Persons(ctx, 10)
	w.ok(err)
	if len(list) != 2 || list[0].Role != "owner" || list[1].User != user {
		t.Fatalf("people %+v", list)
	}
	if a := list[1].Accounts; len(a) != 2 || a[0].Platform != "discord" || a[0].Display != "P on Discord" || a[1].ID != "7" {
		t.Errorf("accounts %+v", a)
	}
	one, err := w.gate.People.PersonOf(ctx, user)
	if err != nil || len(one.Accounts) != 2 {
		t.Errorf("%+v, %v", one, err)
	}
	rows, err := w.gate.People.AccessOf(ctx, user)
	if err != nil || len(rows) != 2 || rows[0].PlatformUserID != "70" || rows[1].PlatformUserID != "7" {
		t.Errorf("access %+v, %v", rows, err)
	}
	// Who was revoked is still somebody, to be found and forgotten.
	_, err = w.gate.People.Revoke(ctx, "tg", "7", panel)
	w.ok(err)
	w.ok(w.gate.People.RemoveAccess(ctx, rows[0].ID, panel))
	if list, _ = w.gate.People.Persons(ctx, 10); len(list) != 2 {
		t.Errorf("without access: %+v", list)
	}
	_, err = w.gate.People.PersonOf(ctx, 4711)
	wantKind(t, err, core.NotFound)
}

func TestAnAccessGetsAnotherLevelAndEndAtOnce(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	rows, err := w.gate.People.Access(ctx, 1)
	w.ok(err)
	id := rows[0].ID
	w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{Trust: core.Sandboxed, ExpiresAt: w.clock.Now().Add(time.Hour)}, panel))
	if got := w.trust(dm("tg", "7", "")); got != core.Sandboxed {
		t.Errorf("lowered to %v", got)
	}
	if !slices.Equal(w.runs.runs, []string{"tg/2"}) {
		t.Errorf("what ran at the higher level was not stopped: %v", w.runs.runs)
	}
	w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{Trust: core.Vault}, panel)) // raised, without end
	if len(w.runs.runs) != 1 {
		t.Errorf("raising stopped a run: %v", w.runs.runs)
	}
	w.clock.Advance(2 * time.Hour)
	if got := w.trust(dm("tg", "7", "")); got != core.Vault {
		t.Errorf("without end, after two hours: %v", got)
	}
	w.ok(w.gate.People.ChangeAccess(ctx, id, core.Approval{ExpiresAt: w.clock.Now().Add(time.Minute)}, panel)) // the level stays
	if got := w.trust(dm("tg", "7", "")); got != core.Vault {
		t.Errorf("a new end alone changed the level to %v", got)
	}
	w.clock.Advance(time.Hour)
	if got := w.trust(dm("tg", "7", "")); got != core.Stranger {
		t.Errorf("after its end: %v", got)
	}
	wantKind(t, w.gate.People.ChangeAccess(ctx, id, core.Approval{Trust: core.Full}, panel), core.Invalid)
	wantKind(t, w.gate.People.ChangeAccess(ctx, id, core.Approval{ExpiresAt: w.clock.Now()}, panel), core.Invalid)
	wantKind(t, w.gate.People.ChangeAccess(ctx, 4711, core.Approval{}, panel), core.NotFound)
	if n := w.audits("access.change"); n != 3 {
		t.Errorf("%d audit rows for three changes", n)
	}
}

func TestOnlyTheOwnerChangesTheOwnersAccess(t *testing.T) {
	w := newWorld(t)
	w.claim("tg", "1")
	rows, err := w.gate.People.AccessOf(ctx, core.Operator)
	w.ok(err)
	admin := core.Actor{User: 9, Via: "api"}
	wantKind(t, w.gate.People.ChangeAccess(ctx, rows[0].ID, core.Approval{Trust: core.Sandboxed}, admin), core.Denied)
	wantKind(t, w.gate.People.GiveAccess(ctx, core.Operator, "tg2", "", core.Approval{}, admin), core.Denied)
	wantKind(t, w.gate.People.Unlink(ctx, core.Operator, "telegram", admin), core.Denied)
	w.ok(w.gate.People.ChangeAccess(ctx, rows[0].ID, core.Approval{Trust: core.Sandboxed}, panel))
}

func TestAccessIsGivenWhereThePersonHasAnAccountAndNothingWaits(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	user := w.idOf("telegram", "7")
	give := func(bot, place string) error {
		return w.gate.People.GiveAccess(ctx, user, bot, place, core.Approval{Trust: core.Sandboxed}, panel)
	}
	wantKind(t, give("dc", ""), core.Invalid)  // no account there
	wantKind(t, give("tg", "g"), core.Invalid) // nobody enabled that group
	wantKind(t, give("nobody", ""), core.Invalid)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.ok(give("tg", "g"))
	if got := w.trust(inGroup(dm("tg", "7", ""), "g")); got != core.Sandboxed {
		t.Errorf("in the group: %v", got)
	}
	if got := w.trust(dm("tg", "7", "")); got != core.Vault {
		t.Errorf("the direct messages changed to %v", got)
	}
	w.put(dm("tg2", "7", "let me in"))
	wantKind(t, give("tg2", ""), core.Conflict) // waits under Pairing
	w.ok(w.gate.People.BlockUser(ctx, "tg2", "telegram", "7", panel))
	wantKind(t, give("tg2", ""), core.Conflict)
}

func TestAnUnlinkedAccountLosesWhatItMightAndIsAStranger(t *testing.T) {
	w := newWorld(t)
	user := w.linked()
	if got := w.trust(dmOnDiscord("70")); got != core.Sandboxed {
		t.Fatalf("before: %v", got)
	}
	w.ok(w.gate.People.Unlink(ctx, user, "discord", panel))
	if got := w.trust(dmOnDiscord("70")); got != core.Stranger {
		t.Errorf("the account still runs at %v", got)
	}
	if got := w.trust(dm("tg", "7", "")); got != core.Vault {
		t.Errorf("the other account runs at %v", got)
	}
	if !slices.Contains(w.runs.runs, "dc/2") {
		t.Errorf("what ran was not stopped: %v", w.runs.runs)
	}
	wantAction(t, w.put(dmOnDiscord("70")), core.Hold) // may ask at once
	wantKind(t, w.gate.People.Unlink(ctx, user, "discord", panel), core.NotFound)
	wantKind(t, w.gate.People.Unlink(ctx, user, "telegram", panel), core.Conflict)
	_, err := w.gate.Approve(ctx, w.pending().ID, core.Approval{Trust: core.Sandboxed}, panel)
	w.ok(err)
	if other := w.idOf("discord", "70"); other == user {
		t.Error("let in again, it is the same person")
	}
}

func TestABlockIsUndoneForTenSecondsWithTheAccessItTook(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.ok(w.gate.People.GiveAccess(ctx, w.idOf("telegram", "7"), "tg", "g", core.Approval{Trust: core.Sandboxed, ExpiresAt: w.clock.Now().Add(time.Hour)}, panel))
	before, err := w.gate.People.Access(ctx, 0)
	w.ok(err)
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel))
	wantAction(t, w.put(dm("tg", "7", "x")), core.Forget)
	w.clock.Advance(people.UndoFor - time.Second)
	w.ok(w.gate.People.UndoBlock(ctx, "*", "telegram", "7", panel))
	after, err := w.gate.People.Access(ctx, 0)
	w.ok(err)
	if len(after) != 2 {
		t.Fatalf("access after undo: %+v", after)
	}
	slices.Reverse(after)
	slices.SortFunc(after, func(a, b core.AccessRow) int { return strings.Compare(string(b.Scope), string(a.Scope)) })
	slices.SortFunc(before, func(a, b core.AccessRow) int { return strings.Compare(string(b.Scope), string(a.Scope)) })
	for i := range before {
		before[i].ID, after[i].ID = 0, 0
		if before[i] != after[i] {
			t.Errorf("was %+v, is %+v", before[i], after[i])
		}
	}
	wantAction(t, w.put(dm("tg", "7", "x")), core.Run)
	wantKind(t, w.gate.People.UndoBlock(ctx, "*", "telegram", "7", panel), core.NotFound)

	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "7", panel))
	w.clock.Advance(people.UndoFor + time.Second)
	wantKind(t, w.gate.People.UndoBlock(ctx, "tg", "telegram", "7", panel), core.Conflict)
}

// Blocked by a request for a group, somebody with access of their own keeps it
// when that is undone.
func TestUndoingABlockOfARequestGivesBackTheOtherAccess(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	v := w.put(dm("tg2", "7", "let me in there, too"))
	w.ok(w.gate.People.GiveAccess(ctx, w.idOf("telegram", "7"), "tg", "", core.Approval{Trust: core.Vault}, panel))
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "7", panel))
	w.ok(w.gate.People.UndoBlock(ctx, "tg", "telegram", "7", panel))
	_, err := w.gate.Block(ctx, v.Request, panel)
	w.ok(err)
	_, err = w.gate.Undo(ctx, v.Request, panel)
	w.ok(err)
	if got := w.trust(dm("tg", "7", "")); got != core.Vault {
		t.Errorf("the access on the other bot is %v", got)
	}
}
