package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/tool"
)

// replies plays one script an answer.
func replies(scripts ...func(context.Context, func(llm.Delta, error) bool)) func(context.Context, func(llm.Delta, error) bool) {
	n := 0
	return func(ctx context.Context, yield func(llm.Delta, error) bool) {
		i := min(n, len(scripts)-1)
		n++
		scripts[i](ctx, yield)
	}
}

// uses is an answer that calls tools: "Read {"path":"a"}", after some words.
func uses(text string, calls ...string) func(context.Context, func(llm.Delta, error) bool) {
	return func(_ context.Context, yield func(llm.Delta, error) bool) {
		if text != "" && !yield(llm.Delta{Text: text}, nil) {
			return
		}
		for i, c := range calls {
			name, input, _ := strings.Cut(c, " ")
			call := &core.Block{Type: "tool_use", ID: fmt.Sprint("call", i), Name: name, Input: json.RawMessage(input)}
			if !yield(llm.Delta{Call: call}, nil) {
				return
			}
		}
		yield(llm.Delta{Usage: &core.Tokens{Input: 10, Output: 2}, Stop: "tool_use"}, nil)
	}
}

// echo is a tool that gives back its input.
func echo(name string, effects bool) tool.Tool {
	return tool.Tool{Name: name, About: "echo", Schema: json.RawMessage(`{"type":"object"}`), Kind: tool.Inner, Effects: effects,
		Run: func(_ context.Context, c *tool.Call) (tool.Result, error) {
			return tool.Result{Text: name + " got " + string(c.Input)}, nil
		}}
}

// watched runs a turn and notes its events, in one line each.
func (h *house) watched(ctx context.Context, t *orchestrator.Turn) (orchestrator.Result, []string) {
	h.t.Helper()
	var events []string
	res, err := h.Run(ctx, t, func(e core.Event) {
		switch e := e.(type) {
		case core.ToolUseStart:
			events = append(events, "start "+e.Name)
		case core.ToolResult:
			events = append(events, fmt.Sprintf("result %s %v %s", e.ToolUseID, e.IsError, e.Result))
		case core.TextDelta:
			events = append(events, "text "+e.Content)
		}
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return res, events
}

// results are what the model was told of its calls in the n-th request.
func (h *house) results(n int) (out []string) {
	for _, m := range h.model.calls[n].Messages {
		for _, b := range m.Blocks {
			if b.Type == "tool_result" {
				out = append(out, fmt.Sprintf("%s %v %s", b.ToolUseID, b.IsError, b.Text))
			}
		}
	}
	return out
}

func TestAModelCallsToolsUntilItNeedsNone(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false), echo("Do", true)}
	h.model.reply = replies(uses("Let me see.", `Look {"a":1}`, `Do {"b":2}`), says("All done."))
	res, events := h.watched(t.Context(), h.turn("r1", 1, "please"))
	done, ok := res.Terminal.(core.Done)
	if !ok || res.Response != "All done." || done.ToolCalls != 2 || done.Usage.InputTokens != 10 {
		t.Errorf("%+v", res)
	}
	want := []string{"text Let me see.", "start Look", "start Do", `result call0 false Look got {"a":1}`, `result call1 false Do got {"b":2}`, "text \n\nAll done."}
	if !slices.Equal(events, want) {
		t.Errorf("events %q", events)
	}
	if got := h.results(1); !slices.Equal(got, []string{`call0 false Look got {"a":1}`, `call1 false Do got {"b":2}`}) {
		t.Errorf("the model was told %q", got)
	}
	var names []string
	for _, x := range h.model.calls[0].Tools {
		names = append(names, x.Name)
	}
	if !slices.Equal(names, []string{"Look", "Do", "Task", "AskUserQuestion"}) {
		t.Errorf("offered %q", names)
	}
	lines := strings.Join(h.transcript(), "")
	for _, part := range []string{`"Let me see."`, `"type":"tool_use"`, `"type":"tool_result"`, `"All done."`} {
		if !strings.Contains(lines, part) {
			t.Errorf("the transcript lacks %s:\n%s", part, lines)
		}
	}
	h.tx(res.Write)
	var rows int
	if err := h.db.Get(t.Context(), &rows, `SELECT count(*) FROM usage WHERE run = 'r1'`); err != nil || rows != 2 {
		t.Errorf("%d rows of usage for two calls of the model, %v", rows, err)
	}
	// The next turn remembers the calls.
	h.model.reply = says("Yes.")
	h.watched(t.Context(), h.turn("r2", 1, "and now?"))
	if got := h.results(2); len(got) != 2 {
		t.Errorf("the next turn's model was told %q", got)
	}
}

