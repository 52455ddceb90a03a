package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

func user(text string) transcript.Message {
	return transcript.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}}
}

func answer(text string) transcript.Message {
	return transcript.Message{Role: "assistant", Model: "m", Stop: "end_turn", Blocks: []core.Block{{Type: "text", Text: text}},
		Usage: core.Tokens{Input: 3, Output: 4}}
}

func (h *house) open(s *session.Store, sess session.Session) *transcript.Conversation {
	h.t.Helper()
	c, err := s.Open(context.Background(), sess)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// turn appends one exchange as a run would.
func (h *house) turn(s *session.Store, sess session.Session, run, q, a string) {
	h.t.Helper()
	c := h.open(s, sess)
	if err := errors.Join(c.Append(run, 0, user(q), answer(a)), c.Sync(), c.Close()); err != nil {
		h.t.Fatal(err)
	}
}

func texts(messages []transcript.Message) (out []string) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			out = append(out, m.Role[:1]+":"+b.Text)
		}
	}
	return out
}

func (h *house) lines(c *transcript.Conversation) (all []map[string]any) {
	h.t.Helper()
	raw, err := os.ReadFile(c.Path())
	if err != nil {
		h.t.Fatal(err)
	}
	for l := range strings.Lines(string(raw)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			h.t.Fatalf("line %q: %v", l, err)
		}
		all = append(all, m)
	}
	return all
}

func TestHistoryIsWhatWasAppended(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	got, r, err := c.History(1000)
	want := core.SessionResume{Method: "new"}
	if err != nil || len(got) != 0 || r.Info != (core.ResumeInfo{Method: "new", IsNewSession: true}) || r.Session != want {
		t.Fatalf("new: %v, %+v, %v", got, r, err)
	}
	call := transcript.Message{Role: "assistant", Model: "m", Stop: "tool_use", Blocks: []core.Block{
		{Type: "thinking", Text: "hm <&>", Signature: "sig"},
		{Type: "text", Text: "let me look"},
		{Type: "tool_use", ID: "t1", Name: "Read", Input: json.RawMessage(`{"path":"a"}`)},
	}}
	result := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "t1", Text: "gone", IsError: true}}}
	all := []transcript.Message{user("a\nb \u2028 \"q\""), call, result, answer("done")}
	if err := errors.Join(c.Append("run-1", 0, all[:2]...), c.Append("run-1", 2, all[2:]...), c.Sync(), c.Close()); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*session.Store{"from memory": h.Store, "after a restart": h.another()} {
		c := h.open(s, sess)
		got, r, err := c.History(1000)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(all, got, cmpopts.IgnoreFields(transcript.Message{}, "UUID", "Earlier", "ProviderID", "Refused"), cmpopts.IgnoreFields(transcript.Message{}, "Run", "At")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		memory := name == "from memory"
		if r.Info.Method != "sdk_resume" || r.Info.IsNewSession || !r.Info.SDKSessionAvailable || r.Info.PreviousMessageCount != 4 ||
			!r.Session.SDKSessionValid || r.Session.ContextInjected || r.Session.CacheHit != memory || r.Session.LoadedFromDisk == memory {
			t.Errorf("%s: %+v", name, r)
		}
		_ = c.Close()
	}
}

func TestLinesAreInTheFormOfClaudeCode(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	run := uuid.NewString()
	h.turn(h.Store, sess, run, "hi", "ho")
	lines := h.lines(h.open(h.Store, sess))
	for i, l := range lines {
		for _, field := range []string{"uuid", "parentUuid", "sessionId", "cwd", "version", "gitBranch", "isSidechain", "userType", "type", "message", "timestamp", "requestId"} {
			if _, ok := l[field]; !ok {
				t.Errorf("line %d has no %s: %v", i, field, l)
			}
		}
		if l["sessionId"] != sess.ID || l["cwd"] != h.vault.Path() || l["uuid"] != transcript.LineID(run, i) || l["requestId"] != run {
			t.Errorf("line %d: %v", i, l)
		}
	}
	if lines[0]["parentUuid"] != nil || lines[1]["parentUuid"] != lines[0]["uuid"] {
		t.Errorf("parents: %v, %v", lines[0]["parentUuid"], lines[1]["parentUuid"])
	}
	m := lines[1]["message"].(map[string]any)
	if m["role"] != "assistant" || m["model"] != "m" || m["stop_reason"] != "end_turn" || m["usage"].(map[string]any)["output_tokens"] != 4.0 {
		t.Errorf("message: %v", m)
	}
	if u, _ := uuid.Parse(transcript.LineID(run, 0)); u.Version() != 5 {
		t.Errorf("line id is a UUID of version %d", u.Version())
	}
}

