package guard

import (
	"context"
	"encoding/json"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/permission"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Press decides an ask by the option of a button. The caller has made sure
// that by is owner or admin.
func (g *Guard) Press(ctx context.Context, askID, option string, by core.Actor) error {
	switch option {
	case ask.OptionOnce:
		return g.Grant(ctx, askID, "", by)
	case ask.OptionDeny:
		return g.Deny(ctx, askID, by)
	}
	a, err := g.o.Asks.ByID(ctx, g.o.DB, askID)
	if err != nil {
		return err
	}
	body, err := a.Call()
	if err != nil {
		return err
	}
	for i, s := range body.Request.SuggestedGrants {
		if option == ask.OptionGrant(i) {
			return g.Grant(ctx, askID, s.Pattern, by)
		}
	}
	return texts.Error(core.Invalid, "button_gone")
}

// Grant lets the call of an open ask go on. An empty pattern means this once;
// else it is one of the suggested grants or narrower (Invalid if not), and
// calls that it covers go on unasked in this session for this person at this
// trust, until it is revoked. What is on the deny list stays closed whatever is
// granted. The caller has made sure that by is owner or admin; a guest is
// refused here, too, for asks of its own. Conflict when someone was first.
func (g *Guard) Grant(ctx context.Context, askID, pattern string, by core.Actor) error {
	return g.decide(ctx, askID, ask.Granted, by, func(tx *store.Tx, a ask.Ask, body ask.Payload) error {
		if pattern == "" {
			return nil
		}
		if !permission.Narrower(body.Request.Kind, pattern, body.Request.SuggestedGrants) {
			return core.Errorf(core.Invalid, "the pattern is neither one of the suggested grants nor narrower than one")
		}
		return keep(ctx, tx, a, body, pattern, by)
	})
}

// Deny refuses the call of an open ask. The caller has made sure that by is
// owner or admin. Conflict when someone was first.
func (g *Guard) Deny(ctx context.Context, askID string, by core.Actor) error {
	return g.decide(ctx, askID, ask.Denied, by, func(*store.Tx, ask.Ask, ask.Payload) error { return nil })
}

func (g *Guard) decide(ctx context.Context, askID, decision string, by core.Actor, and func(*store.Tx, ask.Ask, ask.Payload) error) error {
	return g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		a, err := g.o.Asks.ByID(ctx, tx, askID)
		if err != nil {
			return err
		}
		body, err := a.Call()
		if err != nil {
			return err
		}
		if by.User <= 0 || !body.Owner && by.User == body.User {
			return texts.Error(core.Denied, "permission_not_yours")
		}
		if a, err = g.o.Asks.Decide(ctx, tx, askID, decision, by); err != nil {
			return err
		}
		if err := and(tx, a, body); err != nil {
			return err
		}
		return g.closed(ctx, tx, []ask.Ask{a})
	})
}

// Pending returns the asks that wait for the owner, oldest first, at most limit.
func (g *Guard) Pending(ctx context.Context, limit int) ([]ask.Waiting, error) {
	asks, err := g.o.Asks.Pending(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("pending asks: %w", err)
	}
	out := make([]ask.Waiting, 0, len(asks))
	for _, a := range asks {
		if w, err := ask.View(a); err == nil {
			out = append(out, w)
		}
	}
	return out, nil
}

// Ask asks the sender what the model wants to know (the input of
// AskUserQuestion) and waits 300 s; it emits core.UserQuestion. Without an
// answer the answers are {}. Denied where no one can answer, Busy when too many
// questions wait, ctx's cause when it ends.
func (g *Guard) Ask(ctx context.Context, p permission.Profile, questions json.RawMessage, emit func(core.Event), waiting func(bool)) (json.RawMessage, error) {
	switch {
	case len(questions) > maxQuestions || !json.Valid(questions):
		return nil, core.Errorf(core.Invalid, "questions are JSON of at most %d bytes", maxQuestions)
	case !p.CanAsk || p.User <= 0:
		return nil, core.Errorf(core.Denied, "No one can answer here: continue without an answer, and state what you assumed.")
	}
	body := ask.Payload{Questions: questions, Session: p.Session, User: p.User, Owner: p.Owner, Trust: p.Trust}
	asked, err := g.open(ctx, ask.Ask{Kind: ask.KindQuestion, Run: p.Run, Bot: p.Bot, Chat: p.Chat, User: p.User, Asker: p.User}, questionTime, &body, p)
	if err != nil {
		return nil, err
	}
	emit(core.UserQuestion{ID: asked.ID, Questions: questions, ExpiresAt: asked.ExpiresAt})
	if asked, err = g.wait(ctx, asked, waiting); err != nil {
		return nil, err
	}
	if asked.State != ask.Decided {
		return json.RawMessage(`{}`), nil
	}
	return answers(questions, asked.Decision), nil
}

// answers returns an object by question; a text typed in chat answers the first.
func answers(questions json.RawMessage, decision string) json.RawMessage {
	var object map[string]any
	if json.Unmarshal([]byte(decision), &object) == nil && object != nil {
		return json.RawMessage(decision)
	}
	var list []struct {
		Question string `json:"question"`
	}
	name := "answer"
	if json.Unmarshal(questions, &list) == nil && len(list) > 0 && list[0].Question != "" {
		name = list[0].Question
	}
	out, err := json.Marshal(map[string]string{name: decision})
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return out
}

// Answer answers a question of Ask with an object by question, or a text. Only
// the user who was asked may: to anyone else there is no such question.
// Conflict when it was answered already or its time has ended.
func (g *Guard) Answer(ctx context.Context, askID string, answers json.RawMessage, by core.Actor) error {
	text := string(answers)
	if s := ""; json.Unmarshal(answers, &s) == nil {
		text = s
	} else if !json.Valid(answers) {
		return core.Errorf(core.Invalid, "answers are a JSON object or a text")
	}
	return g.o.DB.Tx(ctx, func(tx *store.Tx) error {
		a, err := g.o.Asks.ByID(ctx, tx, askID)
		if err != nil {
			return err
		}
		if a.Kind != ask.KindQuestion || a.User == 0 || a.User != by.User {
			return texts.Error(core.NotFound, "question_gone")
		}
		if a, err = g.o.Asks.Decide(ctx, tx, askID, text, by); err != nil {
			return err
		}
		return g.closed(ctx, tx, []ask.Ask{a})
	})
}