// What goes wrong with a call is told to the model, which goes on; nobody else is touched.
func TestWhatGoesWrongWithACallIsReportedToTheModel(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	fails := func(name string, run func(context.Context, *tool.Call) (tool.Result, error)) tool.Tool {
		x := echo(name, true)
		x.Run = run
		return x
	}
	slow := fails("Slow", func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
	slow.Timeout = 1
	picky := echo("Picky", true)
	picky.Touches = func(*tool.Turn, json.RawMessage) (tool.Access, error) {
		return tool.Access{}, core.Errorf(core.Invalid, "path is missing")
	}
	h.tools = []tool.Tool{
		fails("Panics", func(context.Context, *tool.Call) (tool.Result, error) { panic("secret path") }),
		fails("Breaks", func(context.Context, *tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("disk secret")
		}),
		fails("Says", func(context.Context, *tool.Call) (tool.Result, error) { return tool.Failed("no such file"), nil }),
		slow, picky, echo("Refused", true),
	}
	h.deny = map[string]string{"Refused": "the owner said no"}
	h.model.reply = replies(uses("", "Panics {}", "Breaks {}", "Says {}", "Slow {}", "Picky {}", "Refused {}", "Nowhere {}", `Says not json`), says("I see."))
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "please"))
	want := []string{"internal error", "internal error", "no such file", "was stopped", "path is missing", "the owner said no", `no tool "Nowhere"`, "not a JSON object: nothing was done"}
	got := h.results(1)
	if len(got) != len(want) || res.State != "done" {
		t.Fatalf("%q %+v", got, res)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) || !strings.Contains(got[i], " true ") || strings.Contains(got[i], "secret") {
			t.Errorf("call %d: %q, want %q", i, got[i], want[i])
		}
	}
}

// Calls without effects run beside each other; those with effects alone and in order.
func TestOnlyCallsWithoutEffectsRunNextToEachOther(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	var both sync.WaitGroup
	both.Add(2)
	meet := echo("Meet", false)
	meet.Run = func(context.Context, *tool.Call) (tool.Result, error) {
		both.Done()
		both.Wait() // returns only when the other runs too
		return tool.Result{Text: "met"}, nil
	}
	var order []string
	var at int
	do := echo("Do", true)
	do.Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
		at++
		if at != 1 {
			t.Error("two calls with effects at once")
		}
		order = append(order, string(c.Input))
		at--
		return tool.Result{Text: "done"}, nil
	}
	h.tools = []tool.Tool{meet, do}
	h.model.reply = replies(uses("", `Meet {"n":1}`, `Meet {"n":2}`, `Do {"n":3}`, `Do {"n":4}`), says("ok"))
	h.watched(t.Context(), h.turn("r1", 1, "please"))
	if !slices.Equal(order, []string{`{"n":3}`, `{"n":4}`}) {
		t.Errorf("order %q", order)
	}
}

func TestTheSameCallThreeTimesEndsTheRun(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Read", false), echo("Edit", true)}
	h.model.reply = uses("", `Read {"file_path":"a.md","limit":1}`)
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "please"))
	if f, ok := res.Terminal.(core.Failed); !ok || f.Code != "loop" || !strings.Contains(f.Message, "Read a.md") || len(h.model.calls) != 3 {
		t.Errorf("%+v after %d answers", res, len(h.model.calls))
	}
	// With another effect in between the same call may see something new.
	n := 0
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		switch n++; {
		case n > 8:
			says("fine")(ctx, yield)
		case n%2 == 1:
			uses("", `Read {"limit":1,"file_path":"a.md"}`)(ctx, yield)
		default:
			uses("", fmt.Sprintf(`Edit {"n":%d}`, n))(ctx, yield)
		}
	}
	if res, _ := h.watched(t.Context(), h.turn("r2", 1, "again")); res.Response != "fine" {
		t.Errorf("%+v", res)
	}
}

