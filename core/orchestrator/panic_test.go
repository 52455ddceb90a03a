package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/orchestrator/incoming"
	"gatehouse/core/permission"
	"gatehouse/core/runs"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/usage"
)

// What reads a call's input to decide about it may break on what a model
// writes: that is the call's end, and not the gateway's.
func TestAPanicBeforeACallIsReportedToTheModel(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	x := echo("Breaks", false)
	x.Touches = func(*tool.Turn, json.RawMessage) (tool.Access, error) { panic("secret input") }
	h.tools = []tool.Tool{x}
	h.model.reply = replies(uses("", `Breaks {"a":1}`, `Breaks {"a":2}`), says("I see."))
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "please"))
	got := h.results(1)
	if res.State != "done" || len(got) != 2 || !strings.Contains(got[0], "true internal error") {
		t.Errorf("%+v, told %q", res, got)
	}
}

// A panic where a result is shown fails the run, which may be tried again.
func TestAPanicWhileAResultIsShownFailsTheRunAlone(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	h.model.reply = replies(uses("", `Look {}`), says("I see."))
	_, err := h.Run(t.Context(), h.turn("r1", 1, "please"), func(e core.Event) {
		if _, ok := e.(core.ToolResult); ok {
			panic("no more")
		}
	})
	if err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("%v", err)
	}
}

// meeting has two calls wait for a person at once.
type meeting struct {
	*house
	both sync.WaitGroup
}

func (m *meeting) Allow(_ context.Context, _ permission.Profile, _ tool.Tool, _ *tool.Call, _ func(core.Event), waiting func(bool)) (permission.Decision, error) {
	waiting(true)
	m.both.Done()
	m.both.Wait()
	waiting(false)
	return permission.Decision{Verdict: permission.Allow}, nil
}

// A run has one slot, however many of its calls wait for a person.
func TestARunThatWaitsTwiceGivesItsSlotBackOnce(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	m := &meeting{house: h}
	m.both.Add(2)
	o := h.with(func(o *orchestrator.Options) { o.Guard = m })
	h.tools = []tool.Tool{echo("Look", false)}
	h.model.reply = replies(uses("", `Look {"n":1}`, `Look {"n":2}`), says("ok"))
	turn := h.turn("r1", 1, "please")
	var told []bool
	turn.Waiting = func(on bool) { told = append(told, on) }
	if _, err := o.Run(t.Context(), turn, func(core.Event) {}); err != nil || fmt.Sprint(told) != "[true false]" {
		t.Errorf("told %v, %v", told, err)
	}
}

// Helpers work within the rounds of their run, and their words are not counted as the session's.
func TestATaskHasNoRoundsOfItsOwn(t *testing.T) {
	h := open(t, orchestrator.Limits{Rounds: 4})
	h.tools = []tool.Tool{echo("Look", false)}
	n := 0
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		if n++; n == 1 {
			uses("", `Task {"description":"count","prompt":"How many?"}`)(ctx, yield)
			return
		}
		uses("Hm.", fmt.Sprintf(`Look {"n":%d}`, n))(ctx, yield)
	}
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "please"))
	if failed, ok := res.Terminal.(core.Failed); !ok || failed.Code != "rounds" || n != 4 {
		t.Errorf("%+v after %d calls of the model", res, n)
	}
	h.model.reply = replies(uses("", `Task {"description":"count","prompt":"How many?"}`), says("Seven."), says("There are seven."))
	res, _ = h.watched(t.Context(), h.turn("r2", 1, "please"))
	if done, ok := res.Terminal.(core.Done); !ok || done.MessageCount != 2 {
		t.Errorf("%+v", res.Terminal)
	}
}

