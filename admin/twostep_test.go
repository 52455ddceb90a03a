package admin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
	"gatehouse/web/auth"
	"gatehouse/web/auth/totp"
)

var (
	keyShown    = regexp.MustCompile(`aria-label="Key">([A-Z2-7 ]+)</pre>`)
	setUpField  = regexp.MustCompile(`name="setup" value="([^"]+)"`)
	ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)
)

func (s *site) appCode(secret string) string { return totp.Code(secret, totp.Step(s.clock.Now())) }

// later is another minute, with codes that were not used.
func (s *site) later() { s.clock.(*coretest.Clock).Advance(time.Minute) }

// setUp turns two-step sign-in on in the panel and returns the key and the recovery codes.
func (s *site) setUp(own string) (secret string, recovery []string) {
	s.t.Helper()
	a := s.submit("/admin/account/two-step", nil)
	m := keyShown.FindStringSubmatch(a.body)
	if a.status != http.StatusOK || m == nil || !strings.Contains(a.body, `<svg class="qr"`) {
		s.t.Fatalf("%d %s", a.status, a.main())
	}
	secret = strings.ReplaceAll(m[1], " ", "")
	form := func(code, password string) url.Values {
		return url.Values{"code": {code}, "password": {password}, "setup": {setUpField.FindStringSubmatch(a.body)[1]}}
	}
	a = s.submit("/admin/account/two-step/confirm", form(s.appCode(secret), "not this one"))
	a.has(s.t, "The password is wrong.", "The key is not shown again.")
	a.lacks(s.t, m[1], `<svg class="qr"`)
	a = s.submit("/admin/account/two-step/confirm", form("000000", own))
	a.has(s.t, "The code is wrong", m[1])
	a = s.submit("/admin/account/two-step/confirm", form(s.appCode(secret), own))
	recovery = recoveryOn(a)
	if a.status != http.StatusOK || len(recovery) != totp.RecoveryCodes || !strings.Contains(a.body, " data-still ") {
		s.t.Fatalf("%d %s", a.status, a.main())
	}
	s.later()
	return secret, recovery
}

var recoveryCode = regexp.MustCompile(`(?m)(?:^|>)([a-z0-9]{4}(?:-[a-z0-9]{4}){3})$`)

func recoveryOn(a answer) (codes []string) {
	for _, m := range recoveryCode.FindAllStringSubmatch(a.body, -1) {
		codes = append(codes, m[1])
	}
	return codes
}

// askedFor enters the password and returns the ticket of the second step.
func (s *site) askedFor(name, own string) string {
	s.t.Helper()
	s.http = s.client()
	a := s.do("POST", "/admin/login", url.Values{"name": {name}, "password": {own}, "next": {"/admin/queue"}})
	m := ticketField.FindStringSubmatch(a.body)
	if a.status != http.StatusOK || m == nil {
		s.t.Fatalf("no code is asked for: %d %s", a.status, a.main())
	}
	if a := s.get("/admin/queue"); a.status != http.StatusSeeOther {
		s.t.Errorf("before the code a page opens: %d", a.status)
	}
	return m[1]
}

func TestTwoStepSignInIsSetUpAndAskedForInThePanel(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	secret, recovery := s.setUp(password)
	page := s.get("/admin/account")
	page.has(t, "10 recovery codes are left")
	page.lacks(t, recovery[0], secret)
	if a := s.submit("/admin/account/two-step", nil); a.status != http.StatusSeeOther {
		t.Errorf("the key is shown again: %d", a.status)
	}

	ticket := s.askedFor("admin", password)
	a := s.do("POST", "/admin/login/code", url.Values{"ticket": {ticket}, "code": {"000000"}, "next": {"/admin/queue"}})
	a.has(t, "The code is wrong or was used already", `value="/admin/queue"`)
	a = s.do("POST", "/admin/login/code", url.Values{"ticket": {ticket}, "code": {s.appCode(secret)}, "next": {"/admin/queue"}})
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/admin/queue" {
		t.Fatalf("with the code: %d %s", a.status, a.main())
	}
	s.get("/admin/queue").has(t, "<h1>Queue</h1>")

	ticket = s.askedFor("admin", password)
	if a := s.do("POST", "/admin/login/code", url.Values{"ticket": {ticket}, "code": {recovery[0]}}); a.status != http.StatusSeeOther {
		t.Fatalf("with a recovery code: %d %s", a.status, a.main())
	}
	s.get("/admin/account").has(t, "9 recovery codes are left")
	if fresh := recoveryOn(s.submit("/admin/account/two-step/recovery", url.Values{"password": {password}})); len(fresh) != 10 || fresh[0] == recovery[0] {
		t.Errorf("new codes: %q", fresh)
	}
	s.submit("/admin/account/two-step/off", url.Values{"password": {"not this one"}}).has(t, "The password is wrong.")
	s.post("/admin/account/two-step/off", url.Values{"password": {password}}).has(t, "Two-step sign-in is off")
	s.http = s.client()
	s.enter() // by the password alone
}

// The key that the page shows is new each time, and another session's key is not confirmed by mistake.
func TestTheKeyOfTwoStepSignInIsNewEachTime(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	first := s.submit("/admin/account/two-step", nil)
	second := s.submit("/admin/account/two-step", nil)
	one, two := keyShown.FindStringSubmatch(first.body)[1], keyShown.FindStringSubmatch(second.body)[1]
	if one == two {
		t.Error("the same key is shown twice")
	}
	a := s.submit("/admin/account/two-step/confirm", url.Values{"setup": {setUpField.FindStringSubmatch(first.body)[1]},
		"code": {s.appCode(strings.ReplaceAll(one, " ", ""))}, "password": {password}})
	if a.status != http.StatusConflict {
		t.Errorf("a code of the key from before: %d", a.status)
	}
	a.has(t, "The key has expired or was replaced", `<svg class="qr"`)
	a.lacks(t, one, two)
	s.get("/admin/account").lacks(t, "recovery codes are left")
}

func TestGuessedCodesAreSlowedWithTheTimeToWait(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.setUp(password)
	ticket := s.askedFor("admin", password)
	for range 30 {
		a := s.do("POST", "/admin/login/code", url.Values{"ticket": {ticket}, "code": {"000000"}})
		if a.status == http.StatusTooManyRequests {
			if a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return
		}
	}
	t.Error("thirty wrong codes were let pass")
}

func TestAViewerMaySetUpTwoStepSignInAndAnAdminTurnsItOffForThem(t *testing.T) {
	s := newSite(t, nil, nil)
	vera := s.enterAs("vera", auth.RoleViewer)
	own := password + "vera"
	s.setUp(own)
	s.http = s.client()
	s.enter()
	s.get("/admin/accounts").has(t, fmt.Sprintf(`action="/admin/accounts/%d/two-step/off"`, vera))
	s.post(fmt.Sprintf("/admin/accounts/%d/two-step/off", vera), nil).has(t, "Two-step sign-in is off for vera")
	s.http = s.client()
	if a := s.do("POST", "/admin/login", url.Values{"name": {"vera"}, "password": {own}}); a.status != http.StatusSeeOther {
		t.Errorf("vera, by the password alone: %d", a.status)
	}
}
