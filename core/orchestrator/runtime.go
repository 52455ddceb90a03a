package orchestrator

import (
	"context"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/orchestrator/resumed"
	"gatehouse/core/permission"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
)

// A Runtime answers turns instead of the loop, with its own loop, tools and transcript:
// it writes the session's transcript itself, in lines that we can read.
type Runtime interface {
	// Answers reports whether turns for a model of this name are the runtime's.
	Answers(model string) bool
	// Refuses returns why the runtime does not answer the turn, or "" if it does.
	Refuses(t *Turn) string
	// Answer returns soon after ctx has ended, with everything that it started
	// ended too. What goes wrong with the runtime is a Fault; an error is ours.
	Answer(ctx context.Context, w *Work) (Answer, error)
	// Leave is called before the loop continues a session, because a runtime's copy
	// of the transcript becomes incomplete.
	Leave(session string)
}

// Work is one turn for a Runtime.
type Work struct {
	Turn    *Turn
	Agent   agent.Agent
	Model   string       // as the turn names it
	Dir     vault.Dir    // the session's working directory
	Resume  bool         // the session has a transcript
	System  string       // the system prompt
	Replace bool         // someone wrote it as the whole prompt
	Line    string       // the id of the message's line in the transcript
	Said    []core.Block // the message
	// Still reports whether the sender may still do what the turn was begun
	// with; to be asked before each call of a tool.
	Still func(ctx context.Context) (bool, error)
	// Named reports whether an address of the web was named in the conversation.
	Named   permission.Named
	Emit    func(core.Event)
	Waiting func(bool)
	Heard   func()      // the model got on: its silence is counted from now
	Busy    func(n int) // that many more or fewer tools are running: in the meantime it is not
}

// Answer is what a Runtime did.
type Answer struct {
	Text     string       // the last message's text, as far as they came
	Said     int          // messages with text
	Calls    int          // tool calls
	Usage    *core.Tokens // nil: unknown
	MicroUSD *int64       // what the runtime means that it cost; nil: unknown
	Fault    *llm.Fault   // nil: it ended well, or ctx did
}

// isRuntimeModel reports whether turns for this model are the runtime's.
func (r *run) isRuntimeModel(model string) bool {
	return model != "" && r.o.Runtime != nil && r.o.Runtime.Answers(model)
}

// useRuntime has the runtime answer the turn, where the turn is one for it.
func (r *run) useRuntime(model string) error {
	if why := r.o.Runtime.Refuses(r.t); why != "" {
		return core.Errorf(core.Denied, "%s", why)
	}
	if r.t.Raised() { // its process could not be lowered in the middle
		return texts.Error(core.Denied, "fault_raised", texts.With{"Model": model})
	}
	if len(r.t.options().Before) > 0 { // its transcript is its own
		return texts.Error(core.Denied, "fault_own_history", texts.With{"Model": model})
	}
	r.name = model
	return nil
}

// prepareWork makes the steps from the session event to what the runtime is given.
func (r *run) prepareWork(ctx context.Context, warnings []core.Warning) error {
	here := agent.Worker{Trust: r.t.Trust, MayRead: func(string) bool { return true }} // its transcript is found by the session's directory alone
	dir, missing, err := r.o.Agents.WorkingDirectory(here, r.t.Session.WorkingDirectory)
	if err != nil {
		return err
	}
	r.t.Dir = dir
	cwd, found := r.conv.Place()
	if !found || dir.Path != cwd {
		return texts.Error(core.Invalid, "fault_folder_moved", texts.With{"Model": r.name})
	}
	system, meta, err := r.promptOf(ctx, dir)
	if err != nil {
		return err
	}
	past, resume, err := r.conv.History(historyBudget)
	if err != nil {
		return err
	}
	if cleared, err := r.conv.Clear(); err != nil {
		return err
	} else if cleared {
		resume.Info.SDKSessionAvailable = false
	}
	r.resume = resume
	spoken, _, err := r.spoken(ctx)
	if err != nil {
		return err
	}
	o := &observer{r: r, asked: r.o.Clock.Now(), names: map[string]string{}}
	r.work = &Work{
		Turn: r.t, Agent: r.agent, Model: r.name, Dir: dir, Resume: resume.Info.SDKSessionAvailable,
		System: system, Replace: meta.PromptSource == "custom" || meta.PromptSource == "agent", Said: spoken,
		Still: func(ctx context.Context) (bool, error) { return r.checkTrust(ctx, false) },
		Named: r.named,
		Emit:  o.emit, Waiting: r.waiting, Heard: r.watchdog.Heard, Busy: r.watchdog.Busy,
	}
	switch {
	case r.memory.Relevant == "":
	case r.t.Shared(): // others read the runtime's transcript, which has the message but not the prompt
		r.work.System += "\n" + r.memory.Relevant
	default:
		r.work.Said = append([]core.Block{{Type: "text", Text: r.memory.Relevant}}, r.work.Said...)
	}
	if !r.work.Resume && len(past) > 0 {
		r.work.Said = append([]core.Block{resumed.Before(past)}, r.work.Said...)
	}
	meta.Model = r.name
	r.open(meta, append(warnings, missing...))
	return nil
}

