package pairing

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/codes"
)

// listed returns the one request of a user in a state, and what lists say about it.
func (w *world) listed(id, status string) core.PairingRequest {
	w.t.Helper()
	all, err := w.gate.Requests(ctx, "", 0)
	w.ok(err)
	var found []core.PairingRequest
	for _, r := range all {
		if r.PlatformUserID == id && r.Status == status {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("of %s there are %d %s requests in %+v", id, len(found), status, all)
	}
	return found[0]
}

func (w *world) revoke(id string) {
	w.t.Helper()
	_, err := w.gate.People.Revoke(ctx, "tg", id, panel)
	w.ok(err)
}

func TestARevokedUserCanBeApprovedAgainByIDOrCode(t *testing.T) {
	for _, by := range []string{"id", "id in capitals", "code"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			w.admit("tg", "7", core.Vault)
			w.clock.Advance(3 * time.Hour) // the code has run out long ago
			w.revoke("7")
			r := w.listed("7", "denied")
			if !r.Revoked {
				t.Fatalf("a revoked access is listed as %+v", r)
			}
			w.mail.said()
			ref := map[string]string{"id": r.ID, "id in capitals": strings.ToUpper(r.ID), "code": strings.ToLower(r.Code)}[by]
			got, err := w.gate.Approve(ctx, ref, core.Approval{Trust: core.Sandboxed}, panel)
			w.ok(err)
			if got.ID != r.ID || got.Status != "approved" || got.Revoked || got.ApprovedTrustLevel != core.Sandboxed {
				t.Errorf("approved again: %+v", got)
			}
			if now := w.listed("7", "approved"); now.Revoked || !now.ResolvedAt.Equal(w.clock.Now()) {
				t.Errorf("listed as %+v", now)
			}
			if said := strings.Join(w.mail.said(), "|"); !strings.Contains(said, "c7: You have access to me again") {
				t.Errorf("the user was told %q", said)
			}
			if v := w.put(dm("tg", "7", "hello")); v.Action != core.Run || v.Trust != core.Sandboxed {
				t.Errorf("the next message: %+v", v)
			}
			w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
			wantAction(t, w.put(inGroup(dm("tg", "7", "x"), "g")), core.Run) // no cool-off is left
			_, err = w.gate.Approve(ctx, r.ID, core.Approval{}, panel)
			wantKind(t, err, core.Conflict)
			if !strings.Contains(err.Error(), "already approved") {
				t.Errorf("the second approval: %v", err)
			}
		})
	}
}

// What a user is told when their access ends, and when it begins again, is the bot's own text.
func TestTheTextsOfARevocationAreTheBotsOwn(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Text = func(bot, name string) string {
			return map[string]string{"revoked": "Finito fino a {{.Until}}, {{.Name}}.", "revoked_group": "Finito qui fino a {{.Until}}.", "approved_again": "Di nuovo qui, {{.Name}}!"}[name]
		}
	})
	w.admit("tg", "7", core.Vault)
	w.revoke("7")
	w.clock.Advance(time.Second)
	w.mail.said()
	w.put(dm("tg", "7", "x"))
	w.put(dm("tg", "7", "y"))
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "Finito fino a Friday, 9 January, ") || !strings.Contains(said[0], ", P7.") {
		t.Errorf("in a direct message: %q", said)
	}
	_, err := w.gate.Approve(ctx, w.listed("7", "denied").ID, core.Approval{}, panel)
	w.ok(err)
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "Di nuovo qui, P7!") {
		t.Errorf("approved again: %q", said)
	}
	w.revoke("7")
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	w.mail.said()
	w.put(inGroup(dm("tg", "7", "x"), "g"))
	if said := w.mail.said(); len(said) != 1 || !strings.Contains(said[0], "Finito qui fino a Friday, 9 January, ") {
		t.Errorf("in a group: %q", said)
	}
}

func TestOfTwoWhoApproveAgainTheSecondLearnsOfTheFirst(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.revoke("7")
	r := w.listed("7", "denied")
	_, err := w.gate.Deny(ctx, r.ID, panel)
	wantKind(t, err, core.Conflict)
	if !strings.Contains(err.Error(), "already revoked by") {
		t.Errorf("denying a revoked user: %v", err)
	}
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := w.gate.Approve(ctx, r.ID, core.Approval{}, panel)
			done <- err
		}()
	}
	first, second := <-done, <-done
	if (first == nil) == (second == nil) {
		t.Errorf("two approvals: %v and %v", first, second)
	}
}

