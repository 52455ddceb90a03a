package pairing

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// refreshBatch bounds one transaction of RefreshCards.
const refreshBatch = 100

// edited applies an edit to a message held with the sender's request, whatever the policy
// is now, and shows the owner what the request's first message is by then. Edits count
// like messages: after maxTaken of both the held messages stay as they are.
func (g *Gate) edited(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	r, err := g.waiting(ctx, tx, in)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.Attempts+r.Edits >= maxTaken {
		g.changes.Denied(tx, ruleFlood)
		return nil
	}
	held, err := g.requests.mail.Reword(ctx, tx, r.ID, in)
	if err != nil || len(held) == 0 {
		return err
	}
	first := ""
	for i := 0; i < len(held) && first == ""; i++ {
		first = firstMessage(&held[i])
	}
	changed := first != r.FirstMessage
	r.Edits, r.FirstMessage = r.Edits+1, first
	if _, err := tx.Exec(ctx, `UPDATE pairing_requests SET first_message = $1, edits = $2 WHERE id = $3`, r.FirstMessage, r.Edits, r.ID); err != nil || !changed {
		return err
	}
	g.changes.Decided(tx, r.Bot, "", core.TopicPairing)
	if due(r.CardAt, tx.Time(), cardEvery) {
		return g.requests.refresh(ctx, tx, &r)
	}
	_, err = tx.Exec(ctx, `UPDATE pairing_requests SET card_stale = 1 WHERE id = $1`, r.ID) // RefreshCards shows it
	return err
}

// refresh edits the messages that show a request to the owner in chat.
func (t *requests) refresh(ctx context.Context, tx *store.Tx, r *request) error {
	r.CardAt = core.Stamp(tx.Time())
	if _, err := tx.Exec(ctx, `UPDATE pairing_requests SET card_at = $1, card_stale = 0 WHERE id = $2`, r.CardAt, r.ID); err != nil {
		return err
	}
	if t.asks == nil {
		return nil
	}
	return t.asks.Update(ctx, tx, r.public(), r.Edits)
}

// RefreshCards shows the owner in chat the edits that came within cardEvery of the one
// shown before, all in one. It returns how many requests it showed, at most 100, and
// writes nothing where there are none. Call it every minute or so.
func (g *Gate) RefreshCards(ctx context.Context) (n int, err error) {
	const stale = ` WHERE status = 'pending' AND card_stale = 1 ORDER BY card_at, id LIMIT $1`
	if _, err := oneRequest(ctx, g.db, stale, 1); errors.Is(err, store.ErrNoRows) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("refresh pairing requests: %w", err)
	}
	err = g.db.Tx(ctx, func(tx *store.Tx) error {
		n = 0
		var rows []request
		if err := tx.Select(ctx, &rows, requestColumns+stale, refreshBatch); err != nil {
			return err
		}
		for i := range rows {
			if !due(rows[i].CardAt, tx.Time(), cardEvery) {
				continue
			}
			if err := g.requests.refresh(ctx, tx, &rows[i]); err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("refresh pairing requests: %w", err)
	}
	return n, nil
}
