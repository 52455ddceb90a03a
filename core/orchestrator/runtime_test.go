package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
)

// other is a runtime played by the test; it keeps a transcript as Claude Code does.
type other struct {
	h       *house
	refuses string
	works   []*orchestrator.Work
	left    []string
	last    string
	answer  func(ctx context.Context, w *orchestrator.Work) orchestrator.Answer
}

func (o *other) Answers(model string) bool           { return strings.HasPrefix(model, "other/") }
func (o *other) Refuses(t *orchestrator.Turn) string { return o.refuses }
func (o *other) Leave(session string)                { o.left = append(o.left, session) }
func (o *other) Answer(ctx context.Context, w *orchestrator.Work) (orchestrator.Answer, error) {
	o.works = append(o.works, w)
	return o.answer(ctx, w), nil
}

// keep writes a line of the transcript.
func (o *other) keep(w *orchestrator.Work, kind, id string, message any) {
	o.h.t.Helper()
	line := map[string]any{"type": kind, "uuid": id, "message": message, "sessionId": w.Turn.Session.ID, "cwd": w.Dir.Path, "version": "9.9.9", "timestamp": "2026-01-02T03:04:05Z"}
	if line["parentUuid"] = o.last; o.last == "" {
		line["parentUuid"] = nil
	}
	o.last = id
	b, err := json.Marshal(line)
	if err != nil {
		o.h.t.Fatal(err)
	}
	dir := filepath.Join(o.h.dir, ".claude", "projects", vault.ProjectFolder(w.Dir.Path))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		o.h.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, w.Turn.Session.ID+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		o.h.t.Fatal(err)
	}
	_, err = f.Write(append(b, '\n'))
	if err := f.Close(); err != nil {
		o.h.t.Fatal(err)
	}
	if err != nil {
		o.h.t.Fatal(err)
	}
}

func (o *other) asked(w *orchestrator.Work) {
	o.keep(w, "user", w.Line, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": heard(w)}}})
}

func (o *other) says(w *orchestrator.Work, text, stop string, call ...any) {
	content := append([]any{map[string]any{"type": "text", "text": text}}, call...)
	o.keep(w, "assistant", uuid.NewString(), map[string]any{"id": uuid.NewString(), "role": "assistant", "model": "claude-x", "content": content, "stop_reason": stop})
}

func called(id, name, input string) any {
	return map[string]any{"type": "tool_use", "id": id, "name": name, "input": json.RawMessage(input)}
}

// heard is what a runtime is told.
func heard(w *orchestrator.Work) string {
	var parts []string
	for _, b := range w.Said {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "|")
}

// well answers with text.
func (o *other) well(text string) func(context.Context, *orchestrator.Work) orchestrator.Answer {
	return func(_ context.Context, w *orchestrator.Work) orchestrator.Answer {
		o.asked(w)
		w.Emit(core.Init{Runtime: "Other 9.9.9"})
		w.Emit(core.ModelChosen{Model: w.Model})
		w.Emit(core.TextDelta{Content: text})
		o.says(w, text, "end_turn")
		cost := int64(1234)
		return orchestrator.Answer{Text: text, Said: 1, Usage: &core.Tokens{Input: 10, Output: 2}, MicroUSD: &cost}
	}
}

func elsewhere(t *testing.T, limits orchestrator.Limits) (*house, *other) {
	h := open(t, limits)
	o := &other{h: h}
	options := h.options
	options.Runtime = o
	h.Orchestrator = orchestrator.New(options)
	return h, o
}

// owners is the owner's turn over the API, with a model.
func (h *house) owners(run, id, model, text string) *orchestrator.Turn {
	h.t.Helper()
	row := core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: id}, Kind: core.KindMessage, Text: text, At: h.clock.Now(), Turn: &core.Options{Model: model}}
	t := &orchestrator.Turn{Run: run, Rows: []core.Inbound{row}}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return h.Prepare(ctx, tx, t, session.Ref{Address: row.Address, User: 1, Admin: true, Trust: core.Full, Options: row.Turn})
	})
	return t
}