func TestRetryAppendsNothingTwice(t *testing.T) {
	for _, far := range []bool{false, true} {
		t.Run(fmt.Sprintf("far up in the file %v", far), func(t *testing.T) {
			h := open(t)
			sess := h.resolve(chat(5, "c1")).Session
			h.turn(h.Store, sess, "run-0", "earlier", "fine")
			c := h.open(h.Store, sess)
			if err := errors.Join(c.Append("run-1", 0, user("q")), c.Close()); err != nil { // killed after its first line
				t.Fatal(err)
			}
			if far {
				for i := range 40 {
					h.turn(h.Store, sess, fmt.Sprint("later-", i), strings.Repeat("x", 4000), "ok")
				}
			}
			before := len(h.lines(c))
			c = h.open(h.another(), sess)
			if n, err := c.HasRun("run-1"); n != 1 || err != nil {
				t.Errorf("HasRun is %d, %v", n, err)
			}
			if n, err := c.HasRun("run-9"); n != 0 || err != nil {
				t.Errorf("HasRun of a new run is %d, %v", n, err)
			}
			if _, err := c.HasRun("run-1"); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.Append("run-1", 0, user("q"), answer("a")), c.Append("run-1", 1, answer("a")), c.Sync(), c.Close()); err != nil {
				t.Fatal(err)
			}
			lines := h.lines(c)
			if len(lines) != before+1 {
				t.Errorf("%d lines became %d", before, len(lines))
			}
			ids := map[any]bool{}
			for _, l := range lines {
				if ids[l["uuid"]] {
					t.Errorf("%v stands there twice", l["uuid"])
				}
				ids[l["uuid"]] = true
			}
		})
	}
}

func TestCrashInTheMiddleLosesOnlyTheTornLine(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "run-0", "one", "two")
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Append("run-1", 0, user("three"), answer("four")), c.Close()); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(c.Path())
	if err := os.Truncate(c.Path(), int64(len(raw)-25)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Store{h.Store, h.another()} { // with a stale memory, and without any
		c = h.open(s, sess)
		got, _, err := c.History(1000)
		if want := []string{"u:one", "a:two", "u:three"}; err != nil || !cmp.Equal(texts(got), want) {
			t.Errorf("history is %v, %v", texts(got), err)
		}
		_ = c.Close()
	}
	c = h.open(h.Store, sess)
	n, err := c.HasRun("run-1")
	if err := errors.Join(err, c.Append("run-1", n, answer("four")), c.Sync(), c.Close()); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	lines := h.lines(c)
	if len(lines) != 4 || lines[3]["parentUuid"] != lines[2]["uuid"] {
		t.Errorf("after mending: %v", lines)
	}
}

func TestHistoryIsCutToWholeTurns(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	for i := range 50 {
		c := h.open(h.Store, sess)
		call := transcript.Message{Role: "assistant", Blocks: []core.Block{{Type: "tool_use", ID: "t", Name: "Read", Input: json.RawMessage(`{}`)}}}
		result := transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "t", Text: strings.Repeat("r", 300)}}}
		run := fmt.Sprint("run-", i)
		if err := errors.Join(c.Append(run, 0, user(fmt.Sprint("q", i)), call, result, answer("a")), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	sess.MessageCount = 200
	for _, s := range []*session.Store{h.Store, h.another()} {
		c := h.open(s, sess)
		got, r, err := c.History(1000)
		if err != nil || len(got) == 0 || len(got)%4 != 0 || got[0].Blocks[0].Type != "text" || got[0].Role != "user" {
			t.Fatalf("%d messages, %v", len(got), err)
		}
		if last := got[len(got)-4]; last.Blocks[0].Text != "q49" {
			t.Errorf("the newest turn is %v", last)
		}
		if r.Session.Method != "context_injection" || !r.Session.ContextInjected || r.Session.MessagesInjected != len(got) || r.Session.SDKSessionValid ||
			r.Session.TokensEstimate == 0 || r.Session.TokensEstimate > 1000 || r.Session.PreviousMessageCount != 200 || r.Info.Method != "context_injection" {
			t.Errorf("%+v", r)
		}
		if got, r, err = c.History(1); err != nil || len(got) != 0 || r.Info.Method != "new" || r.Info.IsNewSession {
			t.Errorf("no room: %d messages, %+v, %v", len(got), r, err)
		}
		if got, r, err = c.History(1 << 20); err != nil || len(got) != 200 || r.Info.Method != "sdk_resume" {
			t.Errorf("much room: %d messages, %+v, %v", len(got), r, err)
		}
		_ = c.Close()
	}
}

