package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/admin"
	"gatehouse/admin/accounts"
	"gatehouse/admin/approvals"
	"gatehouse/admin/chats"
	"gatehouse/admin/operations"
	"gatehouse/admin/page"
	"gatehouse/admin/people"
	"gatehouse/admin/settings"
	"gatehouse/core"
	"gatehouse/core/contexts"
	"gatehouse/core/coretest"
	"gatehouse/core/memory"
	toolcall "gatehouse/core/orchestrator/call"
	"gatehouse/core/runs"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/transcript"
	"gatehouse/pairing/bots"
	pairingpeople "gatehouse/pairing/people"
	"gatehouse/web"
	"gatehouse/web/account"
	"gatehouse/web/auth"
	"gatehouse/web/auth/authtest"
	"gatehouse/web/static"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "seven grey herons"

// A site is the panel as it is served: behind the checks of web, with real
// accounts and sessions in a real database, and with a world behind it.
type site struct {
	t        *testing.T
	url      string
	world    *world
	clock    core.Clock
	log      *bytes.Buffer // read it only when no request is under way
	admins   *auth.Admins
	accounts *account.Store
	http     *http.Client // has a cookie jar and follows no redirect
	panel    *page.Frame
	options  admin.Options
}

// noInvitations has none to end.
type noInvitations struct{}

func (noInvitations) Withdraw(context.Context, *store.Tx, int64) error { return nil }

func newSite(t *testing.T, clock core.Clock, change func(*admin.Options)) *site {
	t.Helper()
	if clock == nil {
		clock = coretest.NewClock(time.Time{})
	}
	s := &site{t: t, clock: clock, world: &world{clock: clock}, log: &bytes.Buffer{}}
	db := storetest.Open(t, clock)
	admins := auth.NewAdmins(db, auth.AdminOptions{Clock: clock})
	authtest.Operator(t, db, password)
	keys := auth.NewKeys(db, clock, nil)
	door := auth.NewAuthenticator(keys, admins, auth.AuthenticatorOptions{Clock: clock})
	users := pairingpeople.New(db, clock, bots.Bots{}, nil, nil, nil, nil)
	box, err := sealed.Create(filepath.Join(t.TempDir(), "content.key"))
	if err != nil {
		t.Fatal(err)
	}
	s.accounts = account.New(account.Options{DB: db, SignIn: admins, Users: users, Keys: keys, Box: box, Invitations: noInvitations{}, Abort: func(int64) {}})
	admins.AskSecond(s.accounts)
	w := s.world
	admins.OnEnd(func() { w.ring(core.TopicAccounts) })
	w.openVault(t)
	o := admin.Options{
		Chats:      chats.Options{Say: w.say, Files: w.files, Questions: w, Label: toolcall.Label},
		Settings:   settings.Options{Agents: w.agents, Library: w.agents, Drafts: w.agents, SaveAgent: w.saveAgent, Servers: w.health},
		Options:    page.Options{Codes: admins, Clock: clock, Log: slog.New(slog.NewTextHandler(s.log, nil)), Bell: w, Asset: func(name string) string { return static.Address("/static/", name) }},
		Accounts:   accounts.Options{Accounts: s.accounts, Terms: s.accounts, Sessions: admins.Sessions, TwoStep: s.accounts, Password: admins.CheckPassword},
		Unlisted:   users.Unlisted,
		Approvals:  approvals.Options{Asks: askWorld{w}, Grants: grantWorld{w}, Raises: raiseWorld{w}},
		Operations: operations.Options{Bots: w, Lanes: w, Dead: w, Sends: w, Retrying: w.Retrying, Usage: w.usage, Quantile: runs.Quantile},
		People:     people.Options{Requests: w, Decisions: w, Access: w, Persons: w, Keys: w.keysOf, Terms: w, Spending: w, PersonalData: careWorld{w}, LastSeen: w.lastSeen, SetPlace: w.setPlace, Blocks: w, Places: w, Invites: w, Preview: w.preview},
	}
	w.openChats(t, db, &o)
	w.openFind(&o)
	w.openImports(&o)
	w.openJournal(db, &o)
	w.openMemory(db, &o)
	w.openProjects(db, &o)
	w.openContexts(&o)
	w.openCouncil(t, db, &o)
	w.openReports(db, &o)
	w.listGateways(&o)
	w.openDaily(&o)
	w.openSettings(db, &o)
	w.openModels(db, &o)
	if change != nil {
		change(&o)
	}
	s.options = o
	panel := admin.New(door, admins, o)
	mux := http.NewServeMux()
	mux.Handle("/admin", panel)
	mux.Handle("/admin/", panel)
	mux.Handle("/static/", static.Handler("/static/"))
	mux.HandleFunc("GET /api/chat/{id}/events", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }) // no run to follow
	checks, err := web.NewSite(web.SiteOptions{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(checks.Wrap(mux))
	t.Cleanup(srv.Close)
	s.url, s.http, s.panel, s.admins = srv.URL, s.client(), panel, admins
	return s
}

// client is a fresh browser without JavaScript.
func (s *site) client() *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	tr := &http.Transport{}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Jar: jar, Timeout: 5 * time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (s *site) do(method, path string, form url.Values) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := s.http.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

func (s *site) get(path string) answer { s.t.Helper(); return s.do("GET", path, nil) }

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// csrf is the token of the present session, as its pages carry it.
func (s *site) csrf() string {
	s.t.Helper()
	m := csrfField.FindStringSubmatch(s.get("/admin/password").body)
	if m == nil {
		s.t.Fatal("no CSRF token on the page")
	}
	return m[1]
}

// post sends a form as a browser without JavaScript does, follows the
// redirect, and returns the page that came of it.
func (s *site) post(path string, form url.Values) answer {
	s.t.Helper()
	if form == nil {
		form = url.Values{}
	}
	form.Set("csrf", s.csrf())
	a := s.do("POST", path, form)
	if a.status != http.StatusSeeOther {
		s.t.Fatalf("POST %s: status %d, want 303\n%s", path, a.status, a.body)
	}
	to, _, _ := strings.Cut(a.header.Get("Location"), "#")
	return s.get(to)
}

// enter signs in and changes the one-time password.
func (s *site) enter() *site {
	s.t.Helper()
	a := s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {password}})
	if a.status != http.StatusSeeOther {
		s.t.Fatalf("sign in: status %d\n%s", a.status, a.body)
	}
	return s
}