func TestTheRoundsOfARunAreLimited(t *testing.T) {
	h := open(t, orchestrator.Limits{Rounds: 4})
	h.tools = []tool.Tool{echo("Look", false)}
	n := 0
	h.model.reply = func(ctx context.Context, yield func(llm.Delta, error) bool) {
		n++
		uses("", fmt.Sprintf(`Look {"n":%d}`, n))(ctx, yield)
	}
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "please"))
	if f, ok := res.Terminal.(core.Failed); !ok || f.Code != "rounds" || n != 4 {
		t.Errorf("%+v after %d", res, n)
	}
}

// A stop while a tool works ends the tool and the run; the transcript stays one
// that the next turn can build on.
func TestAnAbortWhileAToolWorksEndsBoth(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	ctx, cancel := context.WithCancelCause(t.Context())
	work := echo("Work", true)
	work.Run = func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
		cancel(orchestrator.ErrAborted)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	h.tools = []tool.Tool{work}
	h.model.reply = uses("Working.", `Work {"n":1}`, `Work {"n":2}`)
	res, events := h.watched(ctx, h.turn("r1", 1, "please"))
	if a, ok := res.Terminal.(core.Aborted); !ok || a.PartialResponse != "Working." {
		t.Errorf("%+v", res)
	}
	if n := len(events); n < 2 || !strings.Contains(events[n-2], "stopped while it ran") || !strings.Contains(events[n-1], "stopped before it began") {
		t.Errorf("events %q", events)
	}
	h.model.reply = says("Yes?")
	h.watched(t.Context(), h.turn("r2", 1, "go on"))
	if got := h.results(1); len(got) != 2 {
		t.Errorf("the next turn's model was told %q", got)
	}
}

// interrupted plays a gateway that dies while the tool works, with more calls behind it.
func (h *house) interrupted(run string, x tool.Tool, behind ...string) {
	h.t.Helper()
	ctx, cancel := context.WithCancelCause(h.t.Context())
	gone := errors.New("the gateway is going down")
	x.Run = func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
		cancel(gone)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	h.tools = []tool.Tool{x}
	h.model.reply = uses("One moment.", append([]string{x.Name + ` {"file_path":"report.md"}`}, behind...)...)
	if _, err := h.Run(ctx, h.turn(run, 1, "please"), func(core.Event) {}); !errors.Is(err, gone) {
		h.t.Fatal(err)
	}
}

// A call that waited for a person's word when the gateway went down was not
// made: nobody has to decide about it, and the model may ask for it again.
func TestACallThatWaitedForAWordIsAskedForAgain(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.interrupted("r1", echo("Write", true))
	o := h.with(func(o *orchestrator.Options) {
		o.NotBegun = func(_ context.Context, run string, since time.Time) (map[string]bool, error) {
			return map[string]bool{"call0": run == "r1" && since.Equal(h.clock.Now())}, nil
		}
	})
	h.model.reply = says("I ask again.")
	res, err := o.Run(t.Context(), h.turn("r1", 2, "please"), func(core.Event) {})
	if err != nil || res.Response != "I ask again." || len(res.Buttons) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := h.results(1); len(got) != 1 || !strings.Contains(got[0], "not done") {
		t.Errorf("the model was told %q", got)
	}
}

// Calls with effects are made in their order: one behind a call that waited was
// not begun either.
func TestWhatStandsBehindACallThatWaitedWasNotBegun(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.interrupted("r1", echo("Write", true), `Write {"file_path":"second.md"}`)
	o := h.with(func(o *orchestrator.Options) {
		o.NotBegun = func(context.Context, string, time.Time) (map[string]bool, error) {
			return map[string]bool{"call0": true}, nil
		}
	})
	h.model.reply = says("I ask again.")
	res, err := o.Run(t.Context(), h.turn("r1", 2, "please"), func(core.Event) {})
	if err != nil || res.Response != "I ask again." || len(res.Buttons) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := h.results(1); len(got) != 2 || !strings.Contains(got[0], "not done") || !strings.Contains(got[1], "not done") {
		t.Errorf("the model was told %q", got)
	}
}

