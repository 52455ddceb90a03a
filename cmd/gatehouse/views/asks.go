package views

import (
	"context"
	"encoding/json"

	"gatehouse/core"
	coreask "gatehouse/core/ask"
	"gatehouse/core/permission/guard"
)

// asksView is the Guard as the API and the panel see it.
type asksView struct {
	*guard.Guard
	c *Core
}

func (v asksView) Ask(ctx context.Context, id string) (coreask.Ask, error) {
	return v.c.AskStore.ByID(ctx, v.c.DB, id)
}

// Revoke rings, too: no ask is settled by it.
func (v asksView) Revoke(ctx context.Context, id string, by core.Actor) error {
	err := v.Guard.Revoke(ctx, id, by)
	if err == nil {
		v.c.Bus.Ring(core.TopicApprovals)
	}
	return err
}

// answersView takes answers to a session's questions.
type answersView struct{ c *Core }

func (v answersView) Answer(ctx context.Context, session, ask string, answers json.RawMessage, by core.Actor) error {
	q, err := v.c.AskStore.ByID(ctx, v.c.DB, ask)
	if err != nil {
		return err
	}
	var of struct {
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(q.Payload), &of) != nil || of.Session != session {
		return core.Errorf(core.NotFound, "there is no such question any more")
	}
	return v.c.Guard.Answer(ctx, ask, answers, by)
}
