package council

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/llm"
	"gatehouse/core/llm/strict"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

var unreported = math.NaN()

// seedOf returns the seed of a question's random decisions: the same in each attempt.
func seedOf(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64()
}

// States of an answer.
const (
	isOK     = "ok"
	isFailed = "failed"
	isLate   = "late"
)

// tooSlow is why an answer is late.
const tooSlow = "it was too slow"

// An answer is one member's answer.
type answer struct {
	model   string
	state   string
	text    string // without the report
	raw     string // as the member wrote it
	stop    string
	why     string // it is not ok
	report  choice.Report
	said    bool // it reported
	domain  string
	draft   orchestrator.Draft
	claim   int
	score   choice.Score
	welfare choice.Standing
	rated   bool
	found   string // ledger.Correct or Incorrect, by reviewers
}

// fail notes why there is no answer.
func (a *answer) fail(why string) {
	a.state, a.why = isFailed, why
	if why == tooSlow {
		a.state = isLate
	}
}

func (a *answer) confidence() float64 {
	if !a.said {
		return unreported
	}
	return a.report.Confidence
}

// A place is where what a model returned is stored.
type place struct{ stage, model string }

// A hearing is one question on its way.
type hearing struct {
	c            *Council
	s            *orchestrator.CouncilTurn
	m            Members
	id           string
	asked, level string
	question     string
	domains      []choice.Share
	seed         uint64
	members      []choice.Member
	route        choice.Route
	primary      string // the member whose loop runs
	began        time.Time
	stored       map[place]ledger.Stage // of an earlier attempt, failures too

	answers  []*answer // of all that were asked
	winner   *answer
	reason   string
	agreeing int  // answers that agree with the winner's, it included
	disputed bool // answers contradict each other
	objected bool
	note     ledger.Note
	reviews  []*answer // runs of judge and reviewers

	followed  map[string]bool // by the id of a wish, as far as it is known
	rewritten []string        // wishes for which the answer was written again

	mu       sync.Mutex     // of what follows
	saved    map[place]bool // by this attempt
	notes    []string       // for the reader, under the answer
	streamed strings.Builder
	calls    int
	states   []core.Deliberating
	spent    int64            // millionths of a dollar, as far as prices are known
	reserved map[string]int64 // what calls that run are expected to cost, by model
}

// shown returns what of the answer was shown so far.
func (h *hearing) shown() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streamed.String()
}

// show shows a piece of the answer.
func (h *hearing) show(text string) {
	if text == "" {
		return
	}
	h.mu.Lock()
	h.streamed.WriteString(text)
	h.mu.Unlock()
	h.s.Emit(core.TextDelta{Content: text})
}

// model returns the member of that name; nil if there is none.
func (h *hearing) model(name string) llm.Model {
	i := slices.IndexFunc(h.m.Models, func(m llm.Model) bool { return m.About().Name == name })
	if i < 0 {
		return nil
	}
	return h.m.Models[i]
}

// order returns the members' names, the one that is asked first in front.
func (h *hearing) order() []string {
	names := []string{h.route.Model}
	for _, s := range h.route.Scores {
		if s.Model != h.route.Model {
			names = append(names, s.Model)
		}
	}
	return names
}

// stage reports what the council does now.
func (h *hearing) stage(name string) {
	h.mu.Lock()
	e := core.Deliberation{QueryID: h.id, AccuracyLevel: h.level, Stage: name, Members: slices.Clone(h.states)}
	h.mu.Unlock()
	h.s.Emit(e)
}

// mark notes how far a member is.
func (h *hearing) mark(model, state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.states {
		if h.states[i].Model == model {
			h.states[i].State = state
			return
		}
	}
	h.states = append(h.states, core.Deliberating{Model: model, State: state})
}

// recordCall counts a call that was made of a model, where another may have answered in its place.
func (h *hearing) recordCall(asked string, d *orchestrator.Draft) {
	h.addUsage(asked, d)
	h.c.o.Metrics.took(d.Model, d.Took)
}

// addUsage counts a call, one of an earlier attempt too.
func (h *hearing) addUsage(asked string, d *orchestrator.Draft) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	delete(h.reserved, asked)
	if d.MicroUSD != nil {
		h.spent += *d.MicroUSD
	}
}

