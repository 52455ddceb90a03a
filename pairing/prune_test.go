package pairing

import (
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/codes"
)

// Strangers' names and words do not stay for ever.
func TestOldRequestsOfStrangersGoAndOthersStay(t *testing.T) {
	w := newWorld(t)
	w.admit("tg", "7", core.Vault)
	w.put(dm("tg", "8", "hello"))
	w.put(dm("tg", "9", "hello"))
	pending := func(id string) core.PairingRequest {
		t.Helper()
		rs, err := w.gate.Requests(ctx, "pending", 10)
		w.ok(err)
		for _, r := range rs {
			if r.PlatformUserID == id {
				return r
			}
		}
		t.Fatalf("no request of %s", id)
		return core.PairingRequest{}
	}
	_, err := w.gate.Deny(ctx, pending("8").ID, panel)
	w.ok(err)
	left := func() (n int) {
		t.Helper()
		w.ok(w.db.Get(ctx, &n, `SELECT count(*) FROM pairing_requests`))
		return n
	}
	was := left()
	w.clock.Advance(KeepRequests - time.Hour)
	if n, err := w.gate.Prune(ctx); n != 0 || err != nil || left() != was {
		t.Fatalf("%d of %d went too early, %v", n, was, err)
	}
	if _, err := w.gate.Expire(ctx); err != nil { // ends 9's, which waited
		t.Fatal(err)
	}
	w.clock.Advance(2 * time.Hour)
	if n, err := w.gate.Prune(ctx); n != 1 || err != nil || left() != was-1 {
		t.Errorf("%d went, %v; %d of %d are left", n, err, left(), was)
	}
	w.clock.Advance(KeepRequests)
	if _, err := w.gate.Prune(ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.trust(dm("tg", "7", "x")); got != core.Vault {
		t.Errorf("somebody let in runs at %v", got)
	}
	if left() != was-2 {
		t.Errorf("%d of %d are left", left(), was)
	}
}

func TestARevokedUserCanBeApprovedAgainFor90Days(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"7", "8"} {
		w.admit("tg", id, core.Vault)
		w.revoke(id)
	}
	early, late := w.listed("7", "denied"), w.listed("8", "denied")
	prune := func() {
		t.Helper()
		_, err := w.gate.Prune(ctx)
		w.ok(err)
	}
	w.clock.Advance(90*24*time.Hour - time.Minute)
	prune()
	_, err := w.gate.Approve(ctx, early.ID, core.Approval{Trust: core.Sandboxed}, panel)
	w.ok(err)
	if got := w.trust(dm("tg", "7", "x")); got != core.Sandboxed {
		t.Errorf("approved again at %v", got)
	}
	w.clock.Advance(2 * time.Minute)
	prune()
	_, err = w.gate.Approve(ctx, late.ID, core.Approval{Trust: core.Sandboxed}, panel)
	wantKind(t, err, core.NotFound)
}

// What a block took stays in the list for 90 days from its end, however long it was.
func TestWhatALongBlockTookCanBeApprovedAgainFor90DaysAfterIt(t *testing.T) {
	w := newWorld(t)
	prune := func() {
		t.Helper()
		_, err := w.gate.Prune(ctx)
		w.ok(err)
	}
	for _, id := range []string{"7", "8", "9", "10"} {
		w.admit("tg", id, core.Vault)
		w.ok(w.gate.People.BlockUser(ctx, "tg", "telegram", id, panel))
	}
	// An earlier version kept nothing with the block: its requests were listed at the update.
	for _, q := range []string{`UPDATE blocks SET took = '' WHERE platform_user_id = '9'`,
		`UPDATE pairing_requests SET status = 'denied', cooled = 1, resolved_at = (SELECT at FROM blocks WHERE platform_user_id = '9'), expires_at = (SELECT at FROM blocks WHERE platform_user_id = '9') WHERE platform_user_id = '9'`} {
		w.ok(w.db.Tx(ctx, func(tx *store.Tx) error { _, err := tx.Exec(ctx, q); return err }))
	}
	// It noted the newest of two blocks there, where the first one lasted.
	w.ok(w.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE blocks SET took = '', at = $1 WHERE platform_user_id = '10'`, core.Stamp(w.clock.Now().Add(-time.Hour)))
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE pairing_requests SET status = 'denied', cooled = 1, resolved_at = $1, expires_at = $1 WHERE platform_user_id = '10'`, core.Stamp(w.clock.Now()))
		}
		return err
	}))
	w.clock.Advance(KeepRequests + 24*time.Hour)
	prune()
	for _, id := range []string{"7", "8", "9", "10"} {
		w.ok(w.gate.People.Unblock(ctx, "tg", "telegram", id, panel))
	}
	w.clock.Advance(KeepRequests - time.Minute)
	prune()
	late := w.listed("8", "denied")
	for _, id := range []string{"7", "9", "10"} {
		_, err := w.gate.Approve(ctx, w.listed(id, "denied").ID, core.Approval{Trust: core.Sandboxed}, panel)
		w.ok(err)
		if got := w.trust(dm("tg", id, "x")); got != core.Sandboxed {
			t.Errorf("%s is approved again at %v", id, got)
		}
	}
	w.clock.Advance(2 * time.Minute)
	prune()
	_, err := w.gate.Approve(ctx, late.ID, core.Approval{Trust: core.Sandboxed}, panel)
	wantKind(t, err, core.NotFound)
}

// Whoever was shut out does not come back by the invitation that let them in,
// however old its list of those who were turned away.
func TestWhoeverWasRevokedDoesNotComeBackByAnOldInvitation(t *testing.T) {
	w := newWorld(t)
	code := w.invite(codes.Invitation{Bot: "tg", Trust: core.Vault, UsesLeft: 5, ExpiresAt: w.clock.Now().Add(300 * 24 * time.Hour)})
	w.put(command("tg", "1", "pair", code))
	if got := w.trust(dm("tg", "1", "x")); got != core.Vault {
		t.Fatalf("invited at %v", got)
	}
	w.clock.Advance(time.Hour)
	if _, err := w.gate.People.Revoke(ctx, "tg", "1", panel); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(KeepRequests + time.Hour)
	_, err := w.gate.Prune(ctx)
	w.ok(err)
	w.put(command("tg", "1", "pair", code))
	if got := w.trust(dm("tg", "1", "x")); got != core.Stranger {
		t.Errorf("let in again, at %v", got)
	}
	w.clock.Advance(300 * 24 * time.Hour) // the invitation is over
	if n, err := w.gate.Prune(ctx); n != 1 || err != nil {
		t.Errorf("%d requests went, %v", n, err)
	}
}
