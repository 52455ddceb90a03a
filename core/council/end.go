package council

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/council/choice"
	"gatehouse/core/council/ledger"
	"gatehouse/core/council/stream"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// end returns the answer.
func (h *hearing) end() orchestrator.Verdict {
	if h.winner == nil {
		return h.failed()
	}
	v := orchestrator.Verdict{Model: h.winner.model, Stop: h.winner.stop, Council: h.said(), Followed: h.followed, Again: h.rewritten}
	h.options(&v)
	body := h.winner.text + h.noted(v.Council)
	if h.level == choice.High || h.level == choice.Maximum {
		for _, p := range stream.Pieces(body) {
			h.show(p)
		}
	} else {
		shown := strings.TrimLeft(h.shown(), "\n")
		h.show(strings.TrimPrefix(body, shown))
	}
	v.Text = body
	v.Write = h.finish(v.Council)
	h.c.o.Metrics.ended(h.level, "done", h.disputed)
	return v
}

// whole returns the answers that are whole.
func (h *hearing) whole() (list []*answer) {
	for _, a := range h.answers {
		if a.state == isOK {
			list = append(list, a)
		}
	}
	return list
}

// said describes the answer for its event.
func (h *hearing) said() *core.Council {
	whole := h.whole()
	o := choice.Outcome{Asked: len(h.answers), Answered: len(whole), Agreeing: max(1, h.agreeing), Disputed: h.disputed, Objected: h.objected, Domain: h.domains[0].Domain}
	d := &core.Council{QueryID: h.id, AccuracyLevel: h.level, ModelsUsed: []string{}}
	for _, a := range whole {
		d.ModelsUsed = append(d.ModelsUsed, a.model)
	}
	if h.level == choice.Fast || h.level == choice.Balanced {
		o.Asked, o.Answered = 1, 1 // a member that failed was replaced
	}
	d.Confidence, d.CalloutType = choice.Label(o)
	return d
}

// options offers the answers that contradict each other, the shown one first and then by their
// ratings.
func (h *hearing) options(v *orchestrator.Verdict) {
	if !h.disputed {
		return
	}
	seen := map[int]bool{}
	whole := h.whole()
	slices.SortStableFunc(whole, func(a, b *answer) int {
		switch {
		case a == h.winner:
			return -1
		case b == h.winner:
			return 1
		}
		return cmp.Compare(b.welfare.Welfare, a.welfare.Welfare)
	})
	for _, a := range whole {
		if seen[a.claim] {
			continue
		}
		seen[a.claim] = true
		n := len(v.Council.Options) + 1
		v.Council.Options = append(v.Council.Options, core.CouncilOption{N: n, Model: a.model, Text: a.text})
		if h.c.o.Pick != nil {
			v.Buttons = append(v.Buttons, core.Button{Label: texts.Text("button_council_pick", texts.With{"N": n}), Data: h.c.o.Pick(h.id, a.model)})
		}
	}
}

// maxOption bounds what of another answer is shown in a chat, in characters.
const maxOption = 700

// noted returns the notes under the answer, in Markdown.
func (h *hearing) noted(d *core.Council) string {
	var b strings.Builder
	if h.disputed {
		b.WriteString("\n\n**" + texts.Text("council_disputed") + "**")
		for _, o := range d.Options[1:] { // the first is the answer that is shown
			b.WriteString("\n\n**" + texts.Text("council_other", texts.With{"N": o.N}) + "**\n\n" + core.CutRunes(o.Text, maxOption))
		}
	} else if d.CalloutType == choice.CalloutHighStakes {
		h.notes = append(h.notes, texts.Text("council_highstakes"))
	}
	var left []string
	for _, a := range h.answers {
		if a.state != isOK {
			left = append(left, a.model)
			h.note.Left = append(h.note.Left, a.model+": "+a.why)
		}
	}
	if len(left) > 0 && (h.level == choice.High || h.level == choice.Maximum) {
		h.notes = append(h.notes, texts.Text("council_left_out", texts.With{"Who": strings.Join(left, ", ")}))
	}
	for _, n := range h.notes {
		b.WriteString("\n\n*" + strings.ReplaceAll(n, "*", "") + "*")
	}
	h.note.Text = strings.Join(h.notes, "\n")
	return b.String()
}

// failed ends a question that no member has answered.
func (h *hearing) failed() orchestrator.Verdict {
	f := &llm.Fault{Code: "council"}
	var reasons []string
	for _, a := range h.answers {
		reasons = append(reasons, a.model+": "+strings.TrimSuffix(a.why, "."))
		h.note.Left = append(h.note.Left, a.model+": "+a.why)
		if a.draft.Fault != nil {
			f.CanRetry = f.CanRetry || a.draft.Fault.CanRetry
			f.Code = a.draft.Fault.Code
		} else {
			f.CanRetry = true
		}
	}
	if len(h.answers) > 1 {
		f.Code = "council"
	}
	f.Text = texts.Text("council_failed", texts.With{"Reasons": strings.Join(reasons, "; ")})
	h.c.o.Metrics.ended(h.level, "failed", false)
	return orchestrator.Verdict{Text: strings.TrimLeft(h.shown(), "\n"), Model: h.primary, Fault: f, Write: h.finish(nil)}
}

// finish returns what stores how the question ended; d is nil where it was not answered.
func (h *hearing) finish(d *core.Council) func(context.Context, *store.Tx) error {
	r := ledger.Result{Query: h.id, Failed: d == nil, Domains: h.domains, Note: h.note, Calls: h.calls, Explored: h.route.Explored, Used: []string{}}
	if d != nil {
		r.Winner, r.Reason, r.Confidence, r.Callout, r.Used = h.winner.model, h.reason, d.Confidence, d.CalloutType, d.ModelsUsed
	}
	several := len(h.whole()) > 1
	var sum int64
	priced := true
	add := func(a *answer, round string) {
		run := ledger.Run{Model: a.model, Round: round, Response: a.raw, Utility: math.NaN(), Confidence: a.confidence(), Welfare: math.NaN(),
			Winner: a == h.winner && !h.disputed, Domain: a.domain, State: a.state, Error: a.why, Claim: a.claim, Verdict: a.found,
			Detail: ledger.Detail{LatencyMS: a.draft.First.Milliseconds(), TotalMS: a.draft.Took.Milliseconds(), InputTokens: a.draft.Used.Input + a.draft.Used.CacheRead + a.draft.Used.CacheWrite,
				OutputTokens: a.draft.Used.Output, MicroUSD: a.draft.MicroUSD, Confidence: a.report.Confidence, Reported: a.said, Domain: a.report.Domain}}
		if several && round == ledger.RoundAnswer && a.state == isOK {
			run.Utility = a.score.Weight
			if a.rated {
				run.Welfare = a.welfare.Welfare
			}
		}
		if round == ledger.RoundAnswer {
			run.Corrections = h.s.Corrections
		}
		if a.draft.MicroUSD != nil {
			sum += *a.draft.MicroUSD
		} else if a.state == isOK {
			priced = false
		}
		r.Runs = append(r.Runs, run)
	}
	for _, a := range h.answers {
		add(a, ledger.RoundAnswer)
	}
	for _, a := range h.reviews {
		if a != nil {
			add(a, ledger.RoundReview)
		}
	}
	if sum = max(sum, h.spent); priced && len(r.Runs) > 0 {
		r.MicroUSD = &sum
	}
	return func(ctx context.Context, tx *store.Tx) error { return h.c.o.Ledger.Finish(ctx, tx, r) }
}
