package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/configs"
)

// newDemoHome is an empty home folder and nothing set but an address nobody has.
func newDemoHome(t *testing.T) *home {
	t.Helper()
	dir := shortDir(t)
	return &home{t, dir, map[string]string{"HOME": dir, "PATH": os.Getenv("PATH"), "TMPDIR": dir, "GATEHOUSE_ADDR": "127.0.0.1:0"}}
}

// demo starts it and waits for its links.
func (h *home) demo() *proc {
	h.t.Helper()
	p := h.start(nil, "demo")
	p.says("Ctrl-C stops it")
	return p
}

// shows is the first part of the demo's words that the pattern's group finds.
func (p *proc) shows(pattern string) string {
	p.t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(p.out.String())
	if m == nil {
		p.t.Fatalf("%s is not in\n%s", pattern, p.out.String())
	}
	return m[1]
}

const panelLink = `The panel +(http://127\.0\.0\.1:\d+/admin/enter\?token=\S+)\n`

const phonesLink = `The phones +(http://127\.0\.0\.1:\d+/)`

// A demoState is what the phones page is given when it opens.
type demoState struct {
	Worlds   []phones.World
	Claim    *string
	Prepared []string
}

func (p *proc) state() (s demoState) {
	p.t.Helper()
	resp, err := http.Get(p.shows(phonesLink) + "events")
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &s); err != nil {
				p.t.Fatal(err)
			}
			return s
		}
	}
	p.t.Fatal("the phones page is told nothing: ", lines.Err())
	return s
}

// world is a platform on the phones page.
func (p *proc) world(platform string) phones.World {
	p.t.Helper()
	for _, w := range p.state().Worlds {
		if w.Platform == platform {
			return w
		}
	}
	p.t.Fatalf("the phones page does not show %s", platform)
	return phones.World{}
}

// A player is one person on the phones page.
type player struct{ platform, id string }

// player finds one by name.
func (p *proc) player(platform, name string) player {
	p.t.Helper()
	for _, who := range p.world(platform).People {
		if who.Name == name {
			return player{platform, who.ID}
		}
	}
	p.t.Fatalf("there is no %s on %s", name, platform)
	return player{}
}

// writes sends a message of a person, as the page does.
func (p *proc) writes(who player, text string) {
	p.t.Helper()
	body, err := json.Marshal(phones.Action{Platform: who.platform, From: who.id, Text: text})
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := http.Post(p.shows(phonesLink)+"send", "application/json", bytes.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		p.t.Fatalf("writing %q: %s", text, resp.Status)
	}
}

// chat is all that stands in a person's chat with the bot.
func (p *proc) chat(who player) string {
	p.t.Helper()
	var all []string
	for _, c := range p.world(who.platform).Chats {
		if c.Person == who.id {
			for _, m := range c.Messages {
				all = append(all, m.Text)
			}
		}
	}
	return strings.Join(all, "\n")
}

func (p *proc) interrupt() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		p.t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		p.t.Errorf("Ctrl-C ends it with %d", code)
	}
}

