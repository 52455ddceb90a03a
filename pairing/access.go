package pairing

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A BlockRow is somebody who is not listened to. Bot "*" is every bot.
type BlockRow struct {
	Platform       string    `json:"platform"`
	PlatformUserID string    `json:"platform_user_id"`
	Bot            string    `json:"bot"`
	By             string    `json:"by"`
	At             time.Time `json:"at"`
}

// accessRow is a row of access.
type accessRow struct {
	ID        int64      `db:"id"`
	Bot       string     `db:"bot"`
	User      int64      `db:"user_id"`
	Scope     core.Scope `db:"scope"`
	Place     string     `db:"place"`
	Trust     core.Trust `db:"trust_level"`
	ExpiresAt string     `db:"expires_at"`
	Chat      string     `db:"chat"`
	By        string     `db:"by"`
	At        string     `db:"at"`
}

// putAccess writes a, over an older row for the same bot, user, scope and place.
func putAccess(ctx context.Context, tx *store.Tx, a accessRow) error {
	_, err := tx.Exec(ctx, `INSERT INTO access (bot, user_id, scope, place, trust_level, expires_at, chat, "by", at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (bot, user_id, scope, place) DO UPDATE SET trust_level = excluded.trust_level, expires_at = excluded.expires_at,
			raised_to = '', raised_until = '', chat = excluded.chat, "by" = excluded."by", at = excluded.at`,
		a.Bot, a.User, string(a.Scope), a.Place, a.Trust, a.ExpiresAt, a.Chat, a.By, a.At)
	return err
}

// User is the user behind p and the role that counts now: guest for an owner
// or admin who has no access left anywhere. A stranger is 0 and "".
func (b *Book) User(ctx context.Context, q store.Queryer, p core.Peer) (id int64, role string, err error) {
	if p.IsZero() || p.Shared || p.Bot {
		return 0, "", nil
	}
	type user struct {
		ID    int64  `db:"id"`
		Role  string `db:"role"`
		Until string `db:"until"` // the last access ends; "" is none
	}
	u, err := store.Recall[user](ctx, q, `SELECT u.id, u.role,
			coalesce((SELECT max(CASE WHEN a.expires_at = '' THEN '9999' ELSE a.expires_at END) FROM access a WHERE a.user_id = u.id), '') AS until
		FROM identities i JOIN users u ON u.id = i.user_id WHERE i.platform = $1 AND i.platform_user_id = $2`, p.Platform, p.ID)
	if errors.Is(err, store.ErrNoRows) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", fmt.Errorf("user of %s: %w", p.Platform, err)
	}
	if u.Until <= core.Stamp(b.o.Clock.Now()) {
		u.Role = "guest"
	}
	return u.ID, u.Role, nil
}

