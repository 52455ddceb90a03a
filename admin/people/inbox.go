package people

import (
	"context"

	"gatehouse/admin/page"
)

// inboxRequests bounds the requests on the overview; the page Pairing has the others.
const inboxRequests = 6

// answer returns who waits for a decision, for the overview, each with the forms
// that decide it. What was decided just now keeps its place for some seconds.
func (p *gatePages) answer(ctx context.Context, token string) page.Answer {
	a := page.Answer{Key: "pairing", Question: "People", Path: pairingPath, Link: "Pairing", Tone: "good"}
	rows := p.pending(ctx)
	now := p.frame.Clock.Now()
	switch {
	case rows.Broken != "":
		a.Broken, a.Tone, a.Short = rows.Broken, "warn", "requests can’t be read"
		return a
	case len(rows.Value) == 0:
		a.Answer = "No requests are pending."
	default:
		a.Answer, a.Tone = pairingLede(rows.Value, now), "note"
		a.Short = page.Count(len(rows.Value), "person waits", "people wait")
	}
	if !p.there() {
		return a
	}
	var b pairingBody
	a.More = max(0, len(rows.Value)-inboxRequests)
	p.arrange(&b, rows.Value[:len(rows.Value)-a.More], p.recent(ctx).Value, now, token)
	for _, c := range b.Cards.Value {
		name := "brief"
		if !c.Pending {
			name = "briefdone"
		}
		card, err := p.frame.Fragment("pairing", name, c)
		if err != nil {
			p.frame.Log.ErrorContext(ctx, "panel section", "section", "requests", "err", err)
			continue
		}
		a.Cards = append(a.Cards, card)
	}
	return a
}
