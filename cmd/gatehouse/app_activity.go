package main

import (
	"context"
	"time"

	"gatehouse/admin/chats"
	"gatehouse/admin/logged"
	"gatehouse/core"
	"gatehouse/core/activity"
	"gatehouse/core/activity/summary"
	"gatehouse/core/llm"
	"gatehouse/core/paraid"
	"gatehouse/core/store"
	"gatehouse/core/usage/charged"
)

// openActivity builds what follows finished runs.
func (a *app) openActivity(cost func(model string, u core.Tokens) (int64, bool)) {
	a.openHandoffs(cost)
	a.activity = activity.New(activity.Options{
		DB: a.db, Vault: a.vault, Sessions: a.sessions, Runs: a.events, Clock: a.clock, Log: a.log, Registry: a.reg,
		On: func() bool { return bool(a.settings.Now().Activity) },
		NewID: func(ctx context.Context, tx *store.Tx, path string, user int64) (string, error) {
			e, err := a.paraIDs.Mint(ctx, tx, paraid.Entry{Type: paraid.ChatLog, Path: path, User: user})
			return e.ID, err
		},
		Zone: func(ctx context.Context) *time.Location {
			zone, err := a.pairing.People.Timezone(ctx, a.db, core.Operator)
			if err != nil {
				return time.Local
			}
			return zone
		},
		Link: chats.URL,
		Writer: summary.New(summary.Options{Caller: charged.Caller{DB: a.db, Usage: a.usage, Cost: cost}, Clock: a.clock, Models: func() (title, guest llm.Model) {
			m := a.models.Now()
			return m.Title, m.Guest
		}}),
	})
}

// activityView is the log of conversations as the panel reads it.
type activityView struct{ worker *activity.Worker }

func (v activityView) Recent(ctx context.Context, limit int) ([]logged.Item, error) {
	return itemsOf(v.worker.Recent(ctx, limit))
}

func (v activityView) Unread(ctx context.Context, limit int) ([]logged.Item, error) {
	return itemsOf(v.worker.Unread(ctx, limit))
}

func (v activityView) Faults() (list []logged.Fault) {
	for _, f := range v.worker.Faults() {
		list = append(list, logged.Fault(f))
	}
	return list
}

func itemsOf(items []activity.Item, err error) (list []logged.Item, _ error) {
	for _, i := range items {
		list = append(list, logged.Item(i))
	}
	return list, err
}
