package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
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

const phonesLink = `The phones +(http://127\.0\.0\.1:\d+/)`

// state is what the phones page is given when it opens.
func (p *proc) state() (s struct {
	People []struct {
		ID   int64
		Name string
	}
	Private map[int64]struct{ Messages []struct{ Text string } }
	Claim   *string
}) {
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

// writes sends a message of a person, as the page does.
func (p *proc) writes(person int64, text string) {
	p.t.Helper()
	resp, err := http.Post(p.shows(phonesLink)+"send", "application/json", strings.NewReader(fmt.Sprintf(`{"from": %d, "text": %q}`, person, text)))
	if err != nil {
		p.t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		p.t.Fatalf("writing %q: %s", text, resp.Status)
	}
}

// chat is all that stands in a person's chat with the bot.
func (p *proc) chat(person int64) string {
	p.t.Helper()
	var all []string
	for _, m := range p.state().Private[person].Messages {
		all = append(all, m.Text)
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

func TestTheDemoGoesOnWhereItWas(t *testing.T) {
	h := newDemoHome(t)
	p := h.demo()
	for _, pattern := range []string{phonesLink, `The panel +(http://127\.0\.0\.1:\d+/admin)\n`, `The API +(http://127\.0\.0\.1:\d+/docs)\n`} {
		resp, err := http.Get(p.shows(pattern))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", pattern, resp.Status)
		}
	}
	p.shows(`one-time password  ([a-z0-9-]{19})\n`)
	ids := map[string]int64{}
	for _, person := range p.state().People {
		ids[person.Name] = person.ID
	}
	if code := p.shows(`(/claim \S+)\n`); *p.state().Claim != strings.TrimPrefix(code, "/claim ") {
		t.Errorf("the terminal's code is %q, the phones' %q", code, *p.state().Claim)
	}
	p.writes(ids["Olga"], p.shows(`(/claim \S+)\n`))
	p.sees(func() bool { return strings.Contains(p.chat(ids["Olga"]), "You are the owner now") })
	p.writes(ids["Ada"], "How long should green tea brew?")
	p.sees(func() bool { return strings.Contains(p.chat(ids["Olga"]), "Ada") })
	p.interrupt()
	for _, said := range []string{"Stopping", "Stopped"} {
		p.says(said)
	}

	p = h.demo()
	if out := p.out.String(); strings.Contains(out, "/claim") || *p.state().Claim != "" {
		t.Errorf("there is an owner, and the demo offers a code:\n%s", out)
	}
	if text := p.chat(ids["Ada"]); !strings.Contains(text, "green tea") || !strings.Contains(text, "Your code is") {
		t.Errorf("Ada's phone forgot: %q", text)
	}
	code := regexp.MustCompile(`Your code is ([A-Z0-9]{8})`).FindStringSubmatch(p.chat(ids["Ada"]))[1]
	p.writes(ids["Olga"], "/approve "+code)
	p.sees(func() bool { return strings.Contains(p.chat(ids["Ada"]), "Public/tea.md") })
	p.interrupt()
}

// A second demo on the same vault leaves the first one's files alone, even
// when it is asked to begin anew.
func TestASecondDemoLeavesTheFirstAlone(t *testing.T) {
	h := newDemoHome(t)
	p := h.demo()
	person := p.state().People[0].ID
	p.writes(person, "Hello?")
	p.sees(func() bool { return strings.Contains(p.chat(person), "Your code is") })
	vault := filepath.Join(h.dir, "Gatehouse-demo")
	before, err := os.ReadFile(vault + ".simulator.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"demo"}, {"demo", "--fresh"}} {
		code, _, errs := h.run(args...)
		if code != 1 || !strings.Contains(errs, "in use by process") {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
	if after, err := os.ReadFile(vault + ".simulator.json"); err != nil || string(after) != string(before) {
		t.Errorf("the simulator's memory was touched (%v)", err)
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
	person := p.state().People[0].ID
	p.writes(person, "Hello?")
	p.sees(func() bool { return strings.Contains(p.chat(person), "Your code is") })
	p.interrupt()
	p = h.start(nil, "demo", "--fresh")
	p.says("Ctrl-C stops it")
	if text := p.chat(person); text != "" {
		t.Errorf("the phone remembers %q", text)
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
