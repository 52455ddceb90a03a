package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/llm"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// run is one turn on its way.
type run struct {
	o     *Orchestrator
	t     *Turn
	emit  func(core.Event)
	model llm.Model
	name  string // of the model that answers
	conv  *session.Conversation

	resume session.Resume
	next   int    // number of the run's next line
	text   []byte // the answer so far
	stop   string
	used   *llm.Usage
	first  bool         // a first token has come
	began  time.Time    // of this attempt; differences to it survive a clock that is set
	heard  atomic.Int64 // when the model was last heard, in nanoseconds after began
}

// Run answers t and tells what happens through emit, in the order of
// core.Event; the terminal event is in the Result. An error is ours alone
// (disk, database) and nothing was decided: the turn may be tried again. When
// ctx ends with ErrAborted the Result is aborted; any other cancellation of
// ctx is returned as its cause.
func (o *Orchestrator) Run(ctx context.Context, t *Turn, emit func(core.Event)) (Result, error) {
	r := &run{o: o, t: t, emit: emit, began: o.o.Clock.Now()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conv, err := o.o.Sessions.Open(ctx, t.Session)
	if err != nil {
		return Result{}, err
	}
	r.conv = conv
	defer conv.Close()
	req, err := r.prepare(ctx)
	if core.KindOf(err) != core.Other {
		return r.failed(&llm.Fault{Code: "invalid", Text: core.TextOf(err), Err: err})
	}
	if err != nil {
		return Result{}, err
	}
	if said, ok := r.saidBefore(); ok {
		r.text = []byte(said)
		return r.done()
	}
	o.o.Metrics.prepared(o.o.Clock.Now().Sub(t.Started))
	go r.watch(ctx, cancel)
	return r.answer(ctx, req)
}

// prepare makes the steps from the session event to the model request.
func (r *run) prepare(ctx context.Context) (*llm.Request, error) {
	opt := r.t.options()
	dir, warnings, err := r.o.o.Agents.WorkingDirectory(opt.WorkingDirectory, r.t.Session.WorkingDirectory, r.t.Trust)
	if err != nil {
		return nil, err
	}
	mayRead := func(path string) bool { return r.o.o.MayRead(r.t.Trust, r.t.User, path) }
	in := &r.t.Rows[0]
	system, meta, err := r.o.o.Agents.Prompt(ctx, agent.PromptInput{
		Agent: r.o.o.Agent, Custom: opt.SystemPrompt, MayRead: mayRead, WorkingDirectory: dir.Path,
		Sender: in.From.Name, Trust: r.t.Trust, Group: in.Group(),
	})
	if err != nil {
		return nil, err
	}
	if r.model, err = r.o.o.Model(opt.Model); err != nil {
		return nil, err
	}
	r.name = r.model.About().Name
	history, err := r.remember()
	if err != nil {
		return nil, err
	}
	r.emit(core.Session{ID: r.t.Session.ID, RunID: r.t.Run, Title: r.title(), CreatedAt: r.t.Session.CreatedAt,
		TrustLevel: r.t.Trust, WorkingDirectory: r.t.Session.WorkingDirectory, ResumeInfo: r.resume.Info})
	r.emit(core.UserMessage{Content: r.t.Text()})
	meta.Model = r.name
	r.emit(meta)
	r.emit(core.Init{Tools: []string{}, PermissionMode: "default", MCPServers: []string{}})
	r.emit(core.ModelChosen{Model: r.name})
	for _, w := range append(r.t.Warnings, warnings...) {
		r.emit(w)
	}
	return &llm.Request{System: system, Messages: history, MaxTokens: r.o.o.Limits.OutputTokens,
		Sender: llm.Sender{User: r.t.User, Trust: r.t.Trust}}, nil
}

func (r *run) title() string {
	if r.t.Session.Title != "" {
		return r.t.Session.Title
	}
	return session.Title(r.t.Text())
}

// remember appends the person's message to the transcript, unless an earlier
// attempt did, and returns the conversation up to it.
func (r *run) remember() ([]llm.Message, error) {
	lines := 0
	var err error
	if r.t.Attempt > 1 {
		if lines, err = r.conv.HasRun(r.t.Run); err != nil {
			return nil, err
		}
	}
	past, resume, err := r.conv.History(historyBudget)
	if err != nil {
		return nil, err
	}
	r.resume, r.next = resume, max(1, lines)
	if lines == 0 {
		said := session.Message{Role: "user"}
		for _, row := range r.t.Rows {
			said.Blocks = append(said.Blocks, session.Block{Type: "text", Text: r.worded(&row)})
		}
		if err := r.conv.Append(r.t.Run, 0, said); err != nil {
			return nil, err
		}
		past = append(past, said)
	}
	out := make([]llm.Message, 0, len(past))
	for _, m := range past {
		msg := llm.Message{Role: m.Role}
		for _, b := range m.Blocks {
			if b.Type == "text" {
				msg.Blocks = append(msg.Blocks, llm.Block(b))
			}
		}
		if m.Role == "assistant" && m.Run == r.t.Run && !r.said(m) {
			continue
		}
		if len(msg.Blocks) > 0 {
			out = append(out, msg)
		}
	}
	return out, nil
}

// worded is a row's text as the model reads it. A group's session hears many
// people: there each one's words are marked with name and trust, as data.
func (r *run) worded(row *core.Inbound) string {
	if !row.Group() {
		return row.Text
	}
	return agent.Quoted{Name: row.From.Name, Trust: r.t.Trust, Text: row.Text}.String()
}

// said notes an answer that an earlier attempt has already put into the
// transcript; false for one that was broken off and whose end was not stored.
func (r *run) said(m session.Message) bool {
	if m.Stop == "aborted" || m.Stop == "error" {
		return false
	}
	r.stop = m.Stop
	r.text = r.text[:0]
	for _, b := range m.Blocks {
		if b.Type == "text" {
			r.text = append(r.text, b.Text...)
		}
	}
	if m.Model != "" {
		r.name = m.Model
	}
	return true
}

// saidBefore is the answer of an earlier attempt that ended between the
// transcript and the commit: it is given, not asked for again.
func (r *run) saidBefore() (string, bool) { return string(r.text), len(r.text) > 0 }

// answer asks the model and ends the run one way or another.
func (r *run) answer(ctx context.Context, req *llm.Request) (Result, error) {
	asked := r.o.o.Clock.Now()
	var fault error
	for d, err := range r.model.Reply(ctx, req) {
		r.heard.Store(int64(r.o.o.Clock.Now().Sub(r.began)))
		if err != nil {
			fault = err
			break
		}
		if (d.Text != "" || d.Thinking != "") && !r.first {
			r.first = true
			r.o.o.Metrics.firstToken(r.name, r.o.o.Clock.Now().Sub(asked))
		}
		r.delta(d)
		if ctx.Err() != nil {
			break
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return r.cut(cause)
	}
	if fault != nil {
		var f *llm.Fault
		if !errors.As(fault, &f) {
			f = &llm.Fault{Code: "internal", Text: "Something went wrong while the model was answering.", CanRetry: true, Err: fault}
		}
		return r.failed(f)
	}
	if len(r.text) == 0 {
		return r.failed(&llm.Fault{Code: "empty", Text: "The model gave no answer.", CanRetry: true})
	}
	if err := r.keep(); err != nil {
		return Result{}, err
	}
	return r.done()
}

func (r *run) delta(d llm.Delta) {
	if d.Model != "" && d.Model != r.name {
		r.name = d.Model
		r.emit(core.ModelChosen{Model: r.name})
	}
	if d.Notice != "" {
		r.emit(core.Warning{Code: "model", Message: d.Notice})
	}
	if d.Thinking != "" {
		r.emit(core.Thinking{Content: d.Thinking})
	}
	if d.Text != "" {
		r.text = append(r.text, d.Text...)
		r.emit(core.TextDelta{Content: d.Text})
	}
	if d.Usage != nil {
		r.used = d.Usage
	}
	if d.Stop != "" {
		r.stop = d.Stop
	}
}

// keep puts the answer into the transcript and on the disk.
func (r *run) keep() error {
	if len(r.text) > 0 {
		m := session.Message{Role: "assistant", Blocks: []session.Block{{Type: "text", Text: string(r.text)}}, Model: r.name, Stop: r.stop}
		if r.used != nil {
			m.Usage = session.Usage{Input: r.used.Input, Output: r.used.Output, CacheRead: r.used.CacheRead, CacheWrite: r.used.CacheWrite}
		}
		if err := r.conv.Append(r.t.Run, r.next, m); err != nil {
			return err
		}
	}
	return r.conv.Sync()
}

// cut ends a run whose context was cancelled.
func (r *run) cut(cause error) (Result, error) {
	switch {
	case errors.Is(cause, ErrAborted):
		r.stop = "aborted"
		if err := r.keep(); err != nil {
			return Result{}, err
		}
		return r.result("aborted", "", core.Aborted{SessionID: r.t.Session.ID, Message: "Stopped.", PartialResponse: string(r.text)})
	case errors.Is(cause, errSilence):
		return r.failed(&llm.Fault{Code: "silence", Text: "The model stopped answering.", CanRetry: true})
	case errors.Is(cause, errTime):
		return r.failed(&llm.Fault{Code: "timeout", Text: "This took longer than a turn may take.", CanRetry: false})
	}
	return Result{}, cause
}

func (r *run) failed(f *llm.Fault) (Result, error) {
	if f.Code != "invalid" {
		r.o.o.Log.Warn("run failed", "run", r.t.Run, "model", r.name, "code", f.Code, "err", f)
	}
	if r.stop == "" {
		r.stop = "error"
	}
	if err := r.keep(); err != nil {
		return Result{}, err
	}
	return r.result("error", f.Code, core.Failed{Code: f.Code, Message: f.Text, CanRetry: f.CanRetry, RetryAfterMS: f.After.Milliseconds(), SessionID: r.t.Session.ID})
}

func (r *run) done() (Result, error) {
	d := core.Done{Response: string(r.text), SessionID: r.t.Session.ID, Model: r.name, MessageCount: r.t.Session.MessageCount + len(r.t.Rows) + 1,
		DurationMS: r.o.o.Clock.Now().Sub(r.t.Started).Milliseconds(), SessionResume: &r.resume.Session}
	if r.used != nil {
		d.Usage = core.Usage{InputTokens: r.used.Input, OutputTokens: r.used.Output, CacheReadTokens: r.used.CacheRead}
		if c, ok := r.o.o.Cost(r.name, *r.used); ok {
			usd := float64(c) / 1e6
			d.Usage.CostUSD = &usd
		}
	}
	return r.result("done", "", d)
}

func (r *run) result(state, code string, terminal core.Event) (Result, error) {
	now := r.o.o.Clock.Now()
	r.o.o.Metrics.ended(r.name, state, now.Sub(r.t.Started))
	messages := len(r.t.Rows)
	if len(r.text) > 0 {
		messages++
	}
	in := r.t.Rows[0]
	row := usage.Row{Run: r.t.Run, Session: r.t.Session.ID, User: r.t.User, Bot: in.Bot, Model: r.name}
	if r.used != nil {
		row.Input, row.Output, row.CacheRead, row.CacheWrite = r.used.Input, r.used.Output, r.used.CacheRead, r.used.CacheWrite
		if c, ok := r.o.o.Cost(r.name, *r.used); ok {
			row.MicroUSD = &c
		}
	}
	asked := r.model != nil
	write := func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE runs SET state = $1, ended = $2, error = $3, model = $4 WHERE id = $5`, state, core.Stamp(now), code, r.name, r.t.Run); err != nil {
			return err
		}
		f := session.Finish{Messages: messages, Model: r.name, Title: r.t.Text(), At: now}
		if err := r.o.o.Sessions.Finish(ctx, tx, r.t.Session.ID, f); err != nil {
			return fmt.Errorf("finish session: %w", err)
		}
		if !asked {
			return nil
		}
		return r.o.o.Usage.Record(ctx, tx, row)
	}
	return Result{State: state, Response: string(r.text), Terminal: terminal, Write: write}, nil
}

// watch cancels a run that takes too long or whose model says nothing.
func (r *run) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	limits := r.o.o.Limits
	end := r.t.Started.Add(limits.RunTime)
	for {
		now := r.o.o.Clock.Now()
		quiet := r.began.Add(time.Duration(r.heard.Load()) + limits.Silence)
		switch {
		case !now.Before(end):
			cancel(errTime)
			return
		case !now.Before(quiet):
			cancel(errSilence)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.o.o.Clock.After(min(end.Sub(now), quiet.Sub(now))):
		}
	}
}