func TestADeniedUserCannotBeApprovedLater(t *testing.T) {
	w := newWorld(t)
	v := w.put(dm("tg", "7", "x"))
	_, err := w.gate.Deny(ctx, v.Request, panel)
	w.ok(err)
	if r := w.listed("7", "denied"); r.Revoked {
		t.Errorf("a denied user is listed as revoked: %+v", r)
	}
	_, err = w.gate.Approve(ctx, v.Request, core.Approval{}, panel)
	wantKind(t, err, core.Conflict)
}

// Who was invited has no request, and who had two accesses has two: each can be given again.
func TestEveryAccessThatWasRevokedCanBeApprovedAgain(t *testing.T) {
	w := newWorld(t)
	w.put(command("tg", "7", "pair", w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault})))
	w.revoke("7")
	_, err := w.gate.Approve(ctx, w.listed("7", "denied").ID, core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	if got := w.trust(dm("tg", "7", "x")); got != core.Vault {
		t.Errorf("who was invited has %v", got)
	}

	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.ok(w.gate.People.GiveAccess(ctx, 2, "tg", "g", core.Approval{Trust: core.Sandboxed}, panel))
	rows, err := w.gate.People.AccessOf(ctx, 2)
	w.ok(err)
	for _, a := range rows {
		if a.Scope == core.ScopeGroup {
			w.ok(w.gate.People.RemoveAccess(ctx, a.ID, panel))
		}
	}
	r := w.listed("7", "denied")
	if !r.Revoked || r.Scope != core.ScopeGroup || r.Place != "g" {
		t.Fatalf("the removed access of a group is listed as %+v", r)
	}
	if got := w.trust(dm("tg", "7", "x")); got != core.Vault {
		t.Errorf("direct messages were taken too: %v", got)
	}
	_, err = w.gate.Approve(ctx, r.ID, core.Approval{Trust: core.Sandboxed}, panel)
	w.ok(err)
	if got := w.trust(inGroup(dm("tg", "7", "x"), "g")); got != core.Sandboxed {
		t.Errorf("in the group again at %v", got)
	}
}

func TestAccessGivenOnThePageOfAUserEndsTheRevocationInLists(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.revoke("7")
	w.ok(w.gate.People.GiveAccess(ctx, 2, "tg", "", core.Approval{Trust: core.Sandboxed}, panel))
	if r := w.listed("7", "approved"); r.Revoked || r.ApprovedTrustLevel != core.Sandboxed {
		t.Errorf("listed as %+v", r)
	}
}

func TestApprovingARevokedUserWhoAsksAgainAnswersWhatTheyAsked(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.revoke("7")
	old := w.listed("7", "denied")
	w.clock.Advance(CoolOff + time.Minute)
	asked := w.put(dm("tg", "7", "may I come back?"))
	wantAction(t, asked, core.Hold)
	got, err := w.gate.Approve(ctx, old.ID, core.Approval{}, panel)
	w.ok(err)
	if got.ID != asked.Request || len(w.mail.freed) == 0 {
		t.Errorf("approved %+v; freed %v", got, w.mail.freed)
	}
	all, err := w.gate.Requests(ctx, "", 0)
	w.ok(err)
	for _, r := range all {
		if r.Status != "approved" {
			t.Errorf("listed as %+v", r)
		}
	}
}

func TestARevokedUserLearnsOnceUntilWhenTheyGetNoAnswer(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	w.mail.said()
	w.revoke("7")
	until := w.clock.Now().Add(CoolOff).Local().Format("Monday, 2 January")
	w.clock.Advance(time.Minute)
	w.put(dm("tg", "7", "hello?"))
	if said := w.mail.said(); len(said) != 1 || !strings.HasPrefix(said[0], "c7: ") || !strings.Contains(said[0], "ask for access again") || !strings.Contains(said[0], until) {
		t.Errorf("told %q, want until %s", said, until)
	}
	for _, in := range []core.Inbound{dm("tg", "7", "hello?"), command("tg", "7", "start", ""), command("tg", "7", "pair", "ABCD-EFGH"), inGroup(dm("tg", "7", "x"), "g")} {
		wantAction(t, w.put(in), core.Drop)
		w.clock.Advance(time.Hour)
	}
	if said := w.mail.said(); len(said) != 0 {
		t.Errorf("told again: %q", said)
	}
	w.clock.Advance(CoolOff)
	wantAction(t, w.put(dm("tg", "7", "now?")), core.Hold)
	_, err := w.gate.Approve(ctx, w.pending().ID, core.Approval{}, panel)
	w.ok(err)
	w.revoke("7")
	w.clock.Advance(time.Minute)
	w.mail.said()
	w.put(inGroup(dm("tg", "7", "x"), "g"))
	if said := w.mail.said(); len(said) != 1 || !strings.HasPrefix(said[0], "g/0: ") || !strings.Contains(said[0], "do not answer you before") {
		t.Errorf("of a second revocation, in a group: %q", said)
	}
}

