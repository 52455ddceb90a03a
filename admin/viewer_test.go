package admin_test

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/web/auth"
)

// own are the routes that concern the account that is signed in, and nothing else.
var own = []string{"POST /admin/login", "POST /admin/logout", "POST /admin/password", "POST /admin/account/sessions/end",
	"POST /admin/login/code", "POST /admin/account/two-step", "POST /admin/account/two-step/confirm", "POST /admin/account/two-step/recovery", "POST /admin/account/two-step/off", "POST /admin/theme", "POST /admin/letters"}

// enterAs makes an account and signs in to it, with a password of its own. It returns its user.
func (s *site) enterAs(name, role string) int64 {
	s.t.Helper()
	a, once, err := s.accounts.Create(s.t.Context(), name, role, core.Actor{User: core.Operator, Via: "cli"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.http = s.client()
	if a := s.do("POST", "/admin/login", url.Values{"name": {name}, "password": {once}}); a.status != http.StatusSeeOther {
		s.t.Fatalf("sign in: status %d\n%s", a.status, a.body)
	}
	s.post("/admin/password", url.Values{"new": {password + name}, "again": {password + name}})
	return a.User
}

func TestAViewerIsRefusedByEveryRouteThatChangesSomething(t *testing.T) {
	s := newSite(t, nil, nil)
	s.world.full()
	s.enterAs("vera", auth.RoleViewer)
	token, walked := s.csrf(), 0
	for _, pattern := range s.panel.Routes() {
		method, path, ok := strings.Cut(pattern, " ")
		if !ok {
			t.Fatalf("%s: a route without a method", pattern)
		}
		if method == "GET" || slices.Contains(own, pattern) {
			continue
		}
		walked++
		at := wildcard.ReplaceAllString(path, "1")
		a := s.do(method, at, url.Values{"csrf": {token}})
		if a.status != http.StatusForbidden || !strings.Contains(a.main(), "Your account is a viewer") {
			t.Errorf("%s: status %d, want 403 with the reason\n%.300s", pattern, a.status, a.main())
		}
	}
	if walked < 40 {
		t.Errorf("only %d routes were walked", walked)
	}
	if did := s.world.done(); len(did) != 0 {
		t.Errorf("a viewer did %q", did)
	}
	if a := s.get("/admin/settings/backups/" + backupOne); a.status != http.StatusForbidden {
		t.Errorf("a viewer gets the backup, with the secrets of all: %d", a.status)
	}
}

func TestAViewerSeesEveryPageAndNoControlThatWorks(t *testing.T) {
	s := newSite(t, nil, nil)
	s.world.full()
	s.enterAs("vera", auth.RoleViewer)
	controls := regexp.MustCompile(`<(button|select|textarea|input)\b[^>]*>`)
	forms := 0
	for _, path := range s.pages() {
		a := s.get(path)
		if strings.HasPrefix(path, "/admin/journal") || strings.HasPrefix(path, "/admin/contexts") { // of the owner's vault, which viewers do not read
			if a.status != http.StatusForbidden || strings.Contains(a.body, "coffee shop") || strings.Contains(a.body, gardenPlan) {
				t.Errorf("GET %s: status %d", path, a.status)
			}
			continue
		}
		if a.status != http.StatusOK {
			t.Errorf("GET %s: status %d", path, a.status)
		}
		a.has(t, "You are signed in as a viewer")
		if strings.Contains(a.body, `href="/admin/journal`) || strings.Contains(a.body, `href="/admin/contexts`) {
			t.Errorf("GET %s leads to the journal or the saved contexts", path)
		}
		for _, form := range postForm.FindAllString(a.body, -1) {
			tag, _, _ := strings.Cut(form, ">")
			if strings.Contains(tag, "data-own") {
				continue
			}
			forms++
			inside, disabled := strings.CutPrefix(form[len(tag)+1:], `<fieldset class="viewing" disabled>`)
			if !disabled || !strings.HasSuffix(inside, "</fieldset></form>") {
				t.Errorf("GET %s: a form works: %.160s", path, form)
			}
		}
		outside := postForm.ReplaceAllString(a.body, "")
		for _, c := range controls.FindAllString(outside, -1) {
			if strings.Contains(c, "formaction") || strings.Contains(c, "form=") {
				t.Errorf("GET %s: a control of a form outside of it: %s", path, c)
			}
		}
	}
	if forms < 40 {
		t.Errorf("only %d forms were seen", forms)
	}
}

func TestAnotherAdminDecidesUnderTheirOwnNumber(t *testing.T) {
	s := newSite(t, nil, nil)
	s.world.full()
	nina := s.enterAs("nina", auth.RoleAdmin)
	page := s.get("/admin")
	page.has(t, "<span>nina</span>")
	page.lacks(t, "signed in as a viewer", "disabled")
	s.post("/admin/pairing/r1/approve", url.Values{"trust": {"vault"}})
	if by := s.world.lastActor(); by != (core.Actor{User: nina, Via: "panel"}) {
		t.Errorf("decided by %+v, want user %d", by, nina)
	}
}

func TestAViewerDoesNotGetTheExportOfAPerson(t *testing.T) {
	s := newSite(t, nil, nil)
	s.world.full()
	if err := (careWorld{s.world}).Export(t.Context(), 2, core.Actor{User: core.Operator, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	s.world.settle("export", 2, page.Job{Size: 8, At: s.clock.Now()})
	s.enterAs("vera", auth.RoleViewer)
	a := s.get("/admin/people/2/export")
	if a.status != http.StatusForbidden || strings.Contains(a.body, "PK a zip") {
		t.Errorf("a viewer gets what is remembered of the person and their files: %d", a.status)
	}
	one := s.get("/admin/people/2")
	one.has(t, "only an admin may have it")
	one.lacks(t, `href="/admin/people/2/export"`)
	if did := s.world.done(); slices.Contains(did, "download 2") {
		t.Errorf("did %q", did)
	}
	s.enterAs("nina", auth.RoleAdmin)
	if a := s.get("/admin/people/2/export"); a.status != http.StatusOK || a.body != "PK a zip" {
		t.Errorf("an admin: %d", a.status)
	}
}
