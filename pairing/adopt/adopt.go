// Package adopt grants access to those whom the original system had allowed.
package adopt

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/people"
)

// A Result counts what became of an allowlist of the original system.
type Result struct {
	Admitted int      // who got access
	Had      int      // who had it already
	Refused  []string // ids of those whose latest decision is a denial, and of blocked users: no access
	Unlisted []string // ids of those who have access to direct messages and are not in the list
}

// byOriginal is who granted access that the original system had given.
const byOriginal = "the original system"

// Users grants access to users of the original system.
type Users struct{ People *people.Store }

// AdoptAllowed grants the users of an allowlist of the original system access to
// direct messages of the bot. A later decision counts more: who was denied or
// blocked gets none. Requests of the admitted that wait are approved.
func (u Users) AdoptAllowed(ctx context.Context, tx *store.Tx, bot, platform string, ids []string, trust core.Trust) (out Result, err error) {
	listed := map[string]bool{} // at most ids
	for _, id := range ids {
		if listed[id] {
			continue
		}
		listed[id] = true
		if err := u.adoptOne(ctx, tx, bot, platform, id, trust, &out); err != nil {
			return out, fmt.Errorf("take over an allowed user: %w", err)
		}
	}
	var have []string
	err = tx.Select(ctx, &have, `SELECT i.platform_user_id FROM access a JOIN identities i ON i.user_id = a.user_id AND i.platform = $1
		WHERE a.bot = $2 AND a.scope = 'dm' AND a.place = '' ORDER BY i.platform_user_id`, platform, bot)
	for _, id := range have {
		if !listed[id] {
			out.Unlisted = append(out.Unlisted, id)
		}
	}
	return out, err
}

func (u Users) adoptOne(ctx context.Context, tx *store.Tx, bot, platform, id string, trust core.Trust, out *Result) error {
	var latest string
	err := tx.Get(ctx, &latest, `SELECT status FROM pairing_requests WHERE platform = $1 AND platform_user_id = $2 AND bot = $3
		AND status IN ('approved', 'denied') ORDER BY coalesce(resolved_at, created_at) DESC, status DESC LIMIT 1`, platform, id, bot)
	if err != nil && !errors.Is(err, store.ErrNoRows) {
		return err
	}
	var blocked bool
	if err := tx.Get(ctx, &blocked, `SELECT EXISTS (SELECT 1 FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot IN ($3, '*'))`, platform, id, bot); err != nil {
		return err
	}
	if latest == "denied" || blocked {
		out.Refused = append(out.Refused, id)
		return nil
	}
	user, err := u.People.Ensure(ctx, tx, platform, id, "")
	if err != nil {
		return err
	}
	has, err := u.People.HasAccess(ctx, tx, bot, user, core.ScopeDM, "")
	if err != nil || has || user == core.Operator {
		out.Had++
		return err
	}
	out.Admitted++
	now := core.Stamp(tx.Time())
	if _, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'approved', approved_trust_level = $1, resolved_at = $2, resolved_by = $3
		WHERE platform = $4 AND platform_user_id = $5 AND bot = $6 AND scope = 'dm' AND place = '' AND status = 'pending'`,
		trust.String(), now, byOriginal, platform, id, bot); err != nil {
		return err
	}
	return u.People.Put(ctx, tx, people.Grant{Bot: bot, User: user, Scope: core.ScopeDM, Trust: trust, By: byOriginal, At: now})
}
