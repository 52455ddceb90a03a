package admin

import (
	"context"
	"net/http"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
)

type overviewBody struct {
	Lede  string
	Bots  *page.Answer
	Waits []page.Answer // people, tool calls, what is stuck: one question
	Cost  *page.Answer
	Owner bool // somebody owns the bots in chat; true when not known
}

// Waiting answers whether anyone waits.
func (b overviewBody) Waiting() (tone string) {
	tone = "good"
	for _, a := range b.Waits {
		if rank := map[string]int{"good": 0, "note": 1, "warn": 2, "bad": 3}; rank[a.Tone] > rank[tone] {
			tone = a.Tone
		}
	}
	return tone
}

func (p *Panel) overviewPage(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	b := overviewBody{Owner: p.people.HasOwner(ctx)}
	var wants []string
	note := func(a page.Answer) *page.Answer {
		if a.Short != "" {
			wants = append(wants, a.Short)
		}
		return &a
	}
	if p.o.Bots != nil {
		b.Bots = note(p.botsAnswer())
	}
	if a, ok := p.people.Answer(ctx); ok {
		b.Waits = append(b.Waits, *note(a))
	}
	if p.o.Asks != nil {
		b.Waits = append(b.Waits, *note(p.approvalsAnswer(ctx)))
	}
	if p.o.Lanes != nil {
		b.Waits = append(b.Waits, *note(p.queueAnswer(ctx)))
	}
	if p.o.Usage != nil {
		b.Cost = note(p.usageAnswer(ctx))
	}
	b.Lede = "All is well."
	if len(wants) > 0 {
		b.Lede = page.Sentence(strings.Join(wants, ", "))
	}
	return p.frame.Show(w, r, http.StatusOK, "overview", page.View{Title: "Overview", Topics: "pairing approvals bots queue", Every: 10, Body: b})
}

func (p *Panel) botsAnswer() page.Answer {
	a := page.Answer{Key: "bots", Question: "Is every bot well?", Path: "/admin/bots", Link: "Bots", Tone: "good"}
	states := p.states()
	ill, off := unwell(states), stopped(states)
	switch {
	case len(states) == 0:
		a.Answer, a.Tone, a.Short = "No bot is set up yet.", "warn", "no bot is set up yet"
		a.Detail = []page.Detail{{Text: "Give the gateway a bot’s token and start it again; the page Bots says how."}}
		return a
	case len(off) == len(states):
		a.Answer, a.Tone, a.Short = "None runs: "+stoppedWords(off)+".", "warn", "no bot runs"
		return a
	case len(ill) == 0:
		a.Answer = "Yes. " + page.Count(len(states)-len(off), "bot runs.", "bots run.")
	default:
		a.Answer, a.Tone = "No. "+botsLede(states), "warn"
		a.Short = page.Count(len(ill), "bot needs", "bots need") + " a look"
	}
	for _, s := range append(ill, off...) {
		_, word := page.State(s.State)
		line := ": " + strings.ToLower(word)
		if s.Reason != "" {
			line += " – " + s.Reason
		}
		if s.State == core.FailedPhase {
			a.Tone = "bad"
		}
		a.Detail = append(a.Detail, page.Detail{Who: s.Bot, Text: line})
	}
	a.Detail = a.Detail[:min(len(a.Detail), 5)]
	return a
}

func (p *Panel) queueAnswer(ctx context.Context) page.Answer {
	a := page.Answer{Key: "queue", Question: "What is stuck", Path: "/admin/queue", Link: "Queue", Tone: "good"}
	s := p.stuck(ctx)
	v := s.Value
	switch {
	case s.Broken != "":
		a.Broken, a.Tone, a.Short = s.Broken, "warn", "the queue can’t be read"
		return a
	case v.stuck() == 0:
		a.Answer = "Nothing. " + flow(v)
		return a
	}
	a.Tone, a.Short = "bad", page.Count(v.stuck(), "thing is", "things are")+" stuck"
	if v.Dead > 0 {
		a.Detail = append(a.Detail, page.Detail{Text: page.Count(int(v.Dead), "message", "messages") + " given up after several tries"})
	}
	if v.Unsure > 0 {
		a.Detail = append(a.Detail, page.Detail{Text: page.Count(int(v.Unsure), "reply", "replies") + " that may not have arrived"})
	}
	a.Answer = page.Count(v.stuck(), "thing needs", "things need") + " your word."
	return a
}

// flow says how much is on its way.
func flow(s stuckness) string {
	if s.Ready+s.Open == 0 {
		return "Every message is answered."
	}
	return page.Count(int(s.Ready), "message", "messages") + " and " + page.Count(int(s.Open), "reply", "replies") + " on the way."
}
