package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/store/storetest"
)

// standby starts a gateway that waits for the one of the same home.
func (h *home) standby() (p *proc, addr string) {
	h.t.Helper()
	p = h.start(nil, "serve", "--standby")
	p.says("standing by")
	p.says(" vault=")
	_, rest, _ := strings.Cut(p.err.String(), `msg="standing by" addr=`)
	addr, _, _ = strings.Cut(rest, " ")
	return p, addr
}

// probed is the answer of a program that may not be ready.
func probed(t *testing.T, method, url string) (status int, body string, header http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// said is what the bot said in a chat, in order.
func said(sim *telegramtest.Server, in telegramtest.Conversation) (texts []string) {
	for _, m := range sim.History(in) {
		if m.FromBot() {
			texts = append(texts, strings.TrimSpace(m.Text))
		}
	}
	return texts
}

// takeOver has a gateway end while it answers, and one that stands by go on.
func takeOver(t *testing.T, change func(*home), end func(*proc)) {
	t.Helper()
	sim := newSim(t)
	model := llmtest.New(t, llmtest.Options{})
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"], h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_MODEL"] = "open", model.URL(), fakeModel
	change(h)
	first := h.serve(nil)
	second, _ := h.standby()
	model.Script(llmtest.Say("One."), llmtest.Reply{HangHead: true})
	olga := sim.NewUser("Olga")
	olga.Send("count")
	hear(t, sim, olga.DM(), 0, "One.")
	olga.Send("go on")
	first.sees(func() bool { return len(model.Requests()) == 2 })
	olga.Send("and again")
	first.sees(func() bool { return sim.Bot().Pending() == 0 })
	model.Script(llmtest.Say("Two."), llmtest.Say("Three."))
	end(first)
	second.says("msg=serving")
	hear(t, sim, olga.DM(), 0, "Three.")
	if got := strings.Join(said(sim, olga.DM()), " "); got != "One. Two. Three." {
		t.Errorf("the bot said %q", got)
	}
	if status, body, _ := probed(t, "GET", "http://"+second.addr()+"/readyz"); status != 200 {
		t.Errorf("after the takeover /readyz is %d %s", status, body)
	}
	if n := len(model.Requests()); n != 4 {
		t.Errorf("the model was asked %d times, want 4", n)
	}
}

func TestAStandbyGoesOnWhereAKilledGatewayWas(t *testing.T) {
	t.Parallel()
	takeOver(t, func(*home) {}, func(p *proc) { _ = p.cmd.Process.Kill() })
}

func TestAStandbyGoesOnWhereAStoppedGatewayWas(t *testing.T) {
	t.Parallel()
	takeOver(t, func(h *home) { h.env["GATEHOUSE_DRAIN_TIMEOUT"] = "1s" }, func(p *proc) { _ = p.cmd.Process.Signal(syscall.SIGTERM) })
}

func TestPostgres_AStandbyGoesOnWhereAKilledGatewayWas(t *testing.T) {
	storetest.PostgresOnly(t, "a vault has a lock, too")
	t.Parallel()
	takeOver(t, func(h *home) { h.env["GATEHOUSE_DATABASE_URL"] = storetest.Fresh(t) }, func(p *proc) { _ = p.cmd.Process.Kill() })
}