// oneTime makes it a first start: nobody has signed in, and this is the
// password to do it with once.
func (s *site) oneTime() string {
	s.t.Helper()
	once, err := s.admins.Reset(s.t.Context(), core.Actor{Via: "cli"})
	if err != nil {
		s.t.Fatal(err)
	}
	return once
}

// main is the page without its frame, for messages.
func (a answer) main() string {
	_, main, ok := strings.Cut(a.body, "<main")
	if !ok {
		return a.body
	}
	return main
}

func (a answer) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page lacks %q:\n%s", text, a.main())
		}
	}
}

func (a answer) lacks(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			t.Errorf("the page has %q:\n%s", text, a.main())
		}
	}
}

func TestTheOneTimePasswordIsChangedBeforeAnythingElseOpens(t *testing.T) {
	s := newSite(t, nil, nil)
	oneTime := s.oneTime()
	a := s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {"wrong wrong wrong"}})
	if a.status != http.StatusUnauthorized {
		t.Fatalf("wrong password: status %d, want 401", a.status)
	}
	a.has(t, "Name or password is wrong.", `value="admin"`)
	a = s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {oneTime}, "next": {"/admin/queue"}})
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/admin/queue" {
		t.Fatalf("sign in: %d to %q", a.status, a.header.Get("Location"))
	}
	for _, r := range s.routes() {
		path, ok := strings.CutPrefix(r, "GET ")
		if !ok || path == "/admin/password" {
			continue
		}
		if a := s.get(path); a.status != http.StatusSeeOther || a.header.Get("Location") != "/admin/password" {
			t.Errorf("GET %s before the change: %d to %q, want a redirect to the password", path, a.status, a.header.Get("Location"))
		}
	}
	csrf := s.csrf()
	s.get("/admin/password").lacks(t, `name="old"`) // it was typed to sign in: it is asked once
	for name, form := range map[string]url.Values{
		"they differ":        {"new": {password}, "again": {password + "!"}},
		"it is short":        {"new": {"short"}, "again": {"short"}},
		"it is the one-time": {"new": {oneTime}, "again": {oneTime}},
	} {
		form.Set("csrf", csrf)
		if a := s.do("POST", "/admin/password", form); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("%s: status %d, want the form again with the reason", name, a.status)
		}
	}
	a = s.do("POST", "/admin/password", url.Values{"csrf": {csrf}, "new": {password}, "again": {password}})
	if a.status != http.StatusSeeOther {
		t.Fatalf("change: status %d\n%s", a.status, a.body)
	}
	s.get("/admin").has(t, "The password is changed", "<h1>Overview</h1>")
	s.get("/admin").lacks(t, "The password is changed") // said once
}

func TestGuessingIsSlowedDownWithTheTimeToWait(t *testing.T) {
	s := newSite(t, nil, nil)
	for range 30 {
		a := s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {"guess"}})
		if a.status == http.StatusTooManyRequests {
			if a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			a.has(t, "Too many wrong passwords")
			return
		}
	}
	t.Error("30 guesses were all answered with 401")
}

func TestWithoutASessionNoRouteAnswersOrDecides(t *testing.T) {
	s := newSite(t, nil, nil)
	s.world.full()
	for _, r := range s.routes() {
		method, path, _ := strings.Cut(r, " ")
		a := s.do(method, path, url.Values{"trust": {"vault"}})
		want := http.StatusSeeOther
		if path == "/admin/events" {
			want = http.StatusUnauthorized
		}
		if a.status != want || want == http.StatusSeeOther && !strings.HasPrefix(a.header.Get("Location"), "/admin/login") {
			t.Errorf("%s: %d to %q, want the sign-in", r, a.status, a.header.Get("Location"))
		}
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		a = s.do(method, path+sep+"fragment=1", url.Values{"trust": {"vault"}})
		if a.status != http.StatusUnauthorized {
			t.Errorf("%s as a fragment: %d, want 401", r, a.status)
		}
		a.lacks(t, "Ada Okafor", "Matteo")
	}
	if did := s.world.done(); len(did) > 0 {
		t.Errorf("without a session was done: %q", did)
	}
}

