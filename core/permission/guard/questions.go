package guard

import (
	"context"
	"encoding/json"
	"fmt"

	"gatehouse/core/ask"
)

// maxShownQuestions bounds what Questions gives: a run asks one at a time.
const maxShownQuestions = 10

// Questions returns those that wait for an answer of this person in a session,
// oldest first, at most ten.
func (g *Guard) Questions(ctx context.Context, session string, user int64) ([]ask.Question, error) {
	asks, err := g.o.Asks.Questions(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("open questions: %w", err)
	}
	var out []ask.Question
	for _, a := range asks {
		var body ask.Payload
		if json.Unmarshal([]byte(a.Payload), &body) == nil && body.Session == session && len(out) < maxShownQuestions {
			out = append(out, ask.Question{ID: a.ID, Questions: body.Questions, ExpiresAt: a.ExpiresAt})
		}
	}
	return out, nil
}

// Recent returns the asks of tool calls that were settled within the last day,
// newest first, at most limit.
func (g *Guard) Recent(ctx context.Context, limit int) ([]ask.Ask, error) {
	return g.o.Asks.Recent(ctx, limit)
}
