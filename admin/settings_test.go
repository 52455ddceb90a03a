package admin_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"gatehouse/admin"
	"gatehouse/admin/settings"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth"
)

// settingsWorld is a configuration.
type settingsWorld struct{ *world }

func (w settingsWorld) Settings() []settings.Setting {
	w.mu.Lock()
	defer w.mu.Unlock()
	level := settings.Setting{Name: "GATEHOUSE_LOG_LEVEL", Value: "info", Source: "default", Effect: "at once", About: "debug, info, warn or error."}
	if w.level != "" {
		level.Value, level.Source = w.level, "panel"
	}
	knob := func(name, value string) settings.Setting {
		effect := "at once"
		if strings.Contains(name, "MODEL") {
			effect = "next message"
		}
		if v, ok := w.changed[name]; ok {
			return settings.Setting{Name: "GATEHOUSE_" + name, Value: v, Source: "panel", Configured: value, Effect: effect}
		}
		return settings.Setting{Name: "GATEHOUSE_" + name, Value: value, Source: "default", Effect: effect}
	}
	return append([]settings.Setting{
		knob("MODEL", ""), knob("MODEL_FALLBACKS", "local/quote"), knob("GUEST_MODEL", ""), knob("TITLE_MODEL", ""), knob("DEFAULT_AGENT", "gone"), knob("GUEST_READ", "Public/**"), knob("RATE_LIMIT", "10/60s"),
		knob("DM_TRUST", "sandboxed"), knob("GROUP_TRUST", "sandboxed"), knob("BUSY_MODE", "collect"), knob("BUDGET_USER_DAY", "200000"), knob("BUDGET_BOT_DAY", ""), knob("BUDGET_DAY", "$20"),
		{Name: "GATEHOUSE_VAULT_PATH", Value: "/srv/gatehouse", Source: "environment", Effect: "restart", About: "Folder of plain files that holds everything."},
		{Name: "GATEHOUSE_TELEGRAM_TOKEN", Value: "(set)", Source: "file", Effect: "at once", About: "Token of the bot named telegram."},
		level,
	}, w.settings...)
}

func (w settingsWorld) SetLogLevel(_ context.Context, level string, by core.Actor) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.level = level
	w.note(by, "level %s", level)
	return nil
}

// openSettings joins the log and the keys, which are real.
func (w *world) openSettings(db *store.DB, o *admin.Options) {
	o.Settings.Settings = settingsWorld{w}
	w.keys = auth.NewKeys(db, w.clock, nil)
	o.Settings.Keys = w.keys
	o.Settings.NewBots = knobWorld{w}
	o.Settings.Changes, o.Settings.Texts, o.Settings.Backups, o.Settings.BackupJob, o.Settings.Restores = knobWorld{w}, textWorld{w}, backupWorld{w}, backupWorld{w}.Job, restoreWorld{w}
	o.Operations.AuditLog = func(ctx context.Context, f store.AuditFilter) ([]store.AuditEvent, string, error) {
		if err := w.fault(); err != nil {
			return nil, "", err
		}
		return store.AuditLog(ctx, db, f)
	}
}

func (w *world) audit(by core.Actor, action, subject string) {
	must(w.chats.db.Tx(context.Background(), func(tx *store.Tx) error {
		return store.Audit(context.Background(), tx, by, action, subject, map[string]any{"user": 7})
	}))
}

func TestSettingsShowEachValueWithItsSourceAndTheLogLevelChanges(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.full()
	a := s.get("/admin/settings/variables")
	a.has(t, "/srv/gatehouse", `<span class="pill note">environment</span>`, "(set)", "not set", "Folder of plain files", "Models and budgets", "<option selected>info</option>")
	s.post("/admin/settings/log", url.Values{"level": {"debug"}}).has(t, "The log is at debug from now on", "<option selected>debug</option>", `<span class="pill note">panel</span>`, "As configured")
	s.post("/admin/settings/log", url.Values{"level": {"loud"}}).has(t, "flash bad")
	s.post("/admin/settings/log", url.Values{"level": {""}}).has(t, "at its configured level again", "<option selected>info</option>")
}