// It runs alone: beside twenty other gateways it has waited for an answer in vain.
func TestTheDemoContinuesWhereItWas(t *testing.T) {
	h := newDemoHome(t)
	p := h.demo()
	for _, pattern := range []string{phonesLink, panelLink, `The API +(http://127\.0\.0\.1:\d+/docs)\n`} {
		resp, err := http.Get(p.shows(pattern))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", pattern, resp.Status)
		}
	}
	p.shows(`one-time password  ([a-z0-9-]{19})\n`)
	if code := p.shows(`(/claim \S+)\n`); *p.state().Claim != strings.TrimPrefix(code, "/claim ") {
		t.Errorf("the terminal's code is %q, the phones' %q", code, *p.state().Claim)
	}
	olga, ada, cleo := p.player("telegram", "Olga"), p.player("telegram", "Ada"), p.player("discord", "Cleo")
	p.writes(olga, p.shows(`(/claim \S+)\n`))
	p.sees(func() bool { return strings.Contains(p.chat(olga), "You are the owner now") })
	for _, stranger := range []player{ada, cleo} {
		p.writes(stranger, "How long should green tea brew?")
		p.sees(func() bool { return codeForm.MatchString(p.chat(stranger)) })
	}
	p.sees(func() bool { return strings.Contains(p.chat(olga), "Ada") })
	p.interrupt()
	for _, said := range []string{"Stopping", "Stopped"} {
		p.says(said)
	}

	p = h.demo()
	if out := p.out.String(); strings.Contains(out, "/claim") || *p.state().Claim != "" {
		t.Errorf("there is an owner, and the demo offers a code:\n%s", out)
	}
	for _, stranger := range []player{ada, cleo} {
		text := p.chat(stranger)
		if !strings.Contains(text, "green tea") || !codeForm.MatchString(text) {
			t.Fatalf("the window on %s forgot: %q", stranger.platform, text)
		}
		p.writes(olga, "/approve "+codeForm.FindStringSubmatch(text)[1])
		p.sees(func() bool { return strings.Contains(p.chat(stranger), "Public/tea.md") })
	}
	// What is written after a restart is new, not taken for a repeat.
	p.writes(cleo, "And black tea?")
	defer func() {
		if t.Failed() {
			t.Logf("the chat: %q", p.chat(cleo))
		}
	}()
	p.sees(func() bool { // an answer may quote the note more than once
		_, after, _ := strings.Cut(p.chat(cleo), "And black tea?")
		return strings.Contains(after, "Public/tea.md")
	})
	// A tool asks its owner first, as the README has it tried.
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	p.writes(olga, string(regexp.MustCompile(`use Write \{.*\}`).Find(readme)))
	p.sees(func() bool { return strings.Contains(p.chat(olga), "Write wants to change Private/idea.md") })
	p.writes(olga, "/stop")
	p.sees(func() bool { return strings.Contains(p.chat(olga), "Stopped.") }) // else the end waits for the run
	p.interrupt()
}

var codeForm = regexp.MustCompile(`Your code is ([A-Z0-9]{8})`)

// The link is in the terminal only: no log has its token.
func TestTheDemosLinkSignsInOnce(t *testing.T) {
	h := newDemoHome(t)
	h.env["GATEHOUSE_LOG_LEVEL"] = "debug"
	p := h.demo()
	link := p.shows(panelLink)
	_, token, _ := strings.Cut(link, "token=")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	method := "GET"
	open := func(c *http.Client, header ...string) (status int, path string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, link, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode, resp.Request.URL.Path
	}
	if status, _ := open(&http.Client{}, "Sec-Purpose", "prefetch;prerender"); status != http.StatusNoContent {
		t.Errorf("fetched in advance: %d, want 204", status)
	}
	method = "HEAD"
	if status, _ := open(&http.Client{}); status != http.StatusNoContent {
		t.Errorf("asked whether it is there: %d, want 204", status)
	}
	method = "GET"
	visitor := &http.Client{Jar: jar}
	if status, path := open(visitor); status != http.StatusOK || path != "/admin" {
		t.Errorf("the link leads to %s with %d", path, status)
	}
	if status, path := open(&http.Client{}); status != http.StatusUnauthorized || path != "/admin/enter" {
		t.Errorf("a second browser: %s with %d, want the sign-in with 401", path, status)
	}
	if status, path := open(visitor); status != http.StatusOK || path != "/admin" {
		t.Errorf("who is signed in already: %s with %d", path, status)
	}
	p.interrupt()
	if log := p.err.String(); !strings.Contains(log, `"path":"/admin/enter"`) || strings.Contains(log, token) {
		t.Errorf("the log:\n%s", log)
	}
}

// A visitor is a browser in the panel, without JavaScript.
type visitor struct {
	t    *testing.T
	http *http.Client
	base string
}

