package admin

import (
	"context"
)

// menu lists the pages that are there, with what on them wants attention.
// Sources that fail are silent here: their page says so.
func (p *Panel) menu(ctx context.Context, current string) []entry {
	m := []entry{{Key: "overview", Path: "/admin", Label: "Overview"}}
	if p.o.Requests != nil && p.o.Decisions != nil {
		n := len(p.pending(ctx).Value)
		m = append(m, entry{Key: "pairing", Path: "/admin/pairing", Label: "Pairing", Count: n, Words: "waiting"})
	}
	if p.o.Asks != nil {
		n := len(p.waitingAsks(ctx).Value)
		m = append(m, entry{Key: "approvals", Path: "/admin/approvals", Label: "Approvals", Count: n, Words: "waiting"})
	}
	if p.o.People != nil {
		m = append(m, entry{Key: "people", Path: "/admin/people", Label: "People"})
	}
	if p.o.Bots != nil {
		m = append(m, entry{Key: "bots", Path: "/admin/bots", Label: "Bots", Count: len(unwell(p.states())), Words: "not well", Urgent: true})
	}
	if p.hasQueue() {
		e := entry{Key: "queue", Path: "/admin/queue", Label: "Queue", Words: "stuck", Urgent: true}
		if p.o.Lanes != nil {
			e.Count = p.stuck(ctx).Value.stuck()
		}
		m = append(m, e)
	}
	for i := range m {
		m[i].Current = m[i].Key == current
	}
	return m
}
