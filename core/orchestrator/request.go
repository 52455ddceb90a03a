package orchestrator

import (
	"strings"

	"gatehouse/core"
	"gatehouse/core/orchestrator/incoming"
	"gatehouse/core/transcript"
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
	return []core.Block{incoming.Given(given)}
}

// appendGiven stores the earlier messages that the request contains, before its own: those of
// the run's lines that are missing. It returns their total number.
func (r *run) appendGiven(lines int) (before int, err error) {
	said := r.t.options().Before
	for i := lines; i < len(said); i++ {
		m := transcript.Message{Role: said[i].Role}
		if said[i].Text != "" {
			m.Blocks = append(m.Blocks, core.Block{Type: "text", Text: said[i].Text})
		}
		if len(said[i].Media) > 0 {
			m.Blocks = append(m.Blocks, core.Block{Type: "media", Media: said[i].Media})
		}
		if err := r.conv.Append(r.t.Run, i, m); err != nil {
			return 0, err
		}
	}
	return len(said), nil
}

// outputTokens returns the limit of each answer of the model: the request's, at most the
// setting's and a quarter of the model's window.
func (r *run) outputTokens() int {
	most := r.answerTokens()
	if asked := r.t.options().MaxTokens; asked > 0 {
		return min(asked, most)
	}
	return most
}

// messages returns how many messages the run added to its session, with the given number
// of answers.
func (r *run) messages(said int) int { return len(r.t.options().Before) + len(r.t.Rows) + said }
