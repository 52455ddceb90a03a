package admin

import "context"

// menu lists the pages that are there, with what on them wants attention.
// Sources that fail are silent here: their page says so.
func (p *Panel) menu(ctx context.Context, current string) []entry {
	m := []entry{{Key: "overview", Path: "/admin", Label: "Overview"}}
	if p.o.Requests != nil && p.o.Decisions != nil {
		n := len(p.pending(ctx).Value)
		m = append(m, entry{Key: "pairing", Path: "/admin/pairing", Label: "Pairing", Count: n, Words: "waiting"})
	}
	if p.o.Asks != nil {
		n := len(p.waitingAsks(ctx).Value) + asking(p.raises(ctx).Value)
		m = append(m, entry{Key: "approvals", Path: "/admin/approvals", Label: "Approvals", Count: n, Words: "waiting"})
	}
	if p.hasChats() {
		m = append(m, entry{Key: "chats", Path: chatsPath, Label: "Chats"})
	}
	if p.o.People != nil {
		m = append(m, entry{Key: "people", Path: "/admin/people", Label: "People"})
	}
	if p.hasAgents() {
		m = append(m, entry{Key: "agents", Path: agentsPath, Label: "Agents", Count: p.agentsUnwell(), Words: "not well", Urgent: true})
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
	if p.o.ModelsPage != nil {
		m = append(m, entry{Key: "models", Path: modelsPath, Label: "Models"})
	}
	if p.o.Settings != nil {
		m = append(m, entry{Key: "settings", Path: settingsPath, Label: "Settings"})
	}
	if p.o.AuditLog != nil {
		m = append(m, entry{Key: "audit", Path: auditPath, Label: "Audit"})
	}
	if p.hasTalk() {
		m = append(m, entry{Key: "talk", Path: talkPath, Label: "Chat"})
	}
	for i := range m {
		m[i].Current = m[i].Key == current
		m[i].Far = len(m) > nearPages+1 && i >= nearPages
	}
	return m
}

// nearPages are shown beside More on a phone.
const nearPages = 4

// more is the entry that stands for those that are far.
func more(menu []entry) (m entry) {
	for _, e := range menu {
		if e.Far {
			m.Label = "More"
			m.Count += e.Count
			m.Urgent = m.Urgent || e.Urgent && e.Count > 0
			m.Current = m.Current || e.Current
		}
	}
	return m
}
