package main

import (
	"context"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/registry"
	"gatehouse/core/memory/backup"
	"gatehouse/core/project"
	"gatehouse/core/store"
)

// noted is what is kept of conversations: notes on them, and which belong together.
type noted struct {
	handoffs *backup.Store
	projects *project.Store
}

// openHandoffs builds the notes on conversations.
func (a *app) openHandoffs(cost func(model string, u core.Tokens) (int64, bool)) {
	a.projects = project.New(project.Options{DB: a.db, Leave: a.sessions.LeaveProject})
	a.handoffs = backup.New(backup.Options{
		DB: a.db, Box: a.sealed, Sessions: a.sessions, Usage: a.usage, Clock: a.clock, Log: a.log, Registry: a.reg, Cost: cost,
		Writes: func(model string) bool { return model != "" && !registry.Local(model) },
		Model:  func(name string, guest bool) (llm.Model, error) { return a.models.Find(name, guest) },
		Budget: func() int64 { return a.cfg.MemoryBudget.Tokens },
	})
}

// projectOf returns the project that a new conversation of a chat joins.
func (n *noted) projectOf(ctx context.Context, tx *store.Tx, at core.Address, user int64) (string, error) {
	p, _, err := n.projects.Active(ctx, tx, at, user)
	return p.ID, err
}