func TestAFormWithoutTheSessionsTokenIs403AndDecidesNothing(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for _, r := range s.routes() {
		path, ok := strings.CutPrefix(r, "POST ")
		if !ok {
			continue
		}
		for _, csrf := range []string{"", "somebody-elses"} {
			if a := s.do("POST", path, url.Values{"csrf": {csrf}, "trust": {"vault"}, "bot": {"telegram"}, "user": {"5501202"}}); a.status != http.StatusForbidden {
				t.Errorf("%s with token %q: status %d, want 403", r, csrf, a.status)
			}
		}
	}
	if did := s.world.done(); len(did) > 0 {
		t.Errorf("without the token was done: %q", did)
	}
	if a := s.get("/admin"); a.status != http.StatusOK {
		t.Errorf("after refused forms the session is gone: %d", a.status)
	}
}

func TestSigningOutEndsTheSessionHereOrEverywhere(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	first := s.http
	s.http = s.client()
	if a := s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {password}}); a.status != http.StatusSeeOther {
		t.Fatalf("second sign-in: %d", a.status)
	}
	s.do("POST", "/admin/logout", url.Values{"csrf": {s.csrf()}})
	if a := s.get("/admin/people"); a.header.Get("Location") != "/admin/login?next=%2Fadmin%2Fpeople" {
		t.Errorf("after signing out: %d to %q", a.status, a.header.Get("Location"))
	}
	s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {password}})
	s.do("POST", "/admin/logout", url.Values{"csrf": {s.csrf()}, "everywhere": {"1"}})
	s.http = first
	if a := s.get("/admin/people"); a.status != http.StatusSeeOther {
		t.Errorf("the other session survives signing out everywhere: %d", a.status)
	}
}

func TestTheSignInLeadsToPagesOfThePanelOnly(t *testing.T) {
	s := newSite(t, nil, nil)
	for next, want := range map[string]string{
		"/admin/people": "/admin/people", "/admin/settings/limits": "/admin/settings/limits", "/admin/events": "/admin", "/admin/people/{user}": "/admin", "https://evil.example/": "/admin", "//evil.example": "/admin", "/admin/../x": "/admin", "": "/admin",
	} {
		s.http = s.client()
		a := s.do("POST", "/admin/login", url.Values{"name": {"admin"}, "password": {password}, "next": {next}})
		if got := a.header.Get("Location"); got != want {
			t.Errorf("next=%q leads to %q, want %q", next, got, want)
		}
	}
}

const hostile = `<script>alert(1)</script>"><img src=x onerror=alert(2)>' onfocus=alert(3) {{.}} javascript:alert(4)`

