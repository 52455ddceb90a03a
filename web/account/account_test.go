package account

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
	"gatehouse/web/auth"
	"gatehouse/web/auth/authtest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const chosen = "correct horse battery"

var owner = core.Actor{User: core.Operator, Via: "cli"}

// A house is the accounts over the real sign-in and the real users.
type house struct {
	*Store
	t      *testing.T
	db     *store.DB
	clock  *coretest.Clock
	admins *auth.Admins
	door   *auth.Authenticator
	keys   *auth.Keys
	ended  int     // how often sessions ended
	abort  []int64 // whose turns were stopped
	invitations
}

// invitations are the users whose invitations were ended.
type invitations []int64

func (i *invitations) Withdraw(_ context.Context, _ *store.Tx, user int64) error {
	*i = append(*i, user)
	return nil
}

func open(t *testing.T, o auth.AdminOptions) *house {
	t.Helper()
	h := &house{t: t, clock: coretest.NewClock(time.Time{})}
	h.db = storetest.Open(t, h.clock)
	o.Clock = h.clock
	h.admins = auth.NewAdmins(h.db, o)
	h.admins.OnEnd(func() { h.ended++ })
	h.keys = auth.NewKeys(h.db, h.clock, nil)
	h.door = auth.NewAuthenticator(h.keys, h.admins, auth.AuthenticatorOptions{Clock: h.clock})
	box, err := sealed.Create(filepath.Join(t.TempDir(), "content.key"))
	if err != nil {
		t.Fatal(err)
	}
	h.Store = New(Options{DB: h.db, SignIn: h.admins, Users: people.New(h.db, h.clock, bots.Bots{}, nil, nil, nil, nil), Keys: h.keys, Box: box,
		Invitations: &h.invitations, Abort: func(user int64) { h.abort = append(h.abort, user) }})
	h.admins.AskSecond(h.Store)
	return h
}

// withOwner is a house whose owner can sign in.
func withOwner(t *testing.T) *house {
	h := open(t, auth.AdminOptions{})
	err := h.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO users (id, display, role, created_at) VALUES (1, 'operator', 'owner', '')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	authtest.Operator(t, h.db, chosen)
	return h
}

func (h *house) add(name, role string) (Account, string) {
	h.t.Helper()
	a, once, err := h.Create(context.Background(), name, role, owner)
	if err != nil {
		h.t.Fatal(err)
	}
	return a, once
}

func (h *house) signIn(name, password string) (*http.Cookie, error) {
	w := httptest.NewRecorder()
	if err := h.admins.SignIn(w, httptest.NewRequest("POST", "/admin/login", nil), name, password); err != nil {
		return nil, err
	}
	return w.Result().Cookies()[0], nil
}

// settle signs a new account in and gives it a password of its own.
func (h *house) settle(name, once string) *http.Cookie {
	h.t.Helper()
	c, err := h.signIn(name, once)
	if err != nil {
		h.t.Fatal(err)
	}
	r, _, ok := h.as(c)
	if !ok {
		h.t.Fatal("not signed in")
	}
	w := httptest.NewRecorder()
	if err := h.admins.ChangePassword(w, r, "", chosen); err != nil {
		h.t.Fatal(err)
	}
	return w.Result().Cookies()[0]
}

func (h *house) as(c *http.Cookie) (*http.Request, auth.Principal, bool) {
	h.t.Helper()
	r := httptest.NewRequest("GET", "/admin", nil)
	r.AddCookie(c)
	r, err := h.door.Identify(r)
	if err != nil {
		h.t.Fatal(err)
	}
	p, ok := auth.From(r.Context())
	return r, p, ok
}

// audited are the rows of accounts, as "user action subject".
func (h *house) audited() string {
	h.t.Helper()
	var list []string
	if err := h.db.Select(h.t.Context(), &list, `SELECT user_id || ' ' || action || ' ' || subject FROM audit_events WHERE action LIKE 'admin.%' AND action <> 'admin.signin' ORDER BY id`); err != nil {
		h.t.Fatal(err)
	}
	return strings.Join(list, ", ")
}

