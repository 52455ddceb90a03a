package approvals

import (
	"context"
	"html/template"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core/permission/raise"
)

// Bounds of what the overview shows of what waits: calls, and bytes of their paths,
// commands and changes; one call is always shown.
const (
	inboxCalls = 6
	inboxShown = 16 << 10
)

// Answer returns what waits, for the overview, each with the forms that decide it;
// false without tool calls. token is that of its forms.
func (p *Pages) Answer(ctx context.Context, token string) (page.Answer, bool) {
	if p.o.Asks == nil {
		return page.Answer{}, false
	}
	a := page.Answer{Key: "approvals", Question: "Tool calls", Path: approvalsPath, Link: "Approvals", Tone: "good"}
	rows, raises := p.waitingAsks(ctx), p.raises(ctx)
	n := asking(raises.Value)
	if a.Answer = approvalsLede(len(rows.Value), n); rows.Broken != "" {
		a.Answer, a.Broken, a.Tone, a.Short = "", rows.Broken, "warn", "tool calls can’t be read"
	} else if len(rows.Value) > 0 {
		a.Tone, a.Short = "note", page.Count(len(rows.Value), "tool call waits", "tool calls wait")
	}
	if n > 0 {
		a.Tone, a.Short = "note", strings.TrimPrefix(a.Short+", "+page.Count(n, "question about trust waits", "questions about trust wait"), ", ")
		a.Detail = append(a.Detail, page.Detail{Text: "The owner asks for trust full for a time"})
	}
	if raises.Broken != "" {
		a.Tone, a.Short = "warn", strings.TrimPrefix(a.Short+", questions about trust can’t be read", ", ")
		a.Detail = append(a.Detail, page.Detail{Text: raises.Broken})
	}
	a.Cards = p.raiseFragments(ctx, raises, token)
	shown := shownAsks(rows.Value, inboxCalls, inboxShown)
	a.More = len(rows.Value) - shown
	cards, _ := p.cards(rows.Value[:shown], p.recentAsks(ctx).Value, p.links.Names(ctx), token)
	for _, c := range cards {
		c.Home = true
		name := "ask"
		if c.Settled != nil {
			name = "answered"
		}
		a.Cards = p.fragment(ctx, a.Cards, name, c)
	}
	return a, true
}

// raiseFragments returns the questions about trust.
func (p *Pages) raiseFragments(ctx context.Context, raises page.Part[[]raise.Raise], token string) (out []template.HTML) {
	for _, c := range p.raiseCards(raises, token).Value {
		if !c.Held() {
			c.Home = true
			out = p.fragment(ctx, out, "raise", c)
		}
	}
	return out
}

// fragment appends a template of the page, filled with data.
func (p *Pages) fragment(ctx context.Context, to []template.HTML, name string, data any) []template.HTML {
	card, err := p.frame.Fragment("approvals", name, data)
	if err != nil {
		p.frame.Log.ErrorContext(ctx, "panel section", "section", "tool calls", "err", err)
		return to
	}
	return append(to, card)
}