func TestARevokedUserIsNotToldWhereStrangersGetNoAnswer(t *testing.T) {
	for _, policy := range []string{"allowlist", "disabled"} {
		w := newWorld(t)
		w.admit("tg", "7", core.Vault)
		w.revoke("7")
		p := w.pol["tg"]
		p.DM = policy
		w.pol["tg"] = p
		w.mail.said()
		w.put(dm("tg", "7", "x"))
		w.put(inGroup(dm("tg", "7", "x"), "not enabled"))
		if said := w.mail.said(); len(said) != 0 {
			t.Errorf("%s: told %q", policy, said)
		}
	}
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.revoke("7")
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "7", panel))
	w.mail.said()
	w.put(dm("tg", "7", "x"))
	if said := w.mail.said(); len(said) != 0 {
		t.Errorf("a blocked user was told %q", said)
	}
	_, err := w.gate.Deny(ctx, w.put(dm("tg", "8", "x")).Request, panel)
	w.ok(err)
	w.mail.said()
	w.put(dm("tg", "8", "x"))
	if said := w.mail.said(); len(said) != 0 {
		t.Errorf("a denied user was told %q", said)
	}
}

func TestACodeInAGroupIsAnsweredWithWhereItBelongs(t *testing.T) {
	w := newWorld(t)
	code := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault})
	w.put(inGroup(command("tg", "7", "pair", code), "quiet"))
	if said := w.mail.said(); len(said) != 0 {
		t.Errorf("in a group that no one enabled: %q", said)
	}
	code = w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, UsesLeft: 5})
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Sandboxed, panel))
	var told []string
	for _, typed := range []string{code, "WRONG-WRONG"} { // a right one and a wrong one look the same
		w.put(inGroup(command("tg", "7", "pair", typed), "g"))
		told = append(told, w.mail.said()...)
		w.clock.Advance(10 * time.Minute)
	}
	if len(told) != 2 || told[0] != told[1] || !strings.HasPrefix(told[0], "g/0: ") || !strings.Contains(told[0], "direct message") {
		t.Errorf("told %q", told)
	}
	w.put(command("tg", "7", "pair", code))
	if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
		t.Errorf("a code that a group has read let somebody in at %v", got)
	}
	w.mail.said()
	for range 3 {
		w.put(inGroup(command("tg", "8", "link", "ABCD-EFGH-JKLM"), "g"))
	}
	if said := len(w.mail.said()); said != 1 {
		t.Errorf("three codes at once are answered %d times", said)
	}
}

// A revocation names every access that it took, so that each is given again, and none that was not there.
func TestApprovingAgainGivesWhatWasRevokedAndNoMore(t *testing.T) {
	for _, by := range []string{"bot", "row"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
			w.put(command("tg", "7", "pair", w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, Scope: core.ScopeGroup, Place: "g"})))
			if by == "bot" {
				w.revoke("7")
			} else {
				rows, err := w.gate.People.AccessOf(ctx, w.idOf("telegram", "7"))
				w.ok(err)
				w.ok(w.gate.People.RemoveAccess(ctx, rows[0].ID, panel))
			}
			r := w.listed("7", "denied")
			if !r.Revoked || r.Scope != core.ScopeGroup || r.Place != "g" {
				t.Fatalf("listed as %+v", r)
			}
			_, err := w.gate.Approve(ctx, r.ID, core.Approval{Trust: core.Vault}, panel)
			w.ok(err)
			if got := w.trust(inGroup(dm("tg", "7", "x"), "g")); got != core.Vault {
				t.Errorf("in the group again at %v", got)
			}
			if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
				t.Errorf("a group's access became one to direct messages, at %v", got)
			}
		})
	}
}

