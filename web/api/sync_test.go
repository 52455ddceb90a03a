package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/wire"
	"gatehouse/web/api/sync"
	"gatehouse/web/auth"
)

// syncs are the real endpoints over the harness's vault, with the real rules.
func (h *harness) syncs() sync.Options {
	s := vaultsync.New(vaultsync.Options{DB: h.db, Vault: h.vault, Clock: h.clock, Log: slog.New(slog.DiscardHandler)})
	return sync.Options{Files: disk{s, h}, Clock: h.clock, Did: s.Audit, May: func(trust core.Trust, user int64, name string, write bool) bool {
		if h.onMay != nil {
			h.onMay(name)
		}
		mayRead, mayWrite := permission.Profile{User: user, Trust: trust}.Bounds([]string{"Private/"})
		if write {
			return mayWrite(name)
		}
		return mayRead(name)
	}}
}

// A disk fails for one file of the harness.
type disk struct {
	*vaultsync.Store
	h *harness
}

func (d disk) Push(ctx context.Context, a vaultsync.Area, in vaultsync.Sent, body io.Reader) (wire.Done, error) {
	if d.h.fails != "" && in.Meta.Path == d.h.fails {
		return wire.Done{}, errors.New("input/output error")
	}
	return d.Store.Push(ctx, a, in, body)
}

func (d disk) Delete(ctx context.Context, a vaultsync.Area, root, path, base string) (wire.Done, error) {
	if d.h.fails != "" && path == d.h.fails {
		return wire.Done{}, errors.New("input/output error")
	}
	return d.Store.Delete(ctx, a, root, path, base)
}