func TestANewAccountSignsInWithItsOneTimePasswordAndActsUnderItsOwnNumber(t *testing.T) {
	h := withOwner(t)
	nina, once := h.add("nina", auth.RoleAdmin)
	if nina.User <= core.Operator || len(once) != 19 {
		t.Fatalf("%+v %q", nina, once)
	}
	c := h.settle("nina", once)
	_, p, ok := h.as(c)
	if !ok || p.User != nina.User || p.Name != "nina" || p.Viewer || !p.Has(auth.ScopeAdmin) || p.Actor() != (core.Actor{User: nina.User, Via: "panel"}) {
		t.Errorf("%+v", p)
	}
	if _, err := h.signIn("nina", once); err == nil {
		t.Error("the one-time password still works")
	}
	got, err := h.Named(t.Context(), "nina")
	if err != nil || got.MustChange || !got.SignedInAt.Equal(h.clock.Now()) || !got.CreatedAt.Equal(h.clock.Now()) {
		t.Errorf("%+v %v", got, err)
	}
	if got, want := h.audited(), fmt.Sprintf("1 admin.create %d, %d admin.password %d", nina.User, nina.User, nina.User); got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
	names, err := people.New(h.db, h.clock, bots.Bots{}, nil, nil, nil, nil).Unlisted(t.Context())
	if err != nil || names[nina.User] != "nina" || len(names) != 1 {
		t.Errorf("names %v %v", names, err)
	}
}

func TestARemovedAccountsSessionsEndAtOnceAndItsNumberIsNotGivenAgain(t *testing.T) {
	h := withOwner(t)
	nina, once := h.add("nina", auth.RoleAdmin)
	c := h.settle("nina", once)
	mine, err := h.signIn("admin", chosen)
	if err != nil {
		t.Fatal(err)
	}
	h.ended = 0
	if err := h.Remove(t.Context(), nina.User, owner); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := h.as(c); ok {
		t.Error("the session of the removed account lives on")
	}
	if _, _, ok := h.as(mine); !ok {
		t.Error("another account's session ended")
	}
	if h.ended == 0 {
		t.Error("streams were not told")
	}
	if _, err := h.signIn("nina", chosen); err == nil {
		t.Error("a removed account signs in")
	}
	if next, _ := h.add("nina", auth.RoleAdmin); next.User == nina.User {
		t.Error("the number was given again")
	}
}