func TestHostileNamesAndTextsAreEscapedOnEveryPage(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w, now := s.world, s.clock.Now()
	w.full()
	for i := range w.requests {
		q := &w.requests[i]
		q.Display, q.FirstMessage, q.Place, q.PlatformUserID, q.Bot, q.ResolvedBy = hostile, hostile, hostile, hostile, hostile, hostile
	}
	w.requests[0].ResolvedAt = now // shown in its place, with undo
	for i := range w.access {
		a := &w.access[i]
		a.Display, a.PlatformUserID, a.Place, a.By, a.Bot = hostile, hostile, hostile, hostile, hostile
	}
	w.blocks[0].PlatformUserID, w.blocks[0].By = hostile, hostile
	for i := range w.find.hits {
		h := &w.find.hits[i]
		h.Title, h.Path, h.ID, h.Message, h.Excerpt = hostile, hostile, hostile, hostile, hostile
	}
	for i := range w.imports.list {
		s := &w.imports.list[i]
		s.Error, s.Report.Name, s.Report.Format = hostile, hostile, hostile
		for k := range s.Report.Faults {
			s.Report.Faults[k].File, s.Report.Faults[k].Title, s.Report.Faults[k].Reason = hostile, hostile, hostile
		}
	}
	w.find.status.Faults[0].Path, w.find.status.Faults[0].Reason = hostile, hostile
	w.file(planFile, hostile)
	for i := range w.places {
		w.places[i].Name, w.places[i].Place = hostile, hostile
	}
	for i := range w.bots {
		b := &w.bots[i]
		b.Bot, b.Username, b.Reason, b.LastError = hostile, hostile, hostile, hostile
	}
	for i, a := range w.asks {
		r := core.PermissionRequest{ID: a.ID, ToolName: hostile, Kind: "write", Path: hostile, Command: hostile, ExpiresAt: a.ExpiresAt, SuggestedGrants: grants(hostile, hostile)}
		b := call(now, 2, core.Vault, r, hostile, hostile, hostile)
		b.State, b.Decision, b.DecidedBy, b.DecidedAt = a.State, a.Decision, hostile, a.DecidedAt
		w.asks[i] = b
	}
	w.grants[0].Pattern, w.grants[0].By, w.grants[0].Session = hostile, hostile, hostile
	w.dead[0].Name, w.dead[0].Text, w.dead[0].Error, w.dead[0].Kind = hostile, hostile, hostile, hostile
	w.sends[0].Text, w.sends[0].Error, w.sends[0].Chat, w.sends[0].Key = hostile, hostile, hostile, hostile
	w.lanes[0].Key, w.lanes[0].Owner = hostile, hostile
	w.gateways[0].ID, w.gateways[0].Version, w.gateways[0].Address = hostile, hostile, hostile
	w.file(notesFile, "---\ndescription: >-\n  "+hostile+"\n---\n"+hostile)
	w.servers[1].Error = hostile
	w.reports.write(hostile, "bot", hostile)
	w.policies = map[string]settings.BotPolicy{hostile: {DMPolicy: hostile, AllowedUsers: hostile, DMTrust: hostile, GroupTrust: hostile}}
	w.tokens = map[string]string{hostile: hostile}
	w.texts = map[string]string{"code": hostile}
	w.backups[0].Path = hostile
	w.settings = []settings.Setting{{Name: "GATEHOUSE_X", Value: hostile, Source: "environment", About: hostile}}
	w.changed = map[string]string{"MODEL": hostile, "RATE_LIMIT": hostile, "GUEST_READ": hostile}
	w.audit(core.Actor{User: 2, Via: hostile}, hostile, hostile)
	must(w.chats.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO rollups (bucket, series, value) VALUES ($1, $2, 5000000)`, "1h|"+core.Stamp(now.UTC().Truncate(time.Hour)), "tokens|"+hostile)
		return err
	}))
	must(w.chats.db.Tx(t.Context(), func(tx *store.Tx) error { // a session of a browser that calls itself so
		data, err := json.Marshal(map[string]any{"user": core.Operator, "started": core.Stamp(now), "seen": core.Stamp(now), "agent": hostile, "address": hostile})
		must(err)
		_, err = tx.Exec(t.Context(), `INSERT INTO admin_sessions (token, data, expiry) VALUES ('x', $1, $2)`, data, core.Stamp(now.Add(time.Hour)))
		return err
	}))
	w.file(diaryFile, "# para:abc123def456 10:30 AM "+hostile+"\n\n"+hostile+"\n\n## Images\n\n![x](assets/2026-01-28/"+url.PathEscape(hostile)+")\n")
	about, err := json.Marshal(contexts.Context{Description: hostile, Folders: []string{hostile}, Files: []string{hostile + ".md"}})
	must(err)
	w.file("Chat/contexts/garden.json", string(about))
	w.file("Daily/.agents/reflection.md", "---\ndisplayName: >-\n  "+hostile+"\ndescription: >-\n  "+hostile+"\nschedule: \"21:30\"\n---\n"+hostile)
	for i := range w.daily.runs {
		w.daily.runs[i].Error, w.daily.runs[i].Output, w.daily.runs[i].Cause = hostile, hostile, hostile
	}
	must(w.chats.db.Tx(t.Context(), func(tx *store.Tx) error { return w.council.ForgetSession(t.Context(), tx, "s") }))
	w.quarrel(hostile, hostile, hostile)
	_, err = w.memory.Hear(t.Context(), memory.Message{User: core.Operator, Source: "hostile", Text: "correction: our units are " + hostile})
	must(err)
	const badRun = "0192fa3c-41aa-7000-8000-0000000000bb"
	bad := w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: hostile}, User: 2, Trust: core.Vault, Source: "telegram"}, hostile, badRun, transcript.Message{Role: "user", Blocks: []core.Block{text(hostile), {Type: "media", Media: []core.Media{{Type: hostile, Name: hostile}, {Type: "application/pdf", Name: hostile, Data: []byte("%PDF-1.4")}}}}},
		transcript.Message{Role: "assistant", Model: hostile, Blocks: []core.Block{text(hostile), {Type: "thinking", Text: hostile}, {Type: "tool_use", ID: "h", Name: hostile, Input: json.RawMessage(`{"a":"<script>alert(1)</script>"}`)}}},
		transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "h", Text: hostile}}})
	w.talk(session.Ref{Address: core.Address{Bot: "telegram", Chat: "own"}, User: core.Operator, Trust: core.Vault, Source: "telegram"}, hostile, "rown")
	must(w.chats.Update(t.Context(), bad, session.Change{AddTags: []string{hostile}}, core.Actor{}))
	must(w.chats.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO runs (id, session_id, attempt, state, model, error, started) VALUES ($1, $2, 1, 'error', $3, $3, '')`, badRun, bad, hostile)
		return err
	}))
	values := regexp.MustCompile(`="[^"]*"`) // a quote inside one would end it
	handler := regexp.MustCompile(`<[^>]*\son(error|focus)`)
	for _, path := range append(s.pages(), "/admin/chats/"+bad, "/admin/chats/trace?run="+badRun, "/admin/council/queries/"+disputed, "/admin/people?q="+url.QueryEscape(hostile)) {
		a := s.get(path)
		if a.status != http.StatusOK {
			t.Errorf("GET %s: status %d", path, a.status)
		}
		if n := strings.Count(a.body, "<script"); n == 0 || n != strings.Count(a.body, `<script type="module" src="/static/`) {
			t.Errorf("GET %s: %d script elements, want the panel's only", path, n)
		}
		if strings.Count(a.body, "<img") != strings.Count(a.body, `<img src="/admin/chats/`)+strings.Count(a.body, `<img class="photo" src="/admin/journal/file?path=`) {
			t.Errorf("GET %s: a picture from elsewhere", path)
		}
		a.lacks(t, `href="javascript:`)
		if at := handler.FindString(values.ReplaceAllString(a.body, "")); at != "" {
			t.Errorf("GET %s: an attribute broke out: %s", path, at)
		}
		if path != "/admin/password" && path != "/admin/settings/bots/add" && path != "/admin/contexts/edit" && !strings.Contains(a.body, "&lt;script&gt;alert(1)") {
			t.Errorf("GET %s: the hostile text is not shown at all, so nothing is proved", path)
		}
	}
}

