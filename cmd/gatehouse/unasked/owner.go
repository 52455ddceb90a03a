package unasked

import (
	"context"
	"errors"
	"log/slog"

	"gatehouse/core"
	"gatehouse/core/report"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// TellOwner sends a text of the gateway itself to the owner, through the first of the bots
// that the owner has written to; through none if there is no such bot. key is the message's
// in the outbox. The transaction that stores the message calls told.
func (m Mail) TellOwner(ctx context.Context, bots []string, key, text string, told func(context.Context, *store.Tx) error) error {
	return m.DB.Tx(ctx, func(tx *store.Tx) error {
		for _, bot := range bots {
			owner, ok, err := m.People.OwnerChat(ctx, tx, bot)
			if err != nil {
				return err
			}
			if ok {
				return errors.Join(told(ctx, tx), m.Outbox.Post(ctx, tx, core.Reply{Address: owner, Key: key, Parts: m.Render(owner, text)}))
			}
		}
		return nil
	})
}

// TellOfCrash notifies the owner that the last run of the gateway did not end properly, at
// most once a day. A failure is logged.
func (m Mail) TellOfCrash(ctx context.Context, runs *report.Store, bots []string, log *slog.Logger) {
	last, crashed := runs.Last()
	if !crashed || !last.Tell {
		return
	}
	text := texts.Text("crashed", texts.With{"Restarted": last.Restarted})
	told := func(ctx context.Context, tx *store.Tx) error { return report.Told(ctx, tx, last.ID) }
	if err := m.TellOwner(ctx, bots, "crash:"+last.ID, text, told); err != nil && ctx.Err() == nil {
		log.Warn("the owner is not told of the crash", "err", err)
	}
}
