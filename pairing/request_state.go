package pairing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/people"
)

// KeepRequests is how long a request stays in the list after it was denied or
// expired. One that was approved stays as long as its person.
const KeepRequests = 90 * 24 * time.Hour

// pruneBatch bounds one transaction of Prune.
const pruneBatch = 500

// resolve is the compare-and-set that only one decision wins.
func (t *requests) resolve(ctx context.Context, tx *store.Tx, r *request, status string, trust core.Trust, by core.Actor) error {
	now := tx.Time()
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = $1, approved_trust_level = nullif($2, ''), resolved_at = $3, resolved_by = $4
		WHERE id = $5 AND status = 'pending' AND expires_at > $3`, status, trust, core.Stamp(now), by.String(), r.ID)
	if err != nil {
		return err
	}
	if n == 0 {
		if r.Status == "pending" {
			r.Status = "expired"
		}
		return decided(r, now)
	}
	r.Status, r.Trust, r.Resolved, r.ResolvedBy = status, trust, core.Stamp(now), by.String()
	return nil
}

// free hands the held messages on and notes that none is left.
func (t *requests) free(ctx context.Context, tx *store.Tx, r *request) error {
	if _, err := t.mail.Free(ctx, tx, r.ID, r.Trust); err != nil {
		return err
	}
	return t.emptied(ctx, tx, r)
}

func (t *requests) discard(ctx context.Context, tx *store.Tx, r *request) error {
	if _, err := t.mail.Discard(ctx, tx, r.ID); err != nil {
		return err
	}
	return t.emptied(ctx, tx, r)
}

func (t *requests) emptied(ctx context.Context, tx *store.Tx, r *request) error {
	r.Attempts = 0
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET attempts = 0 WHERE id = $1`, r.ID)
	return err
}

// markBlocked notes that a denied request was decided by a block.
func (t *requests) markBlocked(ctx context.Context, tx *store.Tx, r *request) error {
	r.Blocked = true
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET blocked = 1 WHERE id = $1`, r.ID)
	return err
}

func (t *requests) closeAsk(ctx context.Context, tx *store.Tx, id, outcome string) error {
	if t.asks == nil {
		return nil
	}
	return t.asks.Close(ctx, tx, id, outcome)
}

func (t *requests) openAsk(ctx context.Context, tx *store.Tx, r core.PairingRequest) error {
	if t.asks == nil {
		return nil
	}
	_, err := t.asks.Open(ctx, tx, r)
	return err
}

// Withdraw ends what is shown to users who no longer decide about requests.
func (t *requests) Withdraw(ctx context.Context, tx *store.Tx) error {
	if t.asks == nil {
		return nil
	}
	return t.asks.Withdraw(ctx, tx)
}

// LetIn answers what the sender had written as a stranger.
func (t *requests) LetIn(ctx context.Context, tx *store.Tx, in *core.Inbound, trust core.Trust, by core.Actor, outcome string) error {
	var rows []request
	err := tx.Select(ctx, &rows, requestColumns+` WHERE bot = $1 AND platform_user_id = $2 AND scope = 'dm' AND place = '' AND status = 'pending'`, in.Bot, in.From.ID)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if err := t.resolve(ctx, tx, r, "approved", trust, by); core.KindOf(err) == core.Conflict {
			continue // over its time: upkeep expires it
		} else if err != nil {
			return err
		}
		if err := t.free(ctx, tx, r); err != nil {
			return err
		}
		if err := t.closeAsk(ctx, tx, r.ID, outcome); err != nil {
			return err
		}
	}
	return nil
}

// ShowWaiting shows the owner in chat the requests that wait at the bot, the longest
// waiting first, at most showWaiting. It reports whether there are some that are not shown.
func (t *requests) ShowWaiting(ctx context.Context, tx *store.Tx, bot string) (more bool, err error) {
	var rows []request
	err = tx.Select(ctx, &rows, requestColumns+` WHERE status = 'pending' AND expires_at > $1 AND bot = $2 ORDER BY created_at, id LIMIT $3`,
		core.Stamp(tx.Time()), bot, showWaiting+1)
	if err != nil {
		return false, err
	}
	for i := range rows[:min(len(rows), showWaiting)] {
		if t.asks == nil {
			break
		}
		everywhere, err := t.asks.Open(ctx, tx, rows[i].public())
		if err != nil || !everywhere {
			return err == nil, err
		}
	}
	return len(rows) > showWaiting, nil
}

// TurnedAway reports whether the sender was denied on this bot after since, or lost access
// there after it. That one was approved again since changes nothing: its end stays.
func (t *requests) TurnedAway(ctx context.Context, tx *store.Tx, in *core.Inbound, since string) (away bool, err error) {
	err = tx.Get(ctx, &away, `SELECT EXISTS (SELECT 1 FROM pairing_requests WHERE platform = $1 AND platform_user_id = $2 AND bot = $3
		AND (status = 'denied' AND resolved_at > $4 OR status = 'approved' AND expires_at <= resolved_at AND expires_at > $4))`,
		in.From.Platform, in.From.ID, in.Bot, since)
	return away, err
}

// Cooling reports whether the sender was denied there, or revoked anywhere on
// this bot, within CoolOff. A denied request that carries a level was revoked.
func (t *requests) Cooling(ctx context.Context, tx *store.Tx, in *core.Inbound) (bool, error) {
	last, err := store.Recall[string](ctx, tx, `SELECT coalesce(max(resolved_at), '') FROM pairing_requests
		WHERE platform = $1 AND platform_user_id = $2 AND bot = $3 AND status = 'denied'
			AND cooled = 0 AND (coalesce(approved_trust_level, '') <> '' OR (scope = $4 AND place = $5))`,
		in.From.Platform, in.From.ID, in.Bot, string(in.Scope()), in.Place)
	return last > core.Stamp(tx.Time().Add(-CoolOff)), err
}

// DenyOpen denies the user's open requests without a notice, because the user is blocked.
func (t *requests) DenyOpen(ctx context.Context, tx *store.Tx, bot string, account core.Identity, by core.Actor) error {
	var rows []request
	err := tx.Select(ctx, &rows, requestColumns+` WHERE platform = $1 AND platform_user_id = $2 AND status = 'pending' AND $3 IN (bot, '*')`, account.Platform, account.ID, bot)
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		err := t.resolve(ctx, tx, r, "denied", core.Stranger, by)
		if err == nil {
			err = t.markBlocked(ctx, tx, r)
		}
		if err != nil && core.KindOf(err) != core.Conflict {
			return err
		}
		if err := t.discard(ctx, tx, r); err != nil {
			return err
		}
		if err := t.closeAsk(ctx, tx, r.ID, texts.Text("request_blocked", texts.With{"Name": core.CleanName(r.Display), "By": by.String()})); err != nil {
			return err
		}
	}
	return nil
}

// Uncool ends the cool-off of what was denied, which stays in the list. What a block took
// counts as revoked at its time, by who blocked.
func (t *requests) Uncool(ctx context.Context, tx *store.Tx, bot string, account core.Identity, took []people.Grant, at, by string) error {
	for _, a := range took {
		if err := t.lost(ctx, tx, account, a, true, at, by); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET cooled = 1, noted_at = CASE WHEN blocked = 0 AND $4 <> '' AND resolved_at >= $4 THEN $5 ELSE noted_at END
		WHERE platform = $1 AND platform_user_id = $2 AND $3 IN (bot, '*') AND status = 'denied'`, account.Platform, account.ID, bot, at, core.Stamp(tx.Time()))
	return err
}