func TestAKeyIsShownOnceAndRevoked(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.get("/admin/settings/access").has(t, `name="scope" value="chat" checked`)
	for name, form := range map[string]url.Values{
		"no label":  {"label": {" "}, "trust": {"sandboxed"}, "scope": {"chat"}},
		"no such":   {"label": {"x"}, "trust": {"sandboxed"}, "scope": {"everything"}},
		"no end":    {"label": {"x"}, "trust": {"sandboxed"}, "end": {"-4d"}},
		"no trust":  {"label": {"x"}, "trust": {"stranger"}},
		"a hundred": {"label": {"x"}, "trust": {"vault"}, "end": {"36500d"}},
	} {
		if a := s.postForm("/admin/settings/keys", form); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="key-error"`) {
			t.Errorf("%s: status %d", name, a.status)
		}
	}
	a := s.postForm("/admin/settings/keys", url.Values{"label": {"backup <script>"}, "trust": {"sandboxed"}, "scope": {"chat", "read"}, "end": {"30d"}})
	a.has(t, "Copy it now", "backup &lt;script&gt;", "chat, read", "data-still")
	secret := regexp.MustCompile(`gh_[A-Za-z0-9_-]{32}`).FindString(a.body)
	row, ok, err := s.world.keys.Find(t.Context(), secret)
	if err != nil || !ok || row.Trust != core.Sandboxed || row.ExpiresAt.Sub(s.clock.Now()).Hours() != 30*24 {
		t.Fatalf("the key that was shown: %+v %v %v", row, ok, err)
	}
	s.get("/admin/settings/access").lacks(t, secret)
	change := "/admin/settings/keys/" + row.ID + "/change"
	s.get("/admin/settings/access").has(t, `action="`+change+`"`, `value="read" checked`, `value="send">`)
	s.post(change, url.Values{"label": {"alerts <b>"}, "scope": {"send"}}).has(t, "The key “alerts &lt;b&gt;” may from now on: send.", "<bdi>alerts &lt;b&gt;</bdi>")
	if row, ok, err = s.world.keys.Find(t.Context(), secret); err != nil || !ok || row.Label != "alerts <b>" || strings.Join(row.Scopes, " ") != "send" || row.Trust != core.Sandboxed {
		t.Errorf("the same secret opens %+v %v %v", row, ok, err)
	}
	s.post(change, url.Values{"label": {"alerts"}}).has(t, "may from now on: nothing.")
	s.post(change, url.Values{"label": {" "}}).has(t, "flash bad", "A key needs a label")
	s.post(change, url.Values{"label": {"x"}, "scope": {"root"}}).has(t, "flash bad", "is not one of")
	rotate := "/admin/settings/keys/" + row.ID + "/rotate"
	s.get("/admin/settings/access").has(t, `action="`+rotate+`"`)
	for _, grace := range []string{"-1h", "x", "9000h"} {
		if a := s.postForm(rotate, url.Values{"grace": {grace}}); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="rotate-error"`) {
			t.Errorf("grace %s: status %d", grace, a.status)
		}
	}
	a = s.postForm(rotate, url.Values{"grace": {"1h"}})
	a.has(t, "The key “<bdi>alerts</bdi>” has a new secret", "Copy it now", "data-still", "Old secret:")
	newer := regexp.MustCompile(`gh_[A-Za-z0-9_-]{32}`).FindString(a.body)
	s.get("/admin/settings/access").lacks(t, newer)
	for name, each := range map[string]string{"old": secret, "new": newer} {
		if got, ok, err := s.world.keys.Find(t.Context(), each); err != nil || !ok || got.ID != row.ID {
			t.Errorf("the %s secret opens %+v %v %v", name, got, ok, err)
		}
	}
	s.postForm(rotate, url.Values{"grace": {""}}).has(t, "has a new secret")
	if _, ok, _ := s.world.keys.Find(t.Context(), newer); ok {
		t.Error("the old secret opens after a rotation at once")
	}
	s.post("/admin/settings/keys/"+row.ID+"/revoke", nil).has(t, "The key is revoked")
	if _, ok, _ := s.world.keys.Find(t.Context(), secret); ok {
		t.Error("a revoked key still opens")
	}
	s.post("/admin/settings/keys/"+row.ID+"/revoke", nil).has(t, `class="flash note"`)
}

