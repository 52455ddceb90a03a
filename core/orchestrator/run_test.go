package orchestrator_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/ask"
	"gatehouse/core/coretest"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/orchestrator/incoming"
	"gatehouse/core/permission"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
	"gatehouse/core/tool"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A model is played by the test.
type model struct {
	name   string // "test/model" when empty
	priced string // as another one; "": as itself
	window int
	calls  []*llm.Request
	reply  func(ctx context.Context, yield func(llm.Delta, error) bool)
}

func (m *model) About() llm.About {
	return llm.About{Name: cmp.Or(m.name, "test/model"), PricedAs: m.priced, Tools: true, Window: m.window}
}

func (m *model) Reply(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	m.calls = append(m.calls, req)
	return func(yield func(llm.Delta, error) bool) { m.reply(ctx, yield) }
}

// A house is an orchestrator over real files and a still clock.
type house struct {
	t        *testing.T
	dir      string
	clock    *coretest.Clock
	db       *store.DB
	sessions *session.Store
	vault    *vault.Vault
	agents   *agent.Agents
	model    *model
	tools    []tool.Tool // none: the model is offered none
	deny     map[string]string
	choices  []ask.Ask
	chain    llm.Model   // of with; nil: model
	lost     []usage.Row // spent by runs without a Result
	options  orchestrator.Options
	*orchestrator.Orchestrator
}

func (h *house) equip(_ context.Context, t *orchestrator.Turn, dir vault.Dir, _ agent.Agent) (*orchestrator.Kit, error) {
	yes := func(string) bool { return true }
	return &orchestrator.Kit{Tools: slices.Clone(h.tools), Profile: permission.Profile{User: t.User, Trust: t.Trust, Run: t.Run},
		Turn: &tool.Turn{User: t.User, Trust: t.Trust, Run: t.Run, Vault: h.vault, Dir: dir, MayRead: yes, MayWrite: yes}}, nil
}

func (h *house) Allow(_ context.Context, _ permission.Profile, t tool.Tool, _ *tool.Call, _ func(core.Event), waiting func(bool)) (permission.Decision, error) {
	waiting(true)
	waiting(false)
	if why, ok := h.deny[t.Name]; ok {
		return permission.Decision{Verdict: permission.Deny, Text: why}, nil
	}
	return permission.Decision{Verdict: permission.Allow}, nil
}

func (h *house) Ask(context.Context, permission.Profile, json.RawMessage, func(core.Event), func(bool)) (json.RawMessage, error) {
	return json.RawMessage(`{"Which colour?":"blue"}`), nil
}

func open(t *testing.T, limits orchestrator.Limits) *house {
	t.Helper()
	h := &house{t: t, dir: filepath.Join(t.TempDir(), "vault"), clock: coretest.NewClock(time.Time{}), model: &model{}}
	v, err := vault.Open(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	h.db = storetest.Open(t, h.clock)
	h.sessions = session.New(session.Options{DB: h.db, Vault: v, Clock: h.clock})
	t.Cleanup(func() { _ = h.sessions.Close() })
	h.vault, h.agents = v, agent.New(v, agent.Options{Base: agent.Default("vault", "")})
	h.options = orchestrator.Options{
		Spend: func(_ context.Context, rows []usage.Row) error { h.lost = append(h.lost, rows...); return nil },
		Equip: h.equip, Guard: h, Choose: func(_ context.Context, _ *store.Tx, a ask.Ask) error {
			h.choices = append(h.choices, a)
			return nil
		},
		Clock: h.clock, Sessions: h.sessions, Agents: h.agents, Usage: usage.New(nil, usage.Budgets{}), Incoming: incoming.Sources{Files: v.FS()},
		Model:   func(string, bool) (llm.Model, error) { return h.model, nil },
		Cost:    func(string, core.Tokens) (int64, bool) { return 0, false },
		MayRead: func(core.Trust, int64, string) bool { return false },
		Limits:  limits,
	}
	h.Orchestrator = orchestrator.New(h.options)
	return h
}

// turn prepares one of a person in a direct chat.
func (h *house) turn(run string, attempt int, text string) *orchestrator.Turn {
	h.t.Helper()
	row := core.Inbound{Address: core.Address{Bot: "b", Chat: "c"}, Kind: core.KindMessage, From: core.Peer{Platform: "p", ID: "7", Name: "Ada"}, Text: text, At: h.clock.Now()}
	t := &orchestrator.Turn{Run: run, Attempt: attempt, Rows: []core.Inbound{row}}
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		return h.Prepare(ctx, tx, t, session.Ref{Address: row.Address, User: 2, Trust: core.Sandboxed})
	})
	return t
}