// The calls of a Task's helper wait under the same run, and some models number
// their calls anew in each answer: that one of them waited does not say that the
// Task was not begun.
func TestATaskWhoseHelperWaitedForAWordHadBegun(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the gateway is going down")
	write := echo("Write", true)
	write.Run = func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
		cancel(gone)
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	h.tools = []tool.Tool{write}
	h.model.reply = replies(uses("", `Task {"description":"a report","prompt":"write it"}`), uses("", `Write {"file_path":"report.md"}`))
	if _, err := h.Run(ctx, h.turn("r1", 1, "please"), func(core.Event) {}); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	o := h.with(func(o *orchestrator.Options) {
		o.NotBegun = func(context.Context, string, time.Time) (map[string]bool, error) {
			return map[string]bool{"call0": true}, nil
		}
	})
	h.model.reply = says("I do it again.")
	res, err := o.Run(t.Context(), h.turn("r1", 2, "please"), func(core.Event) {})
	if err != nil || !strings.Contains(res.Response, "interrupted during") || len(res.Buttons) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
}

// Nothing with effects is silently done twice: after a crash the person reads
// what was interrupted and decides.
func TestAnInterruptedEffectIsReportedAndNotDoneAgain(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.interrupted("r1", echo("Write", true))
	again := echo("Write", true)
	again.Run = func(context.Context, *tool.Call) (tool.Result, error) {
		t.Error("it was done again")
		return tool.Result{}, nil
	}
	h.tools = []tool.Tool{again}
	res, _ := h.watched(t.Context(), h.turn("r1", 2, "please"))
	if !strings.Contains(res.Response, "interrupted during Write report.md") || res.State != "done" || len(res.Buttons) != 2 || len(h.model.calls) != 1 {
		t.Fatalf("%+v, %d answers", res, len(h.model.calls))
	}
	h.tx(res.Write)
	if len(h.choices) != 1 || res.Buttons[0].Data != h.choices[0].Data(ask.OptionGoOn) {
		t.Errorf("buttons %+v, choices %+v", res.Buttons, h.choices)
	}
	h.model.reply = says("It is there already.")
	h.watched(t.Context(), h.turn("r2", 1, "Go on."))
	if got := h.results(1); len(got) != 1 || !strings.Contains(got[0], "outcome") && !strings.Contains(got[0], "unknown") {
		t.Errorf("the model was told %q", got)
	}
}

// What only looked is told as interrupted, and the model looks again by itself.
func TestAnInterruptedLookIsTakenUpByTheModel(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.interrupted("r1", echo("Read", false))
	h.tools = []tool.Tool{echo("Read", false)}
	h.model.reply = replies(uses("", `Read {"file_path":"report.md"}`), says("There."))
	res, _ := h.watched(t.Context(), h.turn("r1", 2, "please"))
	if res.Response != "There." || len(res.Buttons) != 0 {
		t.Errorf("%+v", res)
	}
	if got := h.results(1); len(got) != 1 || !strings.Contains(got[0], "interrupted") {
		t.Errorf("the model was told %q", got)
	}
}

// A call whose second effect its tool recognises by the ID is not asked for by another.
func TestAnInterruptedCallWithoutASecondEffectIsMadeAgainUnderItsID(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	remind := echo("Remind", false)
	remind.Again = true
	h.interrupted("r1", remind)
	var ids []string
	remind.Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
		ids = append(ids, c.Turn.Run+" "+c.ID)
		return tool.Result{Text: "It is set."}, nil
	}
	h.tools = []tool.Tool{remind}
	h.model.reply = says("Done.")
	res, _ := h.watched(t.Context(), h.turn("r1", 2, "please"))
	if res.Response != "Done." || len(res.Buttons) != 0 || !slices.Equal(ids, []string{"r1 call0"}) {
		t.Errorf("%+v; the tool was called as %q", res, ids)
	}
	if got := h.results(1); !slices.Equal(got, []string{"call0 false It is set."}) {
		t.Errorf("the model was told %q", got)
	}
}

