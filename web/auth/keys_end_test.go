package auth

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// TestAnExpiredKeyOpensNothing: at the door, in a stream that is open, and for
// a turn that waits; whoever stops its runs is told, and in the end it is gone.
func TestAnExpiredKeyOpensNothing(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	var ended []string
	h.keys.OnEnd(func(id string) { ended = append(ended, id) })
	if _, _, err := h.keys.Create(ctx, NewKey{Label: "k", User: 7, Trust: core.Vault, ExpiresAt: h.clock.Now()}, core.Actor{}); core.KindOf(err) != core.Invalid {
		t.Errorf("a key that has expired already: %v", err)
	}
	secret, row := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{ScopeChat}, ExpiresAt: h.clock.Now().Add(time.Hour)})
	h.key(NewKey{Label: "without end", User: 7, Trust: core.Vault})
	r, err := h.door.Identify(request("GET", "X-API-Key", secret))
	if err != nil || !h.still(r) {
		t.Fatal(err)
	}
	turn := &core.Inbound{Address: core.Address{Bot: core.APIBot}, Turn: &core.Options{User: 7, Key: row.ID}}
	trust := func() (got core.Trust) {
		t.Helper()
		if err := h.db.Tx(ctx, func(tx *store.Tx) (err error) { got, err = Gate{}.Trust(ctx, tx, turn); return err }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	h.clock.Advance(time.Hour - time.Second)
	if n, err := h.keys.Expire(ctx); n != 0 || err != nil || len(ended) != 0 || trust() != core.Vault || !h.still(r) {
		t.Fatalf("a second before its end: %d %v %v", n, err, ended)
	}
	h.clock.Advance(time.Second)
	if _, err := h.door.Identify(request("GET", "X-API-Key", secret)); slug(err) != "unauthorized" {
		t.Errorf("at the door: %v", err)
	}
	if h.still(r) {
		t.Error("its stream stays open")
	}
	if trust() != core.Stranger {
		t.Error("its turn may run")
	}
	if n, err := h.keys.Expire(ctx); n != 0 || err != nil || fmt.Sprint(ended) != fmt.Sprint([]string{row.ID}) {
		t.Errorf("%d removed, %v; told of %v", n, err, ended)
	}
	h.clock.Advance(keepExpired)
	if n, err := h.keys.Expire(ctx); n != 1 || err != nil {
		t.Errorf("%d removed after 30 days, %v", n, err)
	}
	if rows, err := h.keys.List(ctx, 10); err != nil || len(rows) != 1 || rows[0].Label != "without end" {
		t.Errorf("left: %v %v", rows, err)
	}
}

func TestTheEndOfAKeyIsReportedAndTheOwnersKeysAreTheOwnersToRevoke(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	var ended []string
	h.keys.OnEnd(func(id string) { ended = append(ended, id) })
	_, owners := h.key(NewKey{Label: "owner's", User: core.Operator, Trust: core.Vault})
	_, guests := h.key(NewKey{Label: "guest's", User: 7, Trust: core.Vault})
	if err := h.keys.Revoke(ctx, owners.ID, core.Actor{User: 7, Via: "api"}); core.KindOf(err) != core.Denied || len(ended) != 0 {
		t.Errorf("an admin revokes the owner's key: %v", err)
	}
	for _, id := range []string{guests.ID, owners.ID} {
		if err := h.keys.Revoke(ctx, id, core.Actor{User: core.Operator, Via: "api"}); err != nil {
			t.Error(err)
		}
	}
	if fmt.Sprint(ended) != fmt.Sprint([]string{guests.ID, owners.ID}) {
		t.Errorf("told of %v", ended)
	}
}

func TestThereAreNotMoreKeysThanTheirBound(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	if err := h.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO api_keys (id, label, sha256, user_id, trust_level, created_at)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) SELECT 'k' || i, 'l', 's' || i, 7, 'vault', '' FROM n`, MaxKeys)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.keys.Create(ctx, NewKey{Label: "one more", User: 7, Trust: core.Vault}, core.Actor{}); core.KindOf(err) != core.Conflict {
		t.Errorf("one key too many: %v", err)
	}
}

// still reports whether a stream of r's caller would go on.
func (h *house) still(r *http.Request) bool {
	var gone atomic.Bool
	defer h.door.Watch(r, func() { gone.Store(true) })()
	h.door.Look()
	return !gone.Load()
}