func TestEveryDecisionWorksWithoutJavaScript(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	day := core.Stamp(s.clock.Now().Add(24 * time.Hour))
	for _, c := range []struct {
		path string
		form url.Values
		did  []string
		says string
	}{
		{"/admin/pairing/r1/approve", url.Values{"trust": {"vault"}, "end": {"24h"}}, []string{"approved r1 vault", "until " + day}, "Ada Okafor may talk to telegram now, as vault."},
		{"/admin/pairing/r1/revoke", url.Values{"bot": {"telegram"}, "user": {"7214450193"}}, []string{"revoke telegram 7214450193"}, "Revoked: 1 access on telegram."},
		{"/admin/pairing/r2/deny", nil, []string{"denied r2 "}, "receives one denial, then no answer for 7 days."},
		{"/admin/pairing/r2/undo", nil, []string{"pending r2 "}, "waits for a decision again"},
		{"/admin/pairing/r2/block", nil, []string{"denied r2 ", "block 90071992547409931"}, "is blocked"},
		{"/admin/people/access/3/remove", nil, []string{"remove 3"}, "That access is removed."},
		{"/admin/people/revoke", url.Values{"bot": {"family"}, "user": {"7700431189"}}, []string{"revoke family 7700431189"}, "Revoked: 1 access on family."},
		{"/admin/people/block", url.Values{"bot": {"*"}, "platform": {"telegram"}, "user": {"39902211"}}, []string{"block * telegram 39902211"}, "Blocked."},
		{"/admin/people/unblock", url.Values{"bot": {"*"}, "platform": {"telegram"}, "user": {"611003377"}}, []string{"unblock * telegram 611003377"}, "Unblocked."},
		{"/admin/people/places/enable", url.Values{"bot": {"telegram"}, "place": {"-1004410022"}, "trust": {"sandboxed"}}, []string{"enable telegram -1004410022 sandboxed"}, "The group is enabled as sandboxed"},
		{"/admin/people/places/disable", url.Values{"bot": {"family"}, "place": {"-1001882734410"}}, []string{"disable family -1001882734410"}, "The group is disabled"},
		{"/admin/approvals/q1/allow", url.Values{"pattern": {"Allotment/*"}}, []string{"granted q1 Allotment/*"}, "Allowed, and from now on in this conversation: Allotment/*"},
		{"/admin/approvals/q2/deny", nil, []string{"denied q2 "}, "Denied. The model continues"},
		{"/admin/approvals/grants/g1/revoke", nil, []string{"revoke grant g1"}, "The grant is revoked"},
		{"/admin/bots/old/start", nil, []string{"start old"}, "old is starting"},
		{"/admin/bots/family/stop", nil, []string{"stop family"}, "family is stopped"},
		{"/admin/bots/family/test", nil, []string{"test family"}, "the platform knows it as @family_bot"},
		{"/admin/queue/send/5521/again", nil, []string{"again 5521"}, "The reply is on its way again."},
		{"/admin/queue/send/5530/settle", nil, []string{"settle 5530"}, "Settled"},
		{"/admin/queue/send/5544/retry", nil, []string{"retry now 5544"}, "The reply is tried again now."},
		{"/admin/queue/send/5544/give-up", nil, []string{"give up 5544"}, "The reply is given up. You can still send it again."},
		{"/admin/queue/dead/8812/retry", nil, []string{"retry 8812"}, "The message is in its lane again"},
	} {
		before := len(w.done())
		page := s.post(c.path, c.form)
		if did := w.done()[before:]; !slices.Equal(did, c.did) {
			t.Errorf("%s did %q, want %q", c.path, did, c.did)
		}
		page.has(t, `<p class="flash good"`, c.says)
		if !strings.HasPrefix(c.path, "/admin/bots") && w.lastActor() != (core.Actor{User: core.Operator, Via: "panel"}) {
			t.Errorf("%s was done by %+v, want the operator in the panel", c.path, w.lastActor())
		}
	}
}

