package permission

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gatehouse/core"
)

// maxShownQuestions bounds what Questions gives: a run asks one at a time.
const maxShownQuestions = 10

// A Question is one of Ask's that waits for its person's answer.
type Question struct {
	ID        string
	Questions json.RawMessage // the input of AskUserQuestion, hostile text
	ExpiresAt time.Time
}

// Questions are those that wait for an answer of this person in a session,
// oldest first, at most ten.
func (g *Guard) Questions(ctx context.Context, session string, user int64) ([]Question, error) {
	var rows []row
	err := g.o.DB.Select(ctx, &rows, askColumns+` WHERE state = 'open' AND kind = 'question' AND user_id = $1 AND (expires_at = '' OR expires_at > $2)
		ORDER BY created_at, id LIMIT $3`, user, core.Stamp(g.o.Clock.Now()), maxOpen)
	if err != nil {
		return nil, fmt.Errorf("open questions: %w", err)
	}
	var out []Question
	for _, r := range rows {
		a := r.ask()
		var body payload
		if json.Unmarshal([]byte(a.Payload), &body) == nil && body.Session == session && len(out) < maxShownQuestions {
			out = append(out, Question{ID: a.ID, Questions: body.Questions, ExpiresAt: a.ExpiresAt})
		}
	}
	return out, nil
}
