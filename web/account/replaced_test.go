package account

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
	"gatehouse/web/auth/password"
)

// A second step during which something else happens.
type second struct {
	auth.Second
	asked, used func()
}

func (s second) CodeAsked(ctx context.Context, user int64) (bool, error) {
	on, err := s.Second.CodeAsked(ctx, user)
	if s.asked != nil {
		s.asked()
	}
	return on, err
}

func (s second) UseCode(ctx context.Context, user int64, code string) (bool, error) {
	right, err := s.Second.UseCode(ctx, user, code)
	if s.used != nil {
		s.used()
	}
	return right, err
}

// served is the sign-in, the change of password and who is signed in, over HTTP.
func (h *house) served() (base string, client *http.Client) {
	h.t.Helper()
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	}
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		answer(w, h.admins.SignIn(w, r, r.FormValue("name"), r.FormValue("password")))
	})
	mux.HandleFunc("POST /code", func(w http.ResponseWriter, r *http.Request) {
		answer(w, h.admins.Confirm(w, r, r.FormValue("ticket"), r.FormValue("code")))
	})
	mux.HandleFunc("POST /password", func(w http.ResponseWriter, r *http.Request) {
		r, err := h.door.Identify(r)
		if err == nil {
			err = h.admins.ChangePassword(w, r, r.FormValue("old"), r.FormValue("new"))
		}
		answer(w, err)
	})
	srv := httptest.NewServer(mux)
	h.t.Cleanup(srv.Close)
	return srv.URL, srv.Client()
}

func (h *house) sends(client *http.Client, to string, session []*http.Cookie, form url.Values) *http.Response {
	h.t.Helper()
	r, err := http.NewRequest("POST", to, strings.NewReader(form.Encode()))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range session {
		r.AddCookie(c)
	}
	res, err := client.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	res.Body.Close()
	return res
}

func (h *house) sessions(user int64) (n int) {
	h.t.Helper()
	list, err := h.admins.Sessions(h.t.Context(), user)
	if err != nil {
		h.t.Fatal(err)
	}
	return len(list)
}

// The password is checked, then another admin resets it: the sign-in that was on its way must not
// become a session that chooses the new password.
func TestASignInOnItsWayEndsWithAResetOfThePassword(t *testing.T) {
	h := withOwner(t)
	nina, once := h.add("nina", auth.RoleAdmin)
	h.settle("nina", once)
	reset := false
	h.admins.AskSecond(second{Second: h.Store, asked: func() {
		if !reset {
			reset = true
			if _, err := h.Reset(t.Context(), nina.User, owner); err != nil {
				t.Error(err)
			}
		}
	}})
	base, client := h.served()
	res := h.sends(client, base+"/login", nil, url.Values{"name": {"nina"}, "password": {chosen}})
	if res.StatusCode != http.StatusUnauthorized || len(res.Cookies()) != 0 || h.sessions(nina.User) != 0 {
		t.Errorf("the old password: %s, cookies %v, %d sessions", res.Status, res.Cookies(), h.sessions(nina.User))
	}
	if res := h.sends(client, base+"/password", res.Cookies(), url.Values{"new": {"the guesser's own"}}); res.StatusCode == http.StatusOK {
		t.Error("who signed in with the old password chose the new one")
	}
	a, err := h.Of(t.Context(), nina.User)
	if err != nil || !a.MustChange {
		t.Errorf("%+v %v", a, err)
	}
}

func TestACodeOnItsWayEndsWithAResetOfThePassword(t *testing.T) {
	h := withOwner(t)
	secret, _ := h.twoStep()
	ticket := h.ticket()
	h.admins.AskSecond(second{Second: h.Store, used: func() { h.replace(core.Operator, "another long password") }})
	base, client := h.served()
	res := h.sends(client, base+"/code", nil, url.Values{"ticket": {ticket}, "code": {h.code(secret)}})
	if res.StatusCode != http.StatusUnauthorized || len(res.Cookies()) != 0 || h.sessions(core.Operator) != 0 {
		t.Errorf("%s, cookies %v, %d sessions", res.Status, res.Cookies(), h.sessions(core.Operator))
	}
}

// replace stores another one-time password and ends the sessions, as Reset does behind the hash.
func (h *house) replace(user int64, with string) {
	h.t.Helper()
	hasher := password.New()
	hasher.Memory = 64
	err := h.db.Tx(h.t.Context(), func(tx *store.Tx) error {
		if _, err := tx.Exec(h.t.Context(), `UPDATE admin_accounts SET argon2id = $2, must_change = 1 WHERE user_id = $1`, user, hasher.Hash(with)); err != nil {
			return err
		}
		_, err := h.admins.EndSession(h.t.Context(), tx, user, "")
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// A request of a session that chooses its first password waits behind others while the password is
// reset: its session has ended, so it chooses none.
func TestAChangeOfPasswordOnItsWayEndsWithAReset(t *testing.T) {
	for name, first := range map[string]bool{"of a one-time password": true, "of a password": false} {
		t.Run(name, func(t *testing.T) {
			h := withOwner(t)
			nina, once := h.add("nina", auth.RoleAdmin)
			old, c := once, (*http.Cookie)(nil)
			if first {
				var err error
				if c, err = h.signIn("nina", once); err != nil {
					t.Fatal(err)
				}
			} else {
				old, c = chosen, h.settle("nina", once)
			}
			r, _, ok := h.as(c)
			if !ok {
				t.Fatal("not signed in")
			}
			fresh, err := h.Reset(t.Context(), nina.User, owner)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			if err := h.admins.ChangePassword(w, r, old, "the guesser's own"); err == nil || len(w.Result().Cookies()) != 0 {
				t.Errorf("the request from before the reset: %v", err)
			}
			if _, err := h.signIn("nina", fresh); err != nil {
				t.Errorf("the new one-time password: %v", err)
			}
		})
	}
}

// However a row came to be, a session ends with the password that it began with.
func TestASessionIsOfOnePassword(t *testing.T) {
	h := withOwner(t)
	c, err := h.signIn("admin", chosen)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := h.as(c); !ok {
		t.Fatal("not signed in")
	}
	if err := h.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE admin_accounts SET argon2id = 'x' || argon2id`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := h.as(c); ok {
		t.Error("it outlives the password")
	}
}