func (h *house) ended(t *orchestrator.Turn) (orchestrator.Result, []string) {
	h.t.Helper()
	var events []string
	res, err := h.Run(h.t.Context(), t, func(e core.Event) {
		b, err := core.EncodeEvent(e)
		if err != nil {
			h.t.Error(err)
		}
		events = append(events, e.EventType()+" "+string(b))
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.tx(res.Write)
	return res, events
}

func TestARuntimeAnswersTheTurnsThatAreItsOwn(t *testing.T) {
	h, o := elsewhere(t, orchestrator.Limits{})
	o.answer = o.well("Hello from elsewhere")
	id := uuid.NewString()
	res, events := h.ended(h.owners("r1", id, "other/x", "hi"))
	if res.State != "done" || res.Response != "Hello from elsewhere" {
		t.Fatalf("%+v", res)
	}
	var kinds []string
	for _, e := range events {
		kind, _, _ := strings.Cut(e, " ")
		kinds = append(kinds, kind)
	}
	if want := []string{"session", "user_message", "prompt_metadata", "init", "model", "text"}; !slices.Equal(kinds, want) {
		t.Errorf("%v", kinds)
	}
	if w := o.works[0]; heard(w) != "hi" || w.Line != transcript.LineID("r1", 0) || w.Resume || w.Model != "other/x" || w.System == "" || w.Replace {
		t.Errorf("%+v", w)
	}
	if lines := h.transcript(); len(lines) != 2 {
		t.Errorf("the transcript was written to: %v", lines)
	}
	var row struct {
		Count int    `db:"message_count"`
		Title string `db:"title"`
		Model string `db:"model"`
	}
	if err := h.db.Get(t.Context(), &row, `SELECT message_count, title, model FROM sessions WHERE id = $1`, id); err != nil || row.Count != 2 || row.Title != "hi" || row.Model != "other/x" {
		t.Errorf("%+v, %v", row, err)
	}
	totals, err := usage.New(nil, usage.Budgets{}).Totals(t.Context(), h.db, time.Time{})
	if err != nil || len(totals) != 1 || totals[0].Model != "other/x" || totals[0].Input != 10 || totals[0].MicroUSD != 1234 {
		t.Errorf("%+v, %v", totals, err)
	}
}

// One session, the loop and the runtime in turn: each sees what the other said.
func TestALoopAndARuntimeContinueWithEachOthersSession(t *testing.T) {
	h, o := elsewhere(t, orchestrator.Limits{})
	h.model.reply = says("from the loop")
	id := uuid.NewString()
	h.ended(h.owners("r1", id, "", "first"))
	o.answer = func(ctx context.Context, w *orchestrator.Work) orchestrator.Answer {
		o.last = transcript.LineID("r1", 1)
		return o.well("from elsewhere")(ctx, w)
	}
	h.ended(h.owners("r2", id, "other/x", "second"))
	if !o.works[0].Resume {
		t.Error("the runtime is not told that there is a transcript")
	}
	h.ended(h.owners("r3", id, "", "third"))
	var got []string
	for _, m := range h.model.calls[len(h.model.calls)-1].Messages {
		got = append(got, m.Blocks[0].Text)
	}
	if want := []string{"first", "from the loop", "second", "from elsewhere", "third"}; !slices.Equal(got, want) {
		t.Errorf("the loop asks with %q", got)
	}
	if want := []string{id, id}; !slices.Equal(o.left, want) {
		t.Errorf("left: %v", o.left)
	}
}

func TestATurnThatIsNotForTheRuntimeIsRefusedInPlainWords(t *testing.T) {
	h, o := elsewhere(t, orchestrator.Limits{})
	o.refuses = "The owner only."
	res, _ := h.ended(h.owners("r1", uuid.NewString(), "other/x", "hi"))
	if f, ok := res.Terminal.(core.Failed); !ok || f.Message != "The owner only." || len(o.works) != 0 {
		t.Errorf("%+v", res.Terminal)
	}
	// An agent's wish is not the sender's: the configured model answers.
	h.model.reply = says("instead")
	turn := h.owners("r2", uuid.NewString(), "", "hi")
	turn.Role.Model = "other/x"
	res, events := h.ended(turn)
	if res.Response != "instead" || !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "warning") && strings.Contains(e, "The owner only.") }) {
		t.Errorf("%+v, %v", res, events)
	}
	o.refuses, o.answer = "", o.well("for you")
	turn = h.owners("r3", uuid.NewString(), "", "hi")
	turn.Role.Model = "other/x"
	if res, _ = h.ended(turn); res.Response != "for you" {
		t.Errorf("%+v", res)
	}
}

