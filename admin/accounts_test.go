package admin_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/web/auth"
)

var shownOnce = regexp.MustCompile(`<pre class="exact"[^>]*>([a-z0-9-]{19})</pre>`)

// submit sends a form whose answer is the page itself.
func (s *site) submit(path string, form url.Values) answer {
	s.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set("csrf", s.csrf())
	return s.do("POST", path, form)
}

func TestAnAccountIsAddedInThePanelAndItsPasswordIsShownOnce(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	a := s.submit("/admin/accounts", url.Values{"name": {"nina"}, "role": {"admin"}})
	m := shownOnce.FindStringSubmatch(a.body)
	if a.status != http.StatusOK || m == nil {
		t.Fatalf("%d %s", a.status, a.main())
	}
	a.has(t, "A one-time password for nina", "it is shown only once", ">Admin<")
	if !strings.Contains(a.body, " data-still ") {
		t.Error("the page refreshes itself, and the password is gone")
	}
	s.get("/admin/accounts").lacks(t, m[1])
	if a := s.submit("/admin/accounts", url.Values{"name": {"nina"}, "role": {"viewer"}}); a.status != http.StatusConflict {
		t.Errorf("a second nina: %d", a.status)
	}
	s.submit("/admin/accounts", url.Values{"name": {"No Good"}, "role": {"viewer"}}).has(t, "1 to 40 characters", `value="No Good"`)

	s.http = s.client()
	if a := s.do("POST", "/admin/login", url.Values{"name": {"nina"}, "password": {m[1]}}); a.status != http.StatusSeeOther {
		t.Fatalf("sign in: %d", a.status)
	}
	s.post("/admin/password", url.Values{"new": {password + "!"}, "again": {password + "!"}})
	s.get("/admin/account").has(t, "You are signed in as nina.", "This one")
}

func TestAccountsAreChangedResetAndRemovedInThePanel(t *testing.T) {
	s := newSite(t, nil, nil)
	vera := s.enterAs("vera", auth.RoleViewer)
	hers := s.http
	s.http = s.client()
	s.enter()
	at := fmt.Sprint("/admin/accounts/", vera)
	s.post(at+"/change", url.Values{"name": {"vera.k"}, "role": {"admin"}}).has(t, "vera.k is changed")
	mine := s.http
	s.http = hers
	s.get("/admin").lacks(t, "signed in as a viewer")
	s.http = mine
	if m := shownOnce.FindStringSubmatch(s.submit(at+"/reset", nil).body); m == nil {
		t.Error("no one-time password after the reset")
	}
	s.http = hers
	if a := s.get("/admin"); a.status != http.StatusSeeOther {
		t.Errorf("after the reset her session opens: %d", a.status)
	}
	s.http = mine
	s.post(at+"/remove", nil).has(t, "vera.k is removed")
	s.get("/admin/accounts").lacks(t, "vera.k")
	s.post(at+"/remove", nil).has(t, `class="flash note"`, "There is no such account")
	s.post("/admin/accounts/1/remove", nil).has(t, `class="flash note"`, "The owner&#39;s account can&#39;t be removed")
}

func TestAnotherAdminMayNotTouchTheOwnersAccount(t *testing.T) {
	s := newSite(t, nil, nil)
	s.enterAs("nina", auth.RoleAdmin)
	s.get("/admin/accounts").lacks(t, `action="/admin/accounts/1/`)
	s.post("/admin/accounts/1/change", url.Values{"name": {"boss"}}).has(t, `class="flash bad"`, "Only the owner")
	s.post("/admin/accounts/1/sessions/end", nil).has(t, `class="flash bad"`, "Only the owner")
	if a := s.submit("/admin/accounts/1/reset", nil); a.status == http.StatusOK || shownOnce.MatchString(a.body) {
		t.Errorf("reset: %d", a.status)
	}
	if a := s.submit("/admin/settings/keys", url.Values{"label": {"x"}, "scope": {"admin"}, "trust": {"full"}}); a.status == http.StatusOK {
		t.Error("nina makes a key with trust full")
	}
	id, ends := s.world.givesKey(core.Full)
	if a := s.submit("/admin/settings/keys/"+id+"/rotate", nil); a.status == http.StatusOK || shownOnce.MatchString(a.body) {
		t.Errorf("nina gets a new secret of a key with trust full: %d", a.status)
	}
	s.post("/admin/settings/keys/"+id+"/change", url.Values{"label": {"mine"}, "scope": {"admin"}}).has(t, `class="flash bad"`, "Only the owner can make or change a key")
	if row := ends(); row.Label != "of a helper" || len(row.Scopes) != 1 {
		t.Errorf("the key was changed: %+v", row)
	}
}