func TestTranscriptOfTheCLIIsContinued(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	name, _ := h.vault.Transcript("", sess.ID)
	body := strings.Join([]string{
		`{"type":"summary","summary":"x","leafUuid":"l"}`,
		`{"uuid":"1","parentUuid":null,"type":"user","isSidechain":false,"message":{"role":"user","content":"first"}}`,
		`{"uuid":"2","parentUuid":"1","type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]}}`,
		`{"uuid":"3","parentUuid":"2","type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"abandoned"}]}}`,
		`{"uuid":"4","parentUuid":"2","type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"answer"},{"type":"image","source":{}}]}}`,
		`broken`,
		`{"uuid":"s","parentUuid":null,"type":"user","isSidechain":true,"message":{"role":"user","content":"sub-agent"}}`,
		`{"uuid":"5","parentUuid":"4","type":"system","content":"note"}`,
		`{"uuid":"6","parentUuid":"5","type":"assistant","isApiErrorMessage":true,"message":{"role":"assistant","content":[{"type":"text","text":"API Error"}]}}`,
	}, "\n") + "\n"
	if err := h.vault.WriteFile(name, []byte(body)); err != nil {
		t.Fatal(err)
	}
	c := h.open(h.Store, sess)
	got, r, err := c.History(1000)
	if want := []string{"u:first", "a:hm", "a:answer"}; err != nil || !cmp.Equal(texts(got), want) || len(got) != 2 {
		t.Errorf("history is %v, %v", texts(got), err)
	}
	if r.Info.Method != "sdk_resume" || c.Skipped() != 4 {
		t.Errorf("%+v, skipped %d", r, c.Skipped())
	}
	if err := errors.Join(c.Append("r", 0, user("next")), c.Close()); err != nil {
		t.Fatal(err)
	}
	raw, _ := os.ReadFile(c.Path())
	if !strings.Contains(string(raw), `{"parentUuid":"6"`) {
		t.Errorf("the next line does not follow the last: %s", raw[len(body):])
	}
}

