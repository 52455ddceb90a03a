package auth

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// follows opens a link and returns the session's cookie; nil where it was refused.
func (h *house) follows(token string) *http.Cookie {
	h.t.Helper()
	w := httptest.NewRecorder()
	err := h.admins.FollowLink(w, request("GET"), token)
	if _, refused := err.(*Refusal); err != nil && !refused {
		h.t.Fatal(err)
	}
	for _, c := range w.Result().Cookies() {
		if c.Name == CookieName {
			if err != nil {
				h.t.Error("a refused link begins a session")
			}
			return c
		}
	}
	return nil
}

func TestALinkSignsInOnceAndForAShortTime(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	if _, err := h.admins.Prepare(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if h.follows("") != nil {
		t.Error("without a link, none signs in")
	}
	old, token := h.admins.NewLink(), h.admins.NewLink()
	if h.follows(old) != nil || h.follows(token+"x") != nil || h.follows(token[1:]) != nil {
		t.Error("another token signs in")
	}
	c := h.follows(token)
	if c == nil {
		t.Fatal("the link is refused")
	}
	if _, p, ok := h.as(c, "GET"); !ok || p.User != 1 || p.MustChange || len(p.Scopes) == 0 {
		t.Errorf("the link's session is of %+v", p)
	}
	var last string
	if err := h.db.Get(t.Context(), &last, `SELECT signed_in_at FROM admin_accounts WHERE user_id = 1`); err != nil || !core.TimeOf(last).Equal(h.clock.Now()) {
		t.Errorf("the last sign-in is at %q, want now, by the link: %v", last, err)
	}
	if h.follows(token) != nil {
		t.Error("the link works twice")
	}
	late := h.admins.NewLink()
	h.clock.Advance(LinkTime)
	if h.follows(late) != nil {
		t.Error("the link works after its time")
	}
	late = h.admins.NewLink()
	h.clock.Advance(LinkTime - time.Second)
	if h.follows(late) == nil {
		t.Error("the link does not work within its time")
	}
}

// A sign-in that fails, here as the audit log cannot be written, leaves the link as it is.
func TestALinkIsNotUsedUpByASignInThatFails(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	if _, err := h.admins.Prepare(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	rename := func(from, to string) {
		t.Helper()
		err := h.db.Tx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec(t.Context(), `ALTER TABLE `+from+` RENAME TO `+to)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	token := h.admins.NewLink()
	for _, table := range []string{"audit_events", "admin_accounts", "admin_sessions"} {
		rename(table, "gone")
		w := httptest.NewRecorder()
		if err := h.admins.FollowLink(w, request("GET"), token); err == nil || slug(err) != "" || len(w.Result().Cookies()) != 0 {
			t.Errorf("without %s: %v", table, err)
		}
		rename("gone", table)
	}
	if h.follows(token) == nil {
		t.Error("the link was used up")
	}
}

func TestALinkSignsInOneOfManyAtOnce(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	if _, err := h.admins.Prepare(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	token := h.admins.NewLink()
	var in atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if h.follows(token) != nil {
				in.Add(1)
			}
		})
	}
	if all.Wait(); in.Load() != 1 {
		t.Errorf("%d browsers signed in", in.Load())
	}
}

// Who signed in by a link has turns, as the gate of the queue sees it, until the account's
// password is reset; whoever has a one-time password alone has none.
func TestALinksSessionMayChatThoughNoPasswordWasChosen(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	if _, err := h.admins.Prepare(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	trust := func() (level core.Trust) {
		t.Helper()
		err := h.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
			level, err = Gate{}.Trust(t.Context(), tx, &core.Inbound{Address: core.Address{Bot: core.APIBot}, Turn: &core.Options{User: core.Operator}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return level
	}
	if got := trust(); got != core.Stranger {
		t.Errorf("before the link: %v", got)
	}
	if h.follows(h.admins.NewLink()) == nil {
		t.Fatal("the link is refused")
	}
	if got := trust(); got != core.Vault {
		t.Errorf("with the link: %v", got)
	}
	if _, err := h.admins.Prepare(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := trust(); got != core.Vault {
		t.Errorf("a turn that waits while the demo starts again: %v", got)
	}
}

// The next start offers a one-time password: none was chosen.
func TestALinkUsesUpNoOneTimePassword(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	once, err := h.admins.Prepare(t.Context(), true)
	if err != nil || h.follows(h.admins.NewLink()) == nil {
		t.Fatal("the link is refused", err)
	}
	if _, err := h.signIn(once); err != nil {
		t.Errorf("the one-time password: %v", err)
	}
}
