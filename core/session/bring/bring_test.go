package bring_test

import (
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

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/session"
	"gatehouse/core/session/bring"
	"gatehouse/core/session/reindex"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/transcript"
	"gatehouse/core/vault"
)

// A house is a vault with its sessions and a Bringer.
type house struct {
	t        *testing.T
	clock    *coretest.Clock
	db       *store.DB
	vault    *vault.Vault
	sessions *session.Store
	*bring.Bringer
}

func open(t *testing.T) *house {
	t.Helper()
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	h := &house{t: t, clock: coretest.NewClock(time.Time{}), vault: v}
	h.db = storetest.Open(t, h.clock)
	h.sessions = session.New(session.Options{DB: h.db, Vault: v, Clock: h.clock})
	t.Cleanup(func() { _ = h.sessions.Close() })
	h.Bringer = bring.New(bring.Options{DB: h.db, Vault: v, Sessions: h.sessions, Clock: h.clock, Log: slog.New(slog.DiscardHandler)})
	return h
}

// files keeps nothing and names every file as missing but those whose name begins with "kept".
type files struct{ kept int }

func (f *files) Keep(_ context.Context, m *foreign.Message) (blocks []core.Block, missing []string, err error) {
	for _, file := range m.Files {
		if strings.HasPrefix(file.Name, "kept") {
			f.kept++
			blocks = append(blocks, core.Block{Type: "text", Text: fmt.Sprintf("[File: Chat/assets/%d-%s]", f.kept, file.Name)})
			continue
		}
		missing = append(missing, file.Name)
		blocks = append(blocks, core.Block{Type: "text", Text: "[missing: " + file.Name + "]"})
	}
	return blocks, missing, nil
}

var operator = foreign.Terms{User: core.Operator, Trust: core.Full}

var start = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

func text(role, id, parent, words string, minute int) foreign.Message {
	return foreign.Message{ID: id, Parent: parent, Role: role, Blocks: []core.Block{{Type: "text", Text: words}}, At: start.Add(time.Duration(minute) * time.Minute)}
}

const (
	u1 = "11111111-1111-4111-8111-111111111111"
	a1 = "22222222-2222-4222-8222-222222222222"
	u2 = "33333333-3333-4333-8333-333333333333"
	a2 = "44444444-4444-4444-8444-444444444444"
	b2 = "55555555-5555-4555-8555-555555555555"
)

// talk is a conversation with a question that was asked in two ways.
func talk() *foreign.Conversation {
	return &foreign.Conversation{Source: "chatgpt", ID: "c0ffee00-0000-4000-8000-000000000001", Title: "Green tea", Created: start, Updated: start.Add(time.Hour), Leaf: a2,
		Messages: []foreign.Message{
			text("user", u1, "", "hello", 0), text("assistant", a1, u1, "hi", 1),
			text("user", b2, a1, "the other question", 2),
			text("user", u2, a1, "the question", 3), text("assistant", a2, u2, "the answer", 4),
		}}
}

func (h *house) tree(c *foreign.Conversation, t foreign.Terms) foreign.Outcome {
	h.t.Helper()
	out, err := h.Tree(context.Background(), c, t, &files{})
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h *house) detail(id string) session.Detail {
	h.t.Helper()
	d, err := h.sessions.Detail(context.Background(), h.db, id)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// file returns the transcript of a session.
func (h *house) file(id string) string {
	h.t.Helper()
	c, err := h.sessions.Open(context.Background(), h.detail(id).Session)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	return c.Path()
}

func (h *house) lines(id string) (out []vault.Line) {
	h.t.Helper()
	raw, err := os.ReadFile(h.file(id))
	if err != nil {
		h.t.Fatal(err)
	}
	for l := range strings.Lines(string(raw)) {
		var line vault.Line
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			h.t.Fatal(err)
		}
		out = append(out, line)
	}
	return out
}

// history returns what a model reads of the session.
func (h *house) history(id string) (string, transcript.Resume) {
	h.t.Helper()
	c, err := h.sessions.Open(context.Background(), h.detail(id).Session)
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	got, r, err := c.History(50_000)
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, m := range got {
		for _, b := range m.Blocks {
			out = append(out, strings.TrimRight(m.Role[:1]+" "+b.Type+" "+b.ID+b.ToolUseID+" "+b.Text, " "))
		}
	}
	return strings.Join(out, "\n"), r
}

