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

// projectActs are projects as the API changes them, each change in one transaction.
type projectActs struct {
	*project.Store
	db *store.DB
}

func (v projectActs) List(ctx context.Context, user int64) ([]project.Project, error) {
	return v.Store.List(ctx, v.db, user)
}

func (v projectActs) All(ctx context.Context, f project.Filter) ([]project.Overview, bool, error) {
	return v.Store.All(ctx, v.db, f)
}

func (v projectActs) Create(ctx context.Context, user int64, name string) (p project.Project, err error) {
	err = v.db.Tx(ctx, func(tx *store.Tx) (err error) { p, err = v.Store.Create(ctx, tx, user, name); return err })
	return p, err
}

func (v projectActs) Rename(ctx context.Context, user int64, id, name string) (p project.Project, err error) {
	err = v.db.Tx(ctx, func(tx *store.Tx) (err error) { p, err = v.Store.Rename(ctx, tx, user, id, name); return err })
	return p, err
}

func (v projectActs) Delete(ctx context.Context, user int64, id string) error {
	return v.db.Tx(ctx, func(tx *store.Tx) error { return v.Store.Delete(ctx, tx, user, id) })
}
