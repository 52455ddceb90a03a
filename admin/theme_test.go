package admin_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"gatehouse/web"
)

func TestThemeWorksWithoutJavaScriptAndLeadsBack(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/people").has(t, `name="at" value="/admin/people"`)
	s.post("/admin/theme", url.Values{"theme": {"dark"}, "at": {"/admin/people"}}).has(t, `data-theme="dark"`, "<h1>People</h1>")
	s.post("/admin/theme", url.Values{"theme": {"light"}, "at": {"//elsewhere.example/admin"}}).has(t, `data-theme="light"`, "<h1>Overview</h1>")
	s.post("/admin/theme", url.Values{"theme": {""}}).lacks(t, "data-theme")
	if a := s.do("POST", "/admin/theme", url.Values{"csrf": {s.csrf()}, "theme": {"x onload"}}); a.status != http.StatusUnprocessableEntity && a.status != http.StatusBadRequest {
		t.Errorf("unknown colours: status %d", a.status)
	}
}

func TestKeysOfOneLetterAreSwitchedOffInABrowserAndOnAgain(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	a := s.get("/admin/people")
	a.has(t, `aria-keyshortcuts="/"`, `<button name="letters" value="" aria-pressed="true">`)
	a.lacks(t, `data-letters`)
	a = s.post("/admin/letters", url.Values{"letters": {"off"}, "at": {"/admin/people"}})
	a.has(t, `data-letters="off"`, `<button name="letters" value="off" aria-pressed="true">`, "<h1>People</h1>")
	a.lacks(t, "aria-keyshortcuts")
	s.get("/admin/queue").has(t, `data-letters="off"`)
	s.post("/admin/letters", url.Values{"letters": {""}}).lacks(t, "data-letters")
	if a := s.do("POST", "/admin/letters", url.Values{"csrf": {s.csrf()}, "letters": {"x onload"}}); a.status != http.StatusUnprocessableEntity && a.status != http.StatusBadRequest {
		t.Errorf("an unknown choice: status %d", a.status)
	}
}

func TestCookiesOfThePanelAreSecureBehindAProxyThatTerminatesTLS(t *testing.T) {
	s := newSite(t, nil, nil)
	checks, err := web.NewSite(web.SiteOptions{Clock: s.clock, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(checks.Wrap(s.panel))
	t.Cleanup(srv.Close)
	s.url = srv.URL
	s.enter()
	token := s.csrf()
	set := func(proto, path string, form url.Values) (cookies []string) {
		form.Set("csrf", token)
		req, err := http.NewRequest("POST", s.url+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-Forwarded-Proto", proto)
		res, err := s.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.Header.Values("Set-Cookie")
	}
	for _, c := range []struct {
		path, cookie string
		form         url.Values
	}{
		{"/admin/theme", "gatehouse_theme", url.Values{"theme": {"dark"}}},
		{"/admin/letters", "gatehouse_letters", url.Values{"letters": {"off"}}},
		{"/admin/people/block", "gatehouse_flash", url.Values{}},
	} {
		for proto, secure := range map[string]bool{"https": true, "http": false} {
			found := false
			for _, text := range set(proto, c.path, c.form) {
				if strings.HasPrefix(text, c.cookie) {
					found = true
					if strings.Contains(text, "; Secure") != secure {
						t.Errorf("over %s: %s", proto, text)
					}
				}
			}
			if !found {
				t.Errorf("%s sets no %s", c.path, c.cookie)
			}
		}
	}
}
