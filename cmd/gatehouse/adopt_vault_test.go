package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/store/storetest"
)

// The original's settings of its server, in both of its forms; no value of theirs
// may be repeated.
const (
	originalServer = `{"require_auth": "remote", "apiKeys": [{"id": "k_1", "label": "topsecret", "key_hash": "sha256:topsecret"}], "port": 3334, "topsecret": 1, "odd key topsecret": 2}`
	originalYAML   = "security:\n  require_auth: remote\n  api_keys:\n  - {id: k_2, label: topsecret, key_hash: 'sha256:topsecret'}\nserver:\n  port: 3333\n  expose_to_tailnet: true\n"
)

// originalVault fills a home with a vault as the original system leaves it, and
// returns the text of its bots file.
func originalVault(t *testing.T, h *home, token string, ada, eve *telegramtest.User) string {
	t.Helper()
	chat, own := filepath.Join(h.vault(), "Chat"), filepath.Join(h.vault(), ".parachute")
	for _, dir := range []string{chat, own} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	db := storetest.Product(t, filepath.Join(chat, "sessions.db"), 12)
	for i, status := range []string{"approved", "denied"} {
		if _, err := db.Exec(`INSERT INTO pairing_requests VALUES ($1, 'telegram', $2, 'Eve', $2, $3, 'vault', '2026-02-01T00:00:00+00:00', $4, 'owner')`,
			fmt.Sprint("r", i), fmt.Sprint(eve.ID()), status, fmt.Sprintf("2026-02-0%dT00:00:00+00:00", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	bots := fmt.Sprintf("telegram:\n  ack_emoji: null\n  allowed_users: [%d, %d]\n  bot_token: %s\n  dm_trust_level: full\n  enabled: true\n  group_trust_level: sandboxed\n"+
		"discord:\n  allowed_users: ['555']\n  bot_token: ''\n  enabled: false\n", ada.ID(), eve.ID(), token)
	for name, text := range map[string]string{"bots.yaml": bots, "server-config.json": originalServer, "server.yaml": originalYAML} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return bots
}

// A vault of the original system starts with plain serve: its bot answers whom it
// allowed, refuses whom it denied, and the log says in a few lines what was taken
// over, without any secret.
func TestAVaultOfTheOriginalSystemStartsWithServe(t *testing.T) {
	t.Parallel()
	sim := newSim(t)
	h := newHome(t, sim)
	delete(h.env, "GATEHOUSE_TELEGRAM_TOKEN")
	h.env["GATEHOUSE_LOG_LEVEL"] = "info"
	ada, eve := sim.NewUser("Ada"), sim.NewUser("Eve")
	bots := originalVault(t, h, sim.Token(), ada, eve)

	if code, out, stderr := h.run("doctor"); code != 0 || !strings.Contains(out, "bots.yaml is of the original system") {
		t.Errorf("doctor: %d\n%s%s", code, out, stderr)
	}
	p := h.serve(nil)
	m := ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), m.ID, "tea")
	e := eve.Send("How long should green tea brew?")
	hear(t, sim, eve.DM(), e.ID, "approv")

	log := p.err.String()
	for _, want := range []string{
		"the original system's database was taken over", "people_denied=1",
		"allowed users of the original system have access\" bot=telegram admitted=1 had_access=0 level=vault",
		"denied or blocked later", "fields=telegram.ack_emoji", "bots file was taken over", "kept=" + filepath.Join(h.vault(), ".parachute", "bots.yaml.original"),
		"bot=discord admitted=1", "key=require_auth becomes=", "key=apiKeys becomes=\"not used: make new keys", "key=port becomes=\"not used: set GATEHOUSE_PORT",
		"key=server.expose_to_tailnet", "key=security.api_keys", "key=topsecret", "key=\"a key with an unusual name\"",
	} {
		if !strings.Contains(strings.ReplaceAll(log, "key=topsecret becomes=\"not used\"", "key=topsecret"), want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if n := strings.Count(log, "original system"); n > 25 {
		t.Errorf("the log has %d lines about the adoption", n)
	}
	if rest := strings.ReplaceAll(log, "key=topsecret ", ""); strings.Contains(rest, "topsecret") || strings.Contains(log, sim.Token()) {
		t.Errorf("a secret is in the log:\n%s", log)
	}
	checkAdoptedFiles(t, h, bots)

	// Access that was revoked does not come back with a restart, nor does the report.
	if code, out, stderr := h.run("pairing", "revoke", "telegram", fmt.Sprint(ada.ID())); code != 0 {
		t.Fatalf("revoke: %d\n%s%s", code, out, stderr)
	}
	_ = p.cmd.Process.Signal(os.Interrupt)
	p.end()
	again := h.serve(nil)
	if log := again.err.String(); strings.Contains(log, "original system") {
		t.Errorf("the second start reports an adoption:\n%s", log)
	}
	db, err := sql.Open("sqlite3", filepath.Join(h.vault(), "Chat", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var people string
	if err := db.QueryRow(`SELECT group_concat(bot) FROM access`).Scan(&people); err != nil || people != "discord" {
		t.Errorf("after the restart access is to %q (%v), want discord only", people, err)
	}
}

// checkAdoptedFiles checks the bots files, and that a backup has neither.
func checkAdoptedFiles(t *testing.T, h *home, bots string) {
	t.Helper()
	own := filepath.Join(h.vault(), ".parachute")
	if kept, err := os.ReadFile(filepath.Join(own, "bots.yaml.original")); err != nil || string(kept) != bots {
		t.Errorf("the kept bots file: %v\n%s", err, kept)
	}
	for _, name := range []string{"bots.yaml", "bots.yaml.original"} {
		if info, err := os.Stat(filepath.Join(own, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	code, out, stderr := h.run("backup", filepath.Join(h.dir, "b.tar.gz"))
	if code != 0 || !strings.Contains(out, "bots.yaml (") || !strings.Contains(out, "bots.yaml.original (") {
		t.Errorf("the backup does not leave the bots files out: %d\n%s%s", code, out, stderr)
	}
}

// With a token in the settings the file's bot of that platform is not used, and its
// people have access all the same; a disabled bot stays stopped.
func TestABotOfTheSettingsPrecedesTheOriginalsAndADisabledOneStaysStopped(t *testing.T) {
	t.Parallel()
	sim, other := newSim(t), newSim(t)
	h := newHome(t, sim)
	ada, eve := sim.NewUser("Ada"), sim.NewUser("Eve")
	originalVault(t, h, other.Token(), ada, eve)
	p := h.serve(nil)
	m := ada.Send("How long should green tea brew?")
	hear(t, sim, ada.DM(), m.ID, "tea")
	p.says("a setting configures this bot")
	_ = p.cmd.Process.Signal(os.Interrupt)
	p.end()

	h = newHome(t, sim)
	delete(h.env, "GATEHOUSE_TELEGRAM_TOKEN")
	originalVault(t, h, sim.Token(), ada, eve)
	path := filepath.Join(h.vault(), ".parachute", "bots.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), "enabled: true", "enabled: false", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p = h.serve(nil)
		if code, out, stderr := h.run("doctor"); !strings.Contains(out, "the bot was stopped in the panel") {
			t.Errorf("doctor: %d\n%s%s", code, out, stderr)
		}
		_ = p.cmd.Process.Signal(os.Interrupt)
		p.end()
	}
}