func (p *proc) visitor() *visitor {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	base, _, _ := strings.Cut(p.shows(panelLink), "/admin/")
	return &visitor{p.t, &http.Client{Jar: jar}, base}
}

// get returns the page that a path leads to, and its path.
func (v *visitor) get(path string) (at, page string) {
	v.t.Helper()
	return v.read(v.http.Get(v.base + path))
}

func (v *visitor) read(resp *http.Response, err error) (at, page string) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		v.t.Fatalf("%s: %s\n%s", resp.Request.URL.Path, resp.Status, b)
	}
	return resp.Request.URL.Path, string(b)
}

// post sends a form of the page at from.
func (v *visitor) post(from, to string, form url.Values) (at, page string) {
	v.t.Helper()
	_, page = v.get(from)
	if token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page); token != nil {
		form.Set("csrf", token[1])
	}
	return v.read(v.http.PostForm(v.base+to, form))
}

// asks writes a message in the panel and waits for the answer, the nth from the sample note.
func (v *visitor) asks(p *proc, from, to, text string, nth int) (at string) {
	v.t.Helper()
	at, page := v.post(from, to, url.Values{"text": {text}})
	if !strings.HasPrefix(at, "/admin/chats/") {
		v.t.Fatalf("%q leads to %s\n%s", text, at, page)
	}
	p.sees(func() bool {
		_, page := v.get(at)
		return strings.Contains(page, text) && strings.Count(page, "Public/tea.md") >= nth
	})
	return at
}

// Who signs in by the link talks to the gateway in the panel, without choosing a password first.
func TestTheDemosLinkLeadsToAChatThatAnswers(t *testing.T) {
	p := newDemoHome(t).demo()
	v := p.visitor()
	v.read(v.http.Get(p.shows(panelLink)))
	v.asks(p, "/admin/talk", "/admin/talk/new", "How long should green tea brew?", 1)
	p.interrupt()
}

// Another admin goes on with their own conversation, and writes in no one else's.
func TestAnotherAdminGoesOnWithTheirOwnConversation(t *testing.T) {
	p := newDemoHome(t).demo()
	owner, nina := p.visitor(), p.visitor()
	owner.read(owner.http.Get(p.shows(panelLink)))
	theirs := owner.asks(p, "/admin/talk", "/admin/talk/new", "How long should black tea brew?", 1)
	_, page := owner.post("/admin/accounts", "/admin/accounts", url.Values{"name": {"nina"}, "role": {"admin"}})
	once := regexp.MustCompile(`[a-z0-9]{4}(-[a-z0-9]{4}){3}`).FindString(page)
	nina.post("/admin/login", "/admin/login", url.Values{"name": {"nina"}, "password": {once}})
	nina.post("/admin/password", "/admin/password", url.Values{"new": {"a very long pass phrase"}, "again": {"a very long pass phrase"}})

	const composer = `id="composer"`
	own := nina.asks(p, "/admin/talk", "/admin/talk/new", "How long should green tea brew?", 1)
	if _, page := nina.get(own); !strings.Contains(page, composer) {
		t.Error("her own conversation has no form to write in")
	}
	nina.asks(p, own, strings.Replace(own, "/chats/", "/talk/", 1), "And how hot is the water for green tea?", 2)
	if _, page := nina.get("/admin/talk"); !strings.Contains(page, own) || strings.Contains(page, theirs) {
		t.Error("the page does not offer her own conversations alone")
	}
	if _, page := nina.get(theirs); strings.Contains(page, composer) {
		t.Error("the owner's conversation has a form that she cannot use")
	}
	if _, page := owner.get(own); strings.Contains(page, composer) {
		t.Error("her conversation has a form that the owner cannot use")
	}
	p.interrupt()
}

