package admin_test

import (
	"net/http"
	"net/url"
	"testing"
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
