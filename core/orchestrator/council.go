package orchestrator

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/bill"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
)

// A Council answers turns with several models: it decides which models are asked, and
// which answer is the turn's. Its loop, tools, transcript and bill are the run's.
type Council interface {
	// Level returns the accuracy level that a model's name asks for; "" if the name is not
	// the council's.
	Level(model string) string
	// Answer answers one turn. It returns soon after ctx has ended, when all its calls have
	// ended. A failure of models is the Verdict's Fault; an error is internal, and the turn
	// may be tried again.
	Answer(ctx context.Context, s *CouncilTurn) (Verdict, error)
}

// A CouncilTurn is one turn for a Council. Its functions may be called concurrently, but for
// Loop, which is called once at a time.
type CouncilTurn struct {
	Turn   *Turn
	Level  string
	Prompt *llm.Request // system prompt and conversation, without tools; not to be changed
	// Corrections are the ids of the person's corrections in Prompt.
	Corrections []string
	Wishes      []Wish // those of them that say how answers are to be
	Cost        func(model string, u core.Tokens) (int64, bool)
	// Loop has a model answer, with the turn's tools. Its last answer is not in the
	// transcript yet: the Verdict decides what is.
	Loop func(ctx context.Context, m llm.Model, l Loop) (Draft, error)
	// Ask makes one call of a model, without tools. The call is reserved and billed on its
	// own.
	Ask func(ctx context.Context, m llm.Model, req *llm.Request) (Draft, error)
	// Record bills drafts in a transaction of the council's, which stores them too, so that
	// a later attempt neither repeats nor bills them again.
	Record func(ctx context.Context, tx *store.Tx, drafts ...*Draft) error
	// Recorded adds drafts of an earlier attempt to what the turn has cost.
	Recorded func(drafts ...*Draft)
	// Bounded notes that n more waits with a limit of the council's begin, or -n end. While
	// there are some, the silence of models does not end the run.
	Bounded func(n int)
	Emit    func(core.Event)
}

// A Loop is how the primary of a council answers.
type Loop struct {
	System string            // is added to the system prompt
	Text   func(text string) // gets the text as it comes; nil: no one does
	Calls  func()            // is called before each message's calls of tools; may be nil
}

// A Draft is the answer of one model.
type Draft struct {
	Model    string
	Text     string
	Tools    []llm.Message // what tools were called with, and what they returned
	Stop     string
	Used     core.Tokens
	MicroUSD *int64        // nil: the price of a call is not known
	First    time.Duration // until the first piece of text; 0 without any
	Took     time.Duration
	Fault    *llm.Fault // why there is no whole answer
	Broken   bool       // pieces of an answer that faulted were given to Text

	rows []usage.Row
}

// A Verdict is the end of a council's turn.
type Verdict struct {
	Text    string // the answer, as it is shown and kept
	Model   string // whose answer it is
	Stop    string
	Fault   *llm.Fault // nil: Text is the answer
	Council *core.Council
	Buttons []core.Button
	// Followed reports by the id of a wish whether the answer follows it, as far as that is
	// known; Again are the wishes for which the answer was written again.
	Followed map[string]bool
	Again    []string
	// Write stores what is kept of the question, with the end of the run; may be nil.
	Write func(ctx context.Context, tx *store.Tx) error
}

// MaxDraft bounds an answer to a council, in bytes: 16,000 tokens take less.
const MaxDraft = 256 << 10

// council reports whether the council answers the turn.
func (r *run) council() string {
	if r.o.Council == nil || r.model == nil {
		return ""
	}
	return r.o.Council.Level(r.name)
}

// answerByCouncil has the council answer the turn whose loop is t.
func (r *run) answerByCouncil(ctx context.Context, t *talk, level string) (Result, error) {
	prompt := *t.req
	prompt.Tools, prompt.Messages = nil, slices.Clip(t.req.Messages)
	s := &CouncilTurn{Turn: r.t, Level: level, Prompt: &prompt, Corrections: r.memory.IDs, Wishes: r.memory.Wishes, Cost: r.o.Cost, Emit: r.emit,
		Loop: func(ctx context.Context, m llm.Model, l Loop) (Draft, error) { return r.askPrimary(ctx, t, m, l) },
		Ask:  r.askMember, Record: r.record, Recorded: r.recorded, Bounded: r.watchdog.Busy}
	v, err := r.o.Council.Answer(ctx, s)
	r.stop = v.Stop
	if cause := context.Cause(ctx); cause != nil {
		stop := "error"
		if errors.Is(cause, ErrAborted) {
			stop = "aborted"
		}
		if v.Text != "" && (stop == "aborted" || userNotified(ctx)) {
			if err := r.conclude(&v, stop); err != nil {
				return Result{}, err
			}
		}
		v.Buttons = nil
		return r.with(&v)(r.cut(v.Text, cause))
	}
	if err != nil {
		return Result{}, err
	}
	if v.Fault == nil && v.Text == "" {
		v.Fault = &llm.Fault{Code: "empty", Text: texts.Text("fault_empty"), CanRetry: true}
	}
	if v.Fault != nil {
		return r.with(&v)(r.failed(v.Text, v.Fault))
	}
	if err := r.conclude(&v, v.Stop); err != nil {
		return Result{}, err
	}
	r.verdict = v.Council
	r.given.Followed, r.given.Again = v.Followed, v.Again
	return r.with(&v)(r.done(v.Text))
}