// What a call took beyond its reservation counts at the next one of its run.
func TestWhatACallTookBeyondItsReservationCountsAtTheNext(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	var asked []usage.Row
	o := h.with(func(o *orchestrator.Options) {
		o.Reserve = func(_ context.Context, r usage.Row) (int64, string, error) {
			asked = append(asked, r)
			return int64(len(asked)), "", nil
		}
		o.Cost = func(_ string, u core.Tokens) (int64, bool) { return u.Input + u.Output, true }
	})
	took := func(n int64, call string) func(context.Context, func(llm.Delta, error) bool) {
		return func(ctx context.Context, yield func(llm.Delta, error) bool) {
			block := &core.Block{Type: "tool_use", ID: "c" + call, Name: "Look", Input: json.RawMessage(call)}
			_ = yield(llm.Delta{Call: block}, nil) && yield(llm.Delta{Usage: &core.Tokens{Output: n}}, nil)
		}
	}
	h.model.reply = replies(took(15_000, `{"n":1}`), took(15_000, `{"n":2}`), says("ok"))
	if _, err := o.Run(t.Context(), h.turn("r1", 1, "please"), func(core.Event) {}); err != nil {
		t.Fatal(err)
	}
	var all int64
	for i, r := range asked {
		if sum := r.Input + r.Output; *r.MicroUSD != sum || all+sum < int64(i)*15_000 {
			t.Errorf("call %d: %d tokens and %d set aside in all, where the calls before took %d", i+1, all+sum, *r.MicroUSD, i*15_000)
		}
		all += r.Input + r.Output
	}
	if len(asked) != 3 || all > 40_000 {
		t.Errorf("%d reservations of %d tokens for calls that took 30,000", len(asked), all)
	}
}

// All that comes with one turn is bounded together, however many messages it is.
func TestWhatComesWithATurnIsBoundedInAll(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	big := "%PDF-1.7 " + strings.Repeat("x", 15<<20)
	if err := h.vault.WriteFile("Chat/assets/big.pdf", []byte(big)); err != nil {
		t.Fatal(err)
	}
	turn := h.turn("r1", 1, "look")
	row := turn.Rows[0]
	row.Files = []core.File{{Path: "Chat/assets/big.pdf", Name: "big.pdf"}}
	turn.Rows = []core.Inbound{row, row, row}
	for range 25 {
		turn.Rows[2].Files = append(turn.Rows[2].Files, core.File{Path: "Chat/assets/gone", Name: "gone"})
	}
	h.model.reply = says("ok")
	h.watched(t.Context(), turn)
	size, gone := 0, 0
	var words []string
	for _, b := range h.model.calls[0].Messages[0].Blocks {
		for _, m := range b.Media {
			size += len(m.Data)
		}
		if strings.Contains(b.Text, "gone was attached") {
			gone++
		}
		words = append(words, b.Text)
	}
	all := strings.Join(words, "\n")
	if size > 32<<20 || size < 30<<20 || gone != 17 || !strings.Contains(all, "larger than 32 MB in all") || !strings.Contains(all, "and 8 more files") {
		t.Errorf("%d bytes, %d files; %s", size, gone, all)
	}
}

func TestAQuestionThatCannotBeShownIsNotAsked(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	many := strings.Repeat(`{"label":"x"},`, 200)
	h.model.reply = replies(uses("", `AskUserQuestion {"questions":{"a":1}}`, `AskUserQuestion {"questions":[]}`,
		`AskUserQuestion {"questions":[{"question":"Which?","options":[`+strings.TrimSuffix(many, ",")+`]}]}`), says("ok"))
	h.watched(t.Context(), h.turn("r1", 1, "please"))
	for _, got := range h.results(1) {
		if !strings.Contains(got, "2 to 4 options") {
			t.Errorf("told %q", got)
		}
	}
}

// What somebody may do can be taken from them while they are answered, also
// while the owner thinks about a call of theirs: nothing more is done then.
func TestARunEndsWhenItsTrustIsTaken(t *testing.T) {
	for _, at := range []int{1, 2} { // before the call; before the next round
		h := open(t, orchestrator.Limits{})
		looks, done := 0, 0
		o := h.with(func(o *orchestrator.Options) {
			o.Still = func(_ context.Context, t *orchestrator.Turn) (core.Trust, error) {
				if looks++; looks < at {
					return t.Trust, nil
				}
				return core.Stranger, nil
			}
		})
		x := echo("Do", true)
		x.Run = func(context.Context, *tool.Call) (tool.Result, error) {
			done++
			h.clock.Advance(2 * time.Second)
			return tool.Result{Text: "done"}, nil
		}
		h.tools = []tool.Tool{x}
		h.model.reply = uses("Well.", `Do {}`)
		res, err := o.Run(t.Context(), h.turn("r1", 1, "please"), func(core.Event) {})
		if f, ok := res.Terminal.(core.Failed); err != nil || !ok || f.Code != "access" || f.CanRetry || len(h.model.calls) != 1 || done != at-1 {
			t.Errorf("%d: %+v %v after %d answers, done %d times", at, res, err, len(h.model.calls), done)
		}
	}
}

