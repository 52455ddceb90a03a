package main

import (
	"context"
	"slices"
	"time"

	"gatehouse/cmd/gatehouse/guests"
	"gatehouse/cmd/gatehouse/memory"
	"gatehouse/core"
	"gatehouse/core/erasure"
	"gatehouse/core/erasure/tasks"
	"gatehouse/core/jobs"
	"gatehouse/core/memory/allowance"
	"gatehouse/core/paraid"
	"gatehouse/core/permission/guard"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/upkeep"
	"gatehouse/core/usage"
	"gatehouse/core/vaultsync"
	"gatehouse/pairing"
	"gatehouse/web/account"
)

func (a *app) joinUpkeep(context.Context) error {
	a.jobs = jobs.New(jobs.Options{Clock: a.clock, Log: a.log, Ended: func() { a.bus.Ring(core.TopicPeople, core.TopicJobs) }})
	a.closing(a.jobs.Close)
	a.joinBackups()
	a.joinImports()
	a.joinErasure()
	a.memory = memory.NewReleaser(a.db, a.clock, a.log, a.bus, a.sessions)
	a.upkeep = upkeep.New(a.chores(), a.clock, a.log, a.reg)
	return nil
}

// joinErasure registers the owners of tables, in the order in which they forget:
// asks, runs and usage before the sessions that they belong to, and the queue,
// which removes the replies to all of them, behind those who post some.
func (a *app) joinErasure() {
	a.owners.Register(
		guard.Asks{Store: a.asks, Guard: a.guard}, a.events, a.responses, a.council, a.ledger, usage.Tables{DB: a.db, Ledger: a.usage, Rollups: a.rolls},
		session.Tables{Store: a.sessions}, a.handoffs, a.projects, a.activity, a.library.Tables(), paraid.Tables{Registry: a.paraIDs}, guard.Grants{Guard: a.guard}, pairing.Tables{Gate: a.pairing}, a.raises,
		a.schedule, a.reminders, a.corrections, allowance.Tables{}, a.pending, a.quota, vaultsync.Tables{Store: a.synced}, maintenance.Tables{DB: a.db, Clock: a.clock, Queue: a.queue}, store.Log{}, account.Tables{Keys: a.keys, Admins: a.admins, Accounts: a.accounts}, guests.Folders{DB: a.db, Vault: a.vault, Log: a.log})
	a.eraser = erasure.New(erasure.Options{
		DB: a.db, Vault: a.vault, Clock: a.clock, Registry: &a.owners, People: a.pairing, Runs: userWork{a.running, a.imports}, Sessions: a.sessions, Events: a.events, Files: a.ledger,
		Answering: a.conversations.answering, Area: tool.Area, Serving: a.serving.Load, Forgotten: a.overheard.Clear,
	})
	a.tasks = tasks.New(a.db, a.jobs, a.eraser)
}

// chores returns the housekeeping of the owners of tables and of the program.
func (a *app) chores() []core.Chore {
	return append(slices.Concat(a.owners.Chores(), a.file.Chores(), a.reports.Chores()),
		core.Chore{Name: "trash", Every: 6 * time.Hour, Run: func(context.Context) (int, error) { return a.vault.Prune(a.clock.Now(), 30) }},
		core.Chore{Name: "forgetting", Every: time.Minute, Run: a.eraser.Resume},
		core.Chore{Name: "journal", Every: time.Minute, Run: a.journal.Pass},
		core.Chore{Name: "old_journal_ids", Every: 24 * time.Hour, Run: a.journal.Prune},
		core.Chore{Name: "panel_orders", Every: time.Minute, Run: a.jobs.Prune},
		core.Chore{Name: "claude_code", Every: time.Minute, Run: func(context.Context) (int, error) { return a.claude.EvictIdle(), nil }},
		core.Chore{Name: "attachments", Every: time.Hour, Run: func(ctx context.Context) (int, error) { return a.ledger.Recount(ctx, a.vault.FS()) }},
		core.Chore{Name: "responses", Every: time.Minute, Run: a.responses.finish},
		core.Chore{Name: "old_sessions", Every: time.Hour, Run: a.conversations.clean})
}
