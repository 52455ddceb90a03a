package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// A Grant is a row of access: what one user may do with a bot, in direct messages
// or in one group.
type Grant struct {
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

// Put writes a, over an older row for the same bot, user, scope and place. If that row
// has expired, what the user was granted while it was valid ends.
func (s *Store) Put(ctx context.Context, tx *store.Tx, a Grant) error {
	var ends []string
	err := tx.Select(ctx, &ends, `SELECT expires_at FROM access WHERE bot = $1 AND user_id = $2 AND scope = $3 AND place = $4`, a.Bot, a.User, string(a.Scope), a.Place)
	if err != nil {
		return err
	}
	for _, end := range ends {
		if err := s.endExpired(ctx, tx, a.User, end); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO access (bot, user_id, scope, place, trust_level, expires_at, chat, "by", at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (bot, user_id, scope, place) DO UPDATE SET trust_level = excluded.trust_level, expires_at = excluded.expires_at,
			raised_to = '', raised_until = '', chat = excluded.chat, "by" = excluded."by", at = excluded.at`,
		a.Bot, a.User, string(a.Scope), a.Place, a.Trust, a.ExpiresAt, a.Chat, a.By, a.At)
	if err != nil {
		return err
	}
	return s.requests.Readmitted(ctx, tx, a)
}

// endExpired ends what a user was granted under an access that ended at a stamp, if
// that has passed: a later access begins without grants.
func (s *Store) endExpired(ctx context.Context, tx *store.Tx, user int64, end string) error {
	if end == "" || end > core.Stamp(tx.Time()) {
		return nil
	}
	return s.ungrant(ctx, tx, user)
}

// Access lists at most limit access rows (1,000 at most), newest first. A
// person known on several platforms is shown with the bot's.
func (s *Store) Access(ctx context.Context, limit int) ([]core.AccessRow, error) {
	return s.access(ctx, ` ORDER BY a.id DESC LIMIT $1`, Limit(limit))
}

func (s *Store) access(ctx context.Context, which string, arg any) ([]core.AccessRow, error) {
	var rows []struct {
		Grant
		Display string    `db:"display"`
		Role    core.Role `db:"role"`
	}
	err := s.db.Select(ctx, &rows, `SELECT a.id, a.bot, a.user_id, a.scope, a.place, a.trust_level, a.expires_at, a.chat, a."by", a.at, u.display, u.role
		FROM access a JOIN users u ON u.id = a.user_id`+which, arg)
	if err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	out := make([]core.AccessRow, len(rows))
	for i, r := range rows {
		out[i] = core.AccessRow{ID: r.ID, Bot: r.Bot, User: r.User, Display: r.Display, Role: r.Role, Platform: s.bots.Platform(r.Bot),
			Scope: r.Scope, Place: r.Place, Trust: r.Trust, ExpiresAt: core.TimeOf(r.ExpiresAt), By: r.By, At: core.TimeOf(r.At)}
	}
	return out, s.nameIdentities(ctx, out)
}

// nameIdentities fills in the platform's id and name of each row's person, of
// several accounts the latest.
func (s *Store) nameIdentities(ctx context.Context, rows []core.AccessRow) error {
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
	err := s.db.Select(ctx, &accounts, `WITH who(id) AS (VALUES `+store.Tuples(len(args), 1)+`)
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

// Revoke takes every access of a user on a bot: the next update is refused,
// what runs is stopped, and the user counts as denied from now (CoolOff). A
// platform's name represents its only bot. It returns how many rows went;
// NotFound when there was nothing to take.
func (s *Store) Revoke(ctx context.Context, bot, platformUserID string, by core.Actor) (int, error) {
	bot, err := s.bots.Resolve(bot)
	if err != nil {
		return 0, err
	}
	var n int
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		platform := s.bots.Platform(bot)
		user, err := s.known(ctx, tx, platform, platformUserID, by)
		if err != nil {
			return err
		}
		gone, err := s.Strip(ctx, tx, bot, user)
		if err != nil {
			return err
		}
		before, err := s.requests.Revoked(ctx, tx, bot, core.Identity{Platform: platform, ID: platformUserID}, gone, true, by)
		if err != nil {
			return err
		}
		if n = len(gone); n == 0 && before {
			return core.Errorf(core.NotFound, "this person has no access to %s", bot)
		}
		s.changes.Decided(tx, bot, "revoked", core.TopicPairing, core.TopicPeople)
		return store.Audit(ctx, tx, by, "access.revoke", strconv.FormatInt(user, 10), map[string]any{"bot": bot, "rows": n})
	})
	if err != nil {
		return 0, fmt.Errorf("revoke: %w", err)
	}
	return n, nil
}

// RemoveAccess takes one access row; the last one of a user on a bot is a Revoke.
func (s *Store) RemoveAccess(ctx context.Context, id int64, by core.Actor) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		a, err := accessByID(ctx, tx, id, by)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM access WHERE id = $1`, id); err != nil {
			return err
		}
		if err := s.coolAfter(ctx, tx, a, by); err != nil {
			return err
		}
		if err := s.ungrant(ctx, tx, a.User); err != nil {
			return err
		}
		s.changes.Abort(tx, a.Bot, a.User)
		s.changes.Decided(tx, a.Bot, "revoked", core.TopicPairing, core.TopicPeople)
		return store.Audit(ctx, tx, by, "access.remove", strconv.FormatInt(a.User, 10), map[string]any{"bot": a.Bot, "access": id, "scope": a.Scope})
	})
	if err != nil {
		return fmt.Errorf("remove access: %w", err)
	}
	return nil
}

// coolAfter notes that a's person counts as denied: on the whole bot when
// nothing is left to them there, else for that scope and place.
func (s *Store) coolAfter(ctx context.Context, tx *store.Tx, a Grant, by core.Actor) error {
	var left bool
	if err := tx.Get(ctx, &left, `SELECT EXISTS (SELECT 1 FROM access WHERE user_id = $1 AND bot = $2)`, a.User, a.Bot); err != nil {
		return err
	}
	var ids []string
	platform := s.bots.Platform(a.Bot)
	if err := tx.Select(ctx, &ids, `SELECT platform_user_id FROM identities WHERE user_id = $1 AND platform = $2`, a.User, platform); err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := s.requests.Revoked(ctx, tx, a.Bot, core.Identity{Platform: platform, ID: id}, []Grant{a}, !left, by); err != nil {
			return err
		}
	}
	return nil
}

// Strip deletes the user's access to bot, ends what they were granted in conversations,
// and stops what they run there. It returns the rows that it deleted.
func (s *Store) Strip(ctx context.Context, tx *store.Tx, bot string, user int64) (gone []Grant, err error) {
	err = tx.Select(ctx, &gone, `SELECT id, bot, user_id, scope, place, trust_level, expires_at, chat, "by", at FROM access WHERE bot = $1 AND user_id = $2 ORDER BY id`, bot, user)
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM access WHERE bot = $1 AND user_id = $2`, bot, user); err != nil {
		return nil, err
	}
	s.changes.Abort(tx, bot, user)
	return gone, s.ungrant(ctx, tx, user)
}

// known returns the user behind an identity that by may act on; NotFound without one.
func (s *Store) known(ctx context.Context, tx *store.Tx, platform, id string, by core.Actor) (int64, error) {
	if err := s.OwnerOnly(ctx, tx, platform, id, by); err != nil {
		return 0, err
	}
	var user int64
	err := tx.Get(ctx, &user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id)
	if errors.Is(err, store.ErrNoRows) {
		return 0, core.Errorf(core.NotFound, "no account with this id on %s has access", platform)
	}
	return user, err
}

// ownerOnly keeps everyone but the operator from deciding about the operator.
func (s *Store) OwnerOnly(ctx context.Context, tx *store.Tx, platform, id string, by core.Actor) error {
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

// Limit returns the number of rows to list: limit, or 1,000 where that is more
// or not positive.
func Limit(limit int) int {
	if limit <= 0 || limit > 1000 {
		return 1000
	}
	return limit
}