// say continues a session as a turn of the gateway does.
func (h *house) say(id, words string) {
	h.t.Helper()
	c, err := h.sessions.Open(context.Background(), h.detail(id).Session)
	if err != nil {
		h.t.Fatal(err)
	}
	m := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: words}}}
	if err := errors.Join(c.Append(uuid.NewString(), 0, m), c.Sync(), c.Close()); err != nil {
		h.t.Fatal(err)
	}
}

func TestAConversationComesInWithItsTimesIDsAndParents(t *testing.T) {
	h := open(t)
	out := h.tree(talk(), operator)
	if out.Kind != foreign.Added || out.Messages != 4 || out.Title != "Green tea" {
		t.Fatalf("outcome %+v", out)
	}
	d := h.detail(out.Session)
	if d.User != core.Operator || d.TrustLevel != core.Vault || d.Source != "chatgpt" || d.MessageCount != 4 || !d.CreatedAt.Equal(start) || !d.LastAccessed.Equal(start.Add(time.Hour)) ||
		d.Archived || !strings.Contains(string(d.Metadata), `"original_id":"c0ffee00-0000-4000-8000-000000000001"`) || len(d.Tags) != 1 || d.Tags[0] != "imported" {
		t.Errorf("row %+v %s", d, d.Metadata)
	}
	var got []string
	for _, l := range h.lines(out.Session) {
		parent := ""
		if l.ParentUUID != nil {
			parent = *l.ParentUUID
		}
		got = append(got, fmt.Sprintln(l.UUID, parent, l.IsSidechain, l.Timestamp, l.SessionID == out.Session))
	}
	want := []string{
		fmt.Sprintln(u1, "", false, "2024-05-01T12:00:00.000Z", true),
		fmt.Sprintln(a1, u1, false, "2024-05-01T12:01:00.000Z", true),
		fmt.Sprintln(b2, a1, true, "2024-05-01T12:02:00.000Z", true),
		fmt.Sprintln(u2, a1, false, "2024-05-01T12:03:00.000Z", true),
		fmt.Sprintln(a2, u2, false, "2024-05-01T12:04:00.000Z", true),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnImportedConversationIsResumedAsItIs(t *testing.T) {
	h := open(t)
	out := h.tree(talk(), operator)
	got, r := h.history(out.Session)
	if want := "u text  hello\na text  hi\nu text  the question\na text  the answer"; got != want || r.Info.Method != "sdk_resume" {
		t.Errorf("the model reads %q by %s", got, r.Info.Method)
	}
	if n, err := h.sessions.Fill(context.Background()); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	found, _, err := h.sessions.Search(context.Background(), session.Filter{User: core.Operator, Search: "question"})
	if err != nil || len(found) != 1 || found[0].ID != out.Session {
		t.Errorf("search finds %v, %v", found, err)
	}
}

func TestASecondImportChangesWhatHasChangedAndDoublesNothing(t *testing.T) {
	h := open(t)
	first := h.tree(talk(), operator)
	if again := h.tree(talk(), operator); again.Kind != foreign.Unchanged || again.Session != first.Session {
		t.Errorf("the same again: %+v", again)
	}
	c := talk()
	c.Title = "Black tea"
	c.Messages = append(c.Messages, text("user", u1[:35]+"9", a2, "more", 5))
	c.Leaf = ""
	next := h.tree(c, operator)
	if next.Kind != foreign.Updated || next.Session != first.Session || next.Messages != 5 {
		t.Errorf("a longer one: %+v", next)
	}
	if d := h.detail(first.Session); d.MessageCount != 5 || d.Title != "Black tea" {
		t.Errorf("row %+v", d)
	}
	if got, _ := h.history(first.Session); !strings.HasSuffix(got, "u text  more") {
		t.Errorf("the model reads %q", got)
	}
	var n int
	if err := h.db.Get(context.Background(), &n, `SELECT count(*) FROM sessions`); err != nil || n != 1 {
		t.Errorf("%d sessions, %v", n, err)
	}
	if other := h.tree(talk(), foreign.Terms{User: 7, Trust: core.Sandboxed}); other.Kind != foreign.Added || other.Session == first.Session || h.detail(other.Session).TrustLevel != core.Sandboxed {
		t.Errorf("another user's: %+v", other)
	}
}

func TestWhatWasContinuedHereIsLeftAlone(t *testing.T) {
	h := open(t)
	out := h.tree(talk(), operator)
	h.say(out.Session, "said here")
	c := talk()
	c.Messages = append(c.Messages, text("user", u1[:35]+"9", a2, "more", 5))
	if again := h.tree(c, operator); again.Kind != foreign.Continued {
		t.Errorf("outcome %+v", again)
	}
	if got, _ := h.history(out.Session); !strings.HasSuffix(got, "u text  said here") {
		t.Errorf("the model reads %q", got)
	}
}

func TestATitleAndATrustThatWereSetHereStay(t *testing.T) {
	h := open(t)
	out := h.tree(talk(), operator)
	title := "Mine"
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		_, err := h.sessions.Update(context.Background(), tx, out.Session, session.Change{Title: &title}, core.Actor{})
		if err == nil {
			_, err = tx.Exec(context.Background(), `UPDATE sessions SET trust_level = 'sandboxed'`)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := talk()
	c.Title, c.Leaf, c.Messages = "Theirs", "", c.Messages[:4]
	h.tree(c, operator)
	if d := h.detail(out.Session); d.Title != "Mine" || d.TrustLevel != core.Sandboxed {
		t.Errorf("title %q, trust %v", d.Title, d.TrustLevel)
	}
}

func TestADeletedSessionDoesNotComeBack(t *testing.T) {
	h := open(t)
	out := h.tree(talk(), operator)
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		return h.sessions.Delete(context.Background(), tx, out.Session, core.Actor{})
	})
	if err != nil {
		t.Fatal(err)
	}
	if again := h.tree(talk(), operator); again.Kind != foreign.Deleted {
		t.Errorf("outcome %+v", again)
	}
}

func (h *house) delete(id string) {
	h.t.Helper()
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		return h.sessions.Delete(context.Background(), tx, id, core.Actor{})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// A session that another system had imported has an id of its own: that of an import is
// computed, and is not the one that was deleted.
func TestADeletedSessionOfAnotherIDDoesNotComeBack(t *testing.T) {
	h := open(t)
	c := talk()
	id := uuid.NewString()
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		return h.sessions.Take(context.Background(), tx, session.Session{ID: id, Module: "chat", Source: c.Source, User: core.Operator, TrustLevel: core.Full, AgentType: "vault-agent",
			CreatedAt: start, LastAccessed: start, Metadata: json.RawMessage(`{"original_id":"` + c.ID + `"}`)})
	})
	if err != nil {
		t.Fatal(err)
	}
	h.delete(id)
	if out := h.tree(c, operator); out.Kind != foreign.Deleted {
		t.Errorf("outcome %+v", out)
	}
}

