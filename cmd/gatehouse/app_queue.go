package main

import (
	"cmp"
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/permission"
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

// mayRead returns what prompts and local/quote may show a user. It is called for every
// file, so .parachuteignore is read again at most once a second.
func (a *app) mayRead(trust core.Trust, user int64, path string) bool {
	a.ignored.mu.Lock()
	if now := a.clock.Now(); a.ignored.at.IsZero() || now.Sub(a.ignored.at).Abs() > time.Second {
		a.ignored.lines, a.ignored.at = permission.ParseIgnore(permission.IgnoreLines(a.vault)), now
	}
	lines := a.ignored.lines
	a.ignored.mu.Unlock()
	may, _ := permission.Profile{User: user, Trust: trust, GuestRead: a.settings.Now().GuestRead}.Within(lines)
	return may(path)
}