// Each form that a page shows must work as it is: its action, its fields.
func TestTheFormsOnThePagesLeadToTheirDecisions(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for path, forms := range map[string][]string{
		"/admin/pairing":          {`action="/admin/pairing/r1/approve"`, `formaction="/admin/pairing/r1/deny"`, `formaction="/admin/pairing/r1/block"`, `name="trust" value="sandboxed" checked`, `name="trust" value="vault"`, `name="end" value="" checked`, `name="end" value="24h"`},
		"/admin/approvals":        {`action="/admin/approvals/q1/allow"`, `formaction="/admin/approvals/q2/deny"`, `action="/admin/approvals/grants/g1/revoke"`, `name="pattern" value="" checked`, `name="pattern" value="Allotment/**/*"`},
		"/admin/people":           {`href="/admin/people/several?verb=revoke&amp;id=3"`, `action="/admin/people/3/block"`, `action="/admin/people/places/set"`, `action="/admin/people/block"`, `action="/admin/people/unblock"`, `action="/admin/people/places/enable"`, `action="/admin/people/places/disable"`},
		editNotes:                 {`action="/admin/agents/edit"`, `name="do" value="preview"`, `name="version" value="`},
		"/admin/people/2":         {`action="/admin/people/revoke"`, `action="/admin/people/access/3/remove"`, `action="/admin/people/access/3/change"`, `action="/admin/people/2/give"`, `action="/admin/people/2/forget"`, `action="/admin/people/2/export"`, `action="/admin/people/2/budget"`},
		"/admin/settings/models":  {`action="/admin/settings/models"`},
		"/admin/settings/limits":  {`action="/admin/settings/limits"`},
		"/admin/settings/access":  {`action="/admin/settings/access"`, `action="/admin/settings/keys"`},
		"/admin/settings/backups": {`action="/admin/settings/backups"`, `action="/admin/settings/backups/` + backupOne + `/delete"`},
		"/admin/settings/bots":    {`action="/admin/settings/bots/family/policy"`, `action="/admin/settings/bots/family/token"`, `action="/admin/settings/bots/family/stop"`},
		"/admin/bots":             {`action="/admin/bots/old/start"`, `action="/admin/bots/family/stop"`, `action="/admin/bots/family/test"`},
		"/admin/queue":            {`action="/admin/queue/dead/8812/retry"`, `action="/admin/queue/dead/8812/dismiss"`, `action="/admin/queue/send/5521/again"`, `action="/admin/queue/send/5530/settle"`, `action="/admin/queue/send/5544/retry"`, `action="/admin/queue/send/5544/give-up"`},
	} {
		a := s.get(path)
		a.has(t, forms...)
		posts := strings.Count(a.body, `method="post"`)
		if tokens := strings.Count(a.body, `name="csrf" value="`+s.csrf()+`"`); tokens != posts {
			t.Errorf("GET %s: %d forms that post, %d with the token", path, posts, tokens)
		}
	}
}

func TestFullIsNeverOfferedNorTaken(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) {
		o.People.Preset = func(bot string, scope core.Scope) core.Trust {
			if bot == "telegram" && scope == core.ScopeDM {
				return core.Full
			}
			return core.Sandboxed
		}
	}).enter()
	s.world.full()
	a := s.get("/admin/pairing")
	a.lacks(t, `value="full"`)
	a.has(t, `name="trust" value="vault" checked`) // the preset, lowered
	s.post("/admin/pairing/r1/approve", url.Values{"trust": {"full"}}).has(t, "flash bad", "cannot be granted")
	s.post("/admin/people/places/enable", url.Values{"bot": {"telegram"}, "place": {"x"}, "trust": {"full"}}).has(t, "flash bad")
	s.post("/admin/pairing/r1/approve", url.Values{"trust": {"vault"}, "end": {"100y"}}).has(t, "flash bad")
	if did := s.world.done(); len(did) > 0 {
		t.Errorf("was done: %q", did)
	}
}

func TestTheSecondToDecideCalmlySeesWhoWasFirst(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	if _, err := s.world.Approve(t.Context(), "r1", core.Approval{Trust: core.Sandboxed}, core.Actor{User: 1, Via: "chat"}); err != nil {
		t.Fatal(err)
	}
	s.post("/admin/pairing/r1/deny", nil).has(t, `<p class="flash note"`, "Already approved by operator via chat at 03:04 UTC.")
}

func TestADecisionCanBeUndoneInItsPlaceForTenSeconds(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	s := newSite(t, clock, nil).enter()
	s.world.full()
	s.post("/admin/pairing/r1/block", nil).has(t, `action="/admin/pairing/r1/undo"`, `data-left="10"`, "Blocked by operator via panel.")
	clock.Advance(7 * time.Second)
	s.get("/admin/pairing").has(t, `data-left="3"`)
	clock.Advance(3 * time.Second)
	a := s.get("/admin/pairing")
	a.lacks(t, `action="/admin/pairing/r1/undo"`)
	a.has(t, `<tr id="d-r1">`) // moved to those decided
	clock.Advance(time.Second)
	a.has(t, `<span class="pill bad">Blocked</span>`)
	s.post("/admin/pairing/r1/undo", nil).has(t, "flash note", "Too late to undo")
	s.get("/admin/people").has(t, "<bdi>Ada Okafor</bdi> <small>Telegram")
}