func TestATaskHasAConversationOfItsOwnAndTheSameTools(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	h.model.reply = replies(
		uses("", `Task {"description":"count files","prompt":"How many?"}`),
		uses("", `Look {"n":1}`), says("Seven."), // the helper
		says("There are seven."))
	res, events := h.watched(t.Context(), h.turn("r1", 1, "please"))
	if res.Response != "There are seven." || len(h.model.calls) != 4 {
		t.Fatalf("%+v, %d answers", res, len(h.model.calls))
	}
	sub := h.model.calls[1]
	if len(sub.Messages) != 1 || sub.Messages[0].Blocks[0].Text != "How many?" || len(sub.Tools) != 1 {
		t.Errorf("the helper was told %+v with %d tools", sub.Messages, len(sub.Tools))
	}
	if got := h.results(3); !slices.Equal(got, []string{"call0 false Seven."}) {
		t.Errorf("its word came back as %q", got)
	}
	if strings.Contains(strings.Join(events, "|"), "text Seven.") {
		t.Errorf("the helper's text is shown: %q", events)
	}
	h.tx(res.Write)
	var rows int
	if err := h.db.Get(t.Context(), &rows, `SELECT count(*) FROM usage`); err != nil || rows != 4 {
		t.Errorf("%d rows of usage, %v", rows, err)
	}
}

func TestAQuestionToThePersonComesBackAsItsAnswers(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.model.reply = replies(uses("", `AskUserQuestion {"questions":[{"question":"Which colour?","header":"Colour","options":[{"label":"red"},{"label":"blue"}]}]}`), says("Blue it is."))
	res, _ := h.watched(t.Context(), h.turn("r1", 1, "please"))
	if got := h.results(1); res.Response != "Blue it is." || len(got) != 1 || !strings.Contains(got[0], "blue") {
		t.Errorf("%+v, told %q", res, got)
	}
}

// Thinking goes back to its own model with its signature, and to no other.
func TestThinkingIsKeptForItsOwnModel(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	thinks := func(ctx context.Context, yield func(llm.Delta, error) bool) {
		if yield(llm.Delta{Thinking: "Hm, "}, nil) && yield(llm.Delta{Thinking: "a file."}, nil) && yield(llm.Delta{Signature: "sig"}, nil) {
			uses("", `Look {}`)(ctx, yield)
		}
	}
	h.model.reply = replies(thinks, says("ok"))
	h.watched(t.Context(), h.turn("r1", 1, "please"))
	m := h.model.calls[1].Messages
	if b := m[len(m)-2].Blocks[0]; b.Type != "thinking" || b.Text != "Hm, a file." || b.Signature != "sig" {
		t.Errorf("%+v", m[len(m)-2])
	}
	h.model.name = "other/model"
	h.watched(t.Context(), h.turn("r2", 1, "more"))
	for _, m := range h.model.calls[2].Messages {
		for _, b := range m.Blocks {
			if b.Type == "thinking" {
				t.Errorf("another model was given %+v", b)
			}
		}
	}
}

// Call ids that are missing or used before are made anew: every result has one call.
func TestCallsHaveIdsOfTheirOwn(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	h.model.reply = replies(uses("", `Look {"n":1}`), uses("", `Look {"n":2}`), says("ok"))
	h.watched(t.Context(), h.turn("r1", 1, "please"))
	got := h.results(2)
	if len(got) != 2 || strings.Fields(got[0])[0] == strings.Fields(got[1])[0] {
		t.Errorf("%q", got)
	}
}

// A long conversation is summed up, once, and goes on from the summary.
func TestALongConversationIsSummedUpAndContinues(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	long := strings.Repeat("So many words about it. ", 2500) // about 15,000 tokens
	h.model.reply = says(long)
	for i := range 3 {
		h.watched(t.Context(), h.turn(fmt.Sprint("r", i), 1, "tell me more"))
	}
	h.model.reply = replies(says("SUMMARY: they talked."), says("The end."))
	before := len(h.model.calls)
	res, _ := h.watched(t.Context(), h.turn("r9", 1, "and the end?"))
	if res.Response != "The end." || len(h.model.calls) != before+2 {
		t.Fatalf("%+v after %d calls", res, len(h.model.calls)-before)
	}
	asked := h.model.calls[before].Messages
	if last := asked[len(asked)-1].Blocks[0].Text; !strings.Contains(last, "handoff note") {
		t.Errorf("the last word of the first request: %q", last)
	}
	var told []string
	size := 0
	for _, m := range h.model.calls[before+1].Messages {
		for _, b := range m.Blocks {
			told = append(told, core.CutRunes(b.Text, 120))
			size += len(b.Text)
		}
	}
	if !strings.Contains(told[0], "summary") || told[len(told)-1] != "and the end?" || size > 200_000 {
		t.Errorf("%d bytes: %q", size, told)
	}
	// What was summed up is told no more, and not summed up again.
	h.model.reply = says("Bye.")
	n := len(h.model.calls)
	if res, _ := h.watched(t.Context(), h.turn("r10", 1, "bye")); res.Response != "Bye." || len(h.model.calls) != n+1 {
		t.Errorf("%+v after %d calls", res, len(h.model.calls)-n)
	}
}

