package main

import (
	"context"
	"encoding/json"

	"gatehouse/core"
	coreask "gatehouse/core/ask"
	"gatehouse/core/permission/guard"
	"gatehouse/web/api/permissions"
)

// asksView is the Guard as the API and the panel see it.
type asksView struct {
	*guard.Guard
	a *app
}

func (v asksView) Ask(ctx context.Context, id string) (coreask.Ask, error) {
	return v.a.asks.ByID(ctx, v.a.db, id)
}

// Revoke rings, too: no ask is settled by it.
func (v asksView) Revoke(ctx context.Context, id string, by core.Actor) error {
	err := v.Guard.Revoke(ctx, id, by)
	if err == nil {
		v.a.bus.Ring(permissions.TopicApprovals)
	}
	return err
}

// answersView takes answers to a session's questions.
type answersView struct{ a *app }

func (v answersView) Answer(ctx context.Context, session, ask string, answers json.RawMessage, by core.Actor) error {
	q, err := v.a.asks.ByID(ctx, v.a.db, ask)
	if err != nil {
		return err
	}
	var of struct {
		Session string `json:"session_id"`
	}
	if json.Unmarshal([]byte(q.Payload), &of) != nil || of.Session != session {
		return core.Errorf(core.NotFound, "there is no such question any more")
	}
	return v.a.guard.Answer(ctx, ask, answers, by)
}