func TestAnApprovalCanBeRevokedInItsPlace(t *testing.T) {
	s := newSite(t, coretest.NewClock(time.Time{}), nil).enter()
	s.world.full()
	a := s.post("/admin/pairing/r1/approve", url.Values{"trust": {"sandboxed"}})
	a.has(t, "Approved as sandboxed by operator via panel.", `action="/admin/pairing/r1/revoke"`)
	a.lacks(t, `action="/admin/pairing/r1/undo"`)
	s.post("/admin/pairing/r1/undo", nil).has(t, "flash note", "An approval cannot be undone: revoke the access instead")
	q := s.world.requests[slices.IndexFunc(s.world.requests, func(q core.PairingRequest) bool { return q.ID == "r1" })]
	form := url.Values{"bot": {q.Bot}, "user": {q.PlatformUserID}}
	s.post("/admin/pairing/r1/revoke", form).has(t, "Revoked: 1 access on telegram. Their next message is refused")
	s.post("/admin/pairing/r1/revoke", form).has(t, "flash note", "They have no access there any more")
	if did := s.world.done(); !slices.Contains(did, "revoke "+q.Bot+" "+q.PlatformUserID) {
		t.Errorf("did %q", did)
	}
}

func TestAPartThatIsBrokenReportsItWhileTheRestWorks(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	s.world.setBroken(errors.New("disk I/O error: secret path"))
	for path, want := range map[string][]string{
		"/admin":                    {"The list of requests can’t be read right now.", "The queue can’t be read right now.", "What models have used can’t be read", "Is every bot well?"},
		"/admin/pairing":            {"The list of requests can’t be read right now.", "The list of recent decisions can’t be read"},
		"/admin/approvals":          {"The list of tool calls can’t be read right now.", "The list of recent decisions can’t be read", "The list of grants can’t"},
		"/admin/people":             {"The list of people can’t be read right now.", "The list of blocked people can’t", "The list of groups can’t"},
		"/admin/chats":              {"The list of conversations can’t be read right now."},
		"/admin/models":             {"The figures can’t be read right now."},
		"/admin/audit":              {"The log can’t be read right now."},
		"/admin/settings/variables": {"/srv/gatehouse"},
		"/admin/settings/backups":   {"The list of backups can’t be read right now."},
		"/admin/bots":               {"park_family_bot"},
		"/admin/queue":              {"What waits for each bot can’t be read", "The list of lanes can’t", "The list of messages given up can’t", "The list of unsure replies can’t", "The list of replies that are retried can’t"},
	} {
		a := s.get(path)
		if a.status != http.StatusOK {
			t.Errorf("GET %s: status %d", path, a.status)
		}
		a.has(t, want...)
		a.lacks(t, "secret path")
	}
	if !strings.Contains(s.log.String(), "secret path") {
		t.Error("the log does not say what is broken")
	}
}

func TestEmptyPagesReportWhatToDo(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/pairing").has(t, "No bot is set up", `<a href="/admin/settings/bots/add">Add a bot</a>`)
	s.get("/admin/pairing/invites").has(t, `<a href="/admin/settings/bots/add">add one</a> first`)
	s.world.bots = []core.BotState{{Bot: "telegram", Platform: "telegram", State: core.Running, Username: "gatehouse_bot"}}
	s.get("/admin/pairing").has(t, "The gate is quiet", "<b>@gatehouse_bot</b> and send “hello”")
	s.get("/admin/people").has(t, "No one has access yet.", "No people yet", "gatehouse claim", "No one is blocked.", "No group yet.")
	s.get("/admin/queue").has(t, "Nothing is stuck.", "No chat is being answered right now.")
	s.get("/admin").has(t, "The bots have no owner in chat yet", "All is well.")
	s.world.bots = nil
	s.get("/admin/bots").has(t, "No bot is set up", `<a href="/admin/settings/bots/add">add it here</a>`)
}

