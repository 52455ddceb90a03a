package orchestrator

import (
	"strings"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/orchestrator/incoming"
)

// initial returns what the request gives with a conversation that begins. Of one
// that has begun it is omitted, with a warning.
func (r *run) initial() []core.Block {
	given := strings.TrimSpace(r.t.options().Initial)
	if given == "" {
		return nil
	}
	if r.t.Session.MessageCount > 0 {
		r.notices = append(r.notices, core.Warning{Code: "initial_context", Message: "the conversation has begun already: initial_context was left out"})
		return nil
	}
	mark := incoming.Fence(given)
	return []core.Block{{Type: "text", Text: "Given with this conversation, to begin with:\n" + mark + "\n" + given + "\n" + mark}}
}

// about adds before a row's text the message that it refers to, marked as data: its
// author, if known, and each line with "> ".
func (r *run) about(row *core.Inbound, words string) string {
	q := row.Quote
	switch {
	case q == nil:
		return words
	case q.Forwarded:
		said := "Forwarded, not written by the sender of this message:\n" + agent.Quoted{Name: q.Name, Label: "elsewhere", Text: row.Text}.String()
		if row.Group() {
			said = agent.SafeName(row.From.Name) + " has forwarded this. " + said
		}
		return said
	case q.Ours:
		return "About this passage of yours:\n" + agent.Quoted{Name: "you", Label: "earlier", Text: q.Text}.String() + "\n" + words
	}
	if q.Root && r.t.Session.MessageCount > 0 { // the conversation knows it
		return words
	}
	if q.Root {
		return "In a thread that began with this:\n" + agent.Quoted{Name: q.Name, Label: "earlier", Text: q.Text}.String() + "\n" + words
	}
	return "In answer to this:\n" + agent.Quoted{Name: q.Name, Label: "earlier", Text: q.Text}.String() + "\n" + words
}

// referred returns what about adds to a row's text, for users: nil for nothing.
func (r *run) referred(row *core.Inbound) *core.Quote {
	if row.Quote == nil || row.Quote.Root && r.t.Session.MessageCount > 0 {
		return nil
	}
	q := *row.Quote
	q.Name, q.Text = core.CleanName(q.Name), core.CutRunes(q.Text, agent.MaxQuoted)
	return &q
}
