package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/core/coretest"
	"gatehouse/core/importer"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/importertest"
	"gatehouse/core/importer/report"
	"gatehouse/core/session"
	"gatehouse/core/session/bring"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// A house is a vault into which things are imported.
type house struct {
	t        testing.TB
	db       *store.DB
	vault    *vault.Vault
	sessions *session.Store
	*importer.Importer
	dir string // for files to import
}

func open(t testing.TB) *house {
	t.Helper()
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	clock := coretest.NewClock(time.Time{})
	h := &house{t: t, vault: v, db: storetest.Open(t, clock), dir: t.TempDir()}
	h.sessions = session.New(session.Options{DB: h.db, Vault: v, Clock: clock})
	t.Cleanup(func() { _ = h.sessions.Close() })
	log := slog.New(slog.DiscardHandler)
	h.Importer = importer.New(importer.Options{Bringer: bring.New(bring.Options{DB: h.db, Vault: v, Sessions: h.sessions, Clock: clock, Log: log}),
		Files: attach.New(v, clock, nil), Own: v.Path(), Clock: clock, Log: log})
	return h
}

var operator = foreign.Terms{User: core.Operator, Trust: core.Full}

// file writes a file to import.
func (h *house) file(name string, write func(io.Writer) error) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		h.t.Fatal(err)
	}
	f, err := os.Create(path)
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *house) text(name, text string) string {
	return h.file(name, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

func (h *house) run(name string, t foreign.Terms) (report.Report, []report.Entry) {
	h.t.Helper()
	var b bytes.Buffer
	r, err := h.Run(context.Background(), name, t, &b, func(*report.Report) {})
	if err != nil {
		h.t.Fatalf("import %s: %v", name, err)
	}
	var list []report.Entry
	for d := json.NewDecoder(&b); ; {
		var e report.Entry
		if d.Decode(&e) != nil {
			return r, list
		}
		list = append(list, e)
	}
}

// messages returns what people read of a session, in short, and its row.
func (h *house) messages(id string) (session.Session, string) {
	h.t.Helper()
	s, err := h.sessions.ByID(context.Background(), h.db, id)
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := h.sessions.Page(context.Background(), s, transcript.PageQuery{Limit: 200})
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, m := range p.Messages {
		for _, b := range m.Blocks {
			out = append(out, m.Role+" "+b.Type+" "+b.Name+" "+string(b.Input)+b.Text+fmt.Sprintf(" (%d media)", len(b.Media)))
		}
	}
	return s, strings.Join(out, "\n")
}

func wants(t *testing.T, got string, want ...string) {
	t.Helper()
	at := 0
	for _, w := range want {
		i := strings.Index(got[at:], w)
		if i < 0 {
			t.Errorf("%q is missing, or in another order, in\n%s", w, got)
			return
		}
		at += i + len(w)
	}
}

func TestAChatGPTExportComesInWithBranchesToolsAndPictures(t *testing.T) {
	h := open(t)
	const n = 120
	m := importertest.New(1)
	name := h.file("chatgpt.zip", func(w io.Writer) error {
		return importertest.Zip(w, func(w io.Writer) error { return m.ChatGPT(w, n) }, map[string][]byte{
			importertest.Pictures(0)[0] + "-cat.png": importertest.Picture(), "dalle-generations/" + importertest.Pictures(0)[0] + "x-1.png": importertest.Picture(), "../../evil.png": importertest.Picture()})
	})
	r, list := h.run(name, operator)
	if r.Added != n || r.Failed != 0 || len(list) != n || r.Format != "an export of ChatGPT" || r.Read != r.Size || r.Size == 0 {
		t.Fatalf("report %+v", r)
	}
	s, got := h.messages(list[0].Session)
	if s.Source != "chatgpt" || s.Model != "gpt-4o" || !s.CreatedAt.Equal(importertest.Start) || !strings.HasPrefix(s.Title, "Chat 0 about") || s.Archived {
		t.Errorf("row %+v", s)
	}
	wants(t, got, "user text", "assistant text", "user text", "assistant tool_use python", `"code":"print(`, "user tool_result", "assistant thinking", "Checking", "assistant text",
		"[File: cat.png (Chat/assets/", "not in the export]", "user media", "(1 media)", `dalle_text2im {"prompt":"a cat"}`, "user tool_result", "DALL-E returned an image.", "[File:")
	if strings.Contains(got, "Asked first") {
		t.Error("the branch that is not shown is part of the conversation")
	}
	raw, _ := os.ReadFile(h.path(list[0].Session))
	if !bytes.Contains(raw, []byte("Asked first")) {
		t.Error("the branch that is not shown is lost")
	}
	if s, _ := h.messages(list[9].Session); !s.Archived {
		t.Error("a conversation that was archived there is not archived here")
	}
	if files, _ := filepath.Glob(filepath.Join(h.vault.Path(), "Chat", "assets", "*", "*.png")); len(files) != 2 {
		t.Errorf("kept %v", files)
	}
	if again, _ := h.run(name, operator); again.Unchanged != n {
		t.Errorf("again: %+v", again)
	}
	if files, _ := filepath.Glob(filepath.Join(h.vault.Path(), "Chat", "assets", "*", "*.png")); len(files) != 2 {
		t.Errorf("kept again %v", files)
	}
}

func (h *house) path(id string) string {
	h.t.Helper()
	names, err := h.vault.FindTranscripts(id)
	if err != nil || len(names) != 1 {
		h.t.Fatal(names, err)
	}
	return filepath.Join(h.vault.Path(), names[0])
}

func TestAClaudeExportComesInWithToolsAndAttachments(t *testing.T) {
	h := open(t)
	const n = 120
	m := importertest.New(2)
	name := h.file("claude.zip", func(w io.Writer) error {
		return importertest.Zip(w, func(w io.Writer) error { return m.Claude(w, n) }, map[string][]byte{"users.json": []byte("[]"), "projects.json": []byte("[]")})
	})
	terms := operator
	terms.Archive = true
	r, list := h.run(name, terms)
	if r.Added != n || r.Failed != 0 || r.Format != "an export of Claude" || r.Missing != n {
		t.Fatalf("report %+v", r)
	}
	s, got := h.messages(list[3].Session)
	if s.Source != "claude" || !s.Archived || s.TrustLevel != core.Vault {
		t.Errorf("row %+v", s)
	}
	wants(t, got, "assistant thinking", "I look that up.", "assistant tool_use web_search", "user tool_result", "assistant text", "user text", "[File: notes.txt (Chat/assets/", "[File: photo.jpg, not in the export]")
	if strings.Contains(got, "Asked first") {
		t.Error("the branch that is not shown is part of the conversation")
	}
	if len(list[3].Notes) != 1 || !strings.Contains(list[3].Notes[0], "photo.jpg") {
		t.Errorf("notes %v", list[3].Notes)
	}
	files, _ := filepath.Glob(filepath.Join(h.vault.Path(), "Chat", "assets", "*", "*notes.txt"))
	if len(files) != n {
		t.Errorf("%d attachments are kept", len(files))
	}
}

func TestJSONIsReadInEveryShapeOfAnExport(t *testing.T) {
	const message = `{"uuid":"u%d","sender":"human","text":"hello %[1]d","created_at":"2024-01-02T03:04:05Z"}`
	talk := func(n int) string {
		return fmt.Sprintf(`{"uuid":"c%d","name":"N","created_at":"2024-01-02T03:04:05Z","chat_messages":[`+message+`]}`, n, n)
	}
	for name, text := range map[string]string{
		"an array":               "[" + talk(1) + ", " + talk(2) + "\n]\n",
		"with a byte order mark": "\ufeff[" + talk(1) + "," + talk(2) + "]",
		"an object":              `{"version": 1, "x": ["y"], "conversations" : [` + talk(1) + "," + talk(2) + `], "more": {}}`,
		"chats":                  `{"chats":[` + talk(1) + "," + talk(2) + "]}",
		"with other elements":    "[" + talk(1) + `, null, 12, "x", [], ` + talk(2) + "]",
		"generic messages":       `[{"id":"g1","title":"T","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}]}]},` + talk(2) + `]`,
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			if r, list := h.run(h.text("x.json", text), operator); r.Added != 2 {
				t.Errorf("%+v %v", r, list)
			}
		})
	}
	t.Run("one conversation", func(t *testing.T) {
		h := open(t)
		if r, _ := h.run(h.text("x.json", talk(1)), operator); r.Added != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("no conversation", func(t *testing.T) {
		h := open(t)
		if r, _ := h.run(h.text("x.json", "[]"), operator); r.Seen() != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestAFaultInOneConversationIsListedAndTheRestGoesOn(t *testing.T) {
	h := open(t)
	good := func(n int) string {
		return fmt.Sprintf(`{"uuid":"c%d","chat_messages":[{"uuid":"m","sender":"human","text":"hello"}]}`, n)
	}
	name := h.text("x.json", "["+strings.Join([]string{good(1), `{"uuid":"c2","chat_messages":[{"uuid":"m","sender":"human","text":tru}]}`, good(3),
		`{"chat_messages":[]}`, `{"uuid":"c5","chat_messages":[{"uuid":"m","sender":"nobody","text":"x"}]}`, `{"foo":1}`, good(7)}, ",")+"]")
	r, list := h.run(name, operator)
	if r.Added != 3 || r.Failed != 4 || len(r.Faults) != 4 {
		t.Fatalf("%+v", r)
	}
	for i, want := range map[int]string{1: "not valid JSON", 3: "no id", 4: "no messages that can be read", 5: "neither chat_messages nor a mapping"} {
		if e := list[i]; e.Index != i+1 || e.Outcome != "failed" || !strings.Contains(e.Reason, want) {
			t.Errorf("entry %d: %+v, want %q", i, e, want)
		}
	}
}

// Exports have conversations that were opened and left: they are no faults.
func TestConversationsInWhichNothingWasWrittenAreLeftOut(t *testing.T) {
	h := open(t)
	name := h.text("x.json", "["+strings.Join([]string{oneGood, `{"uuid":"c1","name":"","chat_messages":[]}`, `{"uuid":"c2","chat_messages":null}`,
		`{"uuid":"c3","chat_messages":[{"uuid":"m","sender":"human","text":"","content":[],"attachments":[],"files":[]},{"uuid":"n","sender":"assistant","text":" ","content":[{"type":"text","text":"\n"}]}]}`,
		`{"id":"c4","mapping":{}}`,
		`{"id":"c5","mapping":{"a":{"id":"a","message":null},"b":{"parent":"a","message":{"author":{"role":"system"},"content":{"content_type":"text","parts":[""]}}},"c":{"parent":"b","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":[""]}}}}}`,
	}, ",")+"]")
	for range 2 {
		r, list := h.run(name, operator)
		if r.Added+r.Unchanged != 1 || r.Empty != 5 || r.Failed != 0 || len(r.Faults) != 0 || r.Seen() != 6 {
			t.Fatalf("%+v", r)
		}
		for _, e := range list[1:] {
			if e.Outcome != "empty" || e.Reason != "" {
				t.Errorf("%+v", e)
			}
		}
	}
}

// What was written in a form that is not known is no empty conversation.
func TestConversationsThatCannotBeReadAreFaults(t *testing.T) {
	h := open(t)
	claude := func(id, content string) string {
		return `{"uuid":"` + id + `","chat_messages":[{"uuid":"m","sender":"human","text":"","content":` + content + `}]}`
	}
	gpt := func(id, parts string) string {
		return `{"id":"` + id + `","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":[` + parts + `]}}}}}`
	}
	all := []string{oneGood, claude("c1", `[{"type":"text","text":{"v":"hello"}}]`), claude("c2", `{"text":"hello"}`), claude("c3", `["hello"]`), claude("c4", `7`),
		gpt("g1", `{"content_type":"text","text":["hello"]}`), gpt("g2", `["hello"]`), gpt("g3", `"",7`)}
	r, list := h.run(h.text("x.json", "["+strings.Join(append(all, claude("c5", "null"), gpt("g4", `null,""`)), ",")+"]"), operator)
	if r.Added != 1 || r.Failed != len(all)-1 || r.Empty != 2 {
		t.Errorf("%+v", r)
	}
	for i, e := range list[1:len(all)] {
		if e.Outcome != "failed" || !strings.Contains(e.Reason, "no messages that can be read") {
			t.Errorf("%s: %+v", all[i+1], e)
		}
	}
}

func TestAnImportThatIsStoppedIsCompletedByTheNext(t *testing.T) {
	h := open(t)
	name := h.file("x.json", func(w io.Writer) error { return importertest.New(3).Claude(w, 20) })
	ctx, cancel := context.WithCancel(context.Background())
	r, err := h.Run(ctx, name, operator, nil, func(r *report.Report) {
		if r.Added == 7 {
			cancel()
		}
	})
	if err != nil || !r.Stopped || r.Added != 7 {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, _ := h.run(name, operator); r.Unchanged != 7 || r.Added != 13 {
		t.Errorf("the rest: %+v", r)
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	h := open(t)
	terms := operator
	terms.DryRun = true
	r, _ := h.run(h.file("x.json", func(w io.Writer) error { return importertest.New(3).ChatGPT(w, 5) }), terms)
	if r.Added != 5 || !r.DryRun {
		t.Errorf("%+v", r)
	}
	files, _ := filepath.Glob(filepath.Join(h.vault.Path(), "*"))
	if n, _ := h.sessions.Count(context.Background(), session.Filter{All: true}); n != 0 || len(files) != 0 {
		t.Errorf("%d sessions, files %v", n, files)
	}
}

const recordText = `---
session_id: "0a1b2c3d-0000-4000-8000-00000000000a"
session_key: "agents/helper.md:default"
agent: "agents/helper.md"
title: "Plans for the garden"
created_at: "2025-12-07T04:39:47.485Z"
last_accessed: "2025-12-08T04:39:47.485Z"
sdk_session_id: ""
archived: false
---

# Chat with helper

## Conversation

### User | 2025-12-07T04:39:47.485Z

What grows in the shade?

### Assistant | 2025-12-07T04:39:55Z

### Three plants

1. Hosta
2. Fern

---

### System | 2025-12-07T04:40:00Z

an error

### para:abc123 Human | 2025-12-07T04:41:00Z

Thanks
`

func TestAVaultOfTheFirstGenerationComesIn(t *testing.T) {
	h := open(t)
	h.text("old/agent-chats/helper/2025-12-07.md", recordText)
	h.text("old/agent-sessions/helper/2025-12-08.md", strings.ReplaceAll(strings.ReplaceAll(recordText, "00000000000a", "00000000000b"), "garden", "roof"))
	h.text("old/agent-chats/broken.md", "---\ntitle: x\n---\nno session")
	r, list := h.run(filepath.Join(h.dir, "old"), operator)
	if r.Added != 2 || r.Failed != 1 {
		t.Fatalf("%+v %+v", r, list)
	}
	s, got := h.messages("0a1b2c3d-0000-4000-8000-00000000000a")
	if s.Source != "parachute" || s.Title != "Plans for the garden" || s.MessageCount != 3 || s.CreatedAt.Year() != 2025 {
		t.Errorf("row %+v", s)
	}
	wants(t, got, "user text  What grows", "assistant text  ### Three plants\n\n1. Hosta", "user text  Thanks")
	if strings.Contains(got, "an error") {
		t.Error("a note of the system is part of the conversation")
	}
}

func TestAnExportOfTheGatewayComesBackAsItWas(t *testing.T) {
	h := open(t)
	h.run(h.text("x.json", `[{"uuid":"c1","name":"Odd","created_at":"2024-01-02T03:04:05Z","chat_messages":[{"uuid":"m","sender":"human","text":"# heading\n--- rule\nend","created_at":"2024-01-02T03:04:05Z"}]}]`), operator)
	list, _, err := h.sessions.List(context.Background(), session.Filter{All: true})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	text, err := h.sessions.Export(context.Background(), list[0])
	if err != nil {
		t.Fatal(err)
	}
	other := open(t)
	_, entries := other.run(other.text("export.md", text), operator)
	if _, got := other.messages(entries[0].Session); got != "user text  # heading\n--- rule\nend (0 media)" {
		t.Errorf("%q", got)
	}
}

// TestAVaultOfTheOriginalSystemComesIn has a database and transcripts beside it.
func TestAVaultOfTheOriginalSystemComesIn(t *testing.T) {
	h := open(t)
	id := "0a1b2c3d-0000-4000-8000-00000000000c"
	old := filepath.Join(h.dir, "old")
	if err := os.MkdirAll(filepath.Join(old, "Chat"), 0o700); err != nil {
		t.Fatal(err)
	}
	db := storetest.Product(t, filepath.Join(old, "Chat", "sessions.db"), 12)
	if _, err := db.Exec(`INSERT INTO sessions (id, title, module, source, created_at, last_accessed, metadata) VALUES (?, 'Kept title', 'chat', 'chatgpt', '2025-01-01T10:00:00', '2025-01-02T10:00:00', '{"original_id":"orig-1"}')`, id); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO session_tags (session_id, tag, created_at) VALUES (?, 'garden', '2025-01-01T10:00:00')`, id); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	line := func(u, parent, role, text string) string {
		return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/old","sessionId":%q,"version":"2.0.60","type":%q,"message":{"role":%[3]q,"content":[{"type":"text","text":%q}]},"uuid":%q,"timestamp":"2025-01-01T10:00:00.000Z"}`+"\n", parent, id, role, text, u)
	}
	h.text("old/.claude/projects/-old/"+id+".jsonl", line("u1", "null", "user", "hello")+line("u2", `"u1"`, "assistant", "hi"))
	r, list := h.run(old, operator)
	if r.Added != 1 || r.Failed != 0 {
		t.Fatalf("%+v %+v", r, list)
	}
	d, err := h.sessions.Detail(context.Background(), h.db, id)
	if err != nil || d.Title != "Kept title" || d.Source != "chatgpt" || d.CreatedAt.Year() != 2025 || strings.Join(d.Tags, " ") != "garden imported" || d.TrustLevel != core.Full {
		t.Errorf("%+v %v", d, err)
	}
	if _, got := h.messages(id); got != "user text  hello (0 media)\nassistant text  hi (0 media)" {
		t.Errorf("%q", got)
	}
	if s, err := h.sessions.Original(context.Background(), h.db, core.Operator, "chatgpt", "orig-1"); err != nil || s.ID != id {
		t.Errorf("by its original id: %+v, %v", s, err)
	}
}

// A conversation that went on from an earlier one still does, so that the model reads the earlier one
// too; one that goes on from nothing, from itself, or from what others wrote stands alone.
func TestAConversationOfAVaultStillGoesOnFromTheEarlierOne(t *testing.T) {
	h := open(t)
	old := filepath.Join(h.dir, "old")
	if err := os.MkdirAll(filepath.Join(old, "Chat"), 0o700); err != nil {
		t.Fatal(err)
	}
	db := storetest.Product(t, filepath.Join(old, "Chat", "sessions.db"), 12)
	if _, err := db.Exec(`ALTER TABLE sessions ADD COLUMN user_id INTEGER`); err != nil {
		t.Fatal(err)
	}
	id := func(n int) string { return fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012d", n) }
	for n, s := range map[int]struct {
		from string
		user int
	}{1: {"", 1}, 2: {id(1), 1}, 3: {id(9), 1}, 4: {id(4), 1}, 5: {"", 7}, 6: {id(5), 1}, 7: {id(1), 7}} {
		if _, err := db.Exec(`INSERT INTO sessions (id, title, module, source, created_at, last_accessed, continued_from, user_id) VALUES (?, 'x', 'chat', 'parachute', '2025-01-01T10:00:00', '2025-01-02T10:00:00', ?, ?)`, id(n), s.from, s.user); err != nil {
			t.Fatal(err)
		}
		h.text("old/.claude/projects/-old/"+id(n)+".jsonl", fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/old","sessionId":%q,"version":"2.0.60","type":"user","message":{"role":"user","content":[{"type":"text","text":"words of %d"}]},"uuid":"u%d","timestamp":"2025-01-01T10:00:00.000Z"}`+"\n", id(n), n, n))
	}
	_ = db.Close()
	if r, list := h.run(old, operator); r.Added != 7 || r.Failed != 0 {
		t.Fatalf("%+v %+v", r, list)
	}
	for n := 1; n < 8; n++ {
		want := ""
		if n == 2 {
			want = id(1)
		}
		if s, err := h.sessions.ByID(context.Background(), h.db, id(n)); err != nil || s.ContinuedFrom != want {
			t.Errorf("%d goes on from %q, want %q: %v", n, s.ContinuedFrom, want, err)
		}
	}
}

// Another gateway's vault has its guests' and groups' conversations beside the owner's: by its
// database, by its files about sessions where that is lost (also one that cannot be read), and by a guest's directory.
func TestConversationsOfOthersInAVaultAreNotTheOwners(t *testing.T) {
	h := open(t)
	id := func(n int) string { return fmt.Sprintf("0a1b2c3d-0000-4000-8000-%012d", n) }
	line := func(id string) string {
		return fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/old","sessionId":%q,"version":"2.0.60","type":"user","message":{"role":"user","content":"hello"},"uuid":"u1","timestamp":"2025-01-01T10:00:00.000Z"}`+"\n", id)
	}
	const old, bare = "old", "bare"
	for _, vault := range []string{old, bare} {
		h.text(vault+"/.parachute/sessions/README", "")
		h.text(vault+"/Chat/README", "")
	}
	db, err := store.Open(t.Context(), filepath.Join(h.dir, old, "Chat", "sessions.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		for n, who := range []string{"1, 'dm'", "7, 'dm'", "1, 'group'"} {
			if _, err := tx.Exec(t.Context(), `INSERT INTO sessions (id, title, module, source, created_at, last_accessed, trust_level, user_id, scope)
				VALUES ($1, 'A title', 'chat', 'gatehouse', '2025-01-01T10:00:00', '2025-01-02T10:00:00', 'full', `+who+`)`, id(n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		h.text(old+"/.claude/projects/-old/"+id(n)+".jsonl", line(id(n)))
	}
	for n, side := range map[int]string{3: `{"user_id":1,"scope":"dm"}`, 4: `{"user_id":7,"scope":"dm"}`, 5: `{"user_id":1,"place":"g"}`, 7: `{"user_id":7,"archived":"of a later version"}`} {
		h.text(bare+"/.claude/projects/-bare/"+id(n)+".jsonl", line(id(n)))
		h.text(bare+"/.parachute/sessions/"+id(n)+".json", side)
	}
	h.text(bare+"/.claude/projects/-bare-Guests-7/"+id(6)+".jsonl", line(id(6)))
	for name, added := range map[string]int{old: 3, bare: 5} {
		if r, list := h.run(filepath.Join(h.dir, name), operator); r.Added != added || r.Failed != 0 {
			t.Fatalf("%+v %+v", r, list)
		}
	}
	for n, others := range []bool{false, true, true, false, true, true, true, true} {
		d, err := h.sessions.Detail(t.Context(), h.db, id(n))
		if err != nil {
			t.Fatal(err)
		}
		want := core.Full
		if others {
			want = core.Sandboxed
		}
		if d.TrustLevel != want || strings.HasPrefix(d.Title, "From others: ") != others || slices.Contains(d.Tags, bring.OthersTag) != others {
			t.Errorf("%d: %v %q %q", n, d.TrustLevel, d.Title, d.Tags)
		}
	}
}

// A gateway is another one, whose vault is imported.
type gateway struct {
	*house
	path string
}

// another returns a gateway that has held no conversation yet.
func another(t *testing.T) *gateway {
	t.Helper()
	g := &gateway{house: &house{t: t, dir: t.TempDir()}, path: filepath.Join(t.TempDir(), "other")}
	v, err := vault.Open(g.path)
	if err == nil {
		err = os.MkdirAll(filepath.Join(g.path, "Chat"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	clock := coretest.NewClock(time.Time{})
	if g.db, err = store.Open(t.Context(), filepath.Join(g.path, "Chat", "sessions.db"), store.Options{Clock: clock}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.db.Close() })
	g.vault, g.sessions = v, session.New(session.Options{DB: g.db, Vault: v, Clock: clock})
	t.Cleanup(func() { _ = g.sessions.Close() })
	log := slog.New(slog.DiscardHandler)
	g.Importer = importer.New(importer.Options{Bringer: bring.New(bring.Options{DB: g.db, Vault: v, Sessions: g.sessions, Clock: clock, Log: log}),
		Files: attach.New(v, clock, nil), Own: v.Path(), Clock: clock, Log: log})
	return g
}

// private is where a user's chat with the bot is.
func private(chat string, user int64, trust core.Trust) session.Ref {
	return session.Ref{Address: core.Address{Bot: "telegram", Chat: chat}, User: user, Trust: trust, Source: "telegram"}
}

// begin begins a conversation as the gateway does, and returns its id.
func (g *gateway) begin(ref session.Ref) (id string) {
	g.t.Helper()
	err := g.db.Tx(context.Background(), func(tx *store.Tx) error {
		s, _, _, err := g.sessions.Resolve(context.Background(), tx, ref)
		id = s.ID
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	g.turn(id, "Ada", "hello")
	return id
}

// turn writes a turn as the gateway does.
func (g *gateway) turn(id, name, text string) {
	g.t.Helper()
	s, err := g.sessions.ByID(context.Background(), g.db, id)
	if err != nil {
		g.t.Fatal(err)
	}
	c, err := g.sessions.Open(context.Background(), s)
	if err != nil {
		g.t.Fatal(err)
	}
	question := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}, Author: &transcript.Author{Name: name, Platform: "telegram", Trust: core.Sandboxed}}
	answer := transcript.Message{Role: "assistant", Model: "local/quote", Blocks: []core.Block{{Type: "text", Text: "an answer to " + text}}}
	if err := errors.Join(c.Append(uuid.NewString(), 0, question, answer), c.Sync(), c.Close()); err != nil {
		g.t.Fatal(err)
	}
}

// What a gateway held itself, or had imported, comes in from its vault like what Claude Code began: the
// owner's with at most the trust that it had there, a guest's and a group's as conversations of others. It is
// so where the vault's database is lost or elsewhere, too.
func TestConversationsThatAnotherGatewayHeldComeIn(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("database lost %t", lost), func(t *testing.T) {
			h, g := open(t), another(t)
			type want struct {
				trust  core.Trust
				others bool
				source string
			}
			wanted := map[string]want{
				g.begin(private("1", core.Operator, core.Vault)):     {core.Vault, false, "gatehouse"},
				g.begin(private("2", core.Operator, core.Sandboxed)): {core.Sandboxed, false, "gatehouse"},
				g.begin(private("3", core.Operator, core.Full)):      {core.Vault, false, "gatehouse"},
				g.begin(session.Ref{Address: core.Address{Bot: core.APIBot, Chat: uuid.NewString()}, User: core.Operator, Trust: core.Vault}): {core.Vault, false, "gatehouse"},
				g.begin(private("7", 2, core.Sandboxed)): {core.Sandboxed, true, "gatehouse"},
				g.begin(private("8", 3, core.Vault)):     {core.Sandboxed, true, "gatehouse"},
				g.begin(session.Ref{Address: core.Address{Bot: "telegram", Chat: "-9", Place: "-9"}, User: core.Operator, Trust: core.Vault, Source: "telegram"}): {core.Sandboxed, true, "gatehouse"},
			}
			_, list := g.run(g.text("x.json", `[{"uuid":"c1","chat_messages":[{"uuid":"m","sender":"human","text":"hello"},{"uuid":"n","sender":"assistant","text":"an answer to hello"}]}]`), operator)
			wanted[list[0].Session] = want{core.Vault, false, "claude"}
			first, guests := g.begin(private("4", core.Operator, core.Vault)), ""
			for id, w := range wanted {
				if w.others {
					guests = id
				}
			}
			next, apart := private("5", core.Operator, core.Vault), private("6", core.Operator, core.Vault)
			next.Options, apart.Options = &core.Options{ContinuedFrom: first}, &core.Options{ContinuedFrom: guests}
			second, third := g.begin(next), g.begin(apart)
			for _, id := range []string{first, second, third} {
				wanted[id] = want{core.Vault, false, "gatehouse"}
			}
			title := "About hello"
			err := g.db.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := g.sessions.Update(t.Context(), tx, second, session.Change{Title: &title, AddTags: []string{"garden"}}, core.Actor{})
				return err
			})
			if err = errors.Join(err, g.sessions.Close()); err != nil {
				t.Fatal(err)
			}
			if lost {
				if err := errors.Join(g.db.Close(), os.RemoveAll(filepath.Join(g.path, "Chat"))); err != nil {
					t.Fatal(err)
				}
			}
			if r, list := h.run(g.path, operator); r.Added != len(wanted) || r.Failed != 0 || r.Messages != 2*len(wanted) {
				t.Fatalf("%+v %+v", r, list)
			}
			for id, want := range wanted {
				d, err := h.sessions.Detail(t.Context(), h.db, id)
				if err != nil {
					t.Fatal(err)
				}
				if d.User != core.Operator || d.TrustLevel != want.trust || d.Source != want.source || d.MessageCount != 2 || strings.HasPrefix(d.Title, "From others: ") != want.others ||
					slices.Contains(d.Tags, bring.OthersTag) != want.others || !strings.HasSuffix(d.Title, "hello") {
					t.Errorf("want %+v: %+v %q", want, d.Session, d.Tags)
				}
				if _, got := h.messages(id); got != "user text  hello (0 media)\nassistant text  an answer to hello (0 media)" {
					t.Errorf("%q", got)
				}
			}
			if d, err := h.sessions.Detail(t.Context(), h.db, second); err != nil || d.Title != title || !slices.Contains(d.Tags, "garden") || d.ContinuedFrom != first {
				t.Errorf("title, tags and what it goes on from: %+v, %v", d, err)
			}
			if s, err := h.sessions.ByID(t.Context(), h.db, third); err != nil || s.ContinuedFrom != "" {
				t.Errorf("it goes on from what others wrote: %+v, %v", s, err)
			}
			if r, list := h.run(g.path, operator); r.Unchanged != len(wanted) {
				t.Errorf("again: %+v %+v", r, list)
			}
		})
	}
}

// What the other gateway went on with is brought up to date by the next import, and keeps the trust of the first.
func TestAConversationThatAnotherGatewayGoesOnWithIsUpdated(t *testing.T) {
	h, g := open(t), another(t)
	id := g.begin(private("1", core.Operator, core.Vault))
	h.run(g.path, operator)
	g.turn(id, "Ada", "more")
	if r, list := h.run(g.path, operator); r.Updated != 1 {
		t.Fatalf("%+v %+v", r, list)
	}
	s, got := h.messages(id)
	if s.MessageCount != 4 || s.TrustLevel != core.Vault || !strings.HasSuffix(got, "an answer to more (0 media)") {
		t.Errorf("%+v %q", s, got)
	}
}

func TestTranscriptsOfTheGatewaysOwnVaultAreNotImported(t *testing.T) {
	h := open(t)
	h.run(h.text("x.json", `[{"uuid":"c1","chat_messages":[{"uuid":"m","sender":"human","text":"hello"}]}]`), operator)
	if _, err := h.Run(context.Background(), h.vault.Path(), operator, nil, func(*report.Report) {}); core.KindOf(err) != core.Invalid {
		t.Errorf("the vault: %v", err)
	}
	names, _ := filepath.Glob(filepath.Join(h.vault.Path(), ".claude/projects/*/*.jsonl"))
	if _, err := h.Run(context.Background(), names[0], operator, nil, func(*report.Report) {}); core.KindOf(err) != core.Invalid {
		t.Errorf("a transcript of it: %v", err)
	}
}

func TestARecordOfTheVaultIsOpenedWhenItsIDIsAskedFor(t *testing.T) {
	h := open(t)
	const id = "0a1b2c3d-0000-4000-8000-00000000000a"
	if ok, err := h.Open(context.Background(), id); ok || err != nil {
		t.Fatal(ok, err)
	}
	h = open(t)
	name := filepath.Join(h.vault.Path(), "agent-chats", "helper", "2025-12-07.md")
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(recordText), 0o600); err != nil {
		t.Fatal(err)
	}
	if ok, err := h.Open(context.Background(), id); !ok || err != nil {
		t.Fatal(ok, err)
	}
	s, got := h.messages(id)
	if s.TrustLevel != core.Sandboxed || s.User != core.Operator {
		t.Errorf("row %+v", s)
	}
	wants(t, got, "user text  What grows", "assistant text", "Thanks")
	if r, list := h.run(filepath.Join(h.vault.Path(), "agent-chats"), operator); r.Updated != 1 || r.Failed != 0 {
		t.Errorf("imported: %+v %+v", r, list)
	}
	if s, _ := h.messages(id); s.TrustLevel != core.Vault {
		t.Errorf("the trust of what the owner imports is %v", s.TrustLevel)
	}
	if ok, err := h.Open(context.Background(), "0a1b2c3d-0000-4000-8000-0000000000ff"); ok || err != nil {
		t.Error(ok, err)
	}
}

// TestFilesThatAnEarlierExportLackedComeInLater imports the conversations alone, then the archive and the unpacked
// one with their pictures, and the conversations alone again.
func TestFilesThatAnEarlierExportLackedComeInLater(t *testing.T) {
	for _, kind := range []string{"archive", "directory"} {
		h := open(t)
		write := func(w io.Writer) error { return importertest.New(3).ChatGPT(w, 1) }
		alone := h.file("conversations.json", write)
		_, list := h.run(alone, operator)
		whole := ""
		files := map[string][]byte{}
		for _, name := range importertest.Pictures(0) {
			files[name+"-x.png"] = importertest.Picture()
			whole = filepath.Dir(h.text("whole/"+name+"-x.png", string(importertest.Picture())))
		}
		h.file("whole/conversations.json", write)
		if kind == "archive" {
			whole = h.file("x.zip", func(w io.Writer) error { return importertest.Zip(w, write, files) })
		}
		if r, _ := h.run(whole, operator); r.Updated != 1 {
			t.Errorf("%s: %+v", kind, r)
		}
		_, with := h.messages(list[0].Session)
		if !strings.Contains(with, "Chat/assets/") {
			t.Errorf("%s: %s", kind, with)
		}
		if r, _ := h.run(whole, operator); r.Unchanged != 1 {
			t.Errorf("%s again: %+v", kind, r)
		}
		h.run(alone, operator)
		if _, now := h.messages(list[0].Session); now != with {
			t.Errorf("%s: the files are gone: %s", kind, now)
		}
	}
}