// Name is what a person calls themselves, cleaned; "" when nobody knows.
func (b *Book) Name(ctx context.Context, q store.Queryer, user int64) (string, error) {
	var name string
	err := q.Get(ctx, &name, `SELECT display FROM users WHERE id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("name of a person: %w", err)
	}
	return core.CleanName(name), nil
}

// Peer is the person's account on a platform; core.NotFound without one.
func (b *Book) Peer(ctx context.Context, q store.Queryer, user int64, platform string) (core.Peer, error) {
	p := core.Peer{Platform: platform}
	err := q.Get(ctx, &p.ID, `SELECT platform_user_id FROM identities WHERE user_id = $1 AND platform = $2 ORDER BY platform_user_id LIMIT 1`, user, platform)
	if errors.Is(err, store.ErrNoRows) {
		return core.Peer{}, texts.Error(core.NotFound, "account_gone")
	}
	if err != nil {
		return core.Peer{}, fmt.Errorf("account of a person: %w", err)
	}
	p.Name, err = b.Name(ctx, q, user)
	return p, err
}

// OwnerChats are the direct chats with bot of the owner and the admins, at most 20.
func (b *Book) OwnerChats(ctx context.Context, q store.Queryer, bot string) ([]core.Address, error) {
	var chats []string
	err := q.Select(ctx, &chats, `SELECT a.chat FROM users u JOIN access a ON a.user_id = u.id
		WHERE u.role IN ('owner', 'admin') AND a.bot = $1 AND a.scope = 'dm' AND a.chat <> '' AND (a.expires_at = '' OR a.expires_at > $2) ORDER BY u.id LIMIT 20`,
		bot, core.Stamp(b.o.Clock.Now()))
	if err != nil {
		return nil, fmt.Errorf("owner chats: %w", err)
	}
	out := make([]core.Address, len(chats))
	for i, c := range chats {
		out[i] = core.Address{Bot: bot, Chat: c}
	}
	return out, nil
}

// Access lists at most limit access rows (1,000 at most), newest first. A
// person known on several platforms is shown with the bot's.
func (b *Book) Access(ctx context.Context, limit int) ([]core.AccessRow, error) {
	return b.access(ctx, ` ORDER BY a.id DESC LIMIT $1`, bounded(limit))
}

func (b *Book) access(ctx context.Context, which string, arg any) ([]core.AccessRow, error) {
	var rows []struct {
		accessRow
		Display string `db:"display"`
		Role    string `db:"role"`
	}
	err := b.db.Select(ctx, &rows, `SELECT a.id, a.bot, a.user_id, a.scope, a.place, a.trust_level, a.expires_at, a.chat, a."by", a.at, u.display, u.role
		FROM access a JOIN users u ON u.id = a.user_id`+which, arg)
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	out := make([]core.AccessRow, len(rows))
	for i, r := range rows {
		out[i] = core.AccessRow{ID: r.ID, Bot: r.Bot, User: r.User, Display: r.Display, Role: r.Role, Platform: b.platform(r.Bot),
			Scope: r.Scope, Place: r.Place, Trust: r.Trust, ExpiresAt: stamp(r.ExpiresAt), By: r.By, At: stamp(r.At)}
	}
	return out, b.nameIdentities(ctx, out)
}

// nameIdentities fills in the platform's id and name of each row's person, of
// several accounts the latest.
func (b *Book) nameIdentities(ctx context.Context, rows []core.AccessRow) error {
	type key struct {
		User     int64  `db:"user_id"`
		Platform string `db:"platform"`
	}
	var args []any
	asked := make(map[int64]bool, len(rows))
	for _, r := range rows {
		if !asked[r.User] {
			asked[r.User], args = true, append(args, strconv.FormatInt(r.User, 10))
		}
	}
	if len(args) == 0 {
		return nil
	}
	var accounts []struct {
		key
		ID      string `db:"platform_user_id"`
		Display string `db:"display"`
	}
	err := b.db.Select(ctx, &accounts, `WITH who(id) AS (VALUES `+store.Tuples(len(args), 1)+`)
		SELECT i.user_id, i.platform, i.platform_user_id, i.display FROM who JOIN identities i ON i.user_id = CAST(who.id AS BIGINT) ORDER BY i.created_at`, args...)
	if err != nil {
		return fmt.Errorf("access: %w", err)
	}
	at := make(map[key]int, len(accounts))
	for i, a := range accounts {
		at[a.key] = i
	}
	for i := range rows {
		if n, ok := at[key{rows[i].User, rows[i].Platform}]; ok {
			rows[i].PlatformUserID, rows[i].Display = accounts[n].ID, cmp.Or(accounts[n].Display, rows[i].Display)
		}
	}
	return nil
}

// Revoke takes every access of a person on a bot: the next update is refused,
// what runs is stopped, and the person counts as denied from now (CoolOff). A
// platform's name stands for its only bot. It says how many rows went;
// NotFound when there was nothing to take.
func (b *Book) Revoke(ctx context.Context, bot, platformUserID string, by core.Actor) (int, error) {
	bot, err := b.bot(bot)
	if err != nil {
		return 0, err
	}
	var n int
	err = b.db.Tx(ctx, func(tx *store.Tx) error {
		platform := b.platform(bot)
		user, err := b.known(ctx, tx, platform, platformUserID, by)
		if err != nil {
			return err
		}
		gone, err := b.strip(ctx, tx, bot, user)
		if err != nil {
			return err
		}
		in := core.Inbound{Address: core.Address{Bot: bot}, From: core.Peer{Platform: platform, ID: platformUserID}}
		if n = gone; n == 0 {
			if cool, err := b.cooling(ctx, tx, &in); err != nil || cool {
				return errors.Join(err, core.Errorf(core.NotFound, "this person has no access to %s", bot))
			}
		}
		if err := b.markRevoked(ctx, tx, bot, platform, platformUserID, by); err != nil {
			return err
		}
		b.after(tx, bot, "revoked", "pairing", "people")
		return store.Audit(ctx, tx, by, "access.revoke", strconv.FormatInt(user, 10), map[string]any{"bot": bot, "rows": n})
	})
	if err != nil {
		return 0, fmt.Errorf("revoke: %w", err)
	}
	return n, nil
}

// RemoveAccess takes one access row; the last one of a person on a bot is a Revoke.
func (b *Book) RemoveAccess(ctx context.Context, id int64, by core.Actor) error {
	err := b.db.Tx(ctx, func(tx *store.Tx) error {
		a, err := accessByID(ctx, tx, id, by)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM access WHERE id = $1`, id); err != nil {
			return err
		}
		if err := b.coolAfter(ctx, tx, a, by); err != nil {
			return err
		}
		b.abort(tx, a.Bot, a.User)
		b.after(tx, a.Bot, "revoked", "pairing", "people")
		return store.Audit(ctx, tx, by, "access.remove", strconv.FormatInt(a.User, 10), map[string]any{"bot": a.Bot, "access": id, "scope": a.Scope})
	})
	if err != nil {
		return fmt.Errorf("remove access: %w", err)
	}
	return nil
}