// with is an orchestrator over the same house that differs in some options.
func (h *house) with(change func(*orchestrator.Options)) *orchestrator.Orchestrator {
	o := orchestrator.Options{
		Equip: h.equip, Guard: h, Clock: h.clock, Sessions: h.sessions, Agents: agent.New(h.vault, agent.Options{Base: agent.Default("vault", "")}),
		Usage: usage.New(nil, usage.Budgets{}), Incoming: incoming.Sources{Files: h.vault.FS()},
		Model: func(string, bool) (llm.Model, error) {
			if h.chain != nil {
				return h.chain, nil
			}
			return h.model, nil
		},
		Cost:    func(string, core.Tokens) (int64, bool) { return 0, false },
		MayRead: func(core.Trust, int64, string) bool { return false },
	}
	change(&o)
	return orchestrator.New(o)
}

// slow is a guard whose person takes their time.
type slow struct {
	*house
	asked, said chan struct{}
}

func (s *slow) Allow(ctx context.Context, _ permission.Profile, _ tool.Tool, _ *tool.Call, _ func(core.Event), waiting func(bool)) (permission.Decision, error) {
	waiting(true)
	defer waiting(false)
	s.asked <- struct{}{}
	select {
	case <-s.said:
	case <-ctx.Done():
	}
	return permission.Decision{Verdict: permission.Allow}, nil
}

func within(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(5 * time.Minute):
		t.Fatal("the run does not go on")
	}
}

// The time that a person takes to answer is not the run's: it ends by its own.
func TestTheTimeOfPeopleIsNotTheRuns(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	s := &slow{house: h, asked: make(chan struct{}), said: make(chan struct{}, 1)}
	h.Orchestrator = h.with(func(o *orchestrator.Options) {
		o.Guard, o.Limits = s, orchestrator.Limits{Silence: time.Hour, RunTime: 3 * time.Minute}
	})
	h.tools = []tool.Tool{echo("Look", false)}
	thinking := make(chan struct{})
	n := 0
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		if n++; n <= 2 {
			uses("", fmt.Sprintf(`Look {"n":%d}`, n))(ctx, yield)
			return
		}
		close(thinking)
		<-ctx.Done()
		yield(llm.Delta{}, ctx.Err())
	}
	end := h.background(t.Context(), h.turn("r1", 1, "please"))
	for range 2 {
		within(t, s.asked)
		h.clock.AwaitWaiters(1)
		h.clock.Advance(8 * time.Minute) // of a run that has three
		s.said <- struct{}{}
	}
	within(t, thinking)
	h.clock.AwaitWaiters(1)
	h.clock.Advance(2 * time.Minute)
	h.clock.AwaitWaiters(1)
	h.clock.Advance(2 * time.Minute)
	res, err := end()
	if failed, ok := res.Terminal.(core.Failed); err != nil || !ok || failed.Code != "timeout" || n != 3 {
		t.Errorf("%+v %v after %d rounds", res, err, n)
	}
}

// What a run waited for people is stored apart, so that an answer's duration can leave it out.
func TestTheTimeThatARunWaitedForPeopleIsStored(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	s := &slow{house: h, asked: make(chan struct{}), said: make(chan struct{}, 1)}
	h.Orchestrator = h.with(func(o *orchestrator.Options) { o.Guard = s })
	h.tools = []tool.Tool{echo("Look", false)}
	h.model.reply = replies(uses("", `Look {"n":1}`), func(ctx context.Context, yield func(llm.Delta, error) bool) {
		h.clock.Advance(3 * time.Second) // the model's own time
		says("ok")(ctx, yield)
	})
	turn := h.turn("r1", 1, "please")
	h.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := runs.Begin(ctx, tx, runs.Start{ID: "r1", Session: turn.Session.ID, User: turn.User})
		return err
	})
	end := h.background(t.Context(), turn)
	within(t, s.asked)
	h.clock.Advance(8 * time.Minute)
	s.said <- struct{}{}
	res, err := end()
	if err != nil {
		t.Fatal(err)
	}
	h.tx(res.Write)
	line, err := runs.New(h.db, h.clock).Line(t.Context(), "r1")
	if err != nil || line.Waited != 8*time.Minute || line.Took(h.clock.Now()) != 8*time.Minute+3*time.Second {
		t.Errorf("waited %v of %v, %v", line.Waited, line.Took(h.clock.Now()), err)
	}
}
