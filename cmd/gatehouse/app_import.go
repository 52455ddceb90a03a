package main

import (
	"context"
	"slices"

	"gatehouse/core"
	"gatehouse/core/erasure"
	"gatehouse/core/importer"
	importtasks "gatehouse/core/importer/tasks"
	"gatehouse/core/session/bring"
	"gatehouse/core/store"
	"gatehouse/web/importing"
)

// joinImports makes what brings in conversations of other systems.
func (a *app) joinImports() {
	a.importer = importer.New(importer.Options{
		Bringer: bring.New(bring.Options{DB: a.db, Vault: a.vault, Sessions: a.sessions, Clock: a.clock, Log: a.log}),
		Files:   a.files, Own: a.vault.Path(), Clock: a.clock, Log: a.log,
	})
	a.imports = importtasks.New(importtasks.Options{Importer: a.importer, Jobs: a.jobs, Clock: a.clock,
		Audit: func(ctx context.Context, by core.Actor, action, subject string, detail map[string]any) error {
			return a.db.Tx(ctx, func(tx *store.Tx) error { return store.Audit(ctx, tx, by, action, subject, detail) })
		}})
	a.intake = importing.NewIntake(a.imports.List)
}

// userWork is what runs for users and ends when they are forgotten: their answers and imports.
type userWork []erasure.Runs

func (w userWork) AbortUser(bot string, user int64) {
	for _, r := range w {
		r.AbortUser(bot, user)
	}
}

func (w userWork) Busy(user int64) bool {
	return slices.ContainsFunc(w, func(r erasure.Runs) bool { return r.Busy(user) })
}