func TestTheAuditLogSaysWhatWasDecided(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	for said, detail := range map[string]map[string]any{
		"allowed a tool call":  {"kind": "permission", "option": "granted"},
		"denied a tool call":   {"kind": "permission", "option": "denied"},
		"decided on a request": {"kind": "pairing", "option": "approve"},
		"answered a question":  {"kind": "choice", "option": "go"},
	} {
		must(s.world.chats.db.Tx(context.Background(), func(tx *store.Tx) error {
			return store.Audit(context.Background(), tx, core.Actor{User: core.Operator, Via: "panel"}, "ask.decide", said, detail)
		}))
		s.get("/admin/audit").has(t, "</bdi> "+said)
	}
}

func TestTheAuditLogIsFilteredPagedAndExported(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	for i := range 70 {
		w.audit(core.Actor{User: 2, Via: "chat"}, "bot.stop", fmt.Sprint("workshop ", i))
	}
	w.audit(core.Actor{User: 1, Via: "panel"}, "access.revoke", "=cmd|' /C calc'!A1")
	a := s.get("/admin/audit")
	a.has(t, "Access: revoke", "<bdi>Matteo</bdi>", `{&#34;user&#34;:7}`, `rel="next"`)
	if n := strings.Count(a.body, "<tr id=\"e-"); n != 50 {
		t.Errorf("%d events on a page", n)
	}
	_, rest, _ := strings.Cut(a.body, `rel="next" href="`)
	next, _, _ := strings.Cut(rest, `"`)
	s.get(strings.ReplaceAll(next, "&amp;", "&")).has(t, "Bot: stop", "Newest")
	for query, want := range map[string]int{"action=bot": 50, "action=access.revoke": 1, "via=panel&subject=workshop": 0, "user=0&action=access": 0, "since=1h&action=access": 1} {
		if n := strings.Count(s.get("/admin/audit?"+query).body, "<tr id=\"e-"); n != want {
			t.Errorf("%s: %d events, want %d", query, n, want)
		}
	}
	s.get("/admin/audit?user=ada").has(t, "A user is a number")
	if n := strings.Count(s.get("/admin/audit?user=matteo&action=access").body, "<tr id=\"e-"); n != 1 {
		t.Errorf("by name: %d events, want 1", n)
	}
	s.get("/admin/audit?cursor=nonsense").has(t, "can’t be read right now.")

	file := s.get("/admin/audit/export?format=csv&action=access")
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][5] != "'=cmd|' /C calc'!A1" {
		t.Errorf("csv: %q %v", rows, err)
	}
	if d := file.header.Get("Content-Disposition"); d != `attachment; filename="gatehouse-audit.csv"` {
		t.Errorf("disposition %q", d)
	}
	lines := strings.Split(strings.TrimSpace(s.get("/admin/audit/export?format=json&action=bot.stop").body), "\n")
	if len(lines) != 70 || !json.Valid([]byte(lines[69])) {
		t.Errorf("json: %d lines", len(lines))
	}
	// What is the same again and again stands once, and buries nothing.
	for range 12 {
		w.audit(core.Actor{Via: "cli"}, "socket.request", "audit")
	}
	a = s.get("/admin/audit")
	a.has(t, " <small>and 11 more like it since", "Access: revoke")
	if n := strings.Count(a.body, "Socket: request"); n != 1 {
		t.Errorf("%d rows say the same", n)
	}
	if a := s.get("/admin/audit/export?format=exe"); a.status != http.StatusBadRequest && a.status != http.StatusUnprocessableEntity {
		t.Errorf("another format: status %d", a.status)
	}
}
