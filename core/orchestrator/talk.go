package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/orchestrator/watchdog"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
)

// A talk is the loop between a model and the tools: a run's own, or a
// sub-turn's, which keeps and shows its tool calls apart from the run's.
type talk struct {
	r     *run
	req   *llm.Request
	tools []tool.Tool
	keep  func(transcript.Message) error
	show  func(core.Event)
	using func(context.Context, []core.Block) error // is called before calls are made; may be nil
	name  string                                    // of the model that answers
	text  string                                    // the last answer's text
	own   bool                                      // the session's own conversation, not a sub-turn's
	long  bool                                      // it is summed up when it grows too long
	loop  call.Repeats
	first bool          // a first token has come
	after time.Duration // how long it took, from the request on
	found []tool.Page   // by the provider's search

	squeezed bool // it was made shorter after a refusal
	worked   bool // the newest message holds results of tools
	bare     bool // the last request gave nothing of an answer
	wrote    bool // text was shown
	apart    bool // the next text is shown behind a blank line

	with llm.Model    // is asked; nil: the run's
	said func(string) // gets the text in place of show; may be nil
	held bool         // the last message is not kept: the council decides what is
	stop string       // why the last message ended
	bill []usage.Row  // of all calls
}

// offer notifies the model which tools there are.
func (t *talk) offer() {
	for _, x := range t.tools {
		t.req.Tools = append(t.req.Tools, llm.Tool{Name: x.Name, About: x.About, Schema: x.Schema})
	}
}

// answer talks until the model is done and ends the run one way or another.
func (r *run) answer(ctx context.Context, t *talk) (Result, error) {
	fault, err := t.rounds(ctx)
	r.name = t.name
	if cause := context.Cause(ctx); cause != nil {
		return r.cut(t.text, cause)
	}
	if err != nil {
		return Result{}, err
	}
	if fault == nil && t.text == "" {
		fault = &llm.Fault{Code: "empty", Text: texts.Text("fault_empty"), CanRetry: true}
	}
	if fault != nil && t.bare && fault.Refused() {
		return r.turnedDown(t, fault)
	}
	if fault != nil {
		return r.failed(t.text, fault)
	}
	return r.done(t.text)
}

// rounds calls the model, runs the tools that it requests, and calls it again, until it
// requests none. A Fault is reported to the user; an error is internal.
func (t *talk) rounds(ctx context.Context) (*llm.Fault, error) {
	limit := t.r.o.Limits.Rounds // of the whole run: a sub-turn has no rounds of its own
	for budget := historyBudget; ; budget = runBudget {
		n := int(t.r.rounds.Add(1))
		if ok, err := t.r.checkTrust(ctx, n == 1); err != nil || !ok && ctx.Err() == nil {
			return lessTrust(), err
		}
		if n > limit {
			return &llm.Fault{Code: "rounds", Text: texts.Text("fault_rounds", texts.With{"Rounds": limit})}, nil
		}
		if t.long {
			if err := t.compact(ctx, budget); err != nil {
				return nil, err
			}
		}
		m, fault, err := t.request(ctx)
		if err != nil {
			return nil, err
		}
		t.bare = len(m.Blocks) == 0
		t.stop = m.Stop
		if t.held && (fault != nil || ctx.Err() != nil || len(calls(m.Blocks)) == 0) {
			t.text = core.BlocksText(m.Blocks)
			return fault, nil
		}
		if err := t.keepAnswer(ctx, &m, fault); err != nil {
			return nil, err
		}
		calls := calls(m.Blocks)
		if fault != nil || len(calls) == 0 || ctx.Err() != nil {
			return fault, nil
		}
		results, err := t.use(ctx, calls)
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		if what, ok := t.loop.Found(); ok {
			return &llm.Fault{Code: "loop", Text: texts.Text("fault_loop", texts.With{"What": what})}, nil
		}
		t.req.Messages = append(t.req.Messages, llm.Message{Role: "user", Blocks: results})
		t.worked, t.apart = true, t.wrote
	}
}

// lessTrust ends a run after its sender lost the trust that it began with.
func lessTrust() *llm.Fault { return &llm.Fault{Code: "access", Text: texts.Text("fault_access")} }

// lookEvery is how long a check of the sender's trust is valid: it costs as much as
// a call of a tool. After a wait for a user there is a new one.
const lookEvery = time.Second

// checkTrust reports whether the run may go on as it was begun.
func (r *run) checkTrust(ctx context.Context, begins bool) (bool, error) {
	if r.over() {
		if r.work != nil {
			return false, nil // the runtime's process began at the higher level, and can't be lowered
		}
		if err := r.lower(ctx); err != nil {
			return false, err
		}
	}
	if !begins && r.o.Agents.Role(r.t.Session.AgentType, r.t.Session.Workspace).Trust < r.trust() {
		return false, nil // a workspace or an agent was lowered in the meantime
	}
	now, looked := r.o.Clock.Now().Sub(r.began), r.trustChecked.Load()
	fresh := looked >= 0 && now >= 0 && now-time.Duration(looked) < lookEvery
	if begins || fresh || r.trustLowered.Load() || r.o.Still == nil {
		return !r.trustLowered.Load(), nil
	}
	r.trustChecked.Store(int64(max(0, now)))
	has, err := r.o.Still(ctx, r.t)
	switch {
	case err != nil:
		return false, err
	case has >= r.trust():
		return true, nil
	case r.t.Raised() && has >= r.t.Base && r.work == nil:
		return true, r.lower(ctx)
	}
	r.trustLowered.Store(true)
	return false, nil
}