func TestADeletedSessionComesBackWhereItIsAskedFor(t *testing.T) {
	h := open(t)
	again := operator
	again.Again = true
	out := h.tree(talk(), operator)
	id := uuid.NewString()
	h.copy(id, claude(id, 1))
	h.delete(out.Session)
	h.delete(id)
	if back := h.tree(talk(), again); back.Kind != foreign.Added || h.detail(back.Session).MessageCount == 0 {
		t.Errorf("outcome %+v", back)
	}
	if next := h.tree(talk(), operator); next.Kind != foreign.Unchanged {
		t.Errorf("the next import: %+v", next)
	}
	c := foreign.Transcript{Source: "claude-code", ID: id, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(claude(id, 1))), nil }}
	for _, step := range []struct {
		terms foreign.Terms
		want  string
	}{{operator, foreign.Deleted}, {again, foreign.Added}, {operator, foreign.Unchanged}} {
		if back, err := h.Copy(context.Background(), c, step.terms); err != nil || back.Kind != step.want {
			t.Errorf("a transcript: %+v, %v, want %s", back, err, step.want)
		}
	}
}

// What others wrote in another vault gets little trust here, and is marked as theirs wherever
// it is found.
func TestAConversationOfOthersIsMarkedAndSandboxed(t *testing.T) {
	h := open(t)
	for _, title := range []string{"Their plans", ""} {
		id := uuid.NewString()
		for n, want := range []string{1: foreign.Added, 2: foreign.Updated} {
			if n == 0 {
				continue
			}
			c := foreign.Transcript{Source: "claude-code", ID: id, Title: title, Others: true, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(claude(id, n))), nil }}
			out, err := h.Copy(context.Background(), c, operator)
			d := h.detail(id)
			if err != nil || out.Kind != want || out.Title != d.Title || d.TrustLevel != core.Sandboxed || !strings.HasPrefix(d.Title, "From others: ") || strings.Count(d.Title, "From others") != 1 || !slices.Contains(d.Tags, bring.OthersTag) {
				t.Errorf("%+v, %v: %+v", out, err, d)
			}
			if private, err := h.sessions.Private(context.Background(), id); err != nil || private[id] {
				t.Errorf("it is the owner's own: %v", err)
			}
		}
	}
}