func TestPostgres_AStandbyWaitsForTheDatabaseAndForItsVault(t *testing.T) {
	storetest.PostgresOnly(t, "a vault has a lock, too")
	t.Parallel()
	first, second := newHome(t, nil), newHome(t, nil) // whose vault is not the first's
	at := storetest.Fresh(t)
	first.env["GATEHOUSE_DATABASE_URL"], second.env["GATEHOUSE_DATABASE_URL"] = at, at
	p := first.serve(nil)
	q := second.start(nil, "serve", "--standby")
	q.says("another gateway uses the database (process ")
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	q.says("Is the folder mounted?")
	const name = "/.parachute/vault-id"
	id, err := os.ReadFile(first.vault() + name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(q.err.String(), "msg=serving") {
		t.Error("it serves another folder")
	}
	if err := os.WriteFile(second.vault()+name, id, 0o600); err != nil {
		t.Fatal(err)
	}
	q.says("msg=serving")
}

func TestPostgres_AStandbyWithoutTheContentKeyEnds(t *testing.T) {
	storetest.PostgresOnly(t, "on one machine the file is the same")
	t.Parallel()
	h := newHome(t, nil)
	h.env["GATEHOUSE_DATABASE_URL"] = storetest.Fresh(t)
	h.serve(nil)
	h.env["GATEHOUSE_CONTENT_KEY_FILE"] = filepath.Join(h.dir, "elsewhere", "content.key")
	if code, _, errs := h.run("serve", "--standby"); code != exitUsage || !strings.Contains(errs, "GATEHOUSE_CONTENT_KEY_FILE") {
		t.Errorf("it ends with %d: %s", code, errs)
	}
}

func TestPostgres_AGatewayWhoseDatabaseAnotherOneTookEnds(t *testing.T) {
	storetest.PostgresOnly(t, "a vault has a lock")
	t.Parallel()
	first, second := newHome(t, nil), newHome(t, nil)
	at := storetest.Fresh(t)
	first.env["GATEHOUSE_DATABASE_URL"], second.env["GATEHOUSE_DATABASE_URL"] = at, at
	p := first.serve(nil)
	_ = p.cmd.Process.Signal(syscall.SIGSTOP) // until the other one serves
	db := storetest.OpenAt(t, at, nil)
	var ended int
	if err := db.Get(t.Context(), &ended, storetest.EndHolder); err != nil || ended != 1 {
		t.Fatal(ended, err)
	}
	second.serve(nil)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	if code := p.end(); code != exitFailure || !strings.Contains(p.err.String(), "another gateway has the database") {
		t.Errorf("exit code %d", code)
	}
}

func TestAStandbyIsAliveAndNotReady(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	h.serve(nil)
	h.env["GATEHOUSE_METRICS_ADDR"], h.env["GATEHOUSE_OPENAI_API_KEY"] = freePort(t), "sk-one-that-is-secret"
	p, addr := h.standby()
	_ = p.cmd.Process.Signal(syscall.SIGHUP) // a reload
	if status, body, _ := probed(t, "GET", "http://"+h.env["GATEHOUSE_METRICS_ADDR"]+"/metrics"); status != 200 || !strings.Contains(body, "gatehouse_standby 1") {
		t.Errorf("its metrics: %d %s", status, body)
	}
	if shown, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.cmd.Process.Pid)); err == nil && strings.Contains(string(shown), "sk-one-that-is-secret") {
		t.Error("its environment shows a secret")
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/healthz", `{"status":"ok"}`, 200},
		{"GET", "/readyz", `{"status":"standby"}`, 503},
		{"POST", "/api/chat", "this gateway is a standby", 503},
		{"GET", "/admin", "this gateway is a standby", 503},
		{"GET", "/metrics", "this gateway is a standby", 503},
	} {
		status, body, header := probed(t, c.method, "http://"+addr+c.path)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s is answered %d %s", c.path, status, body)
		}
		if strings.Contains(body, "standby: ") != (header.Get("Retry-After") == "1") {
			t.Errorf("%s: Retry-After is %q", c.path, header.Get("Retry-After"))
		}
	}
	if text := p.err.String(); strings.Contains(text, "request failed") {
		t.Errorf("what it refuses is logged: %s", text)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.end(); code != exitClean {
		t.Errorf("a standby that is stopped ends with %d", code)
	}
}

func TestAStandbyDoesNotServeAnEmptyFolderInPlaceOfTheVault(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	q, _ := h.standby()
	if err := os.Rename(h.vault(), h.vault()+".away"); err != nil {
		t.Fatal(err)
	}
	q.says("is the folder mounted?")
	_ = p.cmd.Process.Kill()
	p.end()
	if _, err := os.Stat(h.vault()); err == nil {
		t.Error("the standby made a folder")
	}
	if err := os.Rename(h.vault()+".away", h.vault()); err != nil {
		t.Fatal(err)
	}
	q.says("msg=serving")
}

func TestARestoreInThePanelGoesOnBesideAStandby(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	b := h.panel(p)
	name := b.backsUp()
	q, _ := h.standby()
	b.restores(name)
	p.sees(func() bool { return strings.Count(p.err.String()+q.err.String(), "msg=serving ") == 2 })
	if !strings.Contains(p.err.String(), "the backup is restored") || q.ended() {
		t.Errorf("the backup is not restored, or the standby has ended:\n%s", q.err.String())
	}
	if found, _ := filepath.Glob(filepath.Join(h.vault(), "*.while-restoring*")); len(found) > 0 {
		t.Errorf("the standby left %v", found)
	}
}

func TestFlagsThatActOnceAreNotForAStandby(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	for _, flag := range []string{"--new", "--lost-content-key"} {
		if code, _, errs := h.run("serve", "--standby", flag); code != exitUsage || !strings.Contains(errs, flag) {
			t.Errorf("%s: exit code %d: %s", flag, code, errs)
		}
	}
}