// Pictures, PDFs and texts that came with a message reach the model as what
// their bytes are; anything else is named.
func TestWhatCameWithAMessageReachesTheModelAsWhatItIs(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	png := "\x89PNG\r\n\x1a\n0000"
	files := map[string]string{"a.bin": png, "b.png": "plain ```words``` here", "c.pdf": "%PDF-1.7 x", "d.txt": "\x00\x01\x02\x7fELF", "e.txt": strings.Repeat("é", 30_000)}
	turn := h.turn("r1", 1, "look at these")
	if err := h.vault.Root().MkdirAll("Chat/assets", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.vault.WriteFile("secret.md", []byte("canary")); err != nil {
		t.Fatal(err)
	}
	if err := h.vault.Root().Symlink("../../secret.md", "Chat/assets/gone.txt"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.bin", "b.png", "c.pdf", "d.txt", "e.txt", "gone.txt"} {
		if data, ok := files[name]; ok {
			if err := h.vault.WriteFile("Chat/assets/"+name, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		turn.Rows[0].Files = append(turn.Rows[0].Files, core.File{Path: "Chat/assets/" + name, Name: "my\n" + name, Type: "image/png"})
	}
	turn.Rows[0].Files = append(turn.Rows[0].Files, core.File{Path: "../outside", Name: "x"})
	h.model.reply = says("nice")
	h.watched(t.Context(), turn)
	b := h.model.calls[0].Messages[0].Blocks
	if len(b) != 8 || b[0].Text != "look at these" {
		t.Fatalf("%d blocks: %+v", len(b), b)
	}
	if b[1].Type != "media" || b[1].Media[0].Type != "image/png" || string(b[1].Media[0].Data) != png || strings.Contains(b[1].Media[0].Name, "\n") {
		t.Errorf("the picture: %+v", b[1])
	}
	if !strings.Contains(b[2].Text, "````\nplain ```words``` here\n````") {
		t.Errorf("the text: %q", b[2].Text)
	}
	if b[3].Type != "media" || b[3].Media[0].Type != "application/pdf" {
		t.Errorf("the PDF: %+v", b[3])
	}
	for i, want := range map[int]string{4: "not a text, a picture or a PDF", 5: "[the rest is left out]", 6: "cannot be read", 7: "cannot be read"} {
		if !strings.Contains(b[i].Text, want) || strings.Contains(b[i].Text, "outside") {
			t.Errorf("block %d: %q", i, core.CutRunes(b[i].Text, 200))
		}
	}
	// It is still there in the next turn.
	h.watched(t.Context(), h.turn("r2", 1, "again"))
	if again := h.model.calls[1].Messages[0].Blocks; len(again) != 8 || string(again[1].Media[0].Data) != png {
		t.Errorf("the next turn's model was given %+v", again)
	}
}

// A workspace that is lowered while a run works ends the run before its next
// call, whatever the model wants.
func TestAWorkspaceThatIsLoweredEndsARunThatWorksAboveIt(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	config := func(level string) {
		if err := h.vault.WriteFile(".parachute/workspaces/w/config.yaml", []byte("trust_level: "+level+"\n")); err != nil {
			t.Fatal(err)
		}
		h.agents.Reload()
	}
	config("vault")
	lower := echo("Lower", true)
	lower.Run = func(context.Context, *tool.Call) (tool.Result, error) {
		config("sandboxed")
		return tool.Result{Text: "done"}, nil
	}
	never := echo("Never", true)
	never.Run = func(context.Context, *tool.Call) (tool.Result, error) {
		t.Error("a call was made above the ceiling")
		return tool.Result{}, nil
	}
	h.tools = []tool.Tool{lower, never}
	h.model.reply = replies(uses("", "Lower {}"), uses("", "Never {}"), says("ok"))
	turn := h.turn("r1", 1, "please")
	turn.Trust, turn.Session.Workspace = core.Vault, "w"
	res, _ := h.watched(t.Context(), turn)
	if f, ok := res.Terminal.(core.Failed); !ok || f.Code != "access" {
		t.Errorf("%+v", res)
	}
}

// What a run has used that is given back, or breaks, is recorded all the same.
func TestWhatARunWithoutAResultHasUsedIsRecorded(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.interrupted("r1", echo("Write", true))
	if len(h.lost) != 1 || h.lost[0].Run != "r1" || h.lost[0].Input != 10 {
		t.Errorf("given back: %+v", h.lost)
	}
	h.model.reply = says("fine")
	h.lost = nil
	if h.watched(t.Context(), h.turn("r2", 1, "hello")); len(h.lost) != 0 {
		t.Errorf("a run with a Result: %+v", h.lost)
	}
}

// A summary that cannot be made is not tried again in the same run.
func TestASummaryThatFailsIsNotTriedAgainInTheRun(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	h.model.reply = says(strings.Repeat("So many words about it. ", 2500))
	for i := range 3 {
		h.watched(t.Context(), h.turn(fmt.Sprint("r", i), 1, "tell me more"))
	}
	n := len(h.model.calls)
	h.model.reply = replies(says(""), uses("", `Look {"n":1}`), uses("", `Look {"n":2}`), says("The end."))
	if res, _ := h.watched(t.Context(), h.turn("r9", 1, "and?")); res.Response != "The end." || len(h.model.calls)-n != 4 {
		t.Errorf("%+v after %d calls", res, len(h.model.calls)-n)
	}
}

// What a helper does is shown with the call that it works on, kept in the transcript and
// noted before it is done; the model does not get it again.
func TestWhatAHelperDoesIsShownKeptAndNoted(t *testing.T) {
	h := open(t, orchestrator.Limits{})
	h.tools = []tool.Tool{echo("Look", false)}
	var noted []string
	o := h.with(func(o *orchestrator.Options) {
		o.Helped = func(_ context.Context, t *orchestrator.Turn, parent string, calls []core.Block) error {
			for _, c := range calls {
				noted = append(noted, fmt.Sprint(t.User, " ", parent, " ", c.ID, " ", c.Name))
			}
			return nil
		}
	})
	h.model.reply = replies(uses("", `Task {"description":"a look","prompt":"look twice"}`), uses("First.", `Look {"name":"a"}`), uses("", `Look {"name":"b"}`), says("I saw both."), says("Done."))
	var got []string
	ids := map[string]bool{}
	res, err := o.Run(t.Context(), h.turn("r1", 1, "please"), func(e core.Event) {
		switch e := e.(type) {
		case core.ToolUseStart:
			if ids[e.ID] {
				t.Errorf("two calls have the id %s", e.ID)
			}
			ids[e.ID] = true
			got = append(got, "use "+e.Name+" of "+e.Parent)
		case core.ToolResult:
			got = append(got, "result of "+e.Parent)
		case core.TextDelta:
			got = append(got, "text "+e.Content)
		}
	})
	if err != nil || res.State != "done" {
		t.Fatal(res, err)
	}
	want := []string{"use Task of ", "use Look of call0", "result of call0", "use Look of call0", "result of call0", "result of ", "text Done."}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if len(noted) != 2 || !strings.HasPrefix(noted[0], "2 call0 ") || !strings.HasSuffix(noted[1], " Look") {
		t.Errorf("noted %q", noted)
	}
	side := 0
	for _, l := range h.transcript() {
		if strings.Contains(l, `"isSidechain":true`) && strings.Contains(l, `"parentToolUseID":"call0"`) {
			side++
		}
	}
	if side != 6 { // what it was asked, two calls, two results, its answer
		t.Errorf("%d lines of a side chain:\n%s", side, strings.Join(h.transcript(), ""))
	}
	h.tx(res.Write)
	h.model.reply = says("Yes.")
	h.watched(t.Context(), h.turn("r2", 1, "and now?"))
	last := h.model.calls[len(h.model.calls)-1]
	if n := len(last.Messages); n != 5 || strings.Contains(fmt.Sprint(last.Messages), "look twice First.") {
		t.Errorf("the next turn's model gets %d messages: %v", n, last.Messages)
	}
}