func TestTheKeysAndTurnsOfARemovedAccountAndOfANewViewerEnd(t *testing.T) {
	h := withOwner(t)
	for what, end := range map[string]func(Account) error{
		"removed":       func(a Account) error { return h.Remove(t.Context(), a.User, owner) },
		"made a viewer": func(a Account) error { return h.SetRole(t.Context(), a.User, auth.RoleViewer, owner) },
	} {
		h.abort = nil
		a, _ := h.add("nina", auth.RoleAdmin)
		secret, _, err := h.keys.Create(t.Context(), auth.NewKey{Label: "script", User: a.User, Trust: core.Vault, Scopes: auth.Scopes()}, owner)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(a); err != nil {
			t.Fatal(err)
		}
		if h.opens(secret) {
			t.Errorf("%s: the key still opens", what)
		}
		if len(h.abort) != 1 || h.abort[0] != a.User {
			t.Errorf("%s: turns of %v were stopped", what, h.abort)
		}
		if what != "removed" {
			if err := h.Remove(t.Context(), a.User, owner); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (h *house) opens(secret string) bool {
	r := httptest.NewRequest("GET", "/api/keys", nil)
	r.Header.Set("X-API-Key", secret)
	_, err := h.door.Identify(r)
	return err == nil
}

// A former admin has no other way in: neither a key in another's name nor an invitation.
func TestNothingThatAnAdminMadeOpensAfterTheirAccountIsRemovedOrMadeAViewer(t *testing.T) {
	h := withOwner(t)
	for what, end := range map[string]func(Account) error{
		"removed":       func(a Account) error { return h.Remove(t.Context(), a.User, owner) },
		"made a viewer": func(a Account) error { return h.SetRole(t.Context(), a.User, auth.RoleViewer, owner) },
	} {
		h.invitations = nil
		a, _ := h.add("nina-"+what[:4], auth.RoleAdmin)
		by := core.Actor{User: a.User, Via: "api"}
		n := auth.NewKey{Label: "phone", User: 57, Trust: core.Vault, Scopes: auth.Scopes()}
		if _, _, err := h.keys.Create(t.Context(), n, by); core.KindOf(err) != core.Denied {
			t.Errorf("%s: an admin made a key of another person: %v", what, err)
		}
		secret, row, err := h.keys.Create(t.Context(), n, owner)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.keys.Rotate(t.Context(), row.ID, auth.KeyRotation{}, by); core.KindOf(err) != core.Denied {
			t.Errorf("%s: an admin got the secret of another person's key: %v", what, err)
		}
		if err := h.db.Tx(t.Context(), func(tx *store.Tx) error { // as an earlier version let an admin do
			_, err := tx.Exec(t.Context(), `UPDATE api_keys SET made_by = $1 WHERE id = $2`, a.User, row.ID)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := end(a); err != nil {
			t.Fatal(err)
		}
		if h.opens(secret) {
			t.Errorf("%s: the key that they made for another opens", what)
		}
		if fmt.Sprint(h.invitations) != fmt.Sprint([]int64{a.User}) {
			t.Errorf("%s: the invitations of %v ended", what, h.invitations)
		}
	}
}

func TestKeysThatEndedWithARoleDoNotComeBackWithIt(t *testing.T) {
	h := withOwner(t)
	a, _ := h.add("nina", auth.RoleAdmin)
	own, _, err := h.keys.Create(t.Context(), auth.NewKey{Label: "script", User: a.User, Trust: core.Vault, Scopes: auth.Scopes()}, owner)
	if err != nil {
		t.Fatal(err)
	}
	theirs, row, err := h.keys.Create(t.Context(), auth.NewKey{Label: "phone", User: 57, Trust: core.Vault, Scopes: auth.Scopes()}, owner)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.db.Tx(t.Context(), func(tx *store.Tx) error { // as an earlier version let an admin do
		_, err := tx.Exec(t.Context(), `UPDATE api_keys SET made_by = $1 WHERE id = $2`, a.User, row.ID)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.Rename(t.Context(), a.User, "nina2", owner); err != nil {
		t.Fatal(err)
	}
	for what, secret := range map[string]string{"their own key": own, "the key of another": theirs} {
		if !h.opens(secret) {
			t.Errorf("a renamed admin lost %s", what)
		}
	}
	for _, role := range []string{auth.RoleViewer, auth.RoleAdmin} {
		if err := h.SetRole(t.Context(), a.User, role, owner); err != nil {
			t.Fatal(err)
		}
		for what, secret := range map[string]string{"their own key": own, "the key of another": theirs} {
			if h.opens(secret) {
				t.Errorf("%s: %s opens", role, what)
			}
		}
	}
}

func TestTheOwnersAndTheLastAdminsAccountStay(t *testing.T) {
	h := withOwner(t)
	ctx := t.Context()
	h.add("nina", auth.RoleAdmin)
	for what, err := range map[string]error{"remove": h.Remove(ctx, core.Operator, owner), "viewer": h.SetRole(ctx, core.Operator, auth.RoleViewer, owner)} {
		if core.KindOf(err) != core.Conflict {
			t.Errorf("%s the owner: %v", what, err)
		}
	}
	// A server that no one ever started in a terminal has no account of the owner.
	h = open(t, auth.AdminOptions{})
	last, _ := h.add("nina", auth.RoleAdmin)
	h.add("vera", auth.RoleViewer)
	for what, err := range map[string]error{"remove": h.Remove(ctx, last.User, owner), "viewer": h.SetRole(ctx, last.User, auth.RoleViewer, owner)} {
		if core.KindOf(err) != core.Conflict || !strings.Contains(core.TextOf(err), "last admin") {
			t.Errorf("%s the last admin: %v", what, err)
		}
	}
	h.add("otto", auth.RoleAdmin)
	if err := h.Remove(ctx, last.User, owner); err != nil {
		t.Errorf("with another admin: %v", err)
	}
}

func TestOnlyTheOwnerChangesTheOwnersAccount(t *testing.T) {
	h := withOwner(t)
	nina, _ := h.add("nina", auth.RoleAdmin)
	by := core.Actor{User: nina.User, Via: "panel"}
	if _, err := h.Reset(t.Context(), core.Operator, by); core.KindOf(err) != core.Denied {
		t.Errorf("reset: %v", err)
	}
	if err := h.Rename(t.Context(), core.Operator, "boss", by); core.KindOf(err) != core.Denied {
		t.Errorf("rename: %v", err)
	}
	if _, err := h.signIn("admin", chosen); err != nil {
		t.Error(err)
	}
}

func TestAResetEndsSessionsAndItsPasswordMustBeChanged(t *testing.T) {
	h := withOwner(t)
	nina, once := h.add("nina", auth.RoleAdmin)
	c := h.settle("nina", once)
	again, err := h.Reset(t.Context(), nina.User, owner)
	if err != nil || again == once {
		t.Fatal(again, err)
	}
	if _, _, ok := h.as(c); ok {
		t.Error("a session from before lives on")
	}
	if _, err := h.signIn("nina", chosen); err == nil {
		t.Error("the old password works")
	}
	if c, err = h.signIn("nina", again); err != nil {
		t.Fatal(err)
	}
	if _, p, _ := h.as(c); !p.MustChange {
		t.Errorf("%+v", p)
	}
	configured := open(t, auth.AdminOptions{Password: "from the environment"})
	if _, err := configured.admins.Prepare(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := configured.Reset(t.Context(), core.Operator, owner); core.KindOf(err) != core.Conflict {
		t.Errorf("a configured password was reset: %v", err)
	}
	vera, _ := configured.add("vera", auth.RoleViewer)
	if _, err := configured.Reset(t.Context(), vera.User, owner); err != nil {
		t.Errorf("another account's: %v", err)
	}
}

func TestAViewerChangesNothingOverTheApiAndTakesNoTurns(t *testing.T) {
	h := withOwner(t)
	vera, once := h.add("vera", auth.RoleViewer)
	c := h.settle("vera", once)
	for method, want := range map[string]bool{"GET": true, "HEAD": true, "POST": false, "PUT": false, "PATCH": false, "DELETE": false} {
		r := httptest.NewRequest(method, "/api/keys", nil)
		r.AddCookie(c)
		r, err := h.door.Identify(r)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := auth.From(r.Context())
		r.Header.Set("X-CSRF-Token", p.CSRF())
		if _, err := auth.Require(r, auth.ScopeAdmin); (err == nil) != want {
			t.Errorf("%s: %v", method, err)
		}
		if _, err := auth.Require(r, auth.ScopeChat); err == nil {
			t.Errorf("%s: a viewer may chat", method)
		}
	}
	turn := &core.Inbound{Address: core.Address{Bot: core.APIBot}, Turn: &core.Options{User: vera.User}}
	trust := func() (level core.Trust) {
		err := h.db.Tx(t.Context(), func(tx *store.Tx) (err error) {
			level, err = auth.Gate{}.Trust(t.Context(), tx, turn)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return level
	}
	if got := trust(); got != core.Stranger {
		t.Errorf("a viewer's turn runs as %v", got)
	}
	if err := h.SetRole(t.Context(), vera.User, auth.RoleAdmin, owner); err != nil {
		t.Fatal(err)
	}
	if got := trust(); got != core.Vault {
		t.Errorf("an admin's turn runs as %v", got)
	}
	if _, p, ok := h.as(c); !ok || p.Viewer {
		t.Errorf("the role holds from the next request on: %+v", p)
	}
}

func TestNamesAreCheckedAndUnique(t *testing.T) {
	h := withOwner(t)
	h.add("nina", auth.RoleAdmin)
	for _, bad := range []string{"", "Nina", "a b", "-x", "<b>", strings.Repeat("a", 41), "ní"} {
		if _, _, err := h.Create(t.Context(), bad, auth.RoleAdmin, owner); core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, taken := range []string{"nina", "admin"} {
		if _, _, err := h.Create(t.Context(), taken, auth.RoleAdmin, owner); core.KindOf(err) != core.Conflict {
			t.Errorf("%q: %v", taken, err)
		}
	}
	if _, _, err := h.Create(t.Context(), "x", "boss", owner); core.KindOf(err) != core.Invalid {
		t.Errorf("an unknown role: %v", err)
	}
	if err := h.Rename(t.Context(), core.Operator, "olga", owner); err != nil {
		t.Fatal(err)
	}
	if _, err := h.signIn("olga", chosen); err != nil {
		t.Errorf("the owner under the new name: %v", err)
	}
	if _, _, err := h.Create(t.Context(), "admin", auth.RoleAdmin, owner); core.KindOf(err) != core.Conflict {
		t.Errorf("the owner's name: %v", err) // GATEHOUSE_ADMIN_PASSWORD would make it again
	}
}

func TestAccountsAreBounded(t *testing.T) {
	h := withOwner(t)
	err := h.db.Tx(t.Context(), func(tx *store.Tx) error {
		for i := range Max - 1 {
			if _, err := tx.Exec(t.Context(), `INSERT INTO admin_accounts (user_id, name, argon2id) VALUES ($1, $2, 'x')`, 100+i, fmt.Sprint("n", i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Create(t.Context(), "one-more", auth.RoleAdmin, owner); core.KindOf(err) != core.Conflict {
		t.Errorf("account %d: %v", Max+1, err)
	}
}