// ask calls the model once and returns its answer as far as it came.
func (t *talk) ask(ctx context.Context) (transcript.Message, *llm.Fault, error) {
	r, model := t.r, t.with // a council's members run concurrently, and the run's model changes
	if model == nil {
		model = r.model
	}
	if first := model.About().Priced(); t.name != first { // another one of its chain answered the last round
		t.name = first
		t.show(core.ModelChosen{Model: first})
	}
	reserved, fault, err := t.reserve(ctx, t.name, usage.Row{})
	if fault != nil || err != nil {
		return transcript.Message{Role: "assistant"}, fault, err
	}
	asked := r.o.Clock.Now()
	var a llm.Answer
	var used *core.Tokens
	var failed, broken error // of the model, and ours
	req := *t.req            // the next round adds to ours
	req.Sender.Trust, req.Run = r.trust(), r.t.Run
	req.Instead = func(model string) error { // each has its own price
		next, fault, err := t.reserve(ctx, model, reserved)
		if fault != nil {
			return fault
		}
		if broken = err; err == nil {
			reserved = next
		}
		return err
	}
	size := 0
	for d, err := range llm.StopAt(model.Reply(ctx, &req), req.Stop) {
		r.watchdog.Heard()
		if err != nil {
			failed = err
			break
		}
		if (d.Text != "" || d.Thinking != "") && !t.first {
			t.first, t.after = true, r.o.Clock.Now().Sub(asked)
			r.o.Metrics.FirstToken(t.name, t.after)
		}
		if size += len(d.Text); size > MaxDraft && (t.held || t.with != nil) {
			failed = &llm.Fault{Code: llm.CodeGarbage, Text: texts.Text("provider_garbage")}
			break
		}
		t.delta(d)
		a.Add(d)
		if d.Usage != nil {
			used = d.Usage
		}
		if ctx.Err() != nil {
			break
		}
	}
	t.bill = append(t.bill, r.bill.Add(t.name, used, nil, reserved))
	if t.own {
		r.stop = a.Stop
		r.grew(used)
	}
	m := transcript.Message{Role: "assistant", Blocks: a.Blocks(), Model: t.name, Stop: a.Stop}
	if used != nil {
		m.Usage = core.Tokens{Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheWrite: used.CacheWrite}
	}
	if failed == nil || ctx.Err() != nil {
		return m, nil, nil
	}
	if core.OutOfFiles(failed) {
		broken = failed
	}
	if broken != nil { // the turn is tried again
		return m, nil, broken
	}
	var f *llm.Fault
	if !errors.As(failed, &f) {
		f = &llm.Fault{Code: "internal", Text: texts.Text("fault_model"), CanRetry: true, Err: failed}
	}
	return m, f, nil
}

// delta shows a piece of the answer.
func (t *talk) delta(d llm.Delta) {
	if d.Model != "" && d.Model != t.name {
		t.name = d.Model
		t.show(core.ModelChosen{Model: d.Model})
	}
	if d.Notice != "" {
		t.show(core.Warning{Code: "model", Message: d.Notice})
	}
	if d.Unread != "" {
		t.show(core.Warning{Code: "attachment", Message: d.Unread})
	}
	if d.Thinking != "" {
		t.show(core.Thinking{Content: d.Thinking})
	}
	if d.Found != nil && len(t.found) < maxFound {
		t.found = append(t.found, tool.Page{Title: d.Found.Title, URL: d.Found.URL, Passage: d.Found.Age})
	}
	if d.Text != "" {
		if t.apart { // of the text before the last calls
			d.Text = "\n\n" + strings.TrimLeft(d.Text, "\n")
		}
		t.wrote, t.apart = true, false
		if t.said != nil {
			t.said(d.Text)
			return
		}
		t.show(core.TextDelta{Content: d.Text})
	}
}

// keepAnswer inserts the model's message into the transcript and the conversation.
// Calls of an answer that broke off are left out: they will not be made.
func (t *talk) keepAnswer(ctx context.Context, m *transcript.Message, fault *llm.Fault) error {
	switch {
	case errors.Is(context.Cause(ctx), ErrAborted):
		m.Stop = "aborted"
	case fault != nil || ctx.Err() != nil:
		m.Stop = "error"
	}
	if fault != nil || ctx.Err() != nil {
		m.Blocks = slices.DeleteFunc(m.Blocks, func(b core.Block) bool { return b.Type == "tool_use" || b.Thought() })
	}
	t.number(m)
	if text := core.BlocksText(m.Blocks); text != "" {
		t.text = text
		if t.own { // the text of a sub-turn is not part of the session
			t.r.mu.Lock()
			t.r.said++
			t.r.mu.Unlock()
		}
	}
	if len(m.Blocks) == 0 || ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrAborted) && !userNotified(ctx) {
		return nil
	}
	if err := t.keep(*m); err != nil {
		return err
	}
	msg := llm.Message{Role: m.Role}
	msg.Blocks = append(msg.Blocks, m.Blocks...)
	t.req.Messages = append(t.req.Messages, msg)
	return nil
}

// userNotified reports whether the user is notified of the end of ctx, so that the text so far
// is kept. A run that is returned to the queue writes it again.
func userNotified(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, llm.ErrSilence) || errors.Is(cause, watchdog.ErrTime)
}

// number gives calls ids of their own: some servers send none, or the same again, or
// the same in a sub-turn.
func (t *talk) number(m *transcript.Message) {
	seen := map[string]bool{}
	for _, old := range t.req.Messages {
		for _, b := range old.Blocks {
			seen[b.ID] = true
		}
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		if b.Type != "tool_use" {
			continue
		}
		for n := i; b.ID == "" || seen[b.ID] || t.r.numbered(b.ID); n++ {
			b.ID = fmt.Sprintf("toolu_%s_%d_%d", strings.ReplaceAll(t.r.t.Run, "-", ""), len(t.req.Messages), n)
		}
		seen[b.ID] = true
	}
}