// delegate has the runtime answer. The message is handed over once: a later
// attempt looks whether its line is in the transcript, and then gives the
// answer that is there, asks the user about interrupted work, or has the
// runtime go on.
func (r *run) delegate(ctx context.Context, w *Work) (Result, error) {
	w.Line = transcript.LineID(r.t.Run, 0)
	if r.t.Attempt > 1 {
		behind, asked, err := r.conv.After(w.Line)
		if err != nil {
			return Result{}, err
		}
		if asked {
			if text, ok := resumed.Ended(behind); ok {
				return r.answerAgain(text)
			}
			if open := resumed.Unanswered(behind); len(open) > 0 && r.t.Rows[0].Turn == nil {
				return r.choice(interruption(open))
			}
			w.Line, w.Said = transcript.LineID(r.t.Run, r.t.Attempt-1), []core.Block{{Type: "text", Text: resumed.GoOn}}
		}
	}
	reserved, fault, err := r.reserveWork(ctx, w)
	if err != nil {
		return Result{}, err
	}
	if fault != nil {
		return r.failed("", fault)
	}
	r.prepared()
	a, err := r.o.Runtime.Answer(ctx, w)
	r.said, r.calls = a.Said, a.Calls
	r.bill.Add(r.name, a.Usage, a.MicroUSD, reserved)
	if cause := context.Cause(ctx); cause != nil {
		return r.cut(a.Text, cause)
	}
	if err != nil {
		return Result{}, err
	}
	if a.Fault != nil {
		return r.failed(a.Text, a.Fault)
	}
	return r.done(a.Text)
}

// reserveWork asks for room in the budgets: what will be used is not known, so
// it is one answer to the message and the prompt.
func (r *run) reserveWork(ctx context.Context, w *Work) (usage.Row, *llm.Fault, error) {
	req := &llm.Request{System: w.System, MaxTokens: r.o.Limits.OutputTokens}
	msg := llm.Message{Role: "user"}
	msg.Blocks = append(msg.Blocks, w.Said...)
	req.Messages = []llm.Message{msg}
	return (&talk{r: r, name: r.name, req: req}).reserve(ctx, r.name, usage.Row{})
}

// An observer counts what a runtime shows.
type observer struct {
	r     *run
	asked time.Time

	mu    sync.Mutex
	first bool
	names map[string]string // of tools running, by call
}

func (o *observer) emit(e core.Event) {
	o.mu.Lock()
	switch e := e.(type) {
	case core.TextDelta, core.Thinking:
		if !o.first {
			o.first = true
			o.r.o.Metrics.FirstToken(o.r.name, o.r.o.Clock.Now().Sub(o.asked))
		}
	case core.ToolUseStart:
		o.names[e.ID] = e.Name
	case core.ToolResult:
		outcome := call.OK
		if e.IsError {
			outcome = call.Error
		}
		o.r.o.Metrics.Called(o.names[e.ToolUseID], o.r.t.Trust, outcome)
		delete(o.names, e.ToolUseID)
	}
	o.mu.Unlock()
	o.r.emit(e)
}
