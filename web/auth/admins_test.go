package auth

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/web/auth/password"
	"gatehouse/web/auth/visit"
)

type httpRequest = http.Request

func yes(*http.Request) bool { return true }

// signIn tries password as the operator and returns the cookie, nil without one.
func (h *house) signIn(password string) (*http.Cookie, error) {
	return h.signInFrom("192.0.2.1", AdminName, password, nil)
}

func (h *house) signInFrom(addr, name, password string, with *http.Cookie) (*http.Cookie, error) {
	r := request("POST")
	r.RemoteAddr = addr
	if with != nil {
		r.AddCookie(with)
	}
	w := httptest.NewRecorder()
	if err := h.admins.SignIn(w, r, name, password); err != nil {
		return nil, err
	}
	return w.Result().Cookies()[0], nil
}

// as is a request with the session's principal; false when the session is over.
func (h *house) as(c *http.Cookie, method string, header ...string) (*http.Request, Principal, bool) {
	h.t.Helper()
	r := request(method, header...)
	r.RemoteAddr = "192.0.2.1"
	r.AddCookie(c)
	r, err := h.door.Identify(r)
	if err != nil {
		h.t.Fatal(err)
	}
	p, ok := From(r.Context())
	return r, p, ok
}

const longPassword = "correct horse battery"

// settled is a house whose operator has chosen longPassword.
func settled(t *testing.T) (*house, *http.Cookie) {
	t.Helper()
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	once, err := h.admins.Prepare(context.Background(), true)
	if err != nil {
		t.Fatal(err)
	}
	c, err := h.signIn(once)
	if err != nil {
		t.Fatal(err)
	}
	r, _, _ := h.as(c, "POST")
	w := httptest.NewRecorder()
	if err := h.admins.ChangePassword(w, r, once, longPassword); err != nil {
		t.Fatal(err)
	}
	return h, w.Result().Cookies()[0]
}

func TestTheOneTimePasswordMustBeChangedAndIsThenWorthNothing(t *testing.T) {
	h := open(t, AdminOptions{}, AuthenticatorOptions{})
	ctx := context.Background()
	if once, err := h.admins.Prepare(ctx, false); once != "" || err != nil {
		t.Fatalf("a password was made without being offered: %v", err)
	}
	first, err := h.admins.Prepare(ctx, true)
	if err != nil || len(first) != 19 {
		t.Fatal(first, err)
	}
	second, err := h.admins.Prepare(ctx, true)
	if err != nil || second == first || second == "" {
		t.Fatalf("the next start must show a new one: %v", err)
	}
	if _, err := h.signIn(first); slug(err) != "unauthorized" {
		t.Errorf("the password of the start before: %v", err)
	}
	c, err := h.signIn(second)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := h.admins.Prepare(ctx, true); again != "" || err != nil {
		t.Errorf("after it was used another was offered: %v", err)
	}
	r, p, ok := h.as(c, "GET")
	if !ok || !p.MustChange || len(p.Scopes) != 0 {
		t.Errorf("principal %+v", p)
	}
	if _, err := Require(r, ScopeChat); slug(err) != "password-change-required" {
		t.Errorf("before the change: %v", err)
	}
	w := httptest.NewRecorder()
	for _, bad := range []struct{ old, new string }{{second, "short"}, {second, second}, {"", second}, {second, strings.Repeat("x", 300)}} {
		if err := h.admins.ChangePassword(w, r, bad.old, bad.new); err == nil {
			t.Errorf("change %q → %q was taken", bad.old, bad.new)
		}
	}
	if err := h.admins.ChangePassword(w, r, "", longPassword); err != nil { // it was typed to sign in: it is not asked again
		t.Fatal(err)
	}
	if _, _, ok := h.as(c, "GET"); ok {
		t.Error("the session from before the change lives on")
	}
	if _, p, ok := h.as(w.Result().Cookies()[0], "GET"); !ok || p.MustChange || !p.Has(ScopeAdmin) || p.Trust != core.Vault || p.User != core.Operator {
		t.Errorf("after the change: %+v", p)
	}
	if _, err := h.signIn(second); slug(err) != "unauthorized" {
		t.Errorf("the one-time password still works: %v", err)
	}
	if _, err := h.signIn(longPassword); err != nil {
		t.Error(err)
	}
}

