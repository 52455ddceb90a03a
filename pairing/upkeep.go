package pairing

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
)

// expireBatch bounds one transaction of Expire.
const expireBatch = 100

// Expire ends the requests that no one decided in time and gives up what they held, and what
// denied ones held once the denial can't be undone; it forgets old claim codes and wrong tries.
// It returns how many requests expired. Call it every minute or so.
func (g *Gate) Expire(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		err := g.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = g.expireSome(ctx, tx)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("expire pairing requests: %w", err)
		}
		if total += n; n < expireBatch {
			return total, nil
		}
	}
}

func (g *Gate) expireSome(ctx context.Context, tx *store.Tx) (int, error) {
	now := tx.Time()
	var over, denied []request
	err := tx.Select(ctx, &over, requestColumns+` WHERE status = 'pending' AND expires_at <= $1 LIMIT $2`, core.Stamp(now), expireBatch)
	if err != nil {
		return 0, err
	}
	for _, r := range over {
		if err := g.requests.expire(ctx, tx, r); err != nil {
			return 0, err
		}
	}
	err = tx.Select(ctx, &denied, requestColumns+` WHERE status = 'denied' AND attempts > 0 AND resolved_at < $1 LIMIT $2`,
		core.Stamp(now.Add(-people.UndoFor)), expireBatch)
	if err != nil {
		return 0, err
	}
	for i := range denied {
		if err := g.requests.discard(ctx, tx, &denied[i]); err != nil {
			return 0, err
		}
	}
	return len(over), g.Codes.Expire(ctx, tx)
}

// Move rewrites what is kept under a group's old id when the platform gave it
// a new one; what was decided under the old id holds.
func (g *Gate) Move(ctx context.Context, tx *store.Tx, bot, oldPlace, newPlace string) error {
	if oldPlace == newPlace || oldPlace == "" || newPlace == "" {
		return nil
	}
	for _, move := range []func(ctx context.Context, tx *store.Tx, bot, from, to string) error{g.Places.Move, g.People.Move, g.Codes.Move, g.requests.Move} {
		if err := move(ctx, tx, bot, oldPlace, newPlace); err != nil {
			return err
		}
	}
	g.changes.Decided(tx, bot, "", core.TopicPeople)
	return store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "place.move", bot+":"+newPlace, map[string]any{"from": oldPlace})
}
