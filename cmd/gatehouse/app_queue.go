package main

import (
	"cmp"
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

func (a *app) busyMode(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error) {
	mode, err := a.sessions.BusyMode(ctx, tx, in.Address)
	return cmp.Or(mode, a.settings.Now().BusyMode), err
}

func (a *app) collect(ctx context.Context, tx *store.Tx, in *core.Inbound) (bool, error) {
	mode, err := a.busyMode(ctx, tx, in)
	return mode != "queue", err
}

// behind is notified of a message that comes while its chat is being answered: it
// is shown to wait, or ends its sender's answer.
func (a *app) behind(ctx context.Context, tx *store.Tx, in *core.Inbound, lane string) error {
	mode, err := a.busyMode(ctx, tx, in)
	if err != nil {
		return err
	}
	var user int64
	if mode == "interrupt" {
		if user, _, err = a.pairing.People.User(ctx, tx, in.From); err != nil {
			return err
		}
	}
	tx.OnCommit(func() {
		if user == 0 || !a.running.Interrupt(in.Bot, lane, user) {
			a.dispatcher.Behind(in)
		}
	})
	return nil
}