func TestOfTwoAccessesThatWereRevokedTogetherEachCanBeApprovedAgain(t *testing.T) {
	w := newWorld(t)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.ok(w.gate.Places.Enable(ctx, "tg", "h", "H", core.Vault, panel))
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.People.GiveAccess(ctx, w.idOf("telegram", "7"), "tg", "g", core.Approval{Trust: core.Sandboxed}, panel))
	w.revoke("7")
	for _, in := range []core.Inbound{dm("tg", "7", "x"), inGroup(dm("tg", "7", "x"), "g"), inGroup(dm("tg", "7", "x"), "h")} {
		if got := w.trust(in); got != core.Stranger {
			t.Errorf("after the revocation, in %q: %v", in.Place, got)
		}
	}
	all, err := w.gate.Requests(ctx, "denied", 0)
	w.ok(err)
	if len(all) != 2 {
		t.Fatalf("revoked: %+v", all)
	}
	for _, r := range all {
		_, err := w.gate.Approve(ctx, r.ID, core.Approval{Trust: core.Vault}, panel)
		w.ok(err)
	}
	for _, in := range []core.Inbound{dm("tg", "7", "x"), inGroup(dm("tg", "7", "x"), "g"), inGroup(dm("tg", "7", "x"), "h")} {
		if got := w.trust(in); got != core.Vault {
			t.Errorf("approved again, in %q: %v", in.Place, got)
		}
	}
}

// The docs say so: until they may ask again, no code of theirs is read.
func TestAnInvitationWorksForARevokedUserOnlyAfterTheCoolOffAndIfItIsNewer(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	older := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, ExpiresAt: w.clock.Now().Add(30 * 24 * time.Hour)})
	w.clock.Advance(time.Minute)
	w.revoke("7")
	w.clock.Advance(time.Minute)
	newer := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, ExpiresAt: w.clock.Now().Add(30 * 24 * time.Hour)})
	try := func(code string, want core.Trust) {
		t.Helper()
		w.put(command("tg", "7", "pair", code))
		if got := w.trust(dm("tg", "7", "x")); got != want {
			t.Errorf("let in at %v, want %v", got, want)
		}
	}
	try(newer, core.Stranger)
	w.clock.Advance(CoolOff)
	try(older, core.Stranger)
	try(newer, core.Vault)
}

func TestRevokedUsersAreListedByTheTimeOfTheRevocation(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"7", "8", "9"} { // 7 asked first
		w.admit("tg", id, core.Vault)
		w.clock.Advance(time.Hour)
	}
	for _, id := range []string{"8", "9", "7"} { // and is revoked last
		w.revoke(id)
		w.clock.Advance(time.Hour)
	}
	latest, err := w.gate.Requests(ctx, "denied", 1)
	w.ok(err)
	if len(latest) != 1 || latest[0].PlatformUserID != "7" {
		t.Errorf("the latest revocation is %+v", latest)
	}
}

func TestAUserWhoWasBlockedAndUnblockedCanBeApprovedAgainByTheOldRequest(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.admit("tg", "8", core.Vault)
	id := w.listed("7", "approved").ID
	w.clock.Advance(time.Hour)
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel))
	blocked := w.clock.Now()
	w.clock.Advance(time.Hour)
	w.upkeep()
	w.ok(w.gate.People.Unblock(ctx, "*", "telegram", "7", core.Actor{User: core.Operator, Via: "cli"}))
	if r := w.listed("7", "denied"); r.ID != id || !r.Revoked || r.ResolvedBy != panel.String() || !r.ResolvedAt.Equal(blocked) {
		t.Errorf("listed as %+v", r)
	}
	if r := w.listed("8", "approved"); r.Revoked {
		t.Errorf("another user is listed as %+v", r)
	}
	wantAction(t, w.put(dm("tg", "7", "may I?")), core.Hold) // without cool-off
	_, err := w.gate.Approve(ctx, id, core.Approval{Trust: core.Sandboxed}, panel)
	w.ok(err)
	if got := w.trust(dm("tg", "7", "x")); got != core.Sandboxed {
		t.Errorf("approved again at %v", got)
	}
	w.revoke("7")
	wantAction(t, w.put(dm("tg", "7", "may I?")), 0) // a revocation after it has its cool-off
}

// upkeep does what runs every minute.
func (w *world) upkeep() {
	w.t.Helper()
	_, err := w.gate.Expire(ctx)
	w.ok(err)
	_, err = w.gate.Prune(ctx)
	w.ok(err)
}

