package pairing

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/bots"
	"gatehouse/pairing/people"
)

// isRevoked is true for a row of a user who had access and lost it. One that carries a
// level was revoked on the whole bot; one whose time ended with it, for its scope and place.
// The time of a request that was denied went on.
const isRevoked = `(status = 'denied' AND blocked = 0 AND (coalesce(approved_trust_level, '') <> '' OR expires_at <> '' AND expires_at <= resolved_at))`

// revoked reports whether r is such a row.
func (r *request) revoked() bool {
	return r.Status == "denied" && !r.Blocked && (r.Trust != core.Stranger || r.Expires != "" && r.Expires <= r.Resolved)
}

// Revoked notes that an account lost gone on a bot, so that it counts as denied from now on:
// on the whole bot where nothing is left to it there, else for the scope and place of each.
// Without any it was let in by a policy. It reports whether the account counted so before.
func (t *requests) Revoked(ctx context.Context, tx *store.Tx, bot string, account core.Identity, gone []people.Grant, whole bool, by core.Actor) (before bool, err error) {
	before, err = t.Cooling(ctx, tx, &core.Inbound{Address: core.Address{Bot: bot}, From: core.Peer{Platform: account.Platform, ID: account.ID}})
	if len(gone) == 0 {
		gone = []people.Grant{{Bot: bot, Scope: core.ScopeDM, Trust: core.Sandboxed}}
	}
	for i := 0; i < len(gone) && err == nil; i++ {
		err = t.lost(ctx, tx, account, gone[i], whole, core.Stamp(tx.Time()), by.String())
	}
	return before, err
}

// lost has the request that gave a to an account count as revoked at a time, or a new row
// where none did.
func (t *requests) lost(ctx context.Context, tx *store.Tx, account core.Identity, a people.Grant, whole bool, at, by string) error {
	if !whole {
		a.Trust = core.Stranger
	}
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'denied', resolved_at = $1, resolved_by = $2, expires_at = $1, approved_trust_level = nullif($3, ''), cooled = 0
		WHERE platform = $4 AND platform_user_id = $5 AND bot = $6 AND scope = $7 AND place = $8 AND status = 'approved'`,
		at, by, a.Trust, account.Platform, account.ID, a.Bot, string(a.Scope), a.Place)
	if err != nil || n > 0 {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO pairing_requests (id, bot, platform, platform_user_id, platform_user_display, platform_chat_id, scope, place,
			status, approved_trust_level, created_at, resolved_at, resolved_by, expires_at)
		VALUES ($1, $2, $3, $4, coalesce((SELECT display FROM identities WHERE platform = $3 AND platform_user_id = $4), ''), $5, $6, $7,
			'denied', nullif($8, ''), $9, $9, $10, $9)`,
		strings.ToLower(rand.Text()[:16]), a.Bot, account.Platform, account.ID, a.Chat, string(a.Scope), a.Place, a.Trust, at, by)
	return err
}

// Readmitted notes that a user whose access was revoked has it again. As after again, the
// request keeps when it was lost: what TurnedAway reads.
func (t *requests) Readmitted(ctx context.Context, tx *store.Tx, a people.Grant) error {
	_, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'approved', approved_trust_level = $1, resolved_at = $2, resolved_by = $3,
			expires_at = CASE WHEN resolved_at < $2 THEN resolved_at ELSE $2 END WHERE (platform, platform_user_id) IN (SELECT i.platform, i.platform_user_id FROM identities i WHERE i.user_id = $4)
			AND bot = $5 AND scope = $6 AND place = $7 AND `+isRevoked,
		a.Trust.String(), a.At, a.By, a.User, a.Bot, string(a.Scope), a.Place)
	return err
}

// again prepares a second approval of r, whose user has lost the access that the first one
// gave: a request of theirs that waits takes its place, so that its messages are answered.
func (t *requests) again(ctx context.Context, tx *store.Tx, r *request, trust core.Trust, by core.Actor) (text string, err error) {
	var rows []request
	err = tx.Select(ctx, &rows, requestColumns+` WHERE bot = $1 AND platform_user_id = $2 AND scope = $3 AND place = $4 AND status = 'pending' AND expires_at > $5`,
		r.Bot, r.PlatformUserID, string(r.Scope), r.Place, core.Stamp(tx.Time()))
	if err != nil {
		return "", err
	}
	if len(rows) > 0 {
		*r = rows[0]
		return "approved", t.resolve(ctx, tx, r, "approved", trust, by)
	}
	now := core.Stamp(tx.Time())
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'approved', approved_trust_level = $1, resolved_at = $2, resolved_by = $3,
			expires_at = CASE WHEN resolved_at < $2 THEN resolved_at ELSE $2 END WHERE id = $4 AND status = 'denied' AND resolved_at = $5`, trust, now, by.String(), r.ID, r.Resolved)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", decided(r, tx.Time())
	}
	r.Status, r.Trust, r.Resolved, r.ResolvedBy = "approved", trust, now, by.String()
	return "approved_again", nil
}

// refused tells a user whose access was revoked, once, until when they are not answered.
// Users who were denied were told when that was decided, and where strangers get no
// answer, these get none either.
func (g *Gate) refused(ctx context.Context, tx *store.Tx, in *core.Inbound, s *standing) error {
	text := "revoked_group"
	if !in.Group() {
		if p := g.bots.Policy(in.Bot); p.DM != bots.Pairing && p.DM != "" {
			return nil
		}
		text = "revoked"
	}
	if in.Kind != core.KindMessage && in.Kind != core.KindCommand {
		return nil
	}
	var rows []request
	now := tx.Time()
	err := tx.Select(ctx, &rows, requestColumns+` WHERE platform = $1 AND platform_user_id = $2 AND bot = $3 AND `+isRevoked+` AND resolved_at > $4
			AND cooled = 0 AND (coalesce(approved_trust_level, '') <> '' OR (scope = $5 AND place = $6)) ORDER BY resolved_at DESC, id`,
		in.From.Platform, in.From.ID, in.Bot, core.Stamp(now.Add(-CoolOff)), string(in.Scope()), in.Place)
	if err != nil {
		return err
	}
	if len(rows) == 0 || slices.ContainsFunc(rows, func(r request) bool { return r.Replied > rows[0].Resolved }) { // of any: this is one revocation
		return nil
	}
	r := &rows[0]
	chat := r.PlatformChatID
	if chat == "" && r.Scope == in.Scope() && r.Place == in.Place {
		chat = in.Chat
	}
	if _, err := tx.Exec(ctx, `UPDATE pairing_requests SET replied_at = $1, platform_chat_id = $2 WHERE id = $3`, core.Stamp(now), chat, r.ID); err != nil {
		return err
	}
	zone, err := g.People.Timezone(ctx, tx, s.User)
	if err != nil {
		return err
	}
	until := texts.Time(core.TimeOf(r.Resolved).Add(CoolOff), now, zone)
	return g.notices.Reply(ctx, tx, in, "pair:"+r.ID+":revoked-"+in.UpdateID, text, texts.Words{Name: in.From.Name, Until: until})
}