func TestADryRunWritesNothing(t *testing.T) {
	h := open(t)
	terms := operator
	terms.DryRun = true
	if out := h.tree(talk(), terms); out.Kind != foreign.Added || out.Messages != 4 {
		t.Errorf("outcome %+v", out)
	}
	if names, _ := filepath.Glob(filepath.Join(h.vault.Path(), ".claude", "projects", "*", "*")); len(names) > 0 {
		t.Errorf("files %v", names)
	}
}

// TestAnImportThatEndedBetweenFileAndRowIsCompleted is what a kill leaves.
func TestAnImportThatEndedBetweenFileAndRowIsCompleted(t *testing.T) {
	h := open(t)
	out := h.tree(talk(), operator)
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(context.Background(), `DELETE FROM sessions`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(filepath.ToSlash(h.pathOf(out.Session)), h.vault.Path()+"/")
	if _, ok := reindex.Find(h.sessions, h.vault, slog.New(slog.DiscardHandler), name, out.Session, false); ok {
		t.Error("it is taken for a conversation that Claude Code began")
	}
	if again := h.tree(talk(), operator); again.Kind != foreign.Added || again.Session != out.Session {
		t.Errorf("outcome %+v", again)
	}
	if got, _ := h.history(out.Session); !strings.HasSuffix(got, "the answer") {
		t.Errorf("the model reads %q", got)
	}
}

func (h *house) pathOf(id string) string {
	h.t.Helper()
	names, err := h.vault.FindTranscripts(id)
	if err != nil || len(names) != 1 {
		h.t.Fatal(names, err)
	}
	return filepath.Join(h.vault.Path(), names[0])
}

func TestCallsAndResultsAreAsProvidersTakeThem(t *testing.T) {
	h := open(t)
	call := func(id, parent string, ids ...string) foreign.Message {
		m := foreign.Message{ID: id, Parent: parent, Role: "assistant"}
		for _, c := range ids {
			m.Blocks = append(m.Blocks, core.Block{Type: "tool_use", ID: c, Name: "dalle.text2im", Input: json.RawMessage(`"a cat"`)})
		}
		return m
	}
	result := func(id, parent string, ids ...string) foreign.Message {
		m := foreign.Message{ID: id, Parent: parent, Role: "user"}
		for _, c := range ids {
			m.Blocks = append(m.Blocks, core.Block{Type: "tool_result", ToolUseID: c, Text: "of " + c})
		}
		return m
	}
	c := talk()
	c.Leaf = ""
	c.Messages = []foreign.Message{text("user", "a", "", "draw", 0), call("b", "a", "x y", "z"), result("c", "b", "z"), text("assistant", "d", "c", "done", 3),
		call("e", "d", "open"), text("user", "f", "e", "go on", 4), result("g", "f", "never called"), call("h", "g", "last")}
	out := h.tree(c, operator)
	lines := h.lines(out.Session)
	answered := map[string]bool{}
	for i, l := range lines {
		var m struct {
			Content json.RawMessage
		}
		_ = json.Unmarshal(l.Message, &m)
		var blocks []struct {
			Type, ID, Name string
			ToolUseID      string `json:"tool_use_id"`
			Input          map[string]string
		}
		_ = json.Unmarshal(m.Content, &blocks)
		for _, b := range blocks {
			if b.Type == "tool_use" {
				if b.Name != "dalle_text2im" || b.Input["value"] != "a cat" || strings.Contains(b.ID, " ") {
					t.Errorf("call %+v", b)
				}
				if i+1 == len(lines) || !strings.Contains(string(lines[i+1].Message), `"tool_use_id":"`+b.ID+`"`) {
					t.Errorf("the call %s has no result behind it", b.ID)
				}
				answered[b.ID] = true
			}
			if b.Type == "tool_result" && !answered[b.ToolUseID] {
				t.Errorf("a result of no call: %+v", b)
			}
		}
		if i > 0 && (l.ParentUUID == nil || *l.ParentUUID != lines[i-1].UUID) {
			t.Errorf("line %d does not hang behind the one before it", i)
		}
	}
	got, _ := h.history(out.Session)
	if !strings.Contains(got, "[Result of a tool] of never called") || !strings.Contains(got, "of z") {
		t.Errorf("the model reads %s", got)
	}
}

func TestFilesAreKeptOnceAndMissingOnesAreNamed(t *testing.T) {
	h := open(t)
	c := talk()
	c.Messages[0].Files = []foreign.File{{Name: "kept.png"}, {Name: "gone.pdf"}}
	f := &files{}
	out, err := h.Tree(context.Background(), c, operator, f)
	if err != nil || f.kept != 1 || len(out.Notes) != 1 || out.Notes[0] != "gone.pdf" {
		t.Fatalf("%+v, %d kept, %v", out, f.kept, err)
	}
	c.Title = "Another"
	if out, err = h.Tree(context.Background(), c, operator, f); err != nil || out.Kind != foreign.Updated || f.kept != 1 {
		t.Errorf("%+v, %d kept, %v", out, f.kept, err)
	}
	if got, _ := h.history(out.Session); !strings.Contains(got, "[File: Chat/assets/1-kept.png]") {
		t.Errorf("the model reads %q", got)
	}
}

func TestAnyTreeIsWrittenWholeInOrder(t *testing.T) {
	h := open(t)
	many := talk()
	many.Messages, many.Leaf = nil, ""
	parent := ""
	for i := range 10_000 {
		id := fmt.Sprint("n", i)
		many.Messages = append(many.Messages, foreign.Message{ID: id, Parent: parent, Role: []string{"user", "assistant"}[i%2], Blocks: []core.Block{{Type: "text", Text: "x"}}})
		parent = id
	}
	if out := h.tree(many, operator); out.Messages != 10_000 {
		t.Errorf("a long chain: %+v", out)
	}
	cycle := talk()
	cycle.ID = "cycle"
	cycle.Messages[0].Parent = a2
	if out := h.tree(cycle, operator); out.Messages != 4 {
		t.Errorf("a cycle: %+v", out)
	}
	twice := talk()
	twice.ID = "twice"
	twice.Messages = append(twice.Messages, text("user", u1, a2, "again", 9))
	twice.Messages = append(twice.Messages, text("user", "", a2, "none", 9), text("user", "self", "self", "alone", 9))
	if out := h.tree(twice, operator); out.Messages != 4 || len(out.Notes) != 1 {
		t.Errorf("ids that are there twice: %+v", out)
	}
	empty := talk()
	empty.ID, empty.Messages = "empty", nil
	if _, err := h.Tree(context.Background(), empty, operator, &files{}); core.KindOf(err) != core.Invalid {
		t.Errorf("no messages: %v", err)
	}
}

// claude is a transcript of Claude Code.
func claude(id string, turns int) string {
	var b strings.Builder
	parent := "null"
	for i := range turns {
		for _, role := range []string{"user", "assistant"} {
			u := uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, id, i, role)).String()
			content := fmt.Sprintf(`"question %d"`, i)
			if role == "assistant" {
				content = fmt.Sprintf(`[{"type":"text","text":"answer %d"}]`, i)
			}
			fmt.Fprintf(&b, `{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/home/me/code","sessionId":%q,"version":"2.1.0","type":%q,"message":{"role":%q,"content":%s},"uuid":%q,"timestamp":"2024-06-01T10:%02d:00.000Z"}`+"\n",
				parent, id, role, role, content, u, i)
			parent = `"` + u + `"`
		}
	}
	return b.String()
}