// An invitation from before a block gives back nothing of what the block took, whether a
// request gave it or the same invitation did.
func TestWhoeverWasBlockedAndUnblockedDoesNotComeBackByAnOldInvitation(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.clock.Advance(time.Minute)
	old := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, UsesLeft: 5})
	w.put(command("tg", "9", "pair", old))
	if got := w.trust(dm("tg", "9", "x")); got != core.Vault {
		t.Fatalf("invited at %v", got)
	}
	w.clock.Advance(time.Hour)
	for _, id := range []string{"7", "9"} {
		w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", id, panel))
	}
	w.clock.Advance(time.Hour)
	w.upkeep()
	for _, id := range []string{"7", "9"} {
		w.ok(w.gate.People.Unblock(ctx, "tg", "telegram", id, panel))
		w.put(command("tg", id, "pair", old))
		if got := w.trust(dm("tg", id, "x")); got != core.Stranger {
			t.Errorf("%s is let in again, at %v", id, got)
		}
	}
	// What the invitation gave is listed, and can be approved again.
	_, err := w.gate.Approve(ctx, w.listed("9", "denied").ID, core.Approval{Trust: core.Sandboxed}, panel)
	w.ok(err)
	if got := w.trust(dm("tg", "9", "x")); got != core.Sandboxed {
		t.Errorf("approved again at %v", got)
	}
	w.put(command("tg", "7", "pair", w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault})))
	if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
		return
	}
	t.Error("an invitation from after the block does not work")
}

// Access that was given again for a time ends, and an invitation from before the loss
// gives no more of it.
func TestWhoeverWasApprovedAgainForATimeDoesNotStayByAnOldInvitation(t *testing.T) {
	for _, by := range []string{"block", "revocation"} {
		t.Run(by, func(t *testing.T) {
			w := newWorld(t)
			forAYear := func() string {
				return w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, UsesLeft: 5, ExpiresAt: w.clock.Now().Add(300 * 24 * time.Hour)})
			}
			old := forAYear()
			w.put(command("tg", "7", "pair", old))
			w.clock.Advance(time.Hour)
			if by == "block" {
				w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "7", panel))
				w.clock.Advance(time.Hour)
				w.ok(w.gate.People.Unblock(ctx, "tg", "telegram", "7", panel))
			} else {
				w.revoke("7")
			}
			w.clock.Advance(time.Hour)
			_, err := w.gate.Approve(ctx, w.listed("7", "denied").ID, core.Approval{Trust: core.Sandboxed, ExpiresAt: w.clock.Now().Add(24 * time.Hour)}, panel)
			w.ok(err)
			if got := w.trust(dm("tg", "7", "x")); got != core.Sandboxed {
				t.Fatalf("approved again at %v", got)
			}
			w.clock.Advance(25 * time.Hour)
			w.upkeep()
			w.put(command("tg", "7", "pair", old))
			if got := w.trust(dm("tg", "7", "x")); got != core.Stranger {
				t.Errorf("let in again by the old invitation, at %v", got)
			}
			w.put(command("tg", "7", "pair", forAYear()))
			if got := w.trust(dm("tg", "7", "x")); got != core.Vault {
				t.Errorf("a newer invitation lets in at %v", got)
			}
		})
	}
}

// When access was lost stays with a request that is approved again, also one that an earlier
// version revoked, which left in it when the request itself would have ended.
func TestAnInvitationFromBeforeALossIsVoidWhateverTheRequestsOwnEnd(t *testing.T) {
	again := map[string]func(w *world){
		"approved": func(w *world) {
			_, err := w.gate.Approve(ctx, w.listed("7", "denied").ID, core.Approval{Trust: core.Sandboxed, ExpiresAt: w.clock.Now().Add(24 * time.Hour)}, panel)
			w.ok(err)
		},
		"given": func(w *world) {
			w.ok(w.gate.People.GiveAccess(ctx, w.idOf("telegram", "7"), "tg", "", core.Approval{Trust: core.Sandboxed, ExpiresAt: w.clock.Now().Add(24 * time.Hour)}, panel))
		},
	}
	for how, again := range again {
		for name, c := range map[string]struct {
			end     time.Duration // of the request, from the revocation
			invited time.Duration // from the revocation
			passes  time.Duration // from it until the access is given again
			want    core.Trust
		}{
			"of before":                        {-12 * 24 * time.Hour, -time.Hour, time.Hour, core.Stranger},
			"of before, the request lasts":     {6 * 24 * time.Hour, -time.Hour, time.Hour, core.Stranger},
			"of after, the request lasts":      {6 * 24 * time.Hour, time.Hour, 7 * 24 * time.Hour, core.Vault},
			"of before, the clock is set back": {0, -10 * 24 * time.Hour, -5 * 24 * time.Hour, core.Stranger},
		} {
			t.Run(how+" "+name, func(t *testing.T) {
				w := newWorld(t)
				w.admit("tg", "7", core.Vault)
				w.clock.Advance(20 * 24 * time.Hour)
				lost := w.clock.Now()
				at := func(d time.Duration) { w.clock.Advance(lost.Add(d).Sub(w.clock.Now())) }
				at(c.invited)
				code := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, UsesLeft: 5, ExpiresAt: w.clock.Now().Add(300 * 24 * time.Hour)})
				at(0)
				w.revoke("7")
				w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
					_, err := tx.Exec(ctx, `UPDATE pairing_requests SET expires_at = $1 WHERE status = 'denied'`, core.Stamp(lost.Add(c.end)))
					return err
				}))
				at(c.passes)
				again(w)
				w.clock.Advance(25 * time.Hour)
				w.upkeep()
				w.put(command("tg", "7", "pair", code))
				if got := w.trust(dm("tg", "7", "x")); got != c.want {
					t.Errorf("let in at %v, want %v", got, c.want)
				}
			})
		}
	}
}