// answerFrom returns the answer that a draft is.
func (h *hearing) answerFrom(ctx context.Context, d orchestrator.Draft) (*answer, error) {
	a := &answer{model: d.Model, raw: d.Text, stop: d.Stop, draft: d, state: isOK}
	if d.Fault != nil {
		a.fail(d.Fault.Text)
		return a, nil
	}
	a.text, a.report, a.said = choice.SplitReport(d.Text)
	if strings.TrimSpace(a.text) == "" {
		a.state, a.why = isFailed, texts.Text("fault_empty")
		return a, nil
	}
	if a.said && a.report.Domain != "" {
		_, counted := h.stored[place{ledger.StageAnswer, a.model}]
		r, err := h.c.o.Evidence.ResolveDomain(ctx, a.model, a.report.Domain, counted, h.near(ctx))
		if err != nil {
			return nil, err
		}
		a.domain = r.Domain
	}
	return a, nil
}

// near returns what compares names of domains by their meaning; nil where nothing does.
func (h *hearing) near(ctx context.Context) func(name string, labels []string) []float64 {
	if h.c.o.Near == nil {
		return nil
	}
	return func(name string, labels []string) []float64 { return h.c.o.Near(ctx, h.s.Turn.User, name, labels) }
}

// keep stores whole drafts of a stage, and bills them. of names whose answers were read
// for them.
func (h *hearing) keep(ctx context.Context, stage string, of []string, drafts ...*orchestrator.Draft) error {
	var stages []ledger.Stage
	var fresh []*orchestrator.Draft
	for _, d := range drafts {
		if d.Fault != nil || !h.unsaved(stage, d.Model) {
			continue
		}
		fresh, stages = append(fresh, d), append(stages, h.stageOf(stage, of, d))
	}
	return h.save(ctx, stages, fresh)
}

// stageOf returns a draft as it is stored.
func (h *hearing) stageOf(stage string, of []string, d *orchestrator.Draft) ledger.Stage {
	_, report, said := choice.SplitReport(d.Text)
	return ledger.Stage{Query: h.id, Stage: stage, Model: d.Model, Content: d.Text, Detail: ledger.Detail{
		LatencyMS: d.First.Milliseconds(), TotalMS: d.Took.Milliseconds(), InputTokens: d.Used.Input, OutputTokens: d.Used.Output,
		MicroUSD: d.MicroUSD, Confidence: report.Confidence, Reported: said, Domain: report.Domain, Of: of}}
}

// keepReply stores the last of a model's calls in a stage, or why it is no reply, and bills
// all of them.
func (h *hearing) keepReply(ctx context.Context, stage string, of []string, why string, calls []*orchestrator.Draft) error {
	last := calls[len(calls)-1]
	if !h.unsaved(stage, last.Model) {
		return nil
	}
	st := h.stageOf(stage, of, last)
	for _, d := range calls[:len(calls)-1] {
		st.Detail.InputTokens += d.Used.Input
		st.Detail.OutputTokens += d.Used.Output
		if st.Detail.MicroUSD != nil && d.MicroUSD != nil {
			all := *st.Detail.MicroUSD + *d.MicroUSD
			st.Detail.MicroUSD = &all
		}
	}
	if st.Error = why; why != "" {
		st.Content = ""
	}
	return h.save(ctx, []ledger.Stage{st}, calls)
}

// saveAnswers stores all answers with those that failed or came too late, once: a later
// attempt has the same.
func (h *hearing) saveAnswers(ctx context.Context) error {
	var stages []ledger.Stage
	var drafts []*orchestrator.Draft
	for _, a := range h.answers {
		if a.state == isOK {
			drafts = append(drafts, &a.draft)
		} else if h.unsaved(ledger.StageAnswer, a.model) {
			stages = append(stages, ledger.Stage{Query: h.id, Stage: ledger.StageAnswer, Model: a.model, Error: a.why})
		}
	}
	if err := h.keep(ctx, ledger.StageAnswer, nil, drafts...); err != nil {
		return err
	}
	return h.save(ctx, stages, nil)
}

