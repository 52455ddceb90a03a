package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

func contextWithPatience(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), patience)
}

func newSim(t *testing.T) *telegramtest.Server {
	t.Helper()
	sim := telegramtest.New(telegramtest.Options{FloodOff: true})
	t.Cleanup(func() { _ = sim.Close() })
	return sim
}

func TestTheExitCodeTellsCleanFromFailedFromBadUsage(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	for _, c := range []struct {
		args []string
		env  string // NAME=value
		code int
		says string
	}{
		{args: []string{"version"}, code: 0, says: "gatehouse "},
		{args: []string{"--help"}, code: 0, says: "Exit codes"},
		{args: []string{"pairing", "list"}, code: 0, says: "No requests"},
		{args: []string{"pairing", "approve", "NOTACODE"}, code: 1, says: "no "},
		{args: []string{"pairing", "revoke", "nobody", "1"}, code: 1, says: "nobody"},
		{args: []string{"doctor"}, env: "GATEHOUSE_TELEGRAM_API_URL=http://127.0.0.1:1", code: 1, says: "fail"},
		{args: nil, code: 2, says: "--help"},
		{args: []string{"dance"}, code: 2, says: "dance"},
		{args: []string{"pairing"}, code: 2, says: "--help"},
		{args: []string{"pairing", "approve"}, code: 2, says: "code-or-id"},
		{args: []string{"start"}, code: 2, says: "Did you mean 'gatehouse serve'?"},
		{args: []string{"help", "pairing", "approve"}, code: 0, says: "Usage: gatehouse pairing approve"},
		{args: []string{"pairing", "approve", "--now"}, code: 2, says: "Run 'gatehouse pairing approve --help' for"},
		{args: []string{"invite", "create", "--trust", "full"}, code: 2, says: `must be one of "sandboxed","vault" but`},
		{args: []string{"audit", "--action", "dance"}, code: 0, says: "no matching entry"},
		{args: []string{"search", "zebra"}, code: 0, says: "Nothing was found."},
		{args: []string{"search"}, code: 2, says: "<words>"},
		{args: []string{"search", " "}, code: 2, says: "q is missing"},
		{args: []string{"search", "tea", "--type", "mail"}, code: 2, says: "type must be session, document or journal"},
		{args: []string{"search", "tea", "--limit", "101"}, code: 2, says: "--limit must be from 1 to 100"},
		{args: []string{"find", "tea"}, code: 2, says: "Did you mean 'gatehouse search'?"},
		{args: []string{"reindex"}, code: 0, says: "Read 0 files: 0 conversations added"},
		{args: []string{"reindex", "--search"}, code: 0, says: "Indexed: conversations 0, documents "},
		{args: []string{"doctor", "--env-file", "/nowhere"}, code: 2, says: "  /nowhere: no such file"},
		{args: []string{"pairing", "approve", "X", "--trust", "full"}, code: 2, says: "vault"},
		{args: []string{"serve", "--fast"}, code: 2, says: "--fast"},
		{args: []string{"serve"}, env: "GATEHOUSE_TELEGRAM_TOKN=1:a", code: 2, says: "GATEHOUSE_TELEGRAM_TOKEN"},
		{args: []string{"serve"}, env: "GATEHOUSE_TOKEN=1:a", code: 2, says: "did you mean GATEHOUSE_DISCORD_TOKEN"},
		{args: []string{"claim"}, env: "GATEHOUSE_VAULT_PAHT=/x", code: 2, says: "GATEHOUSE_VAULT_PATH"},
		{args: []string{"doctor"}, env: "GATEHOUSE_ADDR=nowhere", code: 2, says: "GATEHOUSE_ADDR"},
		{args: []string{"serve"}, env: "GATEHOUSE_DATABASE_URL=postgres://u:secret@x/y", code: 2, says: "GATEHOUSE_DATABASE_PASSWORD_FILE"},
		{args: []string{"serve"}, env: "GATEHOUSE_MODEL=anthropic/claude", code: 2, says: "GATEHOUSE_MODEL"},
	} {
		t.Run(strings.Join(append(c.args, c.env), " "), func(t *testing.T) {
			h := &home{t, h.dir, map[string]string{}}
			for k, v := range newHome(t, nil).env {
				h.env[k] = v
			}
			if name, value, ok := strings.Cut(c.env, "="); ok {
				h.env[name] = value
				if strings.Contains(name, "API_URL") {
					h.env["GATEHOUSE_TELEGRAM_TOKEN"] = telegramtest.DefaultToken
				}
			}
			code, out, errs := h.run(c.args...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("exit code %d, want %d; it printed %q, want %q in it", code, c.code, out+errs, c.says)
			}
			if c.code != 0 && errs == "" && c.args[0] != "doctor" {
				t.Error("a failure leaves nothing on stderr")
			}
		})
	}
}

