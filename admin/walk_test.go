package admin_test

import (
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/web"
	"gatehouse/web/auth"
)

// places are addresses of the pages whose pattern has a wildcard, or that say
// something only when they are asked, in a full world. A new such page belongs
// in here; the walk fails without.
func (s *site) places() map[string][]string {
	found := []string{"/admin/search/document?line=7&path=" + url.QueryEscape(planFile) + "&q=potatoes"}
	contexts := []string{"/admin/contexts/edit?name=garden", "/admin/contexts/edit"}
	if s.world.ada == "" { // an empty vault
		found, contexts = nil, contexts[1:]
	}
	return map[string][]string{
		"GET /admin/chats/{id}":                  {"/admin/chats/" + s.world.ada, "/admin/chats/" + s.world.mine},
		"GET /admin/chats/trace":                 {"/admin/chats/trace?run=" + adaRun},
		"GET /admin/agents/edit":                 {editNotes},
		"GET /admin/people":                      {"/admin/people", "/admin/people?q=ines"},
		"GET /admin/people/{user}":               {"/admin/people/2"},
		"GET /admin/people/several":              {"/admin/people/several?q=&verb=block&id=2&id=3"},
		"GET /admin/people/{user}/export":        nil, // a file
		"GET /admin/settings":                    {"/admin/settings", "/admin/settings?q=model"},
		"GET /admin/settings/access":             {"/admin/settings/access", "/admin/settings/access?open=secrets"},
		"GET /admin/settings/backups/{name}":     nil, // a file
		"GET /admin/settings/texts/{bot}":        {"/admin/settings/texts/family"},
		"GET /admin/settings/texts/{bot}/{name}": {"/admin/settings/texts/family/code"},
		"GET /admin/chats":                       {"/admin/chats", "/admin/chats?q=potatoes"},
		"GET /admin/journal":                     {"/admin/journal", "/admin/journal?date=" + diaryDay + "&edit=abc123def456"},
		"GET /admin/memory":                      {"/admin/memory", "/admin/memory?q=units"},
		"GET /admin/journal/file":                nil, // a file
		"GET /admin/contexts/edit":               contexts,
		"GET /admin/council/queries/{id}":        {"/admin/council/queries/" + disputed},
		"GET /admin/daily/{name}":                {"/admin/daily/reflection"},
		"GET /admin/search":                      {"/admin/search", "/admin/search?q=potatoes"},
		"GET /admin/search/document":             found,
		"GET /admin/search/message":              nil, // it leads to a conversation
		"GET /admin/import/{id}/report":          nil, // a file
		"GET /admin/{$}":                         {"/admin"},
		"GET /admin/audit/export":                nil, // a file
		"GET /admin/chats/{id}/file":             nil, // a file
		"GET /admin/events":                      nil, // a stream
		"GET /admin/":                            nil, // whatever else: 404
		"GET /admin":                             nil,
		"GET /admin/login":                       nil, // for who is not signed in
	}
}

// pages are the addresses of every page that the panel has, whoever adds one.
func (s *site) pages() (list []string) {
	s.t.Helper()
	places, empty := s.places(), s.world.ada == ""
	for _, pattern := range s.panel.Routes() {
		path, ok := strings.CutPrefix(pattern, "GET ")
		if !ok {
			continue
		}
		known, named := places[pattern]
		switch {
		case empty && wildcard.MatchString(strings.TrimSuffix(path, "{$}")): // there is none
		case named:
			list = append(list, known...)
		case strings.Contains(path, "{"):
			s.t.Errorf("%s: name an address of this page in site.places, or nil for what is no page", pattern)
		default:
			list = append(list, path)
		}
	}
	if len(list) < 18 {
		s.t.Fatalf("only %d pages were found: %q", len(list), list)
	}
	return list
}

