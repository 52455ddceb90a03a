package admin

import (
	"net/http"
	"strings"

	"gatehouse/admin/approvals"
	"gatehouse/admin/logged"
	"gatehouse/admin/nodes"
	"gatehouse/admin/operations"
	"gatehouse/admin/page"
	"gatehouse/admin/people"
	"gatehouse/admin/reports"
	"gatehouse/admin/settings"
	"gatehouse/core"
)

// The overview answers from all groups of pages what needs attention.
type overview struct {
	frame      *page.Frame
	people     *people.Pages
	approvals  *approvals.Pages
	operations *operations.Pages
	settings   *settings.Pages
	logged     *logged.View
	reports    *reports.Pages
	nodes      *nodes.Pages
}

type overviewBody struct {
	Lede     string
	CSRF     string
	Bots     *page.Answer
	Waits    []page.Answer // requests, tool calls, the queue: one question
	Cost     *page.Answer
	Sparks   page.Part[[]page.Spark]
	Activity page.Part[[]page.Happening]
	Logged   page.Part[[]logged.Item] // the owner's newest exchanges
	Owner    bool                     // the bots have an owner in chat; true when not known
}

// Waiting returns the tone of the answer that needs attention most.
func (b overviewBody) Waiting() (tone string) {
	tone = "good"
	for _, a := range b.Waits {
		if rank := map[string]int{"good": 0, "note": 1, "warn": 2, "bad": 3}; rank[a.Tone] > rank[tone] {
			tone = a.Tone
		}
	}
	return tone
}

func (p *overview) page(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	b := overviewBody{Owner: p.people.HasOwner(ctx), CSRF: page.Token(r)}
	var wants []string
	note := func(a page.Answer) *page.Answer {
		a = a.Signed(b.CSRF)
		if a.Short != "" {
			wants = append(wants, a.Short)
		}
		return &a
	}
	if a, ok := p.operations.BotsAnswer(); ok {
		b.Bots = note(a)
	}
	if a, ok := p.people.Answer(ctx, b.CSRF); ok {
		b.Waits = append(b.Waits, *note(a))
	}
	if a, ok := p.approvals.Answer(ctx, b.CSRF); ok {
		b.Waits = append(b.Waits, *note(a))
	}
	if a, ok := p.operations.QueueAnswer(ctx); ok {
		b.Waits = append(b.Waits, *note(a))
	}
	if a, ok := p.operations.ModelsAnswer(); ok {
		b.Waits = append([]page.Answer{*note(a)}, b.Waits...)
	}
	if a, ok := p.settings.RestoreAnswer(); ok {
		b.Waits = append([]page.Answer{*note(a)}, b.Waits...)
	}
	if a, ok := p.reports.Answer(); ok {
		b.Waits = append([]page.Answer{*note(a)}, b.Waits...)
	}
	if a, ok := p.nodes.Answer(ctx); ok {
		b.Waits = append([]page.Answer{*note(a)}, b.Waits...)
	}
	if a, ok := p.logged.Answer(ctx); ok {
		b.Waits = append(b.Waits, *note(a))
	}
	if a, ok := p.operations.CostAnswer(ctx); ok {
		b.Cost = note(a)
	}
	b.Sparks, b.Activity = p.operations.Sparks(ctx), p.operations.Activity(ctx)
	b.Logged = p.logged.Newest(ctx)
	b.Lede = "All is well."
	if len(wants) > 0 {
		b.Lede = page.Sentence(strings.Join(wants, ", "))
	}
	return p.frame.Show(w, r, http.StatusOK, "overview", page.View{Title: "Overview", Topics: []core.Topic{core.TopicPairing, core.TopicApprovals, core.TopicBots, core.TopicQueue}, Every: 10, Body: b})
}