// --help lists what works, all of it and nothing else.
func TestHelpListsOnlyWhatWorks(t *testing.T) {
	h := newHome(t, nil)
	_, out, _ := h.run("--help")
	for _, name := range []string{"init", "serve", "demo", "doctor", "claim", "pairing list", "pairing approve", "pairing deny", "pairing block", "pairing revoke", "agents list", "agents add", "agents samples", "keys list", "keys create", "keys rotate", "keys revoke", "send", "search", "audit", "import", "export", "backup", "restore", "reindex", "forget", "explain", "version"} {
		if !strings.Contains(out, name) {
			t.Errorf("--help lacks %s:\n%s", name, out)
		}
		if code, sub, _ := h.run(append(strings.Fields(name), "--help")...); code != 0 || !strings.Contains(sub, "Usage: gatehouse "+name) {
			t.Errorf("%s --help: %d\n%s", name, code, sub)
		}
	}
	for _, word := range []string{"TODO", "coming soon", "not implemented"} {
		if strings.Contains(out, word) {
			t.Errorf("--help says %q", word)
		}
	}
}

func TestVersionIsReadableByPrograms(t *testing.T) {
	_, out, _ := newHome(t, nil).run("version", "--json")
	var v map[string]string
	if err := json.Unmarshal([]byte(out), &v); err != nil || v["version"] == "" || !strings.HasPrefix(v["go"], "go1.") {
		t.Errorf("%v %q", err, out)
	}
}

// claim and pairing work on the files when nobody serves, and through the
// running gateway when somebody does.
func TestClaimAndPairingWorkWithAndWithoutARunningGateway(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	code, out, errs := h.run("claim", "--json")
	var claim struct{ Code string }
	if json.Unmarshal([]byte(out), &claim) != nil || code != 0 || claim.Code == "" {
		t.Fatalf("claim: %d %q %q", code, out, errs)
	}
	olga, ada, bob := sim.NewUser("Olga"), sim.NewUser("Ada"), sim.NewUser("Bob")
	olga.Send("/claim " + claim.Code)
	ada.Send("How long should green tea brew?")
	bob.Send("Hello?")
	p := h.serve(nil)
	hear(t, sim, olga.DM(), 0, "You are the owner now")
	hear(t, sim, ada.DM(), 0, "Your code is")
	hear(t, sim, bob.DM(), 0, "Your code is")

	if code, _, errs := h.run("claim"); code != 1 || !strings.Contains(errs, "--replace") {
		t.Errorf("claim with an owner: %d %q", code, errs)
	}
	list := func() (rs []core.PairingRequest) {
		t.Helper()
		code, out, errs := h.run("pairing", "list", "--json")
		if code != 0 || json.Unmarshal([]byte(out), &rs) != nil {
			t.Fatalf("list: %d %q %q", code, out, errs)
		}
		return rs
	}
	codes := map[string]string{}
	for _, r := range list() {
		codes[r.Display] = r.Code
	}
	if len(codes) != 2 {
		t.Fatalf("%d requests over the socket", len(codes))
	}
	if code, out, errs := h.run("pairing", "approve", strings.ToLower(codes["Ada"]), "--trust", "vault"); code != 0 || !strings.Contains(out, "Approved Ada") {
		t.Errorf("approve: %d %q %q", code, out, errs)
	}
	hear(t, sim, ada.DM(), 0, "/help")
	if code, _, errs := h.run("pairing", "deny", codes["Ada"]); code != 1 || !strings.Contains(errs, "already approved by") {
		t.Errorf("the second decision: %d %q", code, errs)
	}

	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 0 {
		t.Errorf("SIGTERM ends serve with %d", code)
	}
	if rs := list(); len(rs) != 1 || rs[0].Display != "Bob" {
		t.Errorf("with nobody serving: %+v", rs)
	}
	if code, out, errs := h.run("pairing", "approve", codes["Bob"]); code != 0 || !strings.Contains(out, "Approved Bob") {
		t.Errorf("approve with nobody serving: %d %q %q", code, out, errs)
	}
	if code, out, errs := h.run("pairing", "revoke", "telegram", fmt.Sprint(ada.ID())); code != 0 || !strings.Contains(out, "Took back 1") {
		t.Errorf("revoke with nobody serving: %d %q %q", code, out, errs)
	}
	last := ada.Send("Am I still in?")
	h.serve(nil)
	hear(t, sim, bob.DM(), 0, "/help") // what was decided while nobody served is done now
	next := bob.Send("How long should green tea brew?")
	hear(t, sim, bob.DM(), next.ID, "tea")
	for _, m := range sim.History(ada.DM()) {
		if m.FromBot() && m.ID > last.ID && !strings.Contains(m.Text, "Your access to me has ended") {
			t.Errorf("somebody revoked reads %q", m.Text)
		}
	}
	_, out, _ = h.run("pairing", "list", "--status", "denied")
	line := regexp.MustCompile(`(?m)^([a-z0-9]{16}) +revoked +Ada `).FindStringSubmatch(out)
	if line == nil {
		t.Fatalf("the list of denied users: %s", out)
	}
	if code, out, errs := h.run("pairing", "approve", line[1]); code != 0 || !strings.Contains(out, "Approved Ada") {
		t.Errorf("approve a revoked user again: %d %q %q", code, out, errs)
	}
	hear(t, sim, ada.DM(), last.ID, "You have access to me again")
}