// pageName is a page's name for people and pictures.
func pageName(s *site, path string) string {
	switch path {
	case "/admin":
		return "overview"
	case "/admin/chats/" + s.world.ada:
		return "chat"
	case "/admin/chats/" + s.world.mine:
		return "chat-running"
	case editNotes:
		return "agents-edit"
	case "/admin/daily/reflection":
		return "daily-agent"
	case "/admin/contexts/edit":
		return "contexts-new"
	case "/admin/contexts/edit?name=garden":
		return "contexts-edit"
	case "/admin/council/queries/" + disputed:
		return "council-query"
	case "/admin/settings/texts/family":
		return "settings-texts"
	case "/admin/settings/texts/family/code":
		return "settings-text"
	}
	path, query, _ := strings.Cut(strings.TrimPrefix(path, "/admin/"), "?")
	if strings.HasPrefix(query, "date=") {
		path += "-edit"
	}
	if strings.HasPrefix(query, "q=") || strings.HasPrefix(query, "open=") {
		path += "-search"
	}
	return strings.ReplaceAll(path, "/", "-")
}

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// routes are all of the panel's, with something in the place of wildcards.
func (s *site) routes() (list []string) {
	for _, pattern := range s.panel.Routes() {
		if !strings.HasSuffix(pattern, " /admin/login") && pattern != "POST /admin/login/code" {
			list = append(list, wildcard.ReplaceAllString(strings.Replace(pattern, "{$}", "", 1), "x"))
		}
	}
	return append(list, "GET /admin/nothing", "POST /admin/pairing/r1/approve", "POST /admin/approvals/q1/allow", "POST /admin/bots/telegram/stop", "POST /admin/queue/dead/8812/retry")
}

func TestTheWalkKnowsEveryRoute(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	pages := s.pages()
	for _, must := range []string{"/admin", "/admin/pairing/invites", "/admin/chats/" + s.world.mine, "/admin/settings", "/admin/talk", "/admin/password"} {
		if !slices.Contains(pages, must) {
			t.Errorf("the walk misses %s in %q", must, pages)
		}
	}
	// What the menu links to is walked, too.
	for _, m := range regexp.MustCompile(`<a href="(/admin[^"?#]*)"`).FindAllStringSubmatch(s.get("/admin").body, -1) {
		if !slices.Contains(pages, m[1]) {
			t.Errorf("the overview links to %s, which is not walked", m[1])
		}
	}
}

// withoutPage are the options that no page needs: what they add to one is tested apart.
var withoutPage = []string{"Options.Links", "Options.Metrics", "People.InviteLink", "People.Preset", "Chats.Next", "Chats.Retry", "Operations.Audit", "Operations.Failing"}

// A page whose source is missing has no route, so that no walk would find it: the site of these
// tests has every source.
func TestTheWalkHasTheSourceOfEveryPage(t *testing.T) {
	s := newSite(t, nil, nil)
	var walk func(v reflect.Value, name string)
	walk = func(v reflect.Value, name string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), strings.TrimPrefix(name+"."+v.Type().Field(i).Name, "."))
			}
		case reflect.Interface, reflect.Func, reflect.Pointer:
			if v.IsNil() && !slices.Contains(withoutPage, name) {
				t.Errorf("newSite leaves %s out, so its pages are in no walk: fill it, or add it to withoutPage", name)
			}
		}
	}
	walk(reflect.ValueOf(s.options), "")
}

var (
	inlineCode = regexp.MustCompile(`\sstyle="|<style|<script>|\son[a-z]+="|href="javascript:`)
	postForm   = regexp.MustCompile(`(?s)<form[^>]*method="post".*?</form>`)
	staticFile = regexp.MustCompile(`/static/[a-z.]+`)
	smallPic   = regexp.MustCompile(`<img src="([^"]+)"`)
)

// Every page, full: what its policy allows, that no other site may frame it,
// that every form carries the session's token first, and that it is light.
func TestEveryPageKeepsTheHouseRules(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.crowd()
	token, sizes := s.csrf(), map[string]int{}
	for _, path := range s.pages() {
		a := s.get(path)
		h := a.header
		if a.status != http.StatusOK {
			t.Errorf("GET %s: status %d", path, a.status)
			continue
		}
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("GET %s: the policy %q lacks %q", path, csp, want)
			}
		}
		if strings.Contains(csp, "unsafe") || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "DENY" {
			t.Errorf("GET %s: %v", path, h)
		}
		if at := inlineCode.FindString(a.body); at != "" {
			t.Errorf("GET %s: inline %q, which the policy blocks", path, at)
		}
		for _, form := range postForm.FindAllString(a.body, -1) {
			_, rest, _ := strings.Cut(form, ">")
			if !strings.HasPrefix(strings.TrimSpace(rest), `<input type="hidden" name="csrf" value="`+token+`">`) {
				t.Errorf("GET %s: a form does not begin with the token: %.120s", path, form)
			}
		}
		all := len(a.body)
		for _, f := range staticFile.FindAllString(a.body, -1) {
			if sizes[f] == 0 {
				sizes[f] = len(s.get(f).body)
			}
			all += sizes[f]
		}
		for _, m := range smallPic.FindAllStringSubmatch(a.body, -1) {
			all += len(s.get(strings.ReplaceAll(m[1], "&amp;", "&")).body)
		}
		// 150,000 are promised; the rest is for longer names, and for the page to grow.
		if t.Logf("%-40s %7d bytes", path, all); all > 140_000 {
			t.Errorf("GET %s is %d bytes with style, script and pictures, want at most 140,000", path, all)
		}
	}
}