func TestCompactedConversationBeginsAtItsSummary(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "r0", "old", "old")
	c := h.open(h.Store, sess)
	f, err := os.OpenFile(c.Path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"uuid":"s","parentUuid":null,"type":"user","message":{"role":"user","content":"summary"}}` + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	h.turn(h.Store, sess, "r1", "new", "new") // with a memory that is now stale
	got, r, err := h.open(h.Store, sess).History(1000)
	if want := []string{"u:summary", "u:new", "a:new"}; err != nil || !cmp.Equal(texts(got), want) || r.Info.Method != "sdk_resume" {
		t.Errorf("history is %v, %+v, %v", texts(got), r, err)
	}
}

func TestMemoryNoticesAFileChangedOutside(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "r0", "yyy", "bbb")
	c := h.open(h.Store, sess)
	raw, _ := os.ReadFile(c.Path())
	changed := strings.Replace(string(raw), "yyy", "zzz", 1) // of the same length, and in no id
	if err := os.WriteFile(c.Path(), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(c.Path(), later, later); err != nil {
		t.Fatal(err)
	}
	got, r, err := h.open(h.Store, sess).History(1000)
	if err != nil || texts(got)[0] != "u:zzz" || r.Session.CacheHit {
		t.Errorf("history is %v, %+v, %v", texts(got), r.Session, err)
	}
}

// When memory is given back, a conversation that was used in the last two minutes stays,
// and the next turn of another finds all of it in the file.
func TestARestDropsConversationsThatWereNotUsedRecently(t *testing.T) {
	h := open(t)
	old, recent := h.resolve(chat(5, "c1")).Session, h.resolve(chat(5, "c2")).Session
	h.turn(h.Store, old, "r0", "a", "b")
	h.clock.Advance(time.Minute)
	h.turn(h.Store, recent, "r0", "c", "d")
	h.clock.Advance(time.Minute)
	h.Rest()
	if n := h.Evict(); n != 1 {
		t.Errorf("%d conversations in memory, want the recent one", n)
	}
	for _, kept := range []bool{false, true} {
		sess := old
		if kept {
			sess = recent
		}
		got, r, err := h.open(h.Store, sess).History(1000)
		if err != nil || len(got) != 2 || r.Session.CacheHit != kept || r.Session.LoadedFromDisk == kept {
			t.Errorf("history is %v, %+v, %v; in memory: want %v", texts(got), r.Session, err, kept)
		}
	}
	h.turn(h.Store, old, "r1", "e", "f")
	if got, _, err := h.open(h.Store, old).History(1000); err != nil || !cmp.Equal(texts(got), []string{"u:a", "a:b", "u:e", "a:f"}) {
		t.Errorf("after the next turn the history is %v, %v", texts(got), err)
	}
}

func TestMemoryIsGivenBackAfterHalfAnHourAndIsBounded(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "r0", "a", "b")
	if n := h.Evict(); n != 1 {
		t.Errorf("%d conversations in memory", n)
	}
	h.clock.Advance(30 * time.Minute)
	if n := h.Evict(); n != 0 {
		t.Errorf("%d conversations in memory after half an hour", n)
	}
	big := strings.Repeat("x", 1<<20)
	for i := range 40 {
		s := h.resolve(chat(5, fmt.Sprint("big", i))).Session
		h.turn(h.Store, s, "r", big, "ok")
	}
	if n := h.Evict(); n > 32 || n < 25 {
		t.Errorf("%d conversations of 1 MiB in 32 MiB of memory", n)
	}
	s := h.resolve(chat(5, "huge")).Session // larger than one conversation may keep
	h.turn(h.Store, s, "r", strings.Repeat(big, 5), "ok")
	h.turn(h.Store, s, "r2", "small", "ok")
	got, r, err := h.open(h.Store, s).History(2 << 20)
	if err != nil || len(got) != 4 || r.Info.Method != "sdk_resume" || !r.Session.LoadedFromDisk {
		t.Errorf("%d messages, %+v, %v", len(got), r.Session, err)
	}
}

func TestSnapshotOfAConversationStaysAsItWas(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "r0", "a", "b")
	c := h.open(h.Store, sess)
	first, _, _ := c.History(1000)
	if err := errors.Join(c.Append("r1", 0, user("c"))); err != nil {
		t.Fatal(err)
	}
	d := h.open(h.Store, sess) // a reader meanwhile
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	second, _, err := d.History(1000)
	if err != nil || len(first) != 2 || len(second) != 3 {
		t.Errorf("%d then %d messages, %v", len(first), len(second), err)
	}
}

func TestTranscriptIsFoundAfterTheVaultMoved(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "r0", "a", "b")
	sess.MessageCount = 2
	old := filepath.Dir(h.open(h.Store, sess).Path())
	if err := os.Rename(old, old+"-elsewhere"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Store{h.Store, h.another()} {
		got, _, err := h.open(s, sess).History(1000)
		if err != nil || len(got) != 2 {
			t.Errorf("%d messages, %v", len(got), err)
		}
	}
	if err := h.vault.Root().Mkdir("P", 0o700); err != nil {
		t.Fatal(err)
	}
	sess = session.Session{ID: uuid.NewString(), VaultRoot: "/old/vault", WorkingDirectory: "/old/vault/P"}
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Append("r", 0, user("x")), c.Close()); err != nil {
		t.Fatal(err)
	}
	if l := h.lines(c); l[0]["cwd"] != filepath.Join(h.vault.Path(), "P") {
		t.Errorf("cwd is %v", l[0]["cwd"])
	}
}

func TestProjectFolderThatLinksOutsideIsRefused(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	name, _ := h.vault.Transcript("", sess.ID)
	out := t.TempDir()
	dir := filepath.Join(h.vault.Path(), filepath.Dir(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o700), os.Symlink(out, dir)); err != nil {
		t.Fatal(err)
	}
	_, err := h.Store.Open(context.Background(), sess)
	if core.KindOf(err) != core.Denied {
		t.Errorf("got %v", err)
	}
	sess.ID = "../../../x"
	if _, err := h.Store.Open(context.Background(), sess); core.KindOf(err) != core.Invalid {
		t.Errorf("hostile id: %v", err)
	}
	if entries, _ := os.ReadDir(out); len(entries) != 0 {
		t.Errorf("outside holds %v", entries)
	}
}

func TestBlocksConvertToTheModelsBlocks(t *testing.T) {
	b := core.Block{Type: "tool_use", Text: "t", Signature: "s", ID: "i", Name: "n", Input: json.RawMessage("{}"), ToolUseID: "u", IsError: true}
	if got := core.Block(b); !cmp.Equal(got, b) {
		t.Errorf("%+v became %+v", b, got)
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			h := open(b)
			sess := h.resolve(chat(5, "c1")).Session
			for i := 0; b.Loop(); i++ {
				c := h.open(h.Store, sess)
				_, _, err := c.History(50_000)
				err = errors.Join(err, c.Append(fmt.Sprint("run-", i), 0, user("How do I bake bread?"), answer("With flour, water, salt and time.")))
				if sync {
					err = errors.Join(err, c.Sync())
				}
				if err := errors.Join(err, c.Close()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkHistory(b *testing.B) {
	for _, cold := range []bool{false, true} {
		b.Run(fmt.Sprintf("cold=%v", cold), func(b *testing.B) {
			h := open(b)
			sess := h.resolve(chat(5, "c1")).Session
			for i := range 500 {
				h.turn(h.Store, sess, fmt.Sprint("run-", i), strings.Repeat("question ", 20), strings.Repeat("answer ", 60))
			}
			for b.Loop() {
				s := h.Store
				if cold {
					s = session.New(session.Options{DB: h.db, Vault: h.vault, Clock: h.clock})
				}
				c := h.open(s, sess)
				if m, _, err := c.History(50_000); err != nil || len(m) == 0 {
					b.Fatal(len(m), err)
				}
				_ = c.Close()
			}
		})
	}
}

func FuzzHistory(f *testing.F) {
	f.Add(`{"uuid":"1","parentUuid":"1","type":"user","message":{"role":"user","content":"x"}}`, 100)
	f.Add(`{"uuid":"1","parentUuid":"2","type":"user","message":{"content":[{"type":"text"}]}}`+"\n"+
		`{"uuid":"2","parentUuid":"1","type":"assistant","message":{"id":"m","content":[{"type":"tool_result","content":[{}]}]}}`, 1)
	f.Add(`{"uuid":"1","type":"assistant","message":null}`+"\n"+`{"uuid":"1","type":"assistant","message":{"content":[]}}`, 0)
	h := open(f)
	sess := h.resolve(chat(5, "c1")).Session
	name, _ := h.vault.Transcript("", sess.ID)
	f.Fuzz(func(t *testing.T, body string, budget int) {
		if budget < 0 || budget > 1<<20 {
			budget = 1 << 20
		}
		if err := h.vault.WriteFileNoSync(name, []byte(body)); err != nil {
			t.Fatal(err)
		}
		c, err := h.Store.Open(context.Background(), sess)
		if err != nil {
			t.Fatal(err)
		}
		messages, _, err := c.History(budget)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range messages {
			if len(m.Blocks) == 0 || m.Role != "user" && m.Role != "assistant" || i == 0 && m.Role != "user" {
				t.Fatalf("message %d is %+v", i, m)
			}
		}
		if err := errors.Join(c.Append("run", 0, user("next")), c.Close()); err != nil {
			t.Fatal(err)
		}
		again, err := session.New(session.Options{DB: h.db, Vault: h.vault}).Open(context.Background(), sess)
		if err != nil {
			t.Fatal(err)
		}
		messages, _, err = again.History(1 << 20)
		if n := len(messages); err != nil || n == 0 || messages[n-1].Blocks[0].Text != "next" {
			t.Fatalf("the next message is not the last of %v, %v", texts(messages), err)
		}
	})
}

func TestTwoConversationsDoNotWriteIntoEachOthersMemory(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	for i := range 3 { // so that there is room behind the messages
		h.turn(h.Store, sess, fmt.Sprint("r", i), "a", "b")
	}
	one, two := h.open(h.Store, sess), h.open(h.Store, sess)
	err := errors.Join(one.Append("r2", 1, answer("b")), // kept already: opens, and writes nothing
		two.Append("r3", 0, user("two")), one.Append("r4", 0, user("one")))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := one.History(1000)
	second, _, _ := two.History(1000)
	if a, b := texts(first), texts(second); a[len(a)-1] != "u:one" || b[len(b)-1] != "u:two" {
		t.Errorf("one sees %v, two sees %v", a, b)
	}
	if err := errors.Join(one.Close(), two.Close()); err != nil {
		t.Fatal(err)
	}
	got, _, err := h.open(h.Store, sess).History(1000) // both are in the file
	if err != nil || len(h.lines(one)) != 8 || len(got) < 7 {
		t.Errorf("%v, %v", texts(got), err)
	}
}

// A mark at the end of what a compaction keeps does not hide the kept messages.
func TestWhatWasRefusedStaysOutAfterACompaction(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	err := errors.Join(c.Append("r1", 0, user("one"), answer("1")), c.Append("r2", 0, user("two"), answer("2")), c.Append("r3", 0, user("bad")),
		c.Refuse("r3", "refused"), c.Compact("SUMMARY", 3), c.Append("r4", 0, user("four"), answer("4")), c.Close())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*session.Store{"in memory": h.Store, "from the file": h.another()} {
		c := h.open(s, sess)
		got, _, err := c.History(5000)
		if want := []string{"u:two", "a:2", "u:four", "a:4"}; err != nil || len(got) != 5 || !slices.Equal(texts(got)[1:], want) {
			t.Errorf("%s: %q, %v", name, texts(got), err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func toolCall(id, name, input string) core.Block {
	return core.Block{Type: "tool_use", ID: id, Name: name, Input: json.RawMessage(input)}
}

// helpedTurn writes a turn whose Task has a helper that reads a file.
func (h *house) helpedTurn(sess session.Session, run string) {
	h.t.Helper()
	c := h.open(h.Store, sess)
	said := func(role string, b core.Block) transcript.Message {
		return transcript.Message{Role: role, Model: "m", Blocks: []core.Block{b}}
	}
	side := c.Side(run, "task-1")
	err := errors.Join(
		c.Append(run, 0, user("what is in the plan?"), said("assistant", toolCall("task-1", "Task", `{"prompt":"read it"}`))),
		side.Append(user("read it")),
		side.Append(said("assistant", toolCall("read-1", "Read", `{"file_path":"plan.md"}`))),
		side.Append(said("user", core.Block{Type: "tool_result", ToolUseID: "read-1", Text: "zebra " + strings.Repeat("x", 40<<10)})),
		side.Append(said("assistant", core.Block{Type: "text", Text: "It is about a giraffe."})),
		c.Append(run, 2, said("user", core.Block{Type: "tool_result", ToolUseID: "task-1", Text: "It is about a giraffe."}), answer("A giraffe.")),
		c.Sync(), c.Close())
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestWhatAHelperDidIsASideChain(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.helpedTurn(sess, "run-1")
	h.turn(h.Store, sess, "run-2", "thanks", "welcome")
	lines := h.lines(h.open(h.Store, sess))
	if len(lines) != 10 {
		t.Fatalf("%d lines", len(lines))
	}
	var main, side any
	for i, l := range lines {
		parent := &main
		if helper := i >= 2 && i < 6; l["isSidechain"] != helper || helper && l["parentToolUseID"] != "task-1" || !helper && l["parentToolUseID"] != nil {
			t.Errorf("line %d: %v", i, l)
		} else if helper {
			parent = &side
		}
		if l["parentUuid"] != *parent || l["requestId"] == nil {
			t.Errorf("line %d hangs behind %v, want %v", i, l["parentUuid"], *parent)
		}
		*parent = l["uuid"]
	}
	if raw, _ := json.Marshal(lines[4]); len(raw) > 20<<10 || !strings.Contains(string(raw), "left out") {
		t.Errorf("a long result takes %d bytes", len(raw))
	}
}

func TestWhatAHelperDidIsNotGivenToTheModelAgain(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.helpedTurn(sess, "run-1")
	for name, s := range map[string]*session.Store{"from memory": h.Store, "after a restart": h.another()} {
		c := h.open(s, sess)
		if n, err := c.HasRun("run-1"); n != 4 || err != nil {
			t.Errorf("%s: the run has %d lines, %v", name, n, err)
		}
		got, _, err := c.History(100_000)
		if err != nil || len(got) != 4 || strings.Contains(fmt.Sprint(got), "zebra") {
			t.Errorf("%s: %v, %v", name, texts(got), err)
		}
		_ = c.Close()
	}
	h.fill()
	for asked, want := range map[string]int{"giraffe": 1, "zebra": 0} {
		if found, _ := h.search(session.Filter{User: 5, Search: asked}); len(found) != want {
			t.Errorf("%q: %+v", asked, found)
		}
	}
}

func TestPeopleReadWhatAHelperDidWithItsCall(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.helpedTurn(sess, "run-1")
	page, err := h.Page(t.Context(), sess, transcript.PageQuery{Limit: 10})
	if err != nil || len(page.Messages) != 4 {
		t.Fatalf("%v, %v", texts(page.Messages), err)
	}
	did := page.Messages[1].Helpers["task-1"]
	if len(did) != 4 || did[0].Text() != "read it" || did[1].Blocks[0].Name != "Read" || did[3].Text() != "It is about a giraffe." {
		t.Errorf("%+v", did)
	}
	text, err := h.Export(t.Context(), sess)
	if want := "The helper used:\n\n- Read `{\"file_path\":\"plan.md\"}`\n"; err != nil || !strings.Contains(text, want) {
		t.Errorf("the export lacks %q: %s, %v", want, text, err)
	}
}