// coolAfter notes that a's person counts as denied: on the whole bot when
// nothing is left to them there, else for that scope and place.
func (b *Book) coolAfter(ctx context.Context, tx *store.Tx, a accessRow, by core.Actor) error {
	var left bool
	if err := tx.Get(ctx, &left, `SELECT EXISTS (SELECT 1 FROM access WHERE user_id = $1 AND bot = $2)`, a.User, a.Bot); err != nil {
		return err
	}
	var ids []string
	platform := b.platform(a.Bot)
	if err := tx.Select(ctx, &ids, `SELECT platform_user_id FROM identities WHERE user_id = $1 AND platform = $2`, a.User, platform); err != nil {
		return err
	}
	for _, id := range ids {
		if !left {
			if err := b.markRevoked(ctx, tx, a.Bot, platform, id, by); err != nil {
				return err
			}
			continue
		}
		if err := b.insertDenied(ctx, tx, request{Bot: a.Bot, Platform: platform, PlatformUserID: id, PlatformChatID: a.Chat, Scope: a.Scope, Place: a.Place}, by); err != nil {
			return err
		}
	}
	return nil
}

// markRevoked turns the person's newest approved request on bot into a denied
// one that keeps its level, which is what tells a revocation from a denial.
func (b *Book) markRevoked(ctx context.Context, tx *store.Tx, bot, platform, id string, by core.Actor) error {
	n, err := tx.Exec(ctx, `UPDATE pairing_requests SET status = 'denied', resolved_at = $1, resolved_by = $2,
			approved_trust_level = coalesce(nullif(approved_trust_level, ''), 'sandboxed')
		WHERE id = (SELECT id FROM pairing_requests WHERE platform = $3 AND platform_user_id = $4 AND bot = $5 AND status = 'approved' ORDER BY resolved_at DESC LIMIT 1)`,
		core.Stamp(tx.Time()), who(by), platform, id, bot)
	if err != nil || n > 0 {
		return err
	}
	return b.insertDenied(ctx, tx, request{Bot: bot, Platform: platform, PlatformUserID: id, Scope: core.ScopeDM, Trust: core.Sandboxed}, by)
}

func (b *Book) insertDenied(ctx context.Context, tx *store.Tx, r request, by core.Actor) error {
	now := core.Stamp(tx.Time())
	_, err := tx.Exec(ctx, `INSERT INTO pairing_requests (id, bot, platform, platform_user_id, platform_user_display, platform_chat_id, scope, place,
			status, approved_trust_level, created_at, resolved_at, resolved_by, expires_at)
		VALUES ($1, $2, $3, $4, coalesce((SELECT display FROM identities WHERE platform = $3 AND platform_user_id = $4), ''), $5, $6, $7,
			'denied', nullif($8, ''), $9, $9, $10, $9)`,
		strings.ToLower(rand.Text()[:16]), r.Bot, r.Platform, r.PlatformUserID, r.PlatformChatID, string(r.Scope), r.Place, r.Trust, now, who(by))
	return err
}

// strip deletes the user's access to bot and stops what they run there.
func (b *Book) strip(ctx context.Context, tx *store.Tx, bot string, user int64) (int, error) {
	n, err := tx.Exec(ctx, `DELETE FROM access WHERE bot = $1 AND user_id = $2`, bot, user)
	b.abort(tx, bot, user)
	return int(n), err
}

// known is the user behind an identity that by may act on; NotFound without one.
func (b *Book) known(ctx context.Context, tx *store.Tx, platform, id string, by core.Actor) (int64, error) {
	if err := b.ownerOnly(ctx, tx, platform, id, by); err != nil {
		return 0, err
	}
	var user int64
	err := tx.Get(ctx, &user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id)
	if errors.Is(err, store.ErrNoRows) {
		return 0, core.Errorf(core.NotFound, "nobody with this id on %s has access", platform)
	}
	return user, err
}

// ownerOnly keeps everybody but the operator from deciding about the operator.
func (b *Book) ownerOnly(ctx context.Context, tx *store.Tx, platform, id string, by core.Actor) error {
	if by.User == core.Operator || by.User == 0 {
		return nil
	}
	var owner bool
	err := tx.Get(ctx, &owner, `SELECT EXISTS (SELECT 1 FROM identities WHERE platform = $1 AND platform_user_id = $2 AND user_id = $3)`, platform, id, core.Operator)
	if err == nil && owner {
		return errOwnerOnly()
	}
	return err
}

func errOwnerOnly() error {
	return texts.Error(core.Denied, "owners_access")
}