func TestAConfiguredPasswordRulesAndIsNotForcedToChange(t *testing.T) {
	h, old := settled(t)
	ctx := context.Background()
	h.admins.o.Password = "from the environment"
	if once, err := h.admins.Prepare(ctx, true); once != "" || err != nil {
		t.Fatal(once, err)
	}
	if _, _, ok := h.as(old, "GET"); ok {
		t.Error("a session from before lives on")
	}
	c, err := h.signIn("from the environment")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.admins.Prepare(ctx, true); err != nil {
		t.Fatal(err)
	}
	r, p, ok := h.as(c, "POST")
	if !ok || p.MustChange {
		t.Errorf("%+v %v: a restart with the same password must end no session", p, ok)
	}
	if err := h.admins.ChangePassword(httptest.NewRecorder(), r, "from the environment", longPassword); core.KindOf(err) != core.Conflict {
		t.Errorf("change of a configured password: %v", err)
	}
	h.admins.o.Password = "short"
	if _, err := h.admins.Prepare(ctx, true); core.KindOf(err) != core.Invalid {
		t.Errorf("a short configured password: %v", err)
	}
}

func TestPasswordsAreStoredAsArgon2id(t *testing.T) {
	h := open(t, AdminOptions{Password: longPassword}, AuthenticatorOptions{})
	h.admins.hasher = password.New() // at the real cost
	if _, err := h.admins.Prepare(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	var stored string
	if err := h.db.Get(context.Background(), &stored, `SELECT argon2id FROM admin_accounts`); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(stored, longPassword) || !password.Verify(stored, longPassword) {
		t.Errorf("stored %q", stored)
	}
	for _, damaged := range []string{"", "x", "$argon2id$v=19$m=19456,t=2,p=1$$", "$argon2id$v=18" + stored[14:], "$argon2id$v=19$m=4000000000,t=2,p=1$AAAA$AAAA", strings.Replace(stored, "t=2", "t=0", 1)} {
		if password.Verify(damaged, longPassword) || password.Verify(damaged, "") {
			t.Errorf("%q fits", damaged)
		}
	}
	if nobody := password.New().Nobody(); password.Verify(nobody, "") || !strings.HasPrefix(nobody, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Error("the account of nobody has a password")
	}
}

func TestTheCookieIsStrictAndThePlantedTokenIsWorthNothing(t *testing.T) {
	h, _ := settled(t)
	planted := &http.Cookie{Name: CookieName, Value: "attacker-chose-this-token"}
	c, err := h.signInFrom("192.0.2.1", AdminName, longPassword, planted)
	if err != nil {
		t.Fatal(err)
	}
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure {
		t.Errorf("cookie %+v", c)
	}
	if c.Value == planted.Value {
		t.Error("the planted token was taken over")
	}
	if _, _, ok := h.as(planted, "GET"); ok {
		t.Error("the planted token is signed in")
	}
	again, err := h.signInFrom("192.0.2.1", AdminName, longPassword, c)
	if err != nil {
		t.Fatal(err)
	}
	if again.Value == c.Value {
		t.Error("the token was not renewed by signing in")
	}
	if _, _, ok := h.as(c, "GET"); ok {
		t.Error("the token from before signing in again still works")
	}
	h.admins.o.Secure = yes
	if c, err := h.signIn(longPassword); err != nil || !c.Secure {
		t.Errorf("over TLS: %+v %v", c, err)
	}
	var rows []struct {
		Token string
		Data  []byte
	}
	err = h.db.Select(context.Background(), &rows, `SELECT token, data FROM admin_sessions`)
	for _, r := range rows {
		if r.Token == again.Value || bytes.Contains(r.Data, []byte(again.Value)) {
			t.Error("the token is stored as it is")
		}
	}
	if err != nil || len(rows) == 0 {
		t.Errorf("%d sessions, %v", len(rows), err)
	}
}

func TestSessionsEndWhenIdleAndInAnyCaseAfterAWeek(t *testing.T) {
	h, c := settled(t)
	h.clock.Advance(SessionIdle - time.Minute)
	if _, _, ok := h.as(c, "GET"); !ok {
		t.Fatal("ended before it was idle for long")
	}
	h.clock.Advance(SessionIdle - time.Minute)
	if _, _, ok := h.as(c, "GET"); !ok {
		t.Fatal("use did not prolong it")
	}
	h.clock.Advance(SessionIdle + time.Second)
	if _, _, ok := h.as(c, "GET"); ok {
		t.Error("it lives on after 12 idle hours")
	}
	c, err := h.signIn(longPassword)
	if err != nil {
		t.Fatal(err)
	}
	lived := time.Duration(0)
	for ; lived < 2*SessionAbsolute; lived += 6 * time.Hour {
		if _, _, ok := h.as(c, "GET"); !ok {
			break
		}
		h.clock.Advance(6 * time.Hour)
	}
	if lived != SessionAbsolute {
		t.Errorf("in use it lived %v, want %v", lived, SessionAbsolute)
	}
	if n, err := h.admins.Sweep(context.Background()); n == 0 || err != nil {
		t.Errorf("swept %d %v", n, err)
	}
}

func TestASessionInUseIsWrittenOnceAMinute(t *testing.T) {
	h, c := settled(t)
	before := h.db.Commits()
	for range 20 {
		h.as(c, "GET")
	}
	if n := h.db.Commits() - before; n != 0 {
		t.Errorf("%d commits within the first minute", n)
	}
	h.clock.Advance(touchEvery)
	for range 20 {
		h.as(c, "GET")
	}
	if n := h.db.Commits() - before; n != 1 {
		t.Errorf("%d commits in the second minute, want 1", n)
	}
}

func TestSigningOut(t *testing.T) {
	h, c := settled(t)
	r, _, _ := h.as(c, "POST")
	w := httptest.NewRecorder()
	if err := h.admins.SignOut(w, r); err != nil {
		t.Fatal(err)
	}
	if got := w.Result().Cookies()[0]; got.MaxAge >= 0 || got.Value != "" {
		t.Errorf("cookie %+v", got)
	}
	if _, _, ok := h.as(c, "GET"); ok {
		t.Error("still signed in")
	}
}

func TestStillFollowsKeysAndSessionsWithoutProlongingThem(t *testing.T) {
	h, c := settled(t)
	r, _, _ := h.as(c, "GET")
	secret, row := h.key(NewKey{Label: "k", User: 7, Trust: core.Vault})
	k, err := h.door.Identify(request("GET", "X-API-Key", secret))
	if err != nil {
		t.Fatal(err)
	}
	for range 11 {
		h.clock.Advance(time.Hour)
		if !h.still(r) || !h.still(k) {
			t.Fatal("not let in any more")
		}
	}
	h.clock.Advance(time.Hour)
	if h.still(r) {
		t.Error("an open stream kept an idle session alive")
	}
	if err := h.keys.Revoke(context.Background(), row.ID, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	if h.still(k) {
		t.Error("a revoked key is still let in")
	}
}

func TestSigningOutEverywhereIsForGoodEvenForARequestInFlight(t *testing.T) {
	h, a := settled(t)
	b, err := h.signIn(longPassword)
	if err != nil {
		t.Fatal(err)
	}
	r := request("GET")
	r.AddCookie(a)
	ctx, v, ok, err := h.admins.load(r) // a request that has loaded its session …
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if n, err := h.admins.SignOutEverywhere(context.Background(), core.Operator, core.Actor{User: 1, Via: "panel"}); n != 2 || err != nil {
		t.Errorf("%d sessions, %v", n, err)
	}
	v.Seen = core.Stamp(h.clock.Now().Add(time.Minute)) // … and touches it afterwards
	h.admins.manager.Put(ctx, "visit", v)
	if _, _, err := h.admins.manager.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*http.Cookie{a, b} {
		if _, _, ok := h.as(c, "GET"); ok {
			t.Error("a session lives on")
		}
	}
}

func TestUnsafeRequestsOfASessionNeedItsToken(t *testing.T) {
	h, c := settled(t)
	_, p, _ := h.as(c, "GET")
	if p.CSRF() == "" {
		t.Fatal("no token")
	}
	other, err := h.signIn(longPassword)
	if err != nil {
		t.Fatal(err)
	}
	_, q, _ := h.as(other, "GET")
	if q.CSRF() == p.CSRF() {
		t.Error("two sessions share a token")
	}
	for _, c2 := range []struct {
		method, token string
		ok            bool
	}{{"GET", "", true}, {"HEAD", "", true}, {"POST", "", false}, {"POST", q.CSRF(), false}, {"POST", p.CSRF(), true}, {"DELETE", "", false}, {"DELETE", p.CSRF(), true}, {"PUT", p.CSRF() + "x", false}} {
		r, _, _ := h.as(c, c2.method, "X-CSRF-Token", c2.token)
		if _, err := Require(r, ScopeAdmin); (err == nil) != c2.ok {
			t.Errorf("%s with %q: %v", c2.method, c2.token, err)
		}
	}
	form := httptest.NewRequest("POST", "/admin/x", strings.NewReader(url.Values{"csrf": {p.CSRF()}}.Encode()))
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := p.CheckCSRF(form); err != nil {
		t.Errorf("a form with the token: %v", err)
	}
	inQuery := httptest.NewRequest("POST", "/admin/x?csrf="+p.CSRF(), strings.NewReader(""))
	inQuery.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := p.CheckCSRF(inQuery); err == nil {
		t.Error("the token was taken from the address")
	}
}

func TestGuessingPasswordsIsSlowedPerAddressLoopbackToo(t *testing.T) {
	for _, addr := range []string{"192.0.2.1", "127.0.0.1"} {
		h, _ := settled(t)
		for i := range freeAddress {
			if _, err := h.signInFrom(addr, AdminName, "wrong password", nil); slug(err) != "unauthorized" {
				t.Fatalf("try %d: %v", i, err)
			}
		}
		_, err := h.signInFrom(addr, AdminName, longPassword, nil)
		if slug(err) != "too-many-requests" {
			t.Errorf("%s after %d wrong tries, even the right one must wait: %v", addr, freeAddress, err)
		}
		if _, after := err.(*Refusal).Problem(); after <= 0 {
			t.Error("no Retry-After")
		}
		if _, err := h.signInFrom("198.51.100.9", AdminName, longPassword, nil); err != nil {
			t.Errorf("the operator at another address: %v", err)
		}
		h.clock.Advance(time.Second)
		if _, err := h.signInFrom(addr, AdminName, longPassword, nil); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	}
}

func TestGuessingFromManyAddressesIsSlowedPerAccount(t *testing.T) {
	for _, name := range []string{AdminName, "no-such-name"} {
		h, _ := settled(t)
		var got []string
		for i := range freeAccount + 3 {
			_, err := h.signInFrom(fmt.Sprint("192.0.2.", i), name, "wrong password", nil)
			got = append(got, slug(err))
		}
		want := strings.TrimSpace(strings.Repeat("unauthorized ", freeAccount) + "too-many-requests too-many-requests too-many-requests")
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", name, got)
		}
		h.clock.Advance(mostAccount)
		if _, err := h.signIn(longPassword); err != nil {
			t.Errorf("%s: a guesser keeps the operator out for longer than %v: %v", name, mostAccount, err)
		}
	}
}

func TestSessionsAreBounded(t *testing.T) {
	h, _ := settled(t)
	acc, _, err := h.admins.byName(t.Context(), AdminName)
	if err != nil {
		t.Fatal(err)
	}
	for range visit.Max + 5 {
		h.clock.Advance(time.Second)
		r := request("POST")
		if err := h.admins.begin(httptest.NewRecorder(), r, acc, false); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := h.db.Get(context.Background(), &n, `SELECT count(*) FROM admin_sessions`); err != nil || n != visit.Max {
		t.Errorf("%d sessions kept, want %d (%v)", n, visit.Max, err)
	}
}