func TestTheOverviewAnswersItsQuestions(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin")
	a.has(t, "Is every bot well?", "No. 2 bots need a look.", "<bdi>old</bdi>: stopped", "<bdi>telegram</bdi>: degraded – Another program polls",
		"Does anyone wait?", "2 people wait for your decision, the first for 14 min.", "<bdi>Ada Okafor</bdi> to telegram, 14 min ago", "2 bots need a look, 2 people wait, 2 tool calls wait, 1 question about trust waits, 3 things are stuck.",
		"2 tool calls and 1 question about trust wait for your approval.", "3 things need your decision.", "1 message given up after several tries", "2 replies that may not have arrived",
		"What did today cost?", "<span>$1.84</span>", "1,316,129 tokens in 53 calls since midnight UTC", "12 calls have no known price", "<bdi>local/quote</bdi>: 1,800 in, 420 out")
	if n := strings.Count(a.body, "<h2 id=\"q-"); n != 3 {
		t.Errorf("%d questions, want the three", n)
	}
	if want := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC); !s.world.since.Equal(want) {
		t.Errorf("today begins at %v", s.world.since)
	}
	s.world.used = nil
	s.get("/admin").has(t, "Nothing: no model was called since midnight UTC.")
	// A bot that somebody has stopped is told of, and is no alarm.
	calm := func(a answer) {
		t.Helper()
		_, entry, ok := strings.Cut(a.body, `<a href="/admin/bots">`)
		if entry, _, _ = strings.Cut(entry, "</a>"); !ok || strings.Contains(entry, "badge") {
			t.Errorf("the menu says of the bots: %s", entry)
		}
	}
	up, off := s.world.bots[0], core.BotState{Bot: "old", Platform: "telegram", State: core.Stopped}
	s.world.bots = []core.BotState{up, off}
	a = s.get("/admin")
	a.has(t, "Yes. 1 bot runs.", "<bdi>old</bdi>: stopped")
	a.lacks(t, "a look")
	calm(a)
	s.get("/admin/bots").has(t, "1 bot is connected; old is stopped.")
	discord, third := up, up
	discord.Bot, third.Bot = "discord", "third"
	for want, bots := range map[string][]core.BotState{
		"family is connected.":                  {up},
		"Both bots are connected.":              {up, discord},
		"All 3 bots are connected.":             {up, discord, third},
		"2 bots are connected; old is stopped.": {up, discord, off},
		"1 bot is starting; old is stopped.":    {up, {Bot: "new", Platform: "telegram", State: core.Starting}, off},
	} {
		s.world.bots = bots
		s.get("/admin/bots").has(t, want)
	}
	s.world.bots = []core.BotState{off}
	a = s.get("/admin")
	a.has(t, "None runs: old is stopped.", "No bot runs, ")
	calm(a)
	s.get("/admin/bots").has(t, "No bot runs; old is stopped.")
}

func TestPagesWithoutASourceAreNotThere(t *testing.T) {
	s := newSite(t, nil, func(o *admin.Options) {
		o.People.Access, o.Operations.Lanes, o.Operations.Dead, o.Operations.Sends, o.Bell = nil, nil, nil, nil, nil
	}).enter()
	a := s.get("/admin")
	a.has(t, `href="/admin/pairing"`, `href="/admin/bots"`)
	a.lacks(t, `href="/admin/people"`, `href="/admin/queue"`, "What is stuck")
	for _, path := range []string{"/admin/people", "/admin/queue", "/admin/events"} {
		if a := s.get(path); a.status != http.StatusNotFound {
			t.Errorf("GET %s: status %d, want 404", path, a.status)
		}
	}
}

func TestPeopleAreFoundByNameIdBotOrRole(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	for query, want := range map[string]string{"INES": "Ines Carvalho", "7700431189": "Jun-ho Park", "owner": "Matteo"} {
		a := s.get("/admin/people?q=" + url.QueryEscape(query))
		a.has(t, want, "1 person matches")
		if n := strings.Count(a.body, `<li class="card person brief"`); n != 1 {
			t.Errorf("q=%s shows %d people, want 1", query, n)
		}
	}
	s.get("/admin/people?q=nobody-like-this").has(t, "No match", "Show all")
}

func TestAFragmentIsTheInsideOfThePageOnly(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/pairing?fragment=1")
	if !strings.HasPrefix(a.body, `<div id="app" data-page="pairing"`) || strings.Contains(a.body, "<html") {
		t.Errorf("the fragment begins %.80q", a.body)
	}
	a.has(t, "Ada Okafor", `<b class="badge">2<i class="unseen"> waiting</i></b>`)
	a = s.do("POST", "/admin/pairing/r1/deny?fragment=1", url.Values{"csrf": {s.csrf()}})
	if to := a.header.Get("Location"); to != "/admin/pairing?fragment=1" {
		t.Errorf("a live form leads to %q", to)
	}
}

// crowd fills the world with more than any page shows.
func (s *site) crowd() {
	w, now := s.world, s.clock.Now()
	w.full()
	for i := range 150 {
		q := w.requests[3]
		q.ID, q.PlatformUserID, q.FirstMessage, q.CreatedAt = "x"+strings.Repeat("0", 30)+string(rune('a'+i%26)), "9007199254740993", strings.Repeat("ж<", 160), now
		w.requests = append(w.requests, q)
		a := w.access[i%4]
		a.ID, a.PlatformUserID, a.Display = int64(1000+i), strings.Repeat("9", 12)+strings.Repeat("1", i%40), strings.Repeat("ж", 60)
		w.access = append(w.access, a) // many of three people, and
		a.ID, a.User = int64(3000+i), int64(200+i)
		w.access = append(w.access, a) // many people
		w.blocks, w.places, w.lanes = append(w.blocks, w.blocks[0]), append(w.places, w.places[i%2]), append(w.lanes, w.lanes[i%3])
	}
	for range 49 {
		d, x := w.dead[0], w.sends[0]
		d.Text, x.Text = strings.Repeat("ж<", 160), strings.Repeat("ж<", 160)
		w.dead, w.sends = append(w.dead, d), append(w.sends, x)
	}
}

func TestAFullPageReportsThatThereIsMore(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.crowd()
	s.get("/admin/pairing").has(t, "more wait; they appear here as you decide")
	s.get("/admin/people").has(t, `rel="next"`)
}