// They would act for that person, also when their own account is no more.
func TestAnotherAdminGetsNoSecretOfAnotherPersonsKey(t *testing.T) {
	s := newSite(t, nil, nil)
	s.enterAs("nina", auth.RoleAdmin)
	id, now := s.world.givesKey(core.Sandboxed)
	if a := s.submit("/admin/settings/keys/"+id+"/rotate", nil); a.status == http.StatusOK || shownOnce.MatchString(a.body) {
		t.Errorf("nina gets a new secret of it: %d", a.status)
	}
	s.post("/admin/settings/keys/"+id+"/change", url.Values{"label": {"of a helper"}, "scope": {"chat", "admin"}}).has(t, `class="flash bad"`, "Only the owner can do this with a key of another user")
	if row := now(); len(row.Scopes) != 1 {
		t.Errorf("the key was changed: %+v", row)
	}
	s.post("/admin/settings/keys/"+id+"/change", url.Values{"label": {"renamed"}}).has(t, `class="flash good"`)
	if row := now(); row.Label != "renamed" || len(row.Scopes) != 0 {
		t.Errorf("nina does not take from it: %+v", row)
	}
}

// It has what is the owner's alone.
func TestAnotherAdminMakesABackupAndDoesNotDownloadOne(t *testing.T) {
	s := newSite(t, nil, nil)
	s.enterAs("nina", auth.RoleAdmin)
	s.get("/admin/settings/backups").lacks(t, `href="/admin/settings/backups/`+backupOne+`"`)
	if a := s.get("/admin/settings/backups/" + backupOne); a.status != http.StatusForbidden || strings.Contains(a.body, "an archive") {
		t.Errorf("nina gets the backup: %d", a.status)
	}
	s.post("/admin/settings/backups", nil).has(t, "backing up")
}

// givesKey makes a key of a user who has an account, at this trust; now returns it.
func (w *world) givesKey(level core.Trust) (id string, now func() auth.KeyRow) {
	secret, row, err := w.keys.Create(context.Background(), auth.NewKey{Label: "of a helper", User: 77, Trust: level, Scopes: []string{auth.ScopeChat}}, core.Actor{User: core.Operator})
	must(err)
	return row.ID, func() auth.KeyRow {
		row, _, err := w.keys.Find(context.Background(), secret)
		must(err)
		return row
	}
}

// The clock stands: it is the end of the session that closes the stream, and no
// check at an interval.
func TestTheStreamOfAnEndedSessionCloses(t *testing.T) {
	for what, end := range map[string]func(s *site, user int64){
		"signed out there": func(s *site, user int64) { s.post(fmt.Sprintf("/admin/accounts/%d/sessions/end", user), nil) },
		"removed":          func(s *site, user int64) { s.post(fmt.Sprintf("/admin/accounts/%d/remove", user), nil) },
	} {
		s := newSite(t, nil, nil)
		nina := s.enterAs("nina", auth.RoleAdmin)
		stream, err := s.http.Get(s.url + "/admin/events")
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatal(err, stream.StatusCode)
		}
		defer stream.Body.Close()
		closed := make(chan error, 1)
		go func() { _, err := io.Copy(io.Discard, stream.Body); closed <- err }()
		s.http = s.client()
		end(s.enter(), nina)
		select {
		case <-closed:
		case <-time.After(time.Minute):
			t.Errorf("%s: the stream goes on", what)
		}
	}
}

func TestSessionsAreListedAndEnded(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	mine := s.http
	s.http = s.client()
	s.enter()
	page := s.get("/admin/account")
	page.has(t, "Go-http-client/1.1", "This one", `action="/admin/account/sessions/end"`)
	id := regexp.MustCompile(`name="id" value="([0-9a-f]+)"`).FindStringSubmatch(page.body)
	if id == nil {
		t.Fatal("no other session is listed")
	}
	s.post("/admin/account/sessions/end", url.Values{"id": {id[1]}}).has(t, "Signed out there.")
	s.get("/admin/account").lacks(t, "/sessions/end")
	s.post("/admin/account/sessions/end", url.Values{"id": {id[1]}}).has(t, "This session has ended already")
	s.http = mine
	if a := s.get("/admin"); a.status != http.StatusSeeOther {
		t.Errorf("the ended session opens: %d", a.status)
	}
	if n, err := s.admins.Sessions(t.Context(), core.Operator); err != nil || len(n) != 1 {
		t.Errorf("%d sessions are left, %v", len(n), err)
	}
}