func (h *house) copy(id, text string) foreign.Outcome {
	h.t.Helper()
	out, err := h.Copy(context.Background(), foreign.Transcript{Source: "claude-code", ID: id, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }}, operator)
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func TestATranscriptOfClaudeCodeIsCopiedAndGrowsWithTheOriginal(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	out := h.copy(id, claude(id, 2))
	d := h.detail(id)
	if out.Kind != foreign.Added || out.Session != id || d.Source != "claude-code" || d.TrustLevel != core.Full || d.User != core.Operator || d.MessageCount != 4 || d.Title != "question 0" || d.CreatedAt.Year() != 2024 {
		t.Errorf("%+v %+v", out, d)
	}
	if got, r := h.history(id); !strings.HasSuffix(got, "a text  answer 1") || r.Info.Method != "sdk_resume" {
		t.Errorf("the model reads %q by %s", got, r.Info.Method)
	}
	if again := h.copy(id, claude(id, 2)); again.Kind != foreign.Unchanged {
		t.Errorf("the same again: %+v", again)
	}
	if more := h.copy(id, claude(id, 3)); more.Kind != foreign.Updated || h.detail(id).MessageCount != 6 {
		t.Errorf("a longer one: %+v", more)
	}
	h.say(id, "said here")
	if kept := h.copy(id, claude(id, 4)); kept.Kind != foreign.Continued {
		t.Errorf("continued here: %+v", kept)
	}
	if got, _ := h.history(id); !strings.HasSuffix(got, "u text  said here") {
		t.Errorf("the model reads %q", got)
	}
}