func TestOfTwoStandbysOneServesAndTheOtherGoesOnWaiting(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"] = "open"
	serving := h.serve(nil)
	waiting := map[*proc]bool{}
	for range 2 {
		p, _ := h.standby()
		waiting[p] = true
	}
	ada := sim.NewUser("Ada")
	for len(waiting) > 0 {
		_ = serving.cmd.Process.Kill()
		serving.end()
		serving = nil
		for p := range waiting {
			p.sees(func() bool {
				for p := range waiting {
					if strings.Contains(p.err.String(), "msg=serving") {
						serving = p
					}
				}
				return serving != nil
			})
			break
		}
		delete(waiting, serving)
		at := ada.Send("How long should green tea brew?")
		hear(t, sim, ada.DM(), at.ID, "tea") // with the bot's token
		for p := range waiting {
			if p.ended() || strings.Contains(p.err.String(), "msg=serving") {
				t.Errorf("the other one does not wait:\n%s", p.err.String())
			}
		}
	}
}

func TestAStandbyWhoseAddressIsTakenSaysSo(t *testing.T) {
	t.Parallel()
	h := newHome(t, nil)
	p := h.serve(nil)
	h.env["GATEHOUSE_ADDR"] = p.addr()
	if code, _, errs := h.run("serve", "--standby"); code != exitFailure || !strings.Contains(errs, "GATEHOUSE_ADDR") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	h.env["GATEHOUSE_ADDR"], h.env["GATEHOUSE_METRICS_ADDR"] = "127.0.0.1:0", p.addr()
	if code, _, errs := h.run("serve", "--standby"); code != exitFailure || !strings.Contains(errs, "GATEHOUSE_METRICS_ADDR") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestReadinessTurnsBeforeAGatewayThatStopsHasEnded(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	model := llmtest.New(t, llmtest.Options{})
	h := newHome(t, sim)
	h.env["GATEHOUSE_TELEGRAM_DM_POLICY"], h.env["GATEHOUSE_OPENAI_BASE_URL"], h.env["GATEHOUSE_MODEL"] = "open", model.URL(), fakeModel
	h.env["GATEHOUSE_DRAIN_TIMEOUT"] = "5m"
	p := h.serve(nil)
	model.Script(llmtest.Reply{HangHead: true})
	sim.NewUser("Olga").Send("wait")
	p.sees(func() bool { return len(model.Requests()) == 1 })
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.sees(func() bool { status, _, _ := probed(t, "GET", "http://"+p.addr()+"/readyz"); return status == 503 })
	if p.ended() {
		t.Error("it has ended, so this shows nothing")
	}
}

func TestTheHAProxyRecipeFollowsTheGatewayThatServes(t *testing.T) {
	t.Parallel()
	haproxy := installed(t, "haproxy")
	h := newHome(t, nil)
	h.env["GATEHOUSE_ALLOWED_HOSTS"], h.env["GATEHOUSE_TRUSTED_PROXIES"] = publicName, "127.0.0.1"
	one, two, addr, dir := freePort(t), freePort(t), freePort(t), shortDir(t)
	h.env["GATEHOUSE_ADDR"] = one
	first := h.serve(nil)
	h.env["GATEHOUSE_ADDR"] = two
	second, _ := h.standby()
	pool := certificate(t, dir)
	both, err := os.ReadFile(dir + "/cert.pem")
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(dir + "/key.pem")
	if err != nil {
		t.Fatal(err)
	}
	conf := recipeIn(t, "standby", "haproxy", "bind :443", "bind "+addr, "/etc/haproxy/gatehouse.example.org.pem", dir+"/both.pem", "192.0.2.11:3333", one, "192.0.2.12:3333", two)
	if err := errors.Join(os.WriteFile(dir+"/both.pem", append(both, key...), 0o600), os.WriteFile(dir+"/conf", []byte(conf+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	runProxy(t, addr, exec.Command(haproxy, "-db", "-f", dir+"/conf"))
	client := proxied(t, addr, pool)
	status := func(path string) int {
		resp, err := client.Get("https://" + publicName + path)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	serves := func() bool { return status("/readyz") == 200 && status("/admin/login") == 200 }
	first.sees(serves)
	_ = first.cmd.Process.Kill()
	first.end()
	second.sees(serves)
	if status("/api/sessions") != http.StatusUnauthorized {
		t.Errorf("the API is answered %d without a key", status("/api/sessions"))
	}
}
