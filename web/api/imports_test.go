package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/importer"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/importertest"
	"gatehouse/core/importer/report"
	"gatehouse/core/importer/tasks"
	"gatehouse/core/jobs"
	"gatehouse/core/session"
	"gatehouse/core/session/bring"
	"gatehouse/web/auth"
)

// unending is the id of an import that neither changes nor ends.
const unending = "unending"

// An importsDouble is real imports, of which the newest is also called "import".
type importsDouble struct {
	*tasks.Tasks
	file string // that the path /import-me.json names
}

func (d *importsDouble) id(id string) string {
	if list := d.List(); id == "import" && len(list) > 0 {
		return list[0].ID
	}
	return id
}

func (d *importsDouble) Start(ctx context.Context, o report.Order, t foreign.Terms, by core.Actor) (string, error) {
	if o.Path == "/import-me.json" {
		o.Path = d.file
	}
	return d.Tasks.Start(ctx, o, t, by)
}
func (d *importsDouble) State(id string) (report.State, error) {
	if id == unending {
		return report.State{ID: unending, State: report.Running, Report: report.Report{Faults: []report.Entry{}}}, nil
	}
	return d.Tasks.State(d.id(id))
}
func (d *importsDouble) Next(ctx context.Context, id string, patience time.Duration) (report.State, error) {
	if id == unending {
		<-ctx.Done()
		return report.State{}, ctx.Err()
	}
	return d.Tasks.Next(ctx, id, patience)
}
func (d *importsDouble) Stop(ctx context.Context, id string, by core.Actor) error {
	return d.Tasks.Stop(ctx, d.id(id), by)
}
func (d *importsDouble) Entries(id string) (io.ReadSeekCloser, time.Time, error) {
	return d.Tasks.Entries(d.id(id))
}