func TestAPickedUpSessionGetsTheImportersTrust(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	text := claude(id, 1)
	dir := filepath.Join(h.vault.Path(), ".claude", "projects", vault.ProjectFolder(h.vault.Path()))
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, id+".jsonl"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	err := h.db.Tx(context.Background(), func(tx *store.Tx) error {
		s, _, _, err := h.sessions.Resolve(context.Background(), tx, session.Ref{Address: core.Address{Bot: core.APIBot, Chat: id}, User: core.Operator, Trust: core.Full})
		if err == nil && s.TrustLevel != core.Sandboxed {
			t.Errorf("picked up at %v", s.TrustLevel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out := h.copy(id, text); out.Session != id {
		t.Errorf("%+v", out)
	}
	if d := h.detail(id); d.TrustLevel != core.Full || d.Source != "claude-code" {
		t.Errorf("trust %v, source %s", d.TrustLevel, d.Source)
	}
}

func TestOnlyTheOwnerCopiesTranscripts(t *testing.T) {
	h := open(t)
	_, err := h.Copy(context.Background(), foreign.Transcript{Source: "claude-code", ID: uuid.NewString()}, foreign.Terms{User: 7, Trust: core.Vault})
	if core.KindOf(err) != core.Denied {
		t.Errorf("%v", err)
	}
}

func TestAnImportOfLessTrustDoesNotChangeASessionOfMore(t *testing.T) {
	h := open(t)
	out := h.tree(talk(), operator)
	less := foreign.Terms{User: core.Operator, Trust: core.Sandboxed}
	if again := h.tree(talk(), less); again.Kind != foreign.Unchanged {
		t.Errorf("the same: %+v", again)
	}
	c := talk()
	c.Messages[4].Blocks[0].Text = "planted"
	if _, err := h.Tree(context.Background(), c, less, &files{}); core.KindOf(err) != core.Denied {
		t.Errorf("another answer: %v", err)
	}
	if got, _ := h.history(out.Session); !strings.HasSuffix(got, "the answer") {
		t.Errorf("the model reads %q", got)
	}
	id := uuid.NewString()
	h.copy(id, claude(id, 1))
	longer := foreign.Transcript{Source: "claude-code", ID: id, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(claude(id, 2))), nil }}
	if _, err := h.Copy(context.Background(), longer, less); core.KindOf(err) != core.Denied {
		t.Errorf("a longer transcript: %v", err)
	}
}

// TestASessionThatBeganHereKeepsItsTrustAndSource imports a copy of the gateway's own vault.
func TestASessionThatBeganHereKeepsItsTrustAndSource(t *testing.T) {
	for source, addr := range map[string]core.Address{"telegram": {Bot: "b", Chat: "g", Place: "g"}, "discord": {Bot: "b", Chat: "c"}, "": {Bot: core.APIBot, Chat: "c"}} {
		h := open(t)
		var was session.Session
		err := h.db.Tx(context.Background(), func(tx *store.Tx) (err error) {
			was, _, _, err = h.sessions.Resolve(context.Background(), tx, session.Ref{Address: addr, User: core.Operator, Trust: core.Sandboxed, Source: source})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.sessions.Open(context.Background(), was)
		if err != nil {
			t.Fatal(err)
		}
		m := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: "hello"}}}
		if err := errors.Join(c.Append(uuid.NewString(), 0, m), c.Sync(), c.Close()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(h.pathOf(was.ID))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if out := h.copy(was.ID, string(text)); out.Kind != foreign.Continued {
				t.Errorf("%q: %+v", source, out)
			}
		}
		if d := h.detail(was.ID); d.TrustLevel != core.Sandboxed || d.Source != was.Source {
			t.Errorf("%q: trust %v, source %q, was %q", source, d.TrustLevel, d.Source, was.Source)
		}
	}
}

func TestNamesOfAnotherSystemAreBounded(t *testing.T) {
	h := open(t)
	c := talk()
	c.ID = strings.Repeat("x", 1<<20)
	if _, err := h.Tree(context.Background(), c, operator, &files{}); core.KindOf(err) != core.Invalid {
		t.Errorf("a long id: %v", err)
	}
	c = talk()
	c.Messages[4].Model = "m\x1b[31m\n" + strings.Repeat("x", 1<<20)
	if d := h.detail(h.tree(c, operator).Session); len(d.Model) > 200 || strings.ContainsAny(d.Model, "\x1b\n") {
		t.Errorf("a long model: %d bytes", len(d.Model))
	}
}

// TestNoTwoLinesHaveOneID has a message whose id is the one that another one's line gets.
func TestNoTwoLinesHaveOneID(t *testing.T) {
	h := open(t)
	plain := talk()
	plain.Messages = []foreign.Message{text("user", "a", "", "one", 0)}
	given := h.lines(h.tree(plain, operator).Session)[0].UUID
	c := talk()
	c.Leaf = ""
	c.Messages = []foreign.Message{text("user", given, "", "one", 0), text("assistant", "a", given, "two", 1)}
	out := h.tree(c, operator)
	if lines := h.lines(out.Session); len(lines) != 2 || lines[0].UUID == lines[1].UUID {
		t.Errorf("%+v", lines)
	}
}

func TestAGrownTranscriptIsTakenWhateverItsTags(t *testing.T) {
	h := open(t)
	id := uuid.NewString()
	h.copy(id, claude(id, 1))
	var tags []string
	for i := range 70 {
		tags = append(tags, fmt.Sprint("tag", i))
	}
	c := foreign.Transcript{Source: "claude-code", ID: id, Tags: append([]string{"\x01"}, tags...), Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(claude(id, 2))), nil }}
	if out, err := h.Copy(context.Background(), c, operator); err != nil || out.Kind != foreign.Updated {
		t.Fatalf("%+v %v", out, err)
	}
	if d := h.detail(id); d.MessageCount != 4 || len(d.Tags) < 32 {
		t.Errorf("%d messages, tags %q", d.MessageCount, d.Tags)
	}
}

// stopping stops the import while it keeps the last file.
type stopping struct {
	files
	stop func()
}

func (s *stopping) Keep(ctx context.Context, m *foreign.Message) ([]core.Block, []string, error) {
	s.stop()
	return s.files.Keep(ctx, m)
}

// TestAStopDoesNotPartAFileFromItsRow stops at the last message of a conversation that was imported before: the
// new transcript names files, which an error would have deleted.
func TestAStopDoesNotPartAFileFromItsRow(t *testing.T) {
	h := open(t)
	h.tree(talk(), operator)
	c := talk()
	c.Messages[4].Files = []foreign.File{{Name: "kept.png"}}
	ctx, stop := context.WithCancel(context.Background())
	if out, err := h.Tree(ctx, c, operator, &stopping{stop: stop}); err != nil || out.Kind != foreign.Updated {
		t.Errorf("%+v %v", out, err)
	}
	if again := h.tree(c, operator); again.Kind != foreign.Unchanged {
		t.Errorf("the same again: %+v", again)
	}
}
