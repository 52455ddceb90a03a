package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/attach"
	"gatehouse/core/llm"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/orchestrator/watchdog"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
)

// saidBefore returns the answer of an earlier attempt that ended between the
// transcript and the commit: it is given, not asked for again.
func (r *run) saidBefore() (string, bool) {
	if r.t.Attempt == 1 {
		return "", false
	}
	m, ok := r.lastAnswer()
	if !ok || len(calls(m.Blocks)) > 0 || m.Stop == "aborted" || m.Stop == "error" {
		return "", false
	}
	if m.Model != "" {
		r.name = m.Model
	}
	text := core.BlocksText(m.Blocks)
	return text, text != ""
}

// answerAgain ends the run with the answer that an earlier attempt found, whose pieces may be lost.
func (r *run) answerAgain(text string) (Result, error) {
	r.emit(core.TextDelta{Content: text})
	return r.done(text)
}

// lastAnswer returns the run's newest message of a model; false when the run's
// newest message is another's.
func (r *run) lastAnswer() (transcript.Message, bool) {
	past, _, err := r.conv.History(r.budget(historyBudget))
	if err != nil || len(past) == 0 {
		return transcript.Message{}, false
	}
	m := past[len(past)-1]
	return m, m.Role == "assistant" && m.Run == r.t.Run
}

// interrupted returns the calls of an earlier attempt with an unknown outcome.
// since is when the model made them.
func (r *run) interrupted() (out []core.Block, since time.Time) {
	if r.t.Attempt == 1 || r.kit == nil {
		return nil, since
	}
	return append(out, r.conv.Open(r.t.Run)...), r.conv.CalledAt(r.t.Run)
}

const (
	unknownOutcome = "interrupted: the gateway was restarted while this ran; whether it was done is unknown"
	repeatable     = "interrupted: the gateway was restarted while this ran; call it again if its result is still needed, which does no harm"
	notBegun       = "not done: the gateway was restarted before the call was allowed"
)

// pickUp records in the transcript, for the model, that calls were interrupted. In a
// chat, if one of them had effects, the user decides whether to continue: the run ends
// with a description and a choice. A call that waited for approval had not begun, nor
// had any after it; the model may request them again. A call that may be made again under
// its ID is made now. A Task had begun: the calls of its
// sub-run wait under the same run, possibly with the same ids.
func (r *run) pickUp(ctx context.Context, t *talk, open []core.Block, since time.Time) (Result, bool, error) {
	var results []core.Block
	var effects []string
	waited, err := r.o.NotBegun(ctx, r.t.Run, since)
	if err != nil {
		return Result{}, false, err
	}
	idle := false
	for i := range open {
		block := core.Block{Type: "tool_result", ToolUseID: open[i].ID, Text: unknownOutcome, IsError: true}
		idle = idle || waited[open[i].ID] && open[i].Name != TaskName
		if !idle && t.again(&open[i]) {
			if block, err = t.one(ctx, &open[i]); err != nil {
				return Result{}, false, err
			}
			results = append(results, block)
			continue
		}
		switch {
		case idle:
			block.Text = notBegun
		case t.harmless(&open[i]):
			block.Text = repeatable
		}
		if err := t.keep(transcript.Message{Role: "user", Blocks: []core.Block{block}}); err != nil {
			return Result{}, false, err
		}
		results = append(results, block)
		if open[i].Name != AskName && !idle && !t.harmless(&open[i]) { // a question can be asked again
			effects = append(effects, call.Label(open[i].Name, open[i].Input))
		}
	}
	t.req.Messages = llm.WithResults(t.req.Messages, results)
	if len(effects) == 0 || r.t.Rows[0].Turn != nil {
		return Result{}, false, nil
	}
	text := interruption(effects)
	if err := t.keep(transcript.Message{Role: "assistant", Blocks: []core.Block{{Type: "text", Text: text}}, Model: r.name, Stop: "end_turn"}); err != nil {
		return Result{}, false, err
	}
	res, err := r.choice(text)
	return res, true, err
}

func interruption(effects []string) string {
	return texts.Text("interrupted", texts.With{"What": strings.Join(effects, ", ")})
}

// choice ends the run with text and the user's choice to go on or not.
func (r *run) choice(text string) (Result, error) {
	res, err := r.done(text)
	if r.t.User == 0 { // known from the group only: no one could press a button; a message works too
		return res, err
	}
	in := &r.t.Rows[0]
	choice := ask.Ask{ID: ask.IDOf("choice:" + r.t.Run), Kind: ask.KindChoice, Run: r.t.Run, Bot: in.Bot, Chat: in.Chat, User: r.t.User,
		ExpiresAt: r.o.Clock.Now().Add(choiceTime)}
	res.Buttons = []core.Button{{Label: texts.Text("button_go_on"), Data: choice.Data(ask.OptionGoOn)}, {Label: texts.Text("button_stop"), Data: choice.Data(ask.OptionStop)}}
	write := res.Write
	res.Write = func(ctx context.Context, tx *store.Tx) error {
		if err := write(ctx, tx); err != nil {
			return err
		}
		return r.o.Choose(ctx, tx, choice)
	}
	return res, err
}

// cut ends a run after its context was cancelled.
func (r *run) cut(text string, cause error) (Result, error) {
	switch {
	case errors.Is(cause, ErrAborted):
		if err := r.conv.Sync(); err != nil {
			return Result{}, err
		}
		return r.result("aborted", nil, text, core.Aborted{SessionID: r.t.Session.ID, Message: texts.Text("stopped"), PartialResponse: text})
	case errors.Is(cause, llm.ErrSilence):
		return r.failed(text, &llm.Fault{Code: "silence", Text: texts.Text("fault_silence"), CanRetry: true})
	case errors.Is(cause, watchdog.ErrTime):
		return r.failed(text, &llm.Fault{Code: "timeout", Text: texts.Text("fault_time"), CanRetry: false})
	}
	return Result{}, cause
}

