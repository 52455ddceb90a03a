package main

import (
	"cmp"
	"context"

	"gatehouse/core"
	"gatehouse/core/store"
)

// busyMode returns what a message does that comes while its chat is answered.
func (a *app) busyMode(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error) {
	mode, err := a.sessions.BusyMode(ctx, tx, in.Address)
	return cmp.Or(mode, a.settings.Now().BusyMode), err
}