// imported makes an import that has ended, if there is none.
func (d *importsDouble) imported(h *harness) {
	h.t.Helper()
	if len(d.List()) > 0 {
		return
	}
	if err := os.WriteFile(d.file, claudeExport(h.t, 1), 0o600); err != nil {
		h.t.Fatal(err)
	}
	id, err := d.Start(context.Background(), report.Order{Path: d.file, DryRun: true}, foreign.Terms{User: core.Operator, Trust: core.Full}, core.Actor{})
	for s := (report.State{State: report.Running}); err == nil && s.State == report.Running; {
		s, err = d.Next(context.Background(), id, time.Minute)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// newImports makes real imports into the harness's vault.
func (h *harness) newImports(log *slog.Logger) *importsDouble {
	table := jobs.New(jobs.Options{Clock: h.clock, Log: log})
	h.t.Cleanup(func() { _ = table.Close() })
	run := importer.New(importer.Options{Bringer: bring.New(bring.Options{DB: h.db, Vault: h.vault, Sessions: h.store, Clock: h.clock, Log: log}),
		Files: attach.New(h.vault, h.clock, &h.ledger), Own: h.vault.Path(), Clock: h.clock, Log: log})
	return &importsDouble{file: filepath.Join(h.t.TempDir(), "export.json"), Tasks: tasks.New(tasks.Options{Importer: run, Jobs: table, Clock: h.clock, Audit: func(context.Context, core.Actor, string, string, map[string]any) error { return nil }})}
}

func claudeExport(t *testing.T, n int) []byte {
	var b bytes.Buffer
	if err := importertest.New(4).Claude(&b, n); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ended waits for an import's end and returns it.
func (h *harness) ended(key, id string) map[string]any {
	h.t.Helper()
	for {
		if m := h.want(200, "", key, "GET", "/api/import/"+id+"?wait=1", ""); m["state"] != "running" {
			return m
		}
	}
}

func form(t *testing.T, fields map[string]string, name string, data []byte) (string, string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for k, v := range fields {
		if err := w.WriteField(k, v); err != nil {
			t.Fatal(err)
		}
	}
	if data != nil {
		f, err := w.CreateFormFile("file", name)
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func TestImport_AnUploadBelongsToTheKeysUserAtItsTrust(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(7, core.Sandboxed, auth.ScopeAdmin)
	body, kind := form(t, map[string]string{"archive": "true"}, "export.json", claudeExport(t, 3))
	res := h.do(key, "POST", "/api/import", body, "Content-Type", kind)
	m := h.answer(res)
	id, _ := m["id"].(string)
	if res.StatusCode != 202 || res.Header.Get("Location") != "/api/import/"+id {
		t.Fatalf("%d %v", res.StatusCode, m)
	}
	m = h.ended(key, id)
	if r := m["report"].(map[string]any); m["state"] != "done" || r["added"] != 3.0 || r["name"] != "export.json" || r["notes"] != 3.0 {
		t.Errorf("%v", m)
	}
	list, _, err := h.store.List(context.Background(), session.Filter{User: 7})
	if err != nil || len(list) != 3 || list[0].TrustLevel != core.Sandboxed || !list[0].Archived || list[0].Source != "claude" {
		t.Errorf("%+v %v", list, err)
	}
	entries := h.do(key, "GET", "/api/import/"+id+"/entries", "")
	text, _ := io.ReadAll(entries.Body)
	if lines := strings.Split(strings.TrimSpace(string(text)), "\n"); len(lines) != 3 || !strings.Contains(lines[0], `"outcome":"added"`) || !strings.Contains(entries.Header.Get("Content-Disposition"), ".jsonl") {
		t.Errorf("%s", text)
	}
	if all := h.want(200, "", key, "GET", "/api/import", "")["imports"].([]any); len(all) != 1 {
		t.Errorf("%v", all)
	}
	h.want(204, "", key, "DELETE", "/api/import/"+id, "")
}

func TestImport_APathIsTheOwnersAtFullTrust(t *testing.T) {
	h := open(t, options{})
	name := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(name, claudeExport(t, 2), 0o600); err != nil {
		t.Fatal(err)
	}
	order, _ := json.Marshal(map[string]any{"path": name})
	for _, key := range []string{h.keyOf(7, core.Full, auth.ScopeAdmin), h.keyOf(core.Operator, core.Vault, auth.ScopeAdmin)} {
		h.want(403, "forbidden", key, "POST", "/api/import", string(order))
	}
	owner := h.keyOf(core.Operator, core.Full, auth.ScopeAdmin)
	id := h.want(202, "", owner, "POST", "/api/import", string(order))["id"].(string)
	res := h.do(owner, "GET", "/api/import/"+id+"/stream", "")
	text, err := io.ReadAll(res.Body)
	events := parseEvents(string(text))
	if err != nil || len(events) == 0 || !strings.Contains(events[len(events)-1].data, `"state":"done"`) || !strings.Contains(events[len(events)-1].data, `"added":2`) {
		t.Errorf("%s %v", text, err)
	}
}

func TestImport_WhatIsNoneIsRefused(t *testing.T) {
	h := open(t, options{})
	owner := h.keyOf(core.Operator, core.Full, auth.ScopeAdmin)
	h.want(403, "forbidden", h.key(auth.ScopeChat, auth.ScopeRead), "GET", "/api/import", "")
	h.want(400, "invalid-request", owner, "POST", "/api/import", `{"path":"relative.json"}`)
	h.want(400, "invalid-request", owner, "POST", "/api/import", `{"path":7}`)
	h.want(400, "invalid-request", owner, "POST", "/api/import", `{"path":"/x","dry_run":"perhaps"}`)
	h.want(415, "unsupported-media-type", owner, "POST", "/api/import", "x", "Content-Type", "text/plain")
	body, kind := form(t, map[string]string{"dry_run": "true"}, "", nil)
	h.want(400, "invalid-request", owner, "POST", "/api/import", body, "Content-Type", kind)
	body, kind = form(t, map[string]string{"dry_run": "perhaps"}, "x.json", []byte("[]"))
	h.want(400, "invalid-request", owner, "POST", "/api/import", body, "Content-Type", kind)
	for _, path := range []string{"/api/import/none", "/api/import/none/entries", "/api/import/none/stream"} {
		h.want(404, "not-found", owner, "GET", path, "")
	}
	h.want(404, "not-found", owner, "DELETE", "/api/import/none", "")
	body, kind = form(t, nil, "picture.png", importertest.Picture())
	id := h.want(202, "", owner, "POST", "/api/import", body, "Content-Type", kind)["id"].(string)
	if m := h.ended(owner, id); m["state"] != "failed" || !strings.Contains(m["error"].(string), "picture.png is none of what can be imported") {
		t.Errorf("%v", m)
	}
	if names, _ := filepath.Glob(filepath.Join(h.vault.Path(), ".parachute", "*tmp")); len(names) > 0 {
		t.Errorf("left %v", names)
	}
}

func TestImport_OneRunsAtATimeAndIsStopped(t *testing.T) {
	h := open(t, options{})
	owner := h.keyOf(core.Operator, core.Full, auth.ScopeAdmin)
	name := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(name, claudeExport(t, 400), 0o600); err != nil {
		t.Fatal(err)
	}
	order, _ := json.Marshal(map[string]any{"path": name})
	id := h.want(202, "", owner, "POST", "/api/import", string(order))["id"].(string)
	h.want(http.StatusServiceUnavailable, "unavailable", owner, "POST", "/api/import", string(order))
	h.want(204, "", owner, "DELETE", "/api/import/"+id, "")
	m := h.ended(owner, id)
	r := m["report"].(map[string]any)
	if m["state"] != "done" || r["stopped"] != true || r["added"] == 400.0 {
		t.Fatalf("%v", m)
	}
	id = h.want(202, "", owner, "POST", "/api/import", string(order))["id"].(string)
	m = h.ended(owner, id)
	if again := m["report"].(map[string]any); again["unchanged"] != r["added"] || again["added"].(float64)+again["unchanged"].(float64) != 400 {
		t.Errorf("the rest: %v", m)
	}
}
