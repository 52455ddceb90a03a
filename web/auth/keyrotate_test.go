package auth

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// opens reports whether a secret is let in.
func (h *house) opens(secret string) bool {
	_, err := h.door.Identify(request("GET", "X-API-Key", secret))
	return err == nil
}

func TestRotatingAKeyEndsItsOldSecretAtOnce(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	var ended []string
	h.keys.OnEnd(func(id string) { ended = append(ended, id) })
	old, row := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault, Scopes: []string{ScopeChat}, ExpiresAt: h.clock.Now().Add(time.Hour)})
	r, err := h.door.Identify(request("GET", "X-API-Key", old))
	if err != nil {
		t.Fatal(err)
	}
	secret, now, err := h.keys.Rotate(t.Context(), row.ID, KeyRotation{}, core.Actor{User: core.Operator, Via: "api"})
	if err != nil || secret == old || fmt.Sprint(now) != fmt.Sprint(row) {
		t.Fatalf("%+v %v, want %+v", now, err, row)
	}
	if h.opens(old) || !h.opens(secret) {
		t.Error("the old secret opens, or the new one does not")
	}
	if h.still(r) {
		t.Error("a stream opened with the old secret stays")
	}
	if fmt.Sprint(ended) != fmt.Sprint([]string{row.ID}) {
		t.Errorf("told of %v", ended)
	}
	events, _, err := store.AuditLog(t.Context(), h.db, store.AuditFilter{Action: "key.rotate"})
	if err != nil || len(events) != 1 || events[0].Subject != row.ID || events[0].User != core.Operator {
		t.Errorf("audit: %+v %v", events, err)
	}
}

func TestRotatingAKeyWithGraceKeepsBothSecretsUntilItEnds(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	var ended []string
	h.keys.OnEnd(func(id string) { ended = append(ended, id) })
	first, row := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault})
	rotate := func(grace time.Duration) string {
		t.Helper()
		secret, now, err := h.keys.Rotate(t.Context(), row.ID, KeyRotation{OldExpiresAt: h.clock.Now().Add(grace)}, core.Actor{})
		if err != nil || !now.OldExpiresAt.Equal(h.clock.Now().Add(grace)) {
			t.Fatalf("%+v %v", now, err)
		}
		return secret
	}
	second := rotate(time.Hour)
	r, err := h.door.Identify(request("GET", "X-API-Key", first))
	if err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(time.Hour - time.Second)
	if !h.opens(first) || !h.opens(second) || !h.still(r) || len(ended) != 0 {
		t.Errorf("a second before the end of the grace: %v", ended)
	}
	h.clock.Advance(time.Second)
	if h.opens(first) || !h.opens(second) || h.still(r) {
		t.Error("after the grace the old secret opens, or the new one does not")
	}
	if _, err := h.keys.Expire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows, err := h.keys.List(t.Context(), 10); err != nil || !rows[0].OldExpiresAt.IsZero() {
		t.Errorf("an old secret that has expired is kept: %+v %v", rows, err)
	}
	third := rotate(time.Hour)
	fourth := rotate(time.Hour)
	if h.opens(second) || !h.opens(third) || !h.opens(fourth) {
		t.Error("the secret before the last but one is valid, or one of the newest two is not")
	}
}

func TestRotatingAKeyIsRefused(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	by := core.Actor{User: 7, Via: "api"}
	now := h.clock.Now()
	_, owners := h.key(NewKey{Label: "owner's", User: core.Operator, Trust: core.Vault})
	_, over := h.key(NewKey{Label: "over", User: 7, Trust: core.Vault, ExpiresAt: now.Add(time.Second)})
	_, file := h.key(NewKey{Label: "file", User: 7, Trust: core.Vault})
	secret, good := h.key(NewKey{Label: "good", User: 7, Trust: core.Vault})
	if err := h.db.Tx(t.Context(), func(tx *store.Tx) error { return store.SetMetadata(t.Context(), tx, keyFileID, file.ID) }); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(time.Second)
	now = h.clock.Now()
	for name, c := range map[string]struct {
		id   string
		o    KeyRotation
		want core.Kind
	}{
		"of another's":      {owners.ID, KeyRotation{}, core.Denied},
		"that has expired":  {over.ID, KeyRotation{}, core.Conflict},
		"of the key file":   {file.ID, KeyRotation{}, core.Conflict},
		"unknown":           {"none", KeyRotation{}, core.NotFound},
		"grace in the past": {good.ID, KeyRotation{OldExpiresAt: now}, core.Invalid},
		"grace too long":    {good.ID, KeyRotation{OldExpiresAt: now.Add(MaxGrace + time.Second)}, core.Invalid},
		"not allowed":       {good.ID, KeyRotation{May: func(KeyRow) error { return core.Errorf(core.Denied, "no") }}, core.Denied},
	} {
		if got, _, err := h.keys.Rotate(context.Background(), c.id, c.o, by); core.KindOf(err) != c.want || got != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !h.opens(secret) {
		t.Error("a refused rotation changed the secret")
	}
}