// A conversation of many helpers is read as one without: their lines, which the model is not given,
// take neither the reading nor its first messages, also where each turn begins with a restart.
func TestTheLinesOfAllHelpersOfAConversationAreBounded(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.turn(h.Store, sess, "run-0", "My cat is called Minka.", "A nice name.")
	did, name := strings.Repeat("x", 16<<10), ""
	for i := range 16 {
		s := h.Store
		if i%4 == 0 {
			s = h.another()
		}
		c, run := h.open(s, sess), fmt.Sprint("run-", i+1)
		if _, _, err := c.History(100_000); err != nil {
			t.Fatal(err)
		}
		call := transcript.Message{Role: "assistant", Model: "m", Blocks: []core.Block{toolCall("task-1", "Task", `{"prompt":"read it"}`)}}
		if err := c.Append(run, 0, user("and now?"), call); err != nil {
			t.Fatal(err)
		}
		side := c.Side(run, "task-1")
		for range 70 { // more than one helper may write
			if err := side.Append(user(did)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(c.Append(run, 2, transcript.Message{Role: "user", Blocks: []core.Block{{Type: "tool_result", ToolUseID: "task-1", Text: "done"}}}, answer("It is done.")), c.Sync(), c.Close()); err != nil {
			t.Fatal(err)
		}
		name = c.Path()
	}
	st, err := os.Stat(name)
	if err != nil || st.Size() > 6<<20 {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
	c := h.open(h.another(), sess)
	defer c.Close()
	got, _, err := c.History(100_000)
	if err != nil || len(got) != 2+16*4 || !strings.Contains(got[0].Text(), "Minka") {
		t.Errorf("after a restart the model is given %d messages, the first %q, %v", len(got), texts(got[:min(len(got), 1)]), err)
	}
	if lines := h.lines(c); !strings.Contains(fmt.Sprint(lines[len(lines)-3]), "the helpers of this conversation did more than is kept") {
		t.Errorf("no line says so: %v", lines[len(lines)-3])
	}
}

func TestTheLinesOfAHelperAreBounded(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	defer c.Close()
	if err := c.Append("run-1", 0, user("go")); err != nil {
		t.Fatal(err)
	}
	side := c.Side("run-1", "task-1")
	for range 200 {
		if err := side.Append(user(strings.Repeat("x", 100<<10))); err != nil {
			t.Fatal(err)
		}
	}
	st, err := os.Stat(c.Path())
	if lines := h.lines(c); err != nil || st.Size() > 1200<<10 || !strings.Contains(fmt.Sprint(lines[len(lines)-1]), "The rest is left out") {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
}
