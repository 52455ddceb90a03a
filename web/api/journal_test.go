package api

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/journal"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
	apijournal "gatehouse/web/api/journal"
	"gatehouse/web/auth"
)

// journals returns real journals in the harness's vault: the operator's for trust vault.
func (h *harness) journals() apijournal.Options {
	log := slog.New(slog.DiscardHandler)
	ids := paraid.New(h.db, h.vault, log)
	s := journal.New(journal.Options{DB: h.db, Vault: h.vault, IDs: ids, Rows: ids, Clock: h.clock, Log: log})
	return apijournal.Options{
		Store: s,
		May: func(trust core.Trust, user int64, name string, _ bool) bool {
			return trust >= core.Vault || strings.HasPrefix(name, core.GuestDir(user)+"/")
		},
		Now: func(context.Context, int64) (time.Time, error) {
			return time.Date(2026, 1, 28, 10, 30, 0, 0, time.UTC), nil
		},
	}
}

// entry has the user's journal have the entry abc123def456.
func (h *harness) entry(user int64) {
	h.t.Helper()
	name := journal.DirOf(user) + "/2026-01-28.md"
	if err := h.vault.WriteFile(name, []byte("# para:abc123def456 10:30 AM\n\ntea\n")); err != nil {
		h.t.Fatal(err)
	}
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(context.Background(), `INSERT INTO para_ids (id, type, path, created_at, user_id) VALUES ('abc123def456', 'journal', $1, '', $2)
			ON CONFLICT (id) DO UPDATE SET path = excluded.path, user_id = excluded.user_id`, name, user)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) diary() string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.vault.Path(), "Daily", "2026-01-28.md"))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

func TestJournal_AddReadChangeAndDelete(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Vault, auth.ScopeChat)
	made := h.want(201, "", key, "POST", "/api/journal/2026-01-28", `{"text":"Tea.\n# para:abc123def456 1:00 AM","time":"22:15"}`)
	id, version := made["id"].(string), made["version"].(string)
	if made["time"] != "10:15 PM" || made["text"] != "Tea.\n# para:abc123def456 1:00 AM" {
		t.Errorf("%v", made)
	}
	if got := h.diary(); got != "# para:"+id+" 10:15 PM\n\nTea.\n\\# para:abc123def456 1:00 AM\n" {
		t.Errorf("%q", got)
	}
	day := h.want(200, "", key, "GET", "/api/journal/2026-01-28", "")
	if entries := day["entries"].([]any); len(entries) != 1 || entries[0].(map[string]any)["id"] != id || day["path"] != "Daily/2026-01-28.md" {
		t.Errorf("%v", day)
	}
	at, etag := "/api/journal/entries/"+id, `"`+version+`"`
	if res := h.do(key, "GET", at, ""); res.Header.Get("ETag") != etag {
		t.Errorf("ETag %q, want %q", res.Header.Get("ETag"), etag)
	}
	h.want(428, "precondition-required", key, "PATCH", at, `{"text":"x"}`, "If-Match", "")
	changed := h.want(200, "", key, "PATCH", at, `{"text":"Green tea."}`, "If-Match", etag)
	stale := h.want(412, "precondition-failed", key, "PATCH", at, `{"text":"Lost?"}`, "If-Match", etag)
	if stale["current"].(map[string]any)["text"] != "Green tea." || !strings.Contains(h.diary(), "Green tea.") {
		t.Errorf("%v", stale)
	}
	h.want(412, "precondition-failed", key, "DELETE", at, "", "If-Match", etag)
	h.want(204, "", key, "DELETE", at, "", "If-Match", `"`+changed["version"].(string)+`"`)
	h.want(404, "not-found", key, "GET", at, "")
	if got := h.diary(); got != "" {
		t.Errorf("%q", got)
	}
}

func TestJournal_OnlyTheCallersOwnAndAsFarAsTheKeysTrustReaches(t *testing.T) {
	h := open(t, options{})
	own, low, guest := h.keyOf(core.Operator, core.Vault, auth.ScopeChat), h.keyOf(core.Operator, core.Sandboxed, auth.ScopeChat), h.keyOf(7, core.Sandboxed, auth.ScopeChat)
	made := h.want(201, "", own, "POST", "/api/journal/2026-01-28", `{"text":"mine"}`)
	at := "/api/journal/entries/" + made["id"].(string)
	h.want(403, "forbidden", low, "GET", "/api/journal/2026-01-28", "")
	h.want(403, "forbidden", low, "GET", at, "")
	h.want(403, "forbidden", low, "PATCH", at, `{"text":"x"}`, "If-Match", "*")
	h.want(404, "not-found", guest, "GET", at, "")
	h.want(404, "not-found", guest, "DELETE", at, "", "If-Match", "*")
	h.want(201, "", guest, "POST", "/api/journal/2026-01-28", `{"text":"theirs"}`)
	day := h.want(200, "", guest, "GET", "/api/journal/2026-01-28", "")
	if entries := day["entries"].([]any); len(entries) != 1 || entries[0].(map[string]any)["text"] != "theirs" || day["path"] != "Guests/7/Daily/2026-01-28.md" {
		t.Errorf("%v", day)
	}
}

func TestJournal_BadInputNamesTheField(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Vault, auth.ScopeChat)
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/api/journal/2026-02-30", `{"text":"x"}`, 400, "not a date"},
		{"/api/journal/2026-01-28", `{"text":""}`, 400, "empty"},
		{"/api/journal/2026-01-28", `{}`, 400, "text is missing"},
		{"/api/journal/2026-01-28", `{"text":"x","time":"25:00"}`, 400, "time of day"},
		{"/api/journal/2026-01-28", `{"text":"a\u0000b"}`, 400, "null"},
		{"/api/journal/2026-01-28", `{"text":"` + strings.Repeat("a", 300<<10) + `"}`, 413, "256 KB"},
		{"/api/journal/2026-01-28", `{"text":"` + strings.Repeat("a", 1<<20) + `"}`, 413, "over"},
	} {
		if got := h.want(c.status, "", key, "POST", c.path, c.body); !strings.Contains(got["detail"].(string), c.says) {
			t.Errorf("%s %.40s: %v", c.path, c.body, got)
		}
	}
	if err := os.MkdirAll(filepath.Join(h.vault.Path(), "Daily", "2026-01-29.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := h.want(400, "invalid-request", key, "GET", "/api/journal/2026-01-29", ""); !strings.Contains(got["detail"].(string), "is a folder") {
		t.Errorf("%v", got)
	}
}
