package session_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/lines"
)

// transcript puts lines where the session's transcript is.
func (h *house) transcript(sess session.Session, lines ...string) {
	h.t.Helper()
	name, err := h.vault.Transcript("", sess.ID)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.vault.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n")); err != nil {
		h.t.Fatal(err)
	}
}

func TestMediaAreKeptInTheFormOfClaudeCode(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	failed := result("b", "half")
	failed.IsError = true
	all := []transcript.Message{
		said(core.Block{Type: "media", Media: []core.Media{picture, document}}, core.Block{Type: "text", Text: "look"}),
		call("a", "b"), said(result("a", "", picture), failed), call("c"), said(result("c", "the book", document)), answer("ok")}
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Append("r", 0, all...), c.Close()); err != nil {
		t.Fatal(err)
	}
	got, _, err := h.open(h.another(), sess).History(100_000)
	if d := cmp.Diff(all, got, cmpopts.IgnoreFields(transcript.Message{}, "UUID", "Earlier", "ProviderID", "Refused"), cmpopts.IgnoreFields(transcript.Message{}, "Run", "At")); d != "" || err != nil {
		t.Error(err, d)
	}
	raw, _ := os.ReadFile(c.Path())
	for _, form := range []string{
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgowMDAwSUhEUg=="}}`,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjcK"},"title":"book.pdf"}`,
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source"`,
		`{"type":"tool_result","tool_use_id":"b","content":"half","is_error":true}`,
		`{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"the book"},{"type":"document"`,
		`{"type":"thinking","thinking":"hm","signature":"fake-signature-1"}`,
	} {
		if !strings.Contains(string(raw), form) {
			t.Errorf("no %s in\n%s", form, raw)
		}
	}
}

func TestWhatNoOneCouldSendAgainIsKeptAsALineOfText(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	large := core.Media{Type: "image/png", Name: "large.png", Data: append([]byte(nil), append(picture.Data, make([]byte, 4<<20)...)...)}
	odd := core.Media{Type: "image/bmp", Name: "odd.bmp", Data: []byte("BM")}
	book := core.Media{Type: "application/pdf", Name: "a.pdf", Data: append([]byte("%PDF-1.7\n"), make([]byte, 6<<20)...)}
	c := h.open(h.Store, sess)
	err := c.Append("r", 0, said(core.Block{Type: "media", Media: []core.Media{large, odd, book, book}}))
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
	got, _, err := h.open(h.another(), sess).History(1_000_000)
	want := []string{`u:["large.png" (image/png, 4 MB) is left out: it is larger than 3.75 MB]`,
		`u:["odd.bmp" (image/bmp, 2 bytes) is left out: it is no picture or document that a model can read]`, "u:",
		`u:["a.pdf" (application/pdf, 6 MB) is left out: one message holds at most 9 MB]`}
	if d := cmp.Diff(want, texts(got)); d != "" || err != nil || len(got[0].Blocks[2].Media) != 1 {
		t.Error(err, d)
	}
}