func TestDoctorTellsHealthyFromSickInJSON(t *testing.T) {
	sim := newSim(t)
	h := newHome(t, sim)
	type report struct {
		Healthy bool
		Checks  []struct{ Name, State, Text, Fix string }
	}
	look := func() (code int, r report, raw string) {
		t.Helper()
		code, out, errs := h.run("doctor", "--json")
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %q %q", err, out, errs)
		}
		return code, r, out + errs
	}
	if code, r, raw := look(); code != 0 || !r.Healthy {
		t.Errorf("healthy: %d %s", code, raw)
	}
	h.serve(nil)
	if code, r, raw := look(); code != 0 || !r.Healthy {
		t.Errorf("while it serves: %d %s", code, raw)
	}
	sim.Bot().Revoke()
	code, r, raw := look()
	if code != 1 || r.Healthy || !strings.Contains(raw, "BotFather") {
		t.Errorf("with a revoked token: %d %s", code, raw)
	}
	for _, c := range r.Checks {
		if c.State == "fail" && c.Fix == "" {
			t.Errorf("%s has no fix: %s", c.Name, c.Text)
		}
	}
	if strings.Contains(raw, telegramtest.DefaultToken) {
		t.Error("doctor prints the token")
	}
}

// Whatever happens, no secret is printed, logged, shown, counted or stored in
// the clear: everything that a run produced is searched for every secret.
func TestNoSecretIsInAnythingThatARunProduces(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	h.env["GATEHOUSE_OPENAI_API_KEY"], h.env["GATEHOUSE_OPENAI_BASE_URL"] = "sk-verysecret-0123456789", "http://127.0.0.1:1/v1"
	h.env["GATEHOUSE_MODEL"], h.env["GATEHOUSE_MODEL_FALLBACKS"] = "openai/x", "local/quote"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	h.env["GATEHOUSE_ADDR"] = addr
	secrets := map[string]string{"token": sim.Token(), "model key": "sk-verysecret-0123456789", "password": cliPassword}
	p := h.serve(nil)
	keys, err := filepath.Glob(filepath.Join(h.dir, "run", "*", "key"))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	if st, err := os.Stat(keys[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v %v", st.Mode(), err)
	}
	b, _ := os.ReadFile(keys[0])
	secrets["API key"] = strings.TrimSpace(string(b))
	produced := map[string]string{}
	visit := func(path string) {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+path, nil)
		req.Header.Set("Authorization", "Bearer "+secrets["API key"])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var buf bytes.Buffer
		_, _ = buf.ReadFrom(resp.Body)
		produced[path] = buf.String()
	}
	eve := sim.NewUser("Eve")
	eve.Send("hello")
	hear(t, sim, eve.DM(), 0, "Your code is")
	sim.Down()
	p.says("telegram poll")
	if err := sim.Up(); err != nil {
		t.Fatal(err)
	}
	sim.Bot().Revoke()
	p.says("the platform refuses it")
	for _, path := range []string{"/metrics", "/readyz", "/healthz", "/api/bots/status", "/api/bots/pairing", "/openapi.json", "/docs", "/admin/login", "/nothing", "/api/nothing"} {
		visit(path)
	}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--json"}, {"pairing", "list"}, {"claim"}, {"serve"}, {"version"}} {
		_, out, errs := h.run(args...)
		produced[strings.Join(args, " ")] = out + errs
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.end()
	produced["serve"] = p.out.String() + p.err.String()
	if !strings.Contains(produced["serve"], "msg=stopped") {
		t.Error("the log is not complete")
	}
	err = filepath.WalkDir(h.vault(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		produced[path] = string(b)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for where, text := range produced {
		for what, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("the %s is in %s", what, where)
			}
		}
		_, half, _ := strings.Cut(secrets["token"], ":")
		if strings.Contains(text, half) {
			t.Errorf("the token's secret half is in %s", where)
		}
	}
}