// file writes a file into the vault.
func (h *harness) file(name, text string) {
	h.t.Helper()
	p := filepath.Join(h.vault.Path(), name)
	err := os.MkdirAll(filepath.Dir(p), 0o700)
	if err == nil {
		err = os.WriteFile(p, []byte(text), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// listing returns what a key sees.
func (h *harness) listing(key, query string) (l wire.Listing) {
	h.t.Helper()
	res := h.do(key, "GET", "/api/sync/manifest"+query, "")
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&l); err != nil || res.StatusCode != 200 {
		h.t.Fatalf("%d %v", res.StatusCode, err)
	}
	return l
}

func paths(l wire.Listing) string {
	var all []string
	for _, f := range l.Files {
		all = append(all, f.Path)
	}
	return strings.Join(all, " ")
}

// push sends a file as JSON and returns what became of it.
func (h *harness) push(key, path, base, text string) wire.Result {
	h.t.Helper()
	body, _ := json.Marshal(map[string]any{"device": "phone", "files": []map[string]any{{"path": path, "base_hash": base, "content": text}}})
	res := h.do(key, "POST", "/api/sync/push", string(body))
	defer res.Body.Close()
	var r wire.Result
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil || res.StatusCode != 200 {
		h.t.Fatalf("%d %v", res.StatusCode, err)
	}
	return r
}

func (h *harness) furnishVault() {
	for _, name := range []string{
		"Notes/tea.md", "Notes/photo.png", "Daily/2026-01-28.md", "Daily/.agents/reflection.md", "Daily/.activity/2026-01-28.jsonl", "CLAUDE.md", ".mcp.json",
		"Guests/7/own.md", "Guests/8/others.md", "Private/diary.md",
		".parachute/agents/a.md", ".claude/projects/x.jsonl", ".obsidian/app.json", "Chat/sessions.db", "Chat/sessions.db-wal", "Notes/.env", "Notes/server.key", "Notes/x.lock", "Notes/draft.md~",
	} {
		h.file(name, "text of "+name)
	}
	_ = os.Symlink("/etc", filepath.Join(h.vault.Path(), "Notes", "etc"))
	_ = os.Symlink("../Guests/8/others.md", filepath.Join(h.vault.Path(), "Notes", "link.md"))
}

func TestSync_AKeySeesWhatItsUserMayReadAndNothingElse(t *testing.T) {
	h := open(t, options{})
	h.furnishVault()
	for _, c := range []struct {
		name string
		user int64
		at   core.Trust
		want string
	}{
		{"the owner at vault", core.Operator, core.Vault, ".mcp.json CLAUDE.md Daily/.activity/2026-01-28.jsonl Daily/.agents/reflection.md Daily/2026-01-28.md Guests/7/own.md Guests/8/others.md Notes/photo.png Notes/tea.md"},
		{"the owner at sandboxed", core.Operator, core.Sandboxed, ""},
		{"a guest", 7, core.Sandboxed, "own.md"},
		{"a guest with a key at full", 7, core.Full, "own.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			key := h.keyOf(c.user, c.at, auth.ScopeSync)
			if got := paths(h.listing(key, "?include_binary=true")); got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
		})
	}
	owner := h.keyOf(core.Operator, core.Vault, auth.ScopeSync)
	if got := paths(h.listing(owner, "?root=Notes&pattern=*.md")); got != "tea.md" {
		t.Error(got)
	}
	if got := paths(h.listing(owner, "?root=Daily&date=2026-01-28")); got != ".activity/2026-01-28.jsonl 2026-01-28.md" {
		t.Error(got)
	}
}

func TestSync_NothingThatIsNotOpenIsReadWrittenOrDeleted(t *testing.T) {
	h := open(t, options{})
	h.furnishVault()
	guest, owner := h.keyOf(7, core.Vault, auth.ScopeSync), h.keyOf(core.Operator, core.Vault, auth.ScopeSync)
	for _, c := range []struct{ key, root, path string }{
		{guest, "", "../8/others.md"}, {guest, "..", "8/others.md"}, {guest, "../8", "others.md"}, {guest, "", "/etc/passwd"}, {guest, "../../..", "etc/passwd"},
		{guest, "", "a/../../8/others.md"}, {guest, "", `..\8\others.md`}, {guest, "", "a\x00b"}, {guest, "", ""}, {guest, "", "."},
		{owner, "", ".parachute/agents/a.md"}, {owner, ".parachute", "agents/a.md"}, {owner, "", ".claude/projects/x.jsonl"}, {owner, "", "Chat/sessions.db"}, {owner, "", "CHAT/x.db"},
		{owner, "", "Notes/.env"}, {owner, "", "Notes/server.key"}, {owner, "", "Private/diary.md"}, {owner, "", "Notes/etc/passwd"}, {owner, "", "Notes/link.md"},
		{owner, "", "Notes/x.lock"}, {owner, "", ".git/hooks/post-commit"}, {owner, "", "Notes/.x.gatehouse-tmp"}, {owner, "", "../outside.md"},
	} {
		t.Run(fmt.Sprintf("%q %q", c.root, c.path), func(t *testing.T) {
			before := h.listing(owner, "?include_binary=true").Digest
			for _, r := range []struct{ method, at string }{{"POST", "/api/sync/pull"}, {"POST", "/api/sync/push"}, {"DELETE", "/api/sync/files"}} {
				body, _ := json.Marshal(map[string]any{"root": c.root, "paths": []string{c.path}, "files": []map[string]any{{"path": c.path, "content": "planted", "base_hash": wire.Hash([]byte("text of " + c.path))}}})
				res := h.do(c.key, r.method, r.at, string(body))
				var got struct {
					Files  []json.RawMessage
					Errors []string
				}
				err := json.NewDecoder(res.Body).Decode(&got)
				res.Body.Close()
				if err != nil || res.StatusCode != 200 || len(got.Files) != 0 || len(got.Errors) != 1 {
					if r.method != "DELETE" || !strings.Contains(c.path, "link") && !strings.Contains(c.path, "etc") { // there is no such file for it
						t.Errorf("%s: %d %q %v", r.at, res.StatusCode, got.Files, err)
					}
				}
			}
			if h.listing(owner, "?include_binary=true").Digest != before {
				t.Error("the vault has changed")
			}
		})
	}
}

func TestSync_WhatCommandsTheGatewayIsWrittenAtTrustFullOnly(t *testing.T) {
	h := open(t, options{})
	h.furnishVault()
	vault, full := h.keyOf(core.Operator, core.Vault, auth.ScopeSync), h.keyOf(core.Operator, core.Full, auth.ScopeSync)
	for _, name := range []string{"CLAUDE.md", ".mcp.json", "Daily/.agents/reflection.md", "Notes/AGENTS.md"} {
		if r := h.push(vault, name, wire.Hash([]byte("text of "+name)), "planted"); len(r.Errors) != 1 || r.Pushed != 0 {
			t.Errorf("%s at vault: %+v", name, r)
		}
		if r := h.push(full, name, wire.Hash([]byte("text of "+name)), "mine"); r.Pushed != 1 {
			t.Errorf("%s at full: %+v", name, r)
		}
	}
}

func TestSync_AStreamOfFilesBothWays(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Vault, auth.ScopeSync)
	large := bytes.Repeat([]byte("\x00large"), 1<<20)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, content := range map[string][]byte{"a.md": []byte("small"), "b/large.bin": large} {
		meta, _ := json.Marshal(wire.Meta{Path: name, Hash: wire.Hash(content)})
		_ = form.WriteField("meta", string(meta))
		part, _ := form.CreateFormFile("content", "content")
		_, _ = part.Write(content)
	}
	_ = form.Close()
	req, _ := http.NewRequest("POST", h.url+"/api/sync/push?device=phone", &body)
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var r wire.Result
	err = json.NewDecoder(res.Body).Decode(&r)
	res.Body.Close()
	if err != nil || r.Pushed != 2 || len(r.Errors) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	req, _ = http.NewRequest("POST", h.url+"/api/sync/pull", strings.NewReader(`{"paths":["b/large.bin","none.md","a.md"]}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "multipart/mixed")
	req.Header.Set("Authorization", "Bearer "+key)
	if res, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	_, params, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	parts := multipart.NewReader(res.Body, params["boundary"])
	var got []string
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, _ := io.ReadAll(part)
		if part.FormName() == "meta" {
			var m wire.Meta
			_ = json.Unmarshal(data, &m)
			if got = append(got, m.Path+m.Error); m.Missing != (m.Error != "") {
				t.Errorf("missing: %v of %+v", m.Missing, m)
			}
		} else {
			got = append(got, wire.Hash(data))
		}
	}
	want := []string{"b/large.bin", wire.Hash(large), `none.mdthere is no file "none.md"`, "a.md", wire.Hash([]byte("small"))}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
}

func TestSync_ABodyThatIsCutOffChangesNothing(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Vault, auth.ScopeSync)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("meta", `{"path":"a.md"}`)
	part, _ := form.CreateFormFile("content", "content")
	_, _ = part.Write([]byte("half of i"))
	req, _ := http.NewRequest("POST", h.url+"/api/sync/push", bytes.NewReader(body.Bytes()))
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 400 || paths(h.listing(key, "")) != "" {
		t.Errorf("%d, %q", res.StatusCode, paths(h.listing(key, "")))
	}
}

func TestSync_ARepeatedPushIsBroughtInOnce(t *testing.T) {
	h := open(t, options{})
	key := h.keyOf(core.Operator, core.Vault, auth.ScopeSync)
	entry := func(text string) string { return "# para:aaaaaaaaaaaa 8:00 AM\n\n" + text + "\n" }
	h.push(key, "Daily/2026-01-28.md", "", entry("one"))
	h.push(key, "Daily/2026-01-28.md", wire.Hash([]byte(entry("one"))), entry("two"))
	first := h.push(key, "Daily/2026-01-28.md", wire.Hash([]byte(entry("one"))), entry("three"))
	again := h.push(key, "Daily/2026-01-28.md", wire.Hash([]byte(entry("one"))), entry("three"))
	if first.Files[0].Outcome != wire.Merged || again.Files[0].Outcome != wire.Unchanged || again.Files[0].Hash != first.Files[0].Hash {
		t.Errorf("%+v, then %+v", first, again)
	}
}

// A list reads the whole folder, so a key may not ask for it all the time.
func TestSyncRequestsOfAKeyArePaced(t *testing.T) {
	h := open(t, options{})
	key, other := h.keyOf(core.Operator, core.Vault, auth.ScopeSync), h.keyOf(core.Operator, core.Vault, auth.ScopeSync)
	for range 60 {
		h.want(200, "", key, "GET", "/api/sync/changes?since=1", "")
	}
	res := h.do(key, "GET", "/api/sync/changes?since=1", "")
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" {
		t.Errorf("%d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	h.want(200, "", other, "GET", "/api/sync/changes?since=1", "")
	h.want(200, "", key, "POST", "/api/sync/pull", `{"paths":["a.md"]}`)
	h.clock.Advance(time.Second)
	h.want(200, "", key, "GET", "/api/sync/changes?since=1", "")
}

// A key whose requests stay open gets no further ones; others do.
func TestSyncRequestsOfAKeyAtATimeAreLimited(t *testing.T) {
	h := open(t, options{})
	key, other := h.keyOf(core.Operator, core.Vault, auth.ScopeSync), h.keyOf(core.Operator, core.Vault, auth.ScopeSync)
	patient := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	t.Cleanup(patient.CloseIdleConnections)
	var bodies []*io.PipeWriter
	ended := make(chan error, 4)
	for range 4 {
		r, w := io.Pipe()
		bodies = append(bodies, w)
		open := make(chan struct{})
		asked := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(open) }})
		req, err := http.NewRequestWithContext(asked, "POST", h.url+"/api/sync/push", r)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Expect", "100-continue") // the server asks for the body when it reads the request
		req.Header.Set("Content-Type", multipart.NewWriter(w).FormDataContentType())
		req.Header.Set("Authorization", "Bearer "+key)
		go func() {
			res, err := patient.Do(req)
			if err == nil {
				_ = res.Body.Close()
			}
			ended <- err
		}()
		<-open
	}
	const pull = `{"paths":["none.md"]}`
	res := h.do(key, "POST", "/api/sync/pull", pull)
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "5" {
		t.Errorf("a fifth request: %d, Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
	}
	h.want(200, "", other, "POST", "/api/sync/pull", pull)
	for _, w := range bodies {
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}
	for range bodies {
		<-ended
	}
}

// lines is an endless text. It is copied, which the race detector hardly slows down.
type lines struct{}

var someLines = bytes.Repeat([]byte(strings.Repeat("x", 999)+"\n"), 64)

func (lines) Read(b []byte) (int, error) { return copy(b, someLines), nil }

func TestSyncARequestOfMoreThan1GiBIsRefused(t *testing.T) {
	h := open(t, options{})
	for size, want := range map[int64]int{wire.MaxBody: 400, wire.MaxBody + 1<<20: 413} { // and nothing that is a form
		req := httptest.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/api/sync/push", io.LimitReader(lines{}, size))
		req.Header.Set("Content-Type", "multipart/form-data; boundary=form")
		req.Header.Set("Authorization", "Bearer "+h.keyOf(core.Operator, core.Vault, auth.ScopeSync))
		rec := httptest.NewRecorder()
		h.handler().ServeHTTP(rec, req)
		if rec.Code != want {
			t.Errorf("%d bytes: %d, want %d: %s", size, rec.Code, want, rec.Body)
		}
	}
}

// A pull of a key that is revoked ends, while it waits for its reader too, and brings no
// further file.
func TestSync_APullEndsWhenItsKeyIsRevoked(t *testing.T) {
	h := open(t, options{})
	h.file("a.md", strings.Repeat("x", 64<<20)) // more than the buffers of a connection hold
	h.file("b.md", "the next one")
	secret, row, err := h.keys.Create(t.Context(), auth.NewKey{Label: "k", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeSync}}, core.Actor{})
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", h.url+"/api/sync/pull", strings.NewReader(`{"paths":["a.md","b.md"]}`))
	req.Header.Set("Accept", "multipart/mixed")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1000)); err != nil || res.StatusCode != 200 {
		t.Fatal(res.StatusCode, err)
	}
	if err := h.keys.Revoke(t.Context(), row.ID, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	h.door.Look()
	rest, err := io.ReadAll(res.Body)
	if err == nil || bytes.Contains(rest, []byte("the next one")) || len(rest) > 60<<20 {
		t.Errorf("%d more bytes, then %v", len(rest), err)
	}
}

// A push of a key that is revoked ends, while it waits for its sender too, and writes nothing
// more.
func TestSync_APushEndsWhenItsKeyIsRevoked(t *testing.T) {
	h := open(t, options{})
	second := make(chan struct{}, 1)
	h.onMay = func(name string) {
		if name == "b.md" {
			select {
			case second <- struct{}{}:
			default:
			}
		}
	}
	secret, row, err := h.keys.Create(t.Context(), auth.NewKey{Label: "k", User: core.Operator, Trust: core.Vault, Scopes: []string{auth.ScopeSync}}, core.Actor{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var sent bytes.Buffer
	form := multipart.NewWriter(&sent)
	for _, name := range []string{"a.md", "b.md"} { // the second part ends the first file, and nothing the second
		_ = form.WriteField("meta", `{"path":"`+name+`"}`)
		part, err := form.CreateFormFile("content", "content")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, strings.Repeat("text\n", 1<<15))
	}
	fmt.Fprintf(conn, "POST /api/sync/push HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		conn.RemoteAddr(), secret, form.FormDataContentType(), 1<<20, sent.Bytes())
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(h.vault.Path(), name))
		return err == nil
	}
	select {
	case <-second:
	case <-time.After(time.Minute):
		t.Fatal("the second file does not begin, so this shows nothing")
	}
	if !there("a.md") {
		t.Error("the first file was not written")
	}
	if err := h.keys.Revoke(t.Context(), row.ID, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	h.door.Look()
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, syscall.ECONNRESET) { // the sender has sent nothing more
		t.Error(err)
	}
	if there("b.md") {
		t.Error("the second file was written")
	}
}

// What was done before the disk failed is in the audit log, whatever the request was.
func TestSync_WhatWasDoneBeforeAFailureIsAudited(t *testing.T) {
	h := open(t, options{})
	key := h.key(auth.ScopeSync)
	audited := func() (rows []string) {
		t.Helper()
		if err := h.db.Select(t.Context(), &rows, `SELECT action || ' ' || detail FROM audit_events WHERE action LIKE 'sync.%' ORDER BY id`); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	begun := h.push(key, "Guests/7/first.md", "", "one")
	if len(begun.Files) != 1 || len(begun.Errors) != 0 {
		t.Fatalf("%+v", begun)
	}
	h.fails = "Guests/7/second.md"
	n := len(audited())
	for _, c := range []struct{ method, at, body, action string }{
		{"POST", "/api/sync/push", `{"device":"phone","files":[{"path":"Guests/7/third.md","content":"x"},{"path":"Guests/7/second.md","content":"x"}]}`, "sync.push"},
		{"DELETE", "/api/sync/files", `{"device":"phone","files":[{"path":"Guests/7/first.md","base_hash":"` + begun.Files[0].Hash + `"},{"path":"Guests/7/second.md","base_hash":"x"}]}`, "sync.delete"},
	} {
		res := h.do(key, c.method, c.at, c.body)
		rows := audited()
		if res.StatusCode != http.StatusInternalServerError || len(rows) != n+1 || !strings.HasPrefix(rows[n], c.action+" ") {
			t.Errorf("%s: %d, %q", c.action, res.StatusCode, rows[n:])
		}
		n = len(rows)
	}
}