func (h *house) tx(f func(context.Context, *store.Tx) error) {
	h.t.Helper()
	if err := h.db.Tx(h.t.Context(), func(tx *store.Tx) error { return f(h.t.Context(), tx) }); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) transcript() (lines []string) {
	h.t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, ".claude", "projects", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		h.t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, `"type":"user"`) || strings.Contains(line, `"type":"assistant"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

// background runs t and returns how it ended.
func (h *house) background(ctx context.Context, t *orchestrator.Turn) (end func() (orchestrator.Result, error)) {
	var res orchestrator.Result
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		res, err = h.Run(ctx, t, func(core.Event) {})
	}()
	return func() (orchestrator.Result, error) {
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			h.t.Fatal("the run does not end")
		}
		return res, err
	}
}

func says(text string) func(context.Context, func(llm.Delta, error) bool) {
	return func(_ context.Context, yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Text: text}, nil) && yield(llm.Delta{Stop: "end"}, nil)
	}
}

func TestASilentModelIsGivenUpAtTheLimitAndNotBefore(t *testing.T) {
	h := open(t, orchestrator.Limits{Silence: 5 * time.Minute})
	spoke := make(chan struct{})
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		if yield(llm.Delta{Text: "Well"}, nil) {
			close(spoke)
			<-ctx.Done()
			yield(llm.Delta{}, ctx.Err())
		}
	}
	end := h.background(t.Context(), h.turn("r1", 1, "hello"))
	within(t, spoke)
	h.clock.AwaitWaiters(1)
	h.clock.Advance(5*time.Minute - time.Second)
	h.clock.AwaitWaiters(1)
	h.clock.Advance(2 * time.Second)
	res, err := end()
	failed, ok := res.Terminal.(core.Failed)
	if err != nil || !ok || failed.Code != "silence" || !failed.CanRetry || res.Response != "Well" {
		t.Errorf("%+v %v", res, err)
	}
}

// A model that never stops talking is stopped by the time of a whole run.
func TestATalkativeModelIsStoppedAtTheTimeOfARun(t *testing.T) {
	h := open(t, orchestrator.Limits{Silence: 5 * time.Minute, RunTime: 10 * time.Minute})
	spoke, more := make(chan struct{}), make(chan struct{})
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		for yield(llm.Delta{Text: "and "}, nil) {
			select {
			case spoke <- struct{}{}:
			case <-ctx.Done():
			}
			select {
			case <-more:
			case <-ctx.Done():
				yield(llm.Delta{}, ctx.Err())
				return
			}
		}
	}
	end := h.background(t.Context(), h.turn("r1", 1, "hello"))
	for minutes := 2; ; minutes += 2 { // never silent for five, and ten are too many
		<-spoke
		h.clock.AwaitWaiters(1)
		h.clock.Advance(2 * time.Minute)
		if minutes == 10 {
			break
		}
		more <- struct{}{}
	}
	res, err := end()
	if failed, ok := res.Terminal.(core.Failed); err != nil || !ok || failed.Code != "timeout" || failed.CanRetry {
		t.Errorf("%+v %v", res, err)
	}
}

// An answer that was written to the transcript before the gateway died is
// given, not asked for again, and stands there once.
func TestAnAnswerThatIsInTheTranscriptIsNotAskedForAgain(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("The answer.")
	if res, err := h.Run(t.Context(), h.turn("r1", 1, "the question"), func(core.Event) {}); err != nil || res.Response != "The answer." {
		t.Fatalf("%+v %v", res, err)
	} // and here, before Write, the process ends
	var events []string
	res, err := h.Run(t.Context(), h.turn("r1", 2, "the question"), func(e core.Event) { events = append(events, e.EventType()) })
	if _, ok := res.Terminal.(core.Done); err != nil || !ok || res.Response != "The answer." {
		t.Errorf("%+v %v", res, err)
	}
	if len(h.model.calls) != 1 {
		t.Errorf("the model was asked %d times", len(h.model.calls))
	}
	if lines := h.transcript(); len(lines) != 2 {
		t.Errorf("the transcript has %d lines: %q", len(lines), lines)
	}
	if !slices.Equal(events[:5], []string{"session", "user_message", "prompt_metadata", "init", "model"}) {
		t.Errorf("the second attempt's events: %v", events)
	}
}

// A run that died before its answer is asked again, with the question once.
func TestAQuestionIsInTheTranscriptOnceHoweverOftenItsRunIsTried(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the gateway is going down")
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		cancel(gone)
		<-ctx.Done()
		yield(llm.Delta{}, ctx.Err())
	}
	if _, err := h.Run(ctx, h.turn("r1", 1, "the question"), func(core.Event) {}); !errors.Is(err, gone) {
		t.Fatalf("a cancellation that is not the person's: %v", err)
	}
	h.model.reply = says("The answer.")
	res, err := h.Run(t.Context(), h.turn("r1", 2, "the question"), func(core.Event) {})
	if err != nil || res.Response != "The answer." {
		t.Fatalf("%+v %v", res, err)
	}
	if lines := h.transcript(); len(lines) != 2 || strings.Count(strings.Join(lines, ""), "the question") != 1 {
		t.Errorf("the transcript: %q", lines)
	}
	if msgs := h.model.calls[1].Messages; len(msgs) != 1 {
		t.Errorf("the model was told %+v", msgs)
	}
}

// The pieces of an answer are lost with the process that said them, if it dies before they are
// stored: who follows the turn is given the answer, and not only its end.
func TestAnAnswerThatIsInTheTranscriptIsSaidAgainToWhoeverFollows(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("The answer.")
	if res, err := h.Run(t.Context(), h.turn("r1", 1, "the question"), func(core.Event) {}); err != nil || res.State != "done" {
		t.Fatalf("%+v %v", res, err) // and its Write is never run
	}
	var said []string
	res, err := h.Run(t.Context(), h.turn("r1", 2, "the question"), func(e core.Event) {
		if d, ok := e.(core.TextDelta); ok {
			said = append(said, d.Content)
		}
	})
	if err != nil || res.Response != "The answer." || len(said) != 1 || said[0] != "The answer." || len(h.model.calls) != 1 {
		t.Errorf("it said %q and ends with %+v %v; the model was asked %d times", said, res, err, len(h.model.calls))
	}
}

// Half an answer whose end was never stored (the process died between the
// transcript and the commit) is not passed off as the answer.
func TestAnAnswerThatWasBrokenOffIsAskedForAgain(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = func(_ context.Context, yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Text: "Half an ans"}, nil) && yield(llm.Delta{}, &llm.Fault{Code: llm.CodeCutOff, Text: "The answer broke off."})
	}
	if res, err := h.Run(t.Context(), h.turn("r1", 1, "the question"), func(core.Event) {}); err != nil || res.State != "error" {
		t.Fatalf("%+v %v", res, err)
	}
	h.model.reply = says("The whole answer.")
	res, err := h.Run(t.Context(), h.turn("r1", 2, "the question"), func(core.Event) {})
	if err != nil || res.Response != "The whole answer." || res.State != "done" {
		t.Errorf("%+v %v", res, err)
	}
	if msgs := h.model.calls[1].Messages; len(msgs) != 1 {
		t.Errorf("the model was told %+v", msgs)
	}
	if lines := h.transcript(); !strings.Contains(strings.Join(lines, ""), "The whole answer.") {
		t.Errorf("the transcript: %q", lines)
	}
}

// What was said before a /stop is kept, in the transcript too.
func TestAnAbortKeepsThePartialAnswer(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	ctx, cancel := context.WithCancelCause(t.Context())
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		yield(llm.Delta{Text: "So far"}, nil)
		cancel(orchestrator.ErrAborted)
		<-ctx.Done()
		yield(llm.Delta{}, ctx.Err())
	}
	res, err := h.Run(ctx, h.turn("r1", 1, "hello"), func(core.Event) {})
	if a, ok := res.Terminal.(core.Aborted); err != nil || !ok || a.PartialResponse != "So far" || res.State != "aborted" {
		t.Errorf("%+v %v", res, err)
	}
	if lines := h.transcript(); len(lines) != 2 || !strings.Contains(lines[1], "So far") {
		t.Errorf("the transcript: %q", lines)
	}
}

func TestAnEmptyAnswerIsAFailureThatIsReported(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = says("")
	res, err := h.Run(t.Context(), h.turn("r1", 1, "hello"), func(core.Event) {})
	if f, ok := res.Terminal.(core.Failed); err != nil || !ok || f.Code != "empty" || f.Message == "" {
		t.Errorf("%+v %v", res, err)
	}
}

// A model call leaves one settled row of usage, of the last count it reported.
func TestAModelCallLeavesOneSettledRowOfUsage(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = func(_ context.Context, yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Text: "x"}, nil) && yield(llm.Delta{Usage: &core.Tokens{Input: 3, Output: 1}}, nil) && yield(llm.Delta{Usage: &core.Tokens{Input: 30, Output: 10}}, nil)
	}
	res, err := h.Run(t.Context(), h.turn("r1", 1, "hello"), func(core.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	h.tx(res.Write)
	var got string
	if err := h.db.Get(t.Context(), &got, `SELECT count(*) || ' ' || sum(input) || ' ' || sum(output) FROM usage WHERE run = 'r1' AND state = 'settled'`); err != nil || got != "1 30 10" {
		t.Errorf("rows, input, output: %q %v", got, err)
	}
	var state string
	if err := h.db.Get(t.Context(), &state, `SELECT state FROM runs WHERE id = 'r1'`); err != nil || state != "done" {
		t.Errorf("run: %q %v", state, err)
	}
}

func TestTheEndOfATurnCountsTokensWrittenToACache(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = func(_ context.Context, yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Text: "x"}, nil) && yield(llm.Delta{Usage: &core.Tokens{Input: 3, Output: 1, CacheRead: 20, CacheWrite: 500}}, nil)
	}
	res, err := h.Run(t.Context(), h.turn("r1", 1, "hello"), func(core.Event) {})
	if d, ok := res.Terminal.(core.Done); err != nil || !ok || d.Usage != (core.Usage{InputTokens: 3, OutputTokens: 1, CacheReadTokens: 20, CacheWriteTokens: 500, CostUSD: d.Usage.CostUSD}) {
		t.Errorf("%+v %v", res.Terminal, err)
	}
}

// The trust of a turn is the least of the sender's, the session's ceiling and
// what was asked for: no combination raises it.
func TestPrepareNeverRaisesTrust(t *testing.T) {
	storetest.SQLiteOnly(t, "rules and no statements, in many turns")
	levels := []core.Trust{core.Sandboxed, core.Vault, core.Full}
	for _, first := range levels { // makes the session, and so its ceiling
		for _, sender := range levels {
			for _, asked := range append(levels, core.Stranger) {
				h := open(t, orchestrator.Limits{})
				row := core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: "s"}, Text: "hello", Turn: &core.Options{Session: "s", User: 1, Trust: asked}}
				var got core.Trust
				for i, trust := range []core.Trust{first, sender} {
					turn := &orchestrator.Turn{Run: fmt.Sprint("r", i), Attempt: 1, Rows: []core.Inbound{row}}
					opt := *row.Turn
					if i == 0 {
						opt.Trust = core.Stranger
					}
					h.tx(func(ctx context.Context, tx *store.Tx) error {
						return h.Prepare(ctx, tx, turn, session.Ref{Address: row.Address, User: 1, Admin: true, Trust: trust, Options: &opt})
					})
					got = turn.Trust
				}
				most := core.Least(first, sender)
				if asked != core.Stranger {
					most = core.Least(most, asked)
				}
				if got > most || got == core.Stranger {
					t.Errorf("ceiling %v, sender %v, asked %v: %v", first, sender, asked, got)
				}
			}
		}
	}
}
