package pairing

import (
	"context"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets, moves and prunes what the tables of users keep.
type Tables struct{ Gate *Gate }

// Tables returns the tables that keep data of users.
func (Tables) Tables() []string {
	return []string{"users", "identities", "access", "pairing_requests", "blocks", "places", "invites", "link_codes"}
}

// Revoke removes every access of the user and aborts what runs for them.
func (t Tables) Revoke(ctx context.Context, tx *store.Tx, user int64) error {
	return t.Gate.People.ShutOut(ctx, tx, user)
}

// Forget removes accounts, access, requests, blocks and names, and writes the
// audit entry. The user's number stays, so that it is never another user's.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if !r.Last {
		return nil
	}
	return t.Gate.Forget(ctx, tx, r.Person, r.By)
}

// Move rewrites a group's id.
func (t Tables) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	return t.Gate.Move(ctx, tx, bot, from, to)
}

// Chores returns the tables' housekeeping.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{{Name: "pairing", Every: time.Minute, Run: t.Gate.Expire}, {Name: "request_cards", Every: time.Minute, Run: t.Gate.RefreshCards}, {Name: "old_requests", Every: 6 * time.Hour, Run: t.Gate.Prune}}
}

// Exports returns the statements of an export.
func (Tables) Exports() []store.Export {
	return []store.Export{
		{Name: "user", Query: `SELECT display, role, created_at, settings FROM users WHERE id = $1 LIMIT $2`},
		{Name: "identities", Query: `SELECT platform, platform_user_id, display, created_at FROM identities WHERE user_id = $1 LIMIT $2`},
		{Name: "access", Query: `SELECT bot, scope, place, trust_level, expires_at, chat, "by", at FROM access WHERE user_id = $1 LIMIT $2`},
		{Name: "requests", Query: `SELECT r.platform, r.platform_user_id, r.platform_user_display, r.bot, r.scope, r.place, r.status, r.approved_trust_level, r.created_at, r.resolved_at, r.first_message
			FROM identities i JOIN pairing_requests r ON r.platform = i.platform AND r.platform_user_id = i.platform_user_id WHERE i.user_id = $1 ORDER BY r.created_at DESC LIMIT $2`},
		{Name: "blocks", Query: `SELECT b.platform, b.platform_user_id, b.bot, b.at, b.took FROM identities i JOIN blocks b ON b.platform = i.platform AND b.platform_user_id = i.platform_user_id WHERE i.user_id = $1 LIMIT $2`},
	}
}