// A session that somebody brings along is not the one that signing in gives,
// and the one of before a change of password is over.
func TestNoSessionIsFixedBeforehand(t *testing.T) {
	s := newSite(t, nil, nil)
	where, err := url.Parse(s.url)
	must(err)
	bring := func(token string) { // in a browser of its own
		s.http = s.client()
		s.http.Jar.SetCookies(where, []*http.Cookie{{Name: sessionCookie(where), Value: token, Path: "/"}})
	}
	signIn := func() string {
		if a := s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {password}}); a.status != http.StatusSeeOther {
			t.Fatalf("sign in: %d", a.status)
		}
		return s.cookie(where)
	}
	shut := func(token, what string) {
		bring(token)
		if a := s.get("/admin/people"); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/admin/login") {
			t.Errorf("%s opens pages: %d to %q", what, a.status, a.header.Get("Location"))
		}
	}
	own := signIn()
	made := strings.Repeat("A", len(own))
	for _, token := range []string{made, own} {
		bring(token)
		if got := signIn(); got == token {
			t.Error("the session that was brought along is signed in now")
		}
	}
	shut(made, "a session that was made up")
	s.http = s.client()
	before := signIn()
	s.do("POST", "/admin/password", url.Values{"csrf": {s.csrf()}, "old": {password}, "new": {password + "!"}, "again": {password + "!"}})
	if after := s.cookie(where); after == "" || after == before {
		t.Error("a change of password goes on with the same session")
	}
	shut(before, "the session of before the change")
}

// sessionCookie is the name of the session's cookie at an address.
func sessionCookie(where *url.URL) string {
	return web.CookieName(&http.Request{Host: where.Host}, auth.CookieName)
}

func (s *site) cookie(where *url.URL) string {
	for _, c := range s.http.Jar.Cookies(where) {
		if c.Name == sessionCookie(where) {
			return c.Value
		}
	}
	return ""
}

// docs/admin.md shows every page, light and dark; make pictures takes the
// pictures. None is in the directory that the guide does not show.
func TestTheWalkThroughShowsEveryPage(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	text, err := os.ReadFile("../docs/admin.md")
	must(err)
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`admin/([a-z0-9-]+\.png)`).FindAllStringSubmatch(string(text), -1) {
		names[m[1]] = true
		if _, err := os.Stat("../docs/admin/" + m[1]); err != nil {
			t.Errorf("docs/admin.md shows %s, which is not there", m[1])
		}
	}
	for _, path := range s.pages() {
		for _, look := range []string{"desk-light", "desk-dark"} {
			if name := pageName(s, path) + "-" + look + ".png"; !names[name] && !strings.Contains(name, "-search-") {
				t.Errorf("docs/admin.md does not show %s (run make pictures, then add it)", name)
			}
		}
	}
	taken, err := os.ReadDir("../docs/admin")
	must(err)
	size := int64(0)
	for _, f := range taken {
		info, err := f.Info()
		must(err)
		if size += info.Size(); !names[f.Name()] {
			t.Errorf("docs/admin/%s is shown nowhere", f.Name())
		}
	}
	if size > 3<<20 {
		t.Errorf("the pictures are %d bytes together, want at most 3 MB", size)
	}
}

// A browser sends the cookies of one port to the other.
func TestTwoGatewaysOnOneHostDoNotSignEachOtherOut(t *testing.T) {
	one, two := newSite(t, nil, nil), newSite(t, nil, nil)
	two.http = one.http // one browser, which knows no ports
	for _, s := range []*site{one, two, one, two} {
		if s.get("/admin/people").status == http.StatusOK {
			continue
		}
		if a := s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {password}}); a.status != http.StatusSeeOther {
			t.Fatalf("sign in: %d", a.status)
		}
	}
	for name, s := range map[string]*site{"first": one, "second": two} {
		if a := s.get("/admin/people"); a.status != http.StatusOK {
			t.Errorf("the %s gateway is signed out: %d", name, a.status)
		}
	}
}