// expire ends one request that waits.
func (t *requests) expire(ctx context.Context, tx *store.Tx, r request) error {
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'expired', resolved_at = $1 WHERE id = $2 AND status = 'pending'`, core.Stamp(tx.Time()), r.ID)
	if err != nil || n == 0 {
		return err
	}
	if err := t.discard(ctx, tx, &r); err != nil {
		return err
	}
	if err := store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "pairing.expire", r.ID, map[string]any{"bot": r.Bot}); err != nil {
		return err
	}
	t.changes.Decided(tx, r.Bot, "expired", core.TopicPairing)
	return t.closeAsk(ctx, tx, r.ID, texts.Text("request_expired", texts.With{"Name": core.CleanName(r.Display)}))
}

// Prune deletes requests that were denied, or expired, so long ago that no one asks any
// more, and returns how many. One that a block revoked counts from its end. One stays while
// an older invitation works: it keeps anyone who was turned away from coming back by that.
func (t *requests) Prune(ctx context.Context) (total int, err error) {
	for n := int64(pruneBatch); n == pruneBatch; total += int(n) {
		err = t.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.Exec(ctx, `DELETE FROM pairing_requests WHERE id IN (SELECT id FROM pairing_requests
				WHERE status IN ('denied', 'expired') AND resolved_at <> '' AND resolved_at < $1 AND noted_at < $1
					AND NOT EXISTS (SELECT 1 FROM blocks b WHERE blocked = 0 AND b.platform = pairing_requests.platform AND b.platform_user_id = pairing_requests.platform_user_id AND b.bot IN (pairing_requests.bot, '*') AND b.at <= resolved_at)
					AND NOT EXISTS (SELECT 1 FROM invites i WHERE i.bot = pairing_requests.bot AND i.at < pairing_requests.resolved_at AND i.uses_left > 0 AND i.expires_at > $2) LIMIT $3)`,
				core.Stamp(tx.Time().Add(-KeepRequests)), core.Stamp(tx.Time()), pruneBatch)
			return err
		})
		if err != nil {
			return total, fmt.Errorf("prune pairing requests: %w", err)
		}
	}
	return total, nil
}

// Move rewrites a group's id when the platform gave it a new one. A request that
// is pending under both stays under the old id.
func (t *requests) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET place = $1 WHERE bot = $2 AND place = $3 AND scope = 'group' AND NOT (status = 'pending' AND EXISTS (
			SELECT 1 FROM pairing_requests o WHERE o.bot = $2 AND o.place = $1 AND o.scope = 'group' AND o.status = 'pending' AND o.platform_user_id = pairing_requests.platform_user_id))`, to, bot, from)
	if err != nil {
		return fmt.Errorf("move group: %w", err)
	}
	return nil
}

// of returns the requests of an account.
func (t *requests) of(ctx context.Context, q store.Queryer, account core.Identity) (rows []request, err error) {
	err = q.Select(ctx, &rows, requestColumns+` WHERE platform = $1 AND platform_user_id = $2`, account.Platform, account.ID)
	return rows, err
}

// forget deletes requests, with the messages that wait for them.
func (t *requests) forget(ctx context.Context, tx *store.Tx, ids []string) error {
	for _, id := range ids {
		r, err := oneRequest(ctx, tx, ` WHERE id = $1`, id)
		if errors.Is(err, store.ErrNoRows) {
			continue
		}
		if err == nil && (r.Attempts > 0 || r.Status == "pending") {
			if err = t.discard(ctx, tx, &r); err == nil {
				err = t.closeAsk(ctx, tx, r.ID, texts.Text("request_erased"))
			}
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM pairing_requests WHERE id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}
