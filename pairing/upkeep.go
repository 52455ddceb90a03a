package pairing

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// expireBatch bounds one transaction of Expire.
const expireBatch = 100

// Expire ends the requests that nobody decided in time and gives up what they
// held, and what denied ones held once the denial can't be undone; it forgets
// old claim codes and wrong tries. It says how many requests expired. Call it
// every minute or so.
func (b *Book) Expire(ctx context.Context) (int, error) {
	total := 0
	for {
		n := 0
		err := b.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = b.expireSome(ctx, tx)
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

func (b *Book) expireSome(ctx context.Context, tx *store.Tx) (int, error) {
	now := tx.Time()
	var over, denied []request
	err := tx.Select(ctx, &over, requestColumns+` WHERE status = 'pending' AND expires_at <= $1 LIMIT $2`, core.Stamp(now), expireBatch)
	if err != nil {
		return 0, err
	}
	for _, r := range over {
		if err := b.expire(ctx, tx, r); err != nil {
			return 0, err
		}
	}
	err = tx.Select(ctx, &denied, requestColumns+` WHERE status = 'denied' AND attempts > 0 AND resolved_at < $1 LIMIT $2`,
		core.Stamp(now.Add(-UndoFor)), expireBatch)
	if err != nil {
		return 0, err
	}
	for i := range denied {
		if err := b.discard(ctx, tx, &denied[i]); err != nil {
			return 0, err
		}
	}
	if err := forgetTaken(ctx, tx); err != nil {
		return 0, err
	}
	return len(over), b.forgetTries(ctx, tx)
}

// expire ends one request that waits.
func (b *Book) expire(ctx context.Context, tx *store.Tx, r request) error {
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'expired', resolved_at = $1 WHERE id = $2 AND status = 'pending'`, core.Stamp(tx.Time()), r.ID)
	if err != nil || n == 0 {
		return err
	}
	if err := b.discard(ctx, tx, &r); err != nil {
		return err
	}
	if err := store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "pairing.expire", r.ID, map[string]any{"bot": r.Bot}); err != nil {
		return err
	}
	b.after(tx, r.Bot, "expired", "pairing")
	return b.closeAsk(ctx, tx, r.ID, texts.Text("request_expired"))
}

// forgetTries removes a claim code that no longer works and wrong tries that
// no longer count.
func (b *Book) forgetTries(ctx context.Context, tx *store.Tx) error {
	_, open, err := b.openClaim(ctx, tx)
	if err != nil {
		return err
	}
	if !open {
		if err := store.DeleteMetadata(ctx, tx, claimKey); err != nil {
			return err
		}
	}
	for _, q := range []string{`DELETE FROM invites WHERE expires_at <= $1 OR uses_left <= 0`, `DELETE FROM link_codes WHERE expires_at <= $1`} {
		if _, err := tx.Exec(ctx, q, core.Stamp(tx.Time())); err != nil {
			return err
		}
	}
	_, there, err := store.Metadata(ctx, tx, triersKey)
	if err != nil || !there {
		return err
	}
	tries, _, err := b.triers(ctx, tx, core.Peer{})
	if err != nil {
		return err
	}
	if len(tries) == 0 {
		return store.DeleteMetadata(ctx, tx, triersKey)
	}
	return saveJSON(ctx, tx, triersKey, tries)
}

// Move rewrites what is kept under a group's old id when the platform gave it
// a new one; what was decided under the old id holds.
func (b *Book) Move(ctx context.Context, tx *store.Tx, bot, oldPlace, newPlace string) error {
	if oldPlace == newPlace || oldPlace == "" || newPlace == "" {
		return nil
	}
	for _, q := range []string{
		// Rows under the new id give way only to rows under the old one.
		`DELETE FROM places WHERE place = $1 AND bot = $2 AND EXISTS (SELECT 1 FROM places o WHERE o.bot = $2 AND o.place = $3)`,
		`DELETE FROM access WHERE place = $1 AND bot = $2 AND scope = 'group' AND user_id IN (SELECT user_id FROM access o WHERE o.bot = $2 AND o.place = $3 AND o.scope = 'group')`,
		`UPDATE places SET place = $1 WHERE bot = $2 AND place = $3`,
		`UPDATE invites SET place = $1 WHERE bot = $2 AND place = $3`,
		`UPDATE access SET place = $1 WHERE bot = $2 AND place = $3 AND scope = 'group'`,
		`UPDATE pairing_requests SET place = $1 WHERE bot = $2 AND place = $3 AND scope = 'group' AND NOT (status = 'pending' AND EXISTS (
			SELECT 1 FROM pairing_requests o WHERE o.bot = $2 AND o.place = $1 AND o.scope = 'group' AND o.status = 'pending' AND o.platform_user_id = pairing_requests.platform_user_id))`,
	} {
		if _, err := tx.Exec(ctx, q, newPlace, bot, oldPlace); err != nil {
			return fmt.Errorf("move group: %w", err)
		}
	}
	b.after(tx, bot, "", "people")
	return store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "place.move", bot+":"+newPlace, map[string]any{"from": oldPlace})
}