func (r *run) failed(text string, f *llm.Fault) (Result, error) {
	r.logFailure(f)
	return r.end(text, f)
}

func (r *run) logFailure(f *llm.Fault) {
	if f.Code != "invalid" {
		r.o.Log.Warn("run failed", "run", r.t.Run, "model", r.name, "code", f.Code, "err", f)
	}
}

// end ends the run with f.
func (r *run) end(text string, f *llm.Fault) (Result, error) {
	if err := r.conv.Sync(); err != nil {
		return Result{}, err
	}
	return r.result("error", f, text, core.Failed{Code: f.Code, Message: f.Text, CanRetry: f.CanRetry, RetryAfterMS: f.After.Milliseconds(), SessionID: r.t.Session.ID})
}

func (r *run) done(text string) (Result, error) {
	if err := r.conv.Sync(); err != nil {
		return Result{}, err
	}
	d := core.Done{Response: text, SessionID: r.t.Session.ID, Model: r.name, MessageCount: r.t.Session.MessageCount + r.messages(max(1, r.said)),
		DurationMS: r.o.Clock.Now().Sub(r.t.Started).Milliseconds(), ToolCalls: r.calls, SessionResume: &r.resume.Session}
	d.Council = r.verdict
	if r.stop == "max_tokens" {
		d.StopReason = r.stop
	}
	total := r.bill.Total()
	d.Usage = core.Usage{InputTokens: total.Input, OutputTokens: total.Output, CacheReadTokens: total.CacheRead, CacheWriteTokens: total.CacheWrite}
	if total.MicroUSD != nil {
		usd := float64(*total.MicroUSD) / 1e6
		d.Usage.CostUSD = &usd
	}
	return r.result("done", nil, text, d)
}

func (r *run) result(state string, fault *llm.Fault, text string, terminal core.Event) (Result, error) {
	now := r.o.Clock.Now()
	r.o.Metrics.Ended(r.name, state, now.Sub(r.t.Started))
	messages := r.messages(r.said)
	if state == "done" {
		messages = r.messages(max(1, r.said))
	}
	end := endOf(state, r.name, fault, now)
	end.Waited = r.watchdog.Waited(now)
	if state == "done" && text != "" && r.o.Follower != nil {
		end.Follow = r.o.Follower.Follow(&r.t.Session, r.t.Rows[0].Address, r.t.User, r.t.Trust)
	}
	spent, words := r.bill.Open(), r.o.Sessions.Words(context.Background(), r.conv) // bounded, and the run's own context may have ended
	memory, given, of, read, unheard := r.memory, r.given, attach.Turn{User: r.t.User, Session: r.t.Session.ID, Run: r.t.Run}, r.files.Read, r.files.Unheard
	given.Done, given.Model, given.Answer = state == "done" && text != "", r.name, text
	write := func(ctx context.Context, tx *store.Tx) error {
		if err := memory.write(ctx, tx, given); err != nil {
			return err
		}
		if err := runs.Finish(ctx, tx, r.t.Run, end); err != nil {
			return err
		}
		f := session.Finish{Messages: messages, Model: r.name, Title: r.t.Text(), At: now, Words: words}
		if err := r.o.Sessions.Finish(ctx, tx, r.t.Session.ID, f); err != nil {
			return fmt.Errorf("finish session: %w", err)
		}
		for i := range r.t.Rows {
			if err := r.o.Files.Record(ctx, tx, of, r.t.Rows[i].Files, read); err != nil {
				return err
			}
		}
		for _, u := range unheard {
			if err := r.o.Later.AddMessage(ctx, tx, of.User, u.In, u.File); err != nil {
				return err
			}
		}
		if err := r.bill.Record(ctx, tx, spent); err != nil {
			return err
		}
		if state == "done" {
			if err := r.count(ctx, tx, text, messages); err != nil {
				return err
			}
		}
		if end.Follow != "" {
			tx.OnCommit(r.o.Follower.Ring)
		}
		return nil
	}
	return Result{State: state, Response: text, Terminal: terminal, Write: write, Asides: memory.Asides}, nil
}

// count adds the turn to the counter since the model's last note.
func (r *run) count(ctx context.Context, tx *store.Tx, text string, messages int) error {
	if r.o.Backups == nil || r.model == nil || r.work != nil {
		return nil
	}
	r.mu.Lock()
	size := r.context
	r.mu.Unlock()
	return r.o.Backups.Count(ctx, tx, handoff.Turn{
		Session: r.t.Session.ID, Model: r.name, Bot: r.t.Rows[0].Bot, User: r.t.User, Trust: r.t.Base, Messages: messages,
		Estimate: int64(handoff.Tokens(r.t.Text()) + handoff.Tokens(text)), Context: size, Window: r.budget(historyBudget),
	})
}

// endOf returns what is stored of a run's end.
func endOf(state, model string, f *llm.Fault, at time.Time) runs.End {
	e := runs.End{State: state, Model: model, At: at}
	if f != nil {
		e.Error, e.Fault = f.Code, runs.Fault{Reason: f.Text, Setting: f.Setting}
		if f.Err != nil {
			e.Fault.Said = f.Err.Error()
		}
	}
	return e
}