func TestMediaInMemoryAreBoundedTheNewestStay(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	book := core.Media{Type: "application/pdf", Name: "a.pdf", Data: append([]byte("%PDF-1.7\n"), make([]byte, 3<<20)...)}
	c := h.open(h.Store, sess)
	for n := range 4 {
		if err := c.Append(fmt.Sprint("r", n), 0, said(core.Block{Type: "media", Media: []core.Media{book}}, core.Block{Type: "text", Text: fmt.Sprint(n)}), answer("ok")); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	got, _, err := h.open(h.another(), sess).History(5_000_000)
	total := 0
	for _, m := range got {
		for _, b := range m.Blocks {
			for _, x := range b.Media {
				total += len(x.Data)
			}
		}
	}
	if err != nil || len(got) != 8 || total > 8<<20 || total < 6<<20 || len(got[6].Blocks[0].Media) != 1 ||
		got[0].Blocks[0].Text != `["a.pdf" (application/pdf, 3 MB) is left out: it is from earlier in the conversation]` {
		t.Errorf("%d messages, %d bytes of media, %v: %v", len(got), total, err, texts(got))
	}
	if n := h.Evict(); n > 4 {
		t.Errorf("%d conversations in memory", n)
	}
}

// Seen by running Claude Code 2.1.197: the results of parallel calls hang each
// behind its own call, in the order in which the tools ended.
func TestParallelCallsOfClaudeCodeKeepTheirResults(t *testing.T) {
	line := func(id, parent, kind, message string) string {
		return fmt.Sprintf(`{"uuid":%q,"parentUuid":%q,"type":%q,"isSidechain":false,"message":%s}`, id, parent, kind, message)
	}
	use := func(id string) string {
		return fmt.Sprintf(`{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":%q,"name":"Read","input":{}}]}`, id)
	}
	res := func(id string) string {
		return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"of %s"}]}`, id, id)
	}
	for _, order := range [][]string{{"1", "2", "3"}, {"3", "1", "2"}, {"2", "3", "1"}} {
		h := open(t)
		sess := h.resolve(chat(5, "c1")).Session
		lines := []string{`{"uuid":"u","parentUuid":null,"type":"user","isSidechain":false,"message":{"role":"user","content":"go"}}`,
			line("t1", "u", "assistant", use("1")), line("t2", "t1", "assistant", use("2")), line("t3", "t2", "assistant", use("3"))}
		for _, n := range order {
			lines = append(lines, line("r"+n, "t"+n, "user", res(n)))
		}
		lines = append(lines, line("e", "r"+order[2], "assistant", `{"id":"m2","role":"assistant","content":[{"type":"text","text":"done"}]}`))
		h.transcript(sess, lines...)
		got, _, err := h.open(h.Store, sess).History(1000)
		if err == nil {
			err = paired(got)
		}
		if want := []string{"u:go", "a:", "a:", "a:", "u:of 1", "u:of 2", "u:of 3", "a:done"}; err != nil || !cmp.Equal(texts(got), want) {
			t.Errorf("results in the order %v: %v, %v", order, texts(got), err)
		}
	}
}

func TestThinkingIsReplayedToItsOwnFamilyOnly(t *testing.T) {
	thought := func(model string) transcript.Message {
		return transcript.Message{Role: "assistant", Model: model, Blocks: []core.Block{{Type: "thinking", Text: model, Signature: "s"}, {Type: "text", Text: "x"}}}
	}
	all := []transcript.Message{user("q"), thought("claude-opus-4-8"), thought("openai/gpt-5"), thought("ollama/qwen3"),
		{Role: "assistant", Model: "openai/gpt-5", Blocks: []core.Block{{Type: "thinking", Text: "only"}}}}
	for model, want := range map[string]string{
		"anthropic/claude-sonnet-5": "u:q a:claude-opus-4-8 a:x a:x a:x", "openai/gpt-4o": "u:q a:x a:openai/gpt-5 a:x a:x a:only", "local/quote": "u:q a:x a:x a:x",
		"openrouter/anthropic/claude-opus-5": "u:q a:claude-opus-4-8 a:x a:x a:x"} {
		if got := strings.Join(texts(lines.ForModel(all, model)), " "); got != want {
			t.Errorf("%s: %s", model, got)
		}
	}
	if len(all[1].Blocks) != 2 {
		t.Error("the history itself has changed")
	}
}

func TestALongConversationContinuesFromItsSummary(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	words := strings.Repeat("w", 1000)
	c := h.open(h.Store, sess)
	if _, need, err := c.NeedsCompaction(1000); need || err != nil {
		t.Error("an empty conversation is too long", err)
	}
	for n := range 10 {
		if err := c.Append(fmt.Sprint("r", n), 0, user(fmt.Sprint("q", n)), answer(words)); err != nil {
			t.Fatal(err)
		}
	}
	if _, need, err := c.NeedsCompaction(4000); need || err != nil {
		t.Error("compaction below 80 %", err)
	}
	what, need, err := c.NeedsCompaction(3000)
	if !need || err != nil || what.Keep != 8 || len(what.Messages) != 12 || what.Messages[0].Blocks[0].Text != "q0" || what.Tokens < 2500 {
		t.Fatalf("%t, %v, keep %d of %d, %d tokens", need, err, what.Keep, len(what.Messages), what.Tokens)
	}
	if err := c.Compact("much was said", what.Keep); err != nil {
		t.Fatal(err)
	}
	check := func(name string, c *transcript.Conversation, more ...string) {
		t.Helper()
		got, r, err := c.History(3000)
		want := append([]string{"u:This is a summary of the earlier part of the conversation, which was longer than fits:\n\nmuch was said",
			"u:q6", "a:" + words, "u:q7", "a:" + words, "u:q8", "a:" + words, "u:q9", "a:" + words}, more...)
		if d := cmp.Diff(want, texts(got)); d != "" || err != nil || !got[0].Summary || r.Info.Method != "sdk_resume" || !r.Session.SDKSessionValid {
			t.Errorf("%s: %v, %+v %s", name, err, r, d)
		}
		if _, need, _ := c.NeedsCompaction(3000); need {
			t.Error(name, "still too long")
		}
	}
	check("at once", c)
	if n, err := c.HasRun("r9"); n != 2 || err != nil {
		t.Errorf("a kept run has %d lines, %v", n, err)
	}
	if err := errors.Join(c.Append("r10", 0, user("next"), answer("last")), c.Close()); err != nil {
		t.Fatal(err)
	}
	check("from memory", h.open(h.Store, sess), "u:next", "a:last")
	check("after a restart", h.open(h.another(), sess), "u:next", "a:last")
	c = h.open(h.another(), sess)
	if n, err := c.HasRun("r1"); n != 2 || err != nil {
		t.Errorf("a run in front of the summary has %d lines, %v", n, err)
	}
	got, r, err := c.History(700) // a smaller model: the summary stays in front
	if err != nil || !got[0].Summary || len(got) >= 11 || r.Info.Method != "context_injection" || r.Session.MessagesInjected != len(got) {
		t.Errorf("%v, %+v, %v", texts(got), r, err)
	}
	_ = c.Close()
	lines := h.lines(c)
	b, s := lines[20], lines[21]
	meta, _ := b["compactMetadata"].(map[string]any)
	kept, _ := meta["preservedMessages"].(map[string]any)
	if b["subtype"] != "compact_boundary" || b["parentUuid"] != nil || b["logicalParentUuid"] != lines[19]["uuid"] || s["parentUuid"] != b["uuid"] ||
		s["isCompactSummary"] != true || kept["anchorUuid"] != s["uuid"] || len(kept["uuids"].([]any)) != 8 || lines[22]["parentUuid"] != lines[19]["uuid"] {
		t.Errorf("%v\n%v", b, s)
	}
}

func TestOneLongTurnIsSummedUpBetweenItsRounds(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	if err := c.Append("r", 0, user("go"), call("a"), said(result("a", strings.Repeat("r", 9000))), call("b"), said(result("b", "B"))); err != nil {
		t.Fatal(err)
	}
	what, need, err := c.NeedsCompaction(2000)
	if !need || err != nil || what.Keep != 0 || len(what.Messages) != 5 {
		t.Fatalf("%t, %v, %+v", need, err, what)
	}
	if err := errors.Join(c.Compact("we are at it", 0), c.Append("r", 4, said(result("b", "B")))); err != nil { // again: it is there
		t.Fatal(err)
	}
	if err := errors.Join(c.Append("r", 5, answer("done")), c.Close()); err != nil {
		t.Fatal(err)
	}
	c = h.open(h.another(), sess)
	got, _, err := c.History(2000)
	if n, herr := c.HasRun("r"); n != 6 || len(got) != 2 || got[1].Blocks[0].Text != "done" || errors.Join(err, herr) != nil {
		t.Errorf("%d lines, %v, %v", n, texts(got), errors.Join(err, herr))
	}
}

// Seen by running Claude Code 2.1.197 with /compact: what stays is in front of
// the boundary and named by it; what follows hangs behind what stays.
func TestACompactionOfClaudeCodeIsFollowed(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	lines := []string{
		`{"uuid":"1","parentUuid":null,"type":"user","message":{"role":"user","content":"old"}}`,
		`{"uuid":"2","parentUuid":"1","type":"assistant","message":{"id":"a","role":"assistant","content":[{"type":"text","text":"old answer"}]}}`,
		`{"uuid":"3","parentUuid":"2","type":"user","message":{"role":"user","content":"kept"}}`,
		`{"uuid":"4","parentUuid":"3","type":"assistant","message":{"id":"b","role":"assistant","content":[{"type":"text","text":"kept answer"}]}}`,
		`{"uuid":"B","parentUuid":null,"logicalParentUuid":"4","type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":9,"preservedMessages":{"anchorUuid":"S","uuids":["3","4"]}}}`,
		`{"uuid":"S","parentUuid":"B","type":"user","isCompactSummary":true,"isVisibleInTranscriptOnly":true,"message":{"role":"user","content":"summary"}}`,
		`{"uuid":"5","parentUuid":"4","type":"user","message":{"role":"user","content":"new"}}`,
	}
	h.transcript(sess, lines...)
	got, r, err := h.open(h.Store, sess).History(1000)
	if want := []string{"u:summary", "u:kept", "a:kept answer", "u:new"}; err != nil || !cmp.Equal(texts(got), want) || !got[0].Summary || r.Info.Method != "sdk_resume" {
		t.Errorf("%v, %+v, %v", texts(got), r.Info, err)
	}
	h.transcript(sess, lines[:5]...) // a crash between the two lines: nothing was summed up
	got, _, err = h.open(h.another(), sess).History(1000)
	if want := []string{"u:old", "a:old answer", "u:kept", "a:kept answer"}; err != nil || !cmp.Equal(texts(got), want) {
		t.Errorf("torn: %v, %v", texts(got), err)
	}
	lines[4] = `{"uuid":"B","parentUuid":null,"type":"system","subtype":"compact_boundary","compactMetadata":{"trigger":"auto","preTokens":9}}`
	lines[6] = `{"uuid":"5","parentUuid":"S","type":"user","message":{"role":"user","content":"new"}}`
	h.transcript(sess, lines...) // as older versions write it
	got, _, err = h.open(h.another(), sess).History(1000)
	if want := []string{"u:summary", "u:new"}; err != nil || !cmp.Equal(texts(got), want) {
		t.Errorf("nothing kept: %v, %v", texts(got), err)
	}
}

// wide is a transcript of about 50 MB, its last turns as large as usual.
func (h *house) wide(sess session.Session) {
	h.t.Helper()
	c := h.open(h.Store, sess)
	text := strings.Repeat("lorem ipsum ", 400)
	var batch []transcript.Message
	for n := range 5000 {
		batch = append(batch, user(text), answer(text))
		if len(batch) == 1000 {
			if err := c.Append(fmt.Sprint("r", n), 0, batch...); err != nil {
				h.t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	if err := c.Close(); err != nil {
		h.t.Fatal(err)
	}
	st, err := os.Stat(c.Path())
	if err != nil || st.Size() < 48<<20 {
		h.t.Fatal(st.Size(), err)
	}
}

func TestALargeTranscriptIsOpenedByItsTail(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	h.wide(sess)
	best, least := time.Hour, uint64(1<<40)
	tries := 15 // the best of them: others use this machine too
	if raceEnabled {
		tries = 3 // of what is allocated alone
	}
	for range tries {
		var before, after runtime.MemStats
		s := h.another()
		runtime.ReadMemStats(&before)
		began := time.Now()
		got, r, err := h.open(s, sess).History(50_000)
		best = min(best, time.Since(began))
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
		if err != nil || len(got) < 20 || r.Info.Method != "context_injection" {
			t.Fatal(len(got), r, err)
		}
	}
	if least > 20<<20 {
		t.Errorf("%d bytes were allocated", least)
	}
	if best > 50*time.Millisecond && !raceEnabled {
		t.Errorf("it took %v", best)
	}
	t.Logf("%v, %d bytes", best, least)
}

func BenchmarkOpenALargeTranscript(b *testing.B) {
	h := open(b)
	sess := h.resolve(chat(5, "c1")).Session
	h.wide(sess)
	b.ReportAllocs()
	for b.Loop() {
		if got, _, err := h.open(h.another(), sess).History(50_000); err != nil || len(got) == 0 {
			b.Fatal(len(got), err)
		}
	}
}