// conclude keeps the council's answer in the transcript. Where an earlier attempt did, that
// one is the answer, whatever the council found this time.
func (r *run) conclude(v *Verdict, stop string) error {
	if r.t.Attempt > 1 {
		m, ok := r.lastAnswer()
		before := core.BlocksText(m.Blocks)
		if ok && len(calls(m.Blocks)) == 0 && before == v.Text {
			return nil
		}
		if ok && len(calls(m.Blocks)) == 0 && before != "" && m.Stop != "aborted" && m.Stop != "error" {
			v.Text, v.Followed, v.Again = before, nil, nil
			if m.Model != "" {
				v.Model = m.Model
			}
			return nil
		}
	}
	r.said++
	if stop == "" {
		stop = "end_turn"
	}
	return r.append(transcript.Message{Role: "assistant", Blocks: []core.Block{{Type: "text", Text: v.Text}}, Model: v.Model, Stop: stop})
}

// with has the end of a run store what the council keeps, and offer its buttons.
func (r *run) with(v *Verdict) func(Result, error) (Result, error) {
	return func(res Result, err error) (Result, error) {
		if err != nil {
			return res, err
		}
		res.Buttons = v.Buttons
		if end := res.Write; v.Write != nil {
			res.Write = func(ctx context.Context, tx *store.Tx) error {
				if err := end(ctx, tx); err != nil {
					return err
				}
				return v.Write(ctx, tx)
			}
		}
		return res, nil
	}
}

// askPrimary has m go through the turn's loop. Its last message is returned, not kept.
func (r *run) askPrimary(ctx context.Context, t *talk, m llm.Model, l Loop) (Draft, error) {
	r.model = m
	began, from := r.o.Clock.Now(), len(t.req.Messages)
	system := t.req.System
	if l.System != "" {
		t.req.System += "\n\n" + l.System
	}
	defer func() { t.req.System = system }()
	t.name, t.text, t.held = m.About().Name, "", true
	t.bill, t.first, t.after = nil, false, 0
	wrote := false
	t.said = func(text string) {
		if l.Text != nil {
			wrote = true
			l.Text(text)
		}
	}
	t.using = func(context.Context, []core.Block) error {
		if l.Calls != nil {
			l.Calls()
		}
		return nil
	}
	fault, err := t.rounds(ctx)
	d := r.draft(t, began, fault)
	d.Broken = wrote && fault != nil
	if len(t.req.Messages) > from { // it may have been summed up
		d.Tools = slices.Clone(t.req.Messages[from:])
	}
	return d, err
}

// askMember asks m once.
func (r *run) askMember(ctx context.Context, m llm.Model, req *llm.Request) (Draft, error) {
	began := r.o.Clock.Now()
	own := *req
	t := &talk{r: r, with: m, name: m.About().Name, req: &own, show: func(core.Event) {}, said: func(string) {}}
	answer, fault, err := t.ask(ctx)
	t.text, t.stop = core.BlocksText(answer.Blocks), answer.Stop
	return r.draft(t, began, fault), err
}

// draft returns what a talk has led to.
func (r *run) draft(t *talk, began time.Time, fault *llm.Fault) Draft {
	total := bill.Sum(t.bill)
	return Draft{Model: t.name, Text: t.text, Stop: t.stop, First: t.after, Took: r.o.Clock.Now().Sub(began), Fault: fault, rows: t.bill,
		Used: total.Tokens, MicroUSD: total.MicroUSD}
}

// record bills drafts in tx instead of at the end of the run.
func (r *run) record(ctx context.Context, tx *store.Tx, drafts ...*Draft) error {
	var rows []usage.Row
	for _, d := range drafts {
		rows = append(rows, d.rows...)
	}
	return r.bill.Record(ctx, tx, rows)
}

// recorded adds what an earlier attempt has paid for to the turn's usage.
func (r *run) recorded(drafts ...*Draft) {
	for _, d := range drafts {
		r.bill.Recorded(d.Model, bill.Total{Tokens: d.Used, MicroUSD: d.MicroUSD})
	}
}
