package council

import (
	"context"
	"slices"
	"strings"
	"sync"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/council/stream"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/texts"
)

// askPrimary has a member answer in the turn's loop. show gets the text without the report,
// calls is called before calls of tools; both may be nil.
func (h *hearing) askPrimary(ctx context.Context, m llm.Model, show func(string), calls func()) (orchestrator.Draft, error) {
	if d, ok := h.storedDraft(ledger.StageAnswer, m.About().Name, nil); ok {
		if text, _, _ := choice.SplitReport(d.Text); show != nil && d.Fault == nil {
			show(text)
		}
		return d, nil
	}
	l := orchestrator.Loop{System: choice.ReportInstruction, Calls: calls}
	f := &stream.Filter{Show: show}
	if show != nil {
		l.Text = f.Push
		l.Calls = func() {
			f.Next()
			if calls != nil {
				calls()
			}
		}
	}
	d, err := h.s.Loop(ctx, m, l)
	if show != nil && err == nil {
		f.End()
	}
	h.recordCall(m.About().Name, &d)
	return d, err
}

// single has one member answer; another does where that fails before its first word.
func (h *hearing) single(ctx context.Context) error {
	order := h.order()
	slices.SortStableFunc(order, func(a, b string) int { return h.turn(a) - h.turn(b) })
	for i, name := range order {
		m := h.model(name)
		h.primary = name
		h.mark(name, "asked")
		d, err := h.askPrimary(ctx, m, h.show, h.reset)
		if err != nil || ctx.Err() != nil {
			return err
		}
		d.Model = name // also where a fallback answered
		a, err := h.answerFrom(ctx, d)
		if err != nil {
			return err
		}
		h.answers = append(h.answers, a)
		if a.state == isOK {
			h.winner, h.reason = a, "routing"
			h.mark(name, "answered")
			break
		}
		h.mark(name, "failed")
		if d.Broken || i+1 == len(h.members) {
			return nil
		}
		h.s.Emit(core.Warning{Code: "model", Message: name + " does not answer, asking another member of the council instead"})
	}
	if h.winner == nil {
		return nil
	}
	if err := h.saveAnswers(ctx); err != nil {
		return err
	}
	h.blend()
	h.winner.score = choice.Weigh(h.domains, h.member(h.winner))
	if h.level == choice.Balanced && h.doubtful(h.winner) {
		return h.review(ctx, 1)
	}
	return nil
}

// turn returns when a member is asked: those that an earlier attempt has asked before the
// others, the one that answered last of them.
func (h *hearing) turn(model string) int {
	st, asked := h.stored[place{ledger.StageAnswer, model}]
	switch {
	case !asked:
		return 2
	case st.Error == "":
		return 1
	}
	return 0
}

// reset forgets what was shown before calls of tools: it is in the transcript.
func (h *hearing) reset() {
	h.mu.Lock()
	h.streamed.Reset()
	h.mu.Unlock()
}

// blend adds the domains that members reported to the question's.
func (h *hearing) blend() {
	var reported []string
	for _, a := range h.answers {
		if a.domain != "" {
			reported = append(reported, a.domain)
		}
	}
	h.domains = choice.Blend(h.domains, reported)
}

// member returns an answer's author as the choice weighs it.
func (h *hearing) member(a *answer) choice.Member {
	for _, m := range h.members {
		if m.Model == a.model {
			m.Confidence = a.confidence()
			return m
		}
	}
	return choice.Member{Model: a.model, Confidence: a.confidence()}
}

// unsure is the reported confidence below which an answer is reviewed.
const unsure = 0.6

// asksFacts are questions with an answer that is right or wrong, in English and German.
var asksFacts = core.Pattern(`(?i)\b(who|whom|whose|when|where|which|how (many|much|long|old|far|tall|high|often)|what (is|are|was|were|year|date)|is it true|wer|wen|wem|wann|wo|woher|wohin|welche[rsmn]?|wie (viele?|lange|alt|weit|hoch|oft)|was (ist|sind|war|waren)|stimmt es)\b`)

// doubtful reports whether an answer is reviewed at balanced: the question asks for
// facts or wrong answers do harm, or the answer is cut off or its author unsure.
func (h *hearing) doubtful(a *answer) bool {
	domain := h.domains[0].Domain
	root, _, _ := strings.Cut(domain, ".")
	switch {
	case choice.HighStakes(domain), a.stop == "max_tokens", a.said && a.report.Confidence < unsure:
		return true
	case root == "history", root == "science", root == "math":
		return true
	}
	return asksFacts().MatchString(cut(h.question, maxShown))
}

// judge returns who judges answers of the authors: the judge, else the best member
// that is none of them; nil if there is none.
func (h *hearing) judge(authors ...string) llm.Model {
	is := func(name string) bool {
		for _, a := range authors {
			if a == name {
				return true
			}
		}
		return false
	}
	if h.m.Judge != nil && !is(h.m.Judge.About().Name) {
		return h.m.Judge
	}
	for _, s := range h.route.Scores {
		if !is(s.Model) {
			return h.model(s.Model)
		}
	}
	return nil
}