func (h *hearing) save(ctx context.Context, stages []ledger.Stage, drafts []*orchestrator.Draft) error {
	if len(stages) == 0 {
		return nil
	}
	return h.c.o.Ledger.SaveAll(ctx, stages, func(ctx context.Context, tx *store.Tx) error { return h.s.Record(ctx, tx, drafts...) })
}

// unsaved reports whether what a model returned is to be stored, once.
func (h *hearing) unsaved(stage, model string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := place{stage, model}
	_, before := h.stored[at]
	first := !before && !h.saved[at]
	h.saved[at] = true
	return first
}

// storedDraft returns what an earlier attempt has stored. of names whose answers were read for
// it; a reply about others is none.
func (h *hearing) storedDraft(stage, model string, of []string) (orchestrator.Draft, bool) {
	st, ok := h.stored[place{stage, model}]
	if !ok || !slices.Equal(st.Detail.Of, of) {
		return orchestrator.Draft{}, false
	}
	d := orchestrator.Draft{Model: model, Text: st.Content, Stop: "end_turn", MicroUSD: st.Detail.MicroUSD,
		Used:  core.Tokens{Input: st.Detail.InputTokens, Output: st.Detail.OutputTokens},
		First: time.Duration(st.Detail.LatencyMS) * time.Millisecond, Took: time.Duration(st.Detail.TotalMS) * time.Millisecond}
	if st.Error != "" {
		d.Fault = &llm.Fault{Code: "council", Text: st.Error}
		if d.Used == (core.Tokens{}) {
			return d, true
		}
	}
	h.s.Recorded(&d)
	h.addUsage(model, &d)
	return d, true
}

// storedJudge returns the model whose reply of a stage an earlier attempt has stored; nil if
// there is none.
func (h *hearing) storedJudge(stage string) llm.Model {
	for at := range h.stored {
		if at.stage != stage {
			continue
		}
		if m := h.m.Judge; m != nil && m.About().Name == at.model {
			return m
		}
		if m := h.model(at.model); m != nil {
			return m
		}
	}
	return nil
}

// A judgement is a request for JSON about the answers of others.
type judgement struct {
	stage string
	model llm.Model
	of    []string // the models that gave the answers
	req   *llm.Request
	tries int
	limit time.Duration // for all tries
}

// ask has a model return JSON of a form, again where it cannot be read, and stores what came of
// it, a failure too. Where ok is false, a has the reason, or is nil because ctx has ended.
func ask[T any](ctx context.Context, h *hearing, j judgement, parse func(string) (T, error)) (out T, a *answer, ok bool, err error) {
	name, req := j.model.About().Name, j.req
	if d, stored := h.storedDraft(j.stage, name, j.of); stored {
		a = &answer{model: name, state: isOK, raw: d.Text, text: d.Text, draft: d}
		if d.Fault != nil {
			a.fail(d.Fault.Text)
			return out, a, false, nil
		}
		if out, err := parse(d.Text); err == nil {
			return out, a, true, nil
		}
	}
	short, stop := h.within(ctx, j.limit)
	defer stop()
	var calls []*orchestrator.Draft
	for try := range j.tries {
		d, err := h.s.Ask(short, j.model, req)
		if ctx.Err() != nil || err != nil && !late(short, ctx) {
			return out, nil, false, err
		}
		h.recordCall(name, &d)
		d.Model = name // also where a fallback answered
		calls = append(calls, &d)
		a = &answer{model: name, state: isOK, raw: d.Text, text: d.Text, draft: d}
		if d.Fault != nil {
			a.fail(d.Fault.Text)
			break
		}
		out, bad := parse(d.Text)
		if bad == nil {
			return out, a, true, h.keepReply(ctx, j.stage, j.of, "", calls)
		}
		if late(short, ctx) {
			a.fail(tooSlow)
			break
		}
		a.fail(fmt.Sprintf("its reply could not be read: %v", bad))
		if try+1 < j.tries {
			again := *req
			again.Messages = append(slices.Clip(req.Messages), said("assistant", cut(d.Text, maxShown)), said("user", strict.Repair(bad, string(req.Format.Schema))))
			if req = &again; len(h.reserve([]llm.Model{j.model}, req)) == 0 {
				break
			}
		}
	}
	return out, a, false, h.keepReply(ctx, j.stage, j.of, a.why, calls)
}