// A second demo on the same vault leaves the first one's files alone, even
// when it is asked to begin anew.
func TestASecondDemoLeavesTheFirstAlone(t *testing.T) {
	h := newDemoHome(t)
	p := h.demo()
	person, other := p.player("telegram", "Ada"), p.player("discord", "Cleo")
	for _, stranger := range []player{person, other} {
		p.writes(stranger, "Hello?")
		p.sees(func() bool { return strings.Contains(p.chat(stranger), "Your code is") })
	}
	vault := filepath.Join(h.dir, "Gatehouse-demo")
	for _, args := range [][]string{{"demo"}, {"demo", "--fresh"}} {
		code, _, errs := h.run(args...)
		if code != 1 || !strings.Contains(errs, "in use by process") {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
	for _, stranger := range []player{person, other} {
		p.writes(stranger, "Still there?")
		if text := p.chat(stranger); !strings.Contains(text, "Hello?") || !strings.Contains(text, "Still there?") {
			t.Errorf("the first demo's %s was touched: %q", stranger.platform, text)
		}
	}
	telegram, discord := stage.States(vault)
	for _, state := range []string{telegram, discord} {
		if _, err := os.Stat(state); err != nil {
			t.Errorf("a simulator's memory was touched: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(vault, "Public", "tea.md")); err != nil {
		t.Error(err)
	}
	p.interrupt()

	code, _, errs := h.run("claim") // of ~/Gatehouse, which nobody made
	if code != 1 || !strings.Contains(errs, "Gatehouse-demo") {
		t.Errorf("claim without a vault: %d %q", code, errs)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "Gatehouse")); err == nil {
		t.Error("a question made a vault")
	}
	h.env["GATEHOUSE_VAULT_PATH"] = vault
	if code, out, errs := h.run("claim"); code != 0 || !strings.Contains(out, "/claim ") || !strings.Contains(errs, "No gateway runs") {
		t.Errorf("claim with nobody serving: %d %q %q", code, out, errs)
	}
}

func TestFreshForgetsWhatTheDemoKept(t *testing.T) {
	h := newDemoHome(t)
	p := h.demo()
	person, other := p.player("telegram", "Ada"), p.player("discord", "Cleo")
	for _, stranger := range []player{person, other} {
		p.writes(stranger, "Hello?")
		p.sees(func() bool { return strings.Contains(p.chat(stranger), "Your code is") })
	}
	p.interrupt()
	p = h.start(nil, "demo", "--fresh")
	p.says("Ctrl-C stops it")
	for _, stranger := range []player{p.player("telegram", "Ada"), p.player("discord", "Cleo")} {
		if text := p.chat(stranger); text != "" {
			t.Errorf("the window on %s remembers %q", stranger.platform, text)
		}
	}
	p.interrupt()

	// A folder that the demo did not make is never emptied.
	h.env["GATEHOUSE_VAULT_PATH"] = filepath.Join(h.dir, "mine")
	if err := os.Mkdir(filepath.Join(h.dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := h.run("demo", "--fresh"); code != exitUsage || !strings.Contains(errs, "not made by the demo") {
		t.Errorf("--fresh on a folder of one's own: %d %q", code, errs)
	}
}

func TestTheDemosOwnSettingsAreNotShownAsDefaults(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("GATEHOUSE_MODEL", "local/quote")
	cfg, err := configs.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := new(demoCmd).settings(cfg); err != nil {
		t.Fatal(err)
	}
	shown := map[string]configs.Setting{}
	for _, s := range cfg.Redacted() {
		shown[strings.TrimPrefix(s.Name, "GATEHOUSE_")] = s
	}
	for name, source := range map[string]string{"VAULT_PATH": "demo", "ADDR": "demo", "LOCALHOST_ACCESS": "demo", "GUEST_READ": "demo", "LOG_LEVEL": "demo", "MODEL": "environment", "RATE_LIMIT": "default"} {
		if shown[name].Source != source {
			t.Errorf("%s = %s is shown as from %s, want %s", name, shown[name].Value, shown[name].Source, source)
		}
	}
}