// review has members review the winner, without the name of its author.
func (h *hearing) review(ctx context.Context, most int) error {
	w := h.winner
	var reviewers []llm.Model
	if most == 1 {
		m := h.storedJudge(ledger.StageReview)
		if m == nil {
			m = h.judge(w.model)
		}
		if m != nil {
			reviewers = append(reviewers, m)
		}
	} else {
		for _, name := range h.order() {
			if name != w.model && len(reviewers) < most {
				reviewers = append(reviewers, h.model(name))
			}
		}
	}
	req := h.reviewRequest(w.text)
	if reviewers = h.afford(reviewers, req); len(reviewers) == 0 {
		return nil
	}
	h.stage("reviewing")
	h.c.o.Metrics.reviews.Add(float64(len(reviewers)))
	type result struct {
		r   choice.Review
		a   *answer
		ok  bool
		err error
	}
	results := together(reviewers, func(m llm.Model) (x result) {
		x.r, x.a, x.ok, x.err = ask(ctx, h, judgement{ledger.StageReview, m, []string{w.model}, req, 2, 3 * h.m.Wait}, choice.ParseReview)
		return x
	})
	var reviews []choice.Review
	for i, x := range results {
		if x.err != nil || ctx.Err() != nil {
			return x.err
		}
		if !x.ok {
			x.r = choice.Review{Verdict: choice.Unreviewed}
		}
		reviews = append(reviews, x.r)
		h.note.Reviews = append(h.note.Reviews, ledger.Reviewed{Model: reviewers[i].About().Name, Review: x.r})
		h.reviews = append(h.reviews, x.a)
	}
	h.objected = choice.Objects(reviews)
	switch {
	case h.objected:
		w.found = ledger.Incorrect
	case approves(reviews):
		w.found = ledger.Correct
	}
	if !h.objected {
		return nil
	}
	if h.level == choice.Maximum {
		return h.regenerate(ctx, reviews)
	}
	h.notes = append(h.notes, texts.Text("council_objection", texts.With{"Issues": strings.Join(issues(reviews), "; ")}))
	return nil
}

// approves reports whether most reviews with a verdict find the answer correct.
func approves(reviews []choice.Review) bool {
	correct, verdicts := 0, 0
	for _, r := range reviews {
		if r.Verdict != choice.Unreviewed {
			verdicts++
		}
		if r.Verdict == choice.ReviewCorrect {
			correct++
		}
	}
	return 2*correct > verdicts
}

// issues returns what reviewers who object say, at most five.
func issues(reviews []choice.Review) (list []string) {
	for _, r := range reviews {
		if r.Verdict != choice.ReviewIncorrect {
			continue
		}
		for _, i := range r.Issues {
			if len(list) < 5 {
				list = append(list, core.CutRunes(strings.Join(strings.Fields(i), " "), 200))
			}
		}
	}
	return list
}

// regenerate has the winner's author answer once more, with the issues.
func (h *hearing) regenerate(ctx context.Context, reviews []choice.Review) error {
	w := h.winner
	m := h.model(w.model)
	d, stored := h.storedDraft(ledger.StageRegenerate, w.model, nil)
	if !stored {
		req := h.again(w, issues(reviews))
		if len(h.afford([]llm.Model{m}, req)) == 0 {
			return nil
		}
		var err error
		if d, err = h.revise(ctx, ledger.StageRegenerate, nil, m, req); err != nil || ctx.Err() != nil {
			return err
		}
	}
	text, _, _ := choice.SplitReport(d.Text)
	if d.Fault != nil || strings.TrimSpace(text) == "" {
		h.notes = append(h.notes, texts.Text("council_objection", texts.With{"Issues": strings.Join(issues(reviews), "; ")}))
		return nil
	}
	w.text = text
	h.notes = append(h.notes, texts.Text("council_revised"))
	return nil
}

// revise has an answer's author write it again, and stores what came of it.
func (h *hearing) revise(ctx context.Context, stage string, of []string, m llm.Model, req *llm.Request) (orchestrator.Draft, error) {
	h.stage("revising")
	short, stop := h.within(ctx, 3*h.m.Wait)
	defer stop()
	d, err := h.s.Ask(short, m, req)
	if ctx.Err() != nil || err != nil && !late(short, ctx) {
		return d, err
	}
	h.recordCall(m.About().Name, &d)
	d.Model = m.About().Name // also where a fallback answered
	if late(short, ctx) {
		d.Fault = &llm.Fault{Code: "council", Text: tooSlow}
	}
	why := ""
	if d.Fault != nil {
		why = d.Fault.Text
	}
	return d, h.keepReply(ctx, stage, of, why, []*orchestrator.Draft{&d})
}

// together calls f for each of list at the same time, and returns the results in
// their order.
func together[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() { out[i] = f(list[i]) })
	}
	wg.Wait()
	return out
}