func TestWhatABlockTookFollowsItsGroupToANewID(t *testing.T) {
	w := newWorld(t)
	w.ok(w.gate.Places.Enable(ctx, "tg", "g", "G", core.Vault, panel))
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.People.GiveAccess(ctx, w.idOf("telegram", "7"), "tg", "g", core.Approval{Trust: core.Sandboxed}, panel))
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel))
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { return w.gate.Move(ctx, tx, "tg", "g", "h") }))
	w.ok(w.gate.People.Unblock(ctx, "*", "telegram", "7", panel))
	all, err := w.gate.Requests(ctx, "denied", 0)
	w.ok(err)
	var places []string
	for _, r := range all {
		places = append(places, r.Place)
	}
	if slices.Sort(places); !slices.Equal(places, []string{"", "h"}) {
		t.Errorf("revoked in %q", places)
	}
}

func TestAnUndoneBlockLeavesTheRequestApproved(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", "7", panel))
	w.ok(w.gate.People.UndoBlock(ctx, "tg", "telegram", "7", panel))
	if r := w.listed("7", "approved"); r.Revoked {
		t.Errorf("listed as %+v", r)
	}
}

// A block that took nothing revokes nothing: not when it is undone, and not when it ends.
func TestOnlyWhatABlockTookCountsAsRevoked(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	user := w.idOf("telegram", "7")
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, created_at) VALUES ('discord', '70', $1, $2)`, user, core.Stamp(w.clock.Now()))
		return err
	}))
	w.ok(w.gate.People.Unlink(ctx, user, "telegram", panel))
	w.admit("tg", "8", core.Vault)
	list, err := w.gate.People.Access(ctx, 1)
	w.ok(err)
	w.ok(w.gate.People.ChangeAccess(ctx, list[0].ID, core.Approval{Trust: core.Vault, ExpiresAt: w.clock.Now().Add(time.Minute)}, panel))
	w.clock.Advance(time.Hour)
	for _, id := range []string{"7", "8"} {
		w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", id, panel))
		w.ok(w.gate.People.UndoBlock(ctx, "tg", "telegram", id, panel))
		w.listed(id, "approved")
		w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", id, panel))
		w.ok(w.gate.People.Unblock(ctx, "tg", "telegram", id, panel))
		w.listed(id, "approved")
	}
}

// Undone in the panel, the end of a block is a block again.
func TestARevokedUserWhoIsBlockedIsListedAsBlockedAndNotApproved(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel))
	w.ok(w.gate.People.Unblock(ctx, "*", "telegram", "7", panel))
	w.ok(w.gate.People.BlockUser(ctx, "*", "telegram", "7", panel))
	r := w.listed("7", "denied")
	if r.Revoked || !r.Blocked {
		t.Errorf("listed as %+v", r)
	}
	_, err := w.gate.Approve(ctx, r.ID, core.Approval{Trust: core.Vault}, panel)
	wantKind(t, err, core.Conflict)
	w.ok(w.gate.People.Unblock(ctx, "*", "telegram", "7", panel))
	_, err = w.gate.Approve(ctx, r.ID, core.Approval{Trust: core.Vault}, panel)
	w.ok(err)
	if got := w.trust(dm("tg", "7", "x")); got != core.Vault {
		t.Errorf("approved again at %v", got)
	}
}