// An attempt that was cut leaves a transcript; the next one reads there how far
// it came, and the message is not handed over a second time.
func TestARuntimeIsNotAskedTwice(t *testing.T) {
	for _, c := range []struct {
		name   string
		left   func(o *other, w *orchestrator.Work)
		chat   bool
		second string // what the second attempt tells the runtime; "": it is not asked
		reply  string
	}{
		{"before it was asked", func(*other, *orchestrator.Work) {}, false, "hi", "at last"},
		{"with the answer", func(o *other, w *orchestrator.Work) { o.asked(w); o.says(w, "I said it", "end_turn") }, false, "", "I said it"},
		{"before a word", func(o *other, w *orchestrator.Work) { o.asked(w) }, false, "restarted", "at last"},
		{"between two rounds", func(o *other, w *orchestrator.Work) { o.asked(w); o.says(w, "let me see", "tool_use") }, true, "restarted", "at last"},
		{"while it looked", func(o *other, w *orchestrator.Work) {
			o.asked(w)
			o.says(w, "", "tool_use", called("c1", "Read", `{"file_path":"a"}`))
		}, true, "restarted", "at last"},
		{"in a call with effects, over the API", func(o *other, w *orchestrator.Work) {
			o.asked(w)
			o.says(w, "", "tool_use", called("c1", "Write", `{"file_path":"a"}`))
		}, false, "restarted", "at last"},
		{"in a call with effects, in a chat", func(o *other, w *orchestrator.Work) {
			o.asked(w)
			o.says(w, "", "tool_use", called("c1", "Write", `{"file_path":"a"}`))
		}, true, "", "I was interrupted during Write a. Its outcome is unknown. Shall I go on?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, o := elsewhere(t, orchestrator.Limits{})
			id := uuid.NewString()
			turn := func() *orchestrator.Turn {
				turn := h.owners("r1", id, "other/x", "hi")
				if c.chat {
					turn.Rows[0].Turn, turn.Role.Model = nil, "other/x"
				}
				return turn
			}
			ctx, cut := context.WithCancelCause(t.Context())
			stop := fmt.Errorf("the gateway stops")
			o.answer = func(_ context.Context, w *orchestrator.Work) orchestrator.Answer {
				c.left(o, w)
				cut(stop)
				return orchestrator.Answer{}
			}
			if _, err := h.Run(ctx, turn(), func(core.Event) {}); err != stop {
				t.Fatal(err)
			}
			o.works, o.answer = nil, o.well("at last")
			res, _ := h.ended(turn())
			if res.Response != c.reply {
				t.Errorf("%q, want %q", res.Response, c.reply)
			}
			switch {
			case c.second == "" && len(o.works) > 0:
				t.Errorf("it was asked again: %q", heard(o.works[0]))
			case c.second != "" && (len(o.works) != 1 || !strings.Contains(heard(o.works[0]), c.second)):
				t.Errorf("%+v", o.works)
			}
			if asks := strings.HasPrefix(c.reply, "I was"); asks != (len(res.Buttons) == 2) {
				t.Errorf("buttons %v", res.Buttons)
			}
		})
	}
}

// Claude Code that is killed before it writes the message leaves a file that it
// neither resumes nor lets be made anew.
func TestATranscriptWithoutAMessageIsNotInARuntimesWay(t *testing.T) {
	h, o := elsewhere(t, orchestrator.Limits{})
	o.answer = o.well("hello")
	id := uuid.NewString()
	name, err := h.vault.Transcript("", id)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"type":"queue-operation","operation":"enqueue"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if res, _ := h.ended(h.owners("r1", id, "other/x", "hi")); res.State != "done" || len(o.works) != 1 || o.works[0].Resume {
		t.Errorf("%+v, %+v", res, o.works)
	}
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "queue-operation") {
		t.Errorf("%s, %v", b, err)
	}
}

func TestARuntimeThatIsSilentIsStopped(t *testing.T) {
	h, o := elsewhere(t, orchestrator.Limits{Silence: time.Minute})
	o.answer = func(ctx context.Context, w *orchestrator.Work) orchestrator.Answer {
		w.Busy(1)
		h.clock.AwaitWaiters(1)
		h.clock.Advance(2 * time.Minute) // a tool at work is no silence
		h.clock.AwaitWaiters(1)
		w.Busy(-1)
		w.Heard()
		h.clock.Advance(time.Minute)
		<-ctx.Done()
		return orchestrator.Answer{Text: "so far"}
	}
	res, _ := h.ended(h.owners("r1", uuid.NewString(), "other/x", "hi"))
	if f, ok := res.Terminal.(core.Failed); !ok || f.Code != "silence" || res.Response != "so far" {
		t.Errorf("%+v", res)
	}
}
