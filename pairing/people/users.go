package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/bots"
)

// EnsureOperator makes user 1, who owns the gateway, at the first start.
func (s *Store) EnsureOperator(ctx context.Context) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error { return s.Operator(ctx, tx) })
	if err != nil {
		return fmt.Errorf("ensure operator: %w", err)
	}
	return nil
}

// Operator stores the user of the operator, with an audit entry, if there is none yet.
func (s *Store) Operator(ctx context.Context, tx *store.Tx) error {
	n, err := tx.Exec(ctx, `INSERT INTO users (id, display, role, created_at) VALUES ($1, 'operator', 'owner', $2) ON CONFLICT (id) DO NOTHING`,
		core.Operator, core.Stamp(tx.Time()))
	if err != nil {
		return err
	}
	if n == 1 {
		return store.Audit(ctx, tx, core.Actor{Via: "upkeep"}, "user.create", "1", nil)
	}
	var role core.Role
	if err := tx.Get(ctx, &role, `SELECT role FROM users WHERE id = $1`, core.Operator); err != nil {
		return err
	}
	if role != core.RoleOwner {
		return core.Errorf(core.Conflict, "user 1 in this database is not the owner but %s; it was not made by this program", role)
	}
	return nil
}

// User returns the user behind p and the role that counts now: guest for an owner
// or admin who has no access left anywhere. A stranger is 0 and "".
func (s *Store) User(ctx context.Context, q store.Queryer, p core.Peer) (id int64, role core.Role, err error) {
	if p.IsZero() || p.Shared || p.Bot {
		return 0, "", nil
	}
	type user struct {
		ID    int64     `db:"id"`
		Role  core.Role `db:"role"`
		Until string    `db:"until"` // the last access ends; "" is none
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
	if u.Until <= core.Stamp(s.clock.Now()) {
		u.Role = core.RoleGuest
	}
	return u.ID, u.Role, nil
}

// Role returns the role that a user was given, "" where there is no such user, and whether the
// user is an admin of the panel.
func (s *Store) Role(ctx context.Context, q store.Queryer, user int64) (role core.Role, admin bool, err error) {
	var r struct {
		Role  core.Role `db:"role"`
		Admin bool      `db:"admin"`
	}
	err = q.Get(ctx, &r, `SELECT coalesce((SELECT role FROM users WHERE id = $1), '') AS role,
		EXISTS (SELECT 1 FROM admin_accounts WHERE user_id = $1 AND role = 'admin') AS admin`, user)
	if err != nil {
		return "", false, fmt.Errorf("role of a person: %w", err)
	}
	return r.Role, r.Admin, nil
}

// Name returns what a user calls themselves, cleaned; "" when no one knows.
func (s *Store) Name(ctx context.Context, q store.Queryer, user int64) (string, error) {
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

// AccountName returns what a user's first account on a platform is called, cleaned; ""
// without one.
func (s *Store) AccountName(ctx context.Context, q store.Queryer, user int64) (string, error) {
	var name string
	err := q.Get(ctx, &name, `SELECT display FROM identities WHERE user_id = $1 AND display <> '' ORDER BY created_at, platform LIMIT 1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("name of an account: %w", err)
	}
	return core.CleanName(name), nil
}

// Peer returns the user's account on a platform; core.NotFound without one.
func (s *Store) Peer(ctx context.Context, q store.Queryer, user int64, platform string) (core.Peer, error) {
	p := core.Peer{Platform: platform}
	err := q.Get(ctx, &p.ID, `SELECT platform_user_id FROM identities WHERE user_id = $1 AND platform = $2 ORDER BY platform_user_id LIMIT 1`, user, platform)
	if errors.Is(err, store.ErrNoRows) {
		return core.Peer{}, texts.Error(core.NotFound, "account_gone")
	}
	if err != nil {
		return core.Peer{}, fmt.Errorf("account of a person: %w", err)
	}
	p.Name, err = s.Name(ctx, q, user)
	return p, err
}

// OwnerChats returns the direct chats with bot of the owner and the admins, at most 20.
func (s *Store) OwnerChats(ctx context.Context, q store.Queryer, bot string) ([]core.Address, error) {
	var chats []string
	err := q.Select(ctx, &chats, `SELECT a.chat FROM users u JOIN access a ON a.user_id = u.id
		WHERE u.role IN ('owner', 'admin') AND a.bot = $1 AND a.scope = 'dm' AND a.chat <> '' AND (a.expires_at = '' OR a.expires_at > $2) ORDER BY u.id LIMIT 20`,
		bot, core.Stamp(s.clock.Now()))
	if err != nil {
		return nil, fmt.Errorf("owner chats: %w", err)
	}
	out := make([]core.Address, len(chats))
	for i, c := range chats {
		out[i] = core.Address{Bot: bot, Chat: c}
	}
	return out, nil
}

// OwnerChat returns the owner's direct chat with bot, and whether there is one that the
// owner still has access from.
func (s *Store) OwnerChat(ctx context.Context, q store.Queryer, bot string) (to core.Address, ok bool, err error) {
	to.Bot = bot
	err = q.Get(ctx, &to.Chat, `SELECT chat FROM access WHERE user_id = $1 AND bot = $2 AND scope = 'dm' AND chat <> '' AND (expires_at = '' OR expires_at > $3) LIMIT 1`,
		core.Operator, bot, core.Stamp(s.clock.Now()))
	if errors.Is(err, store.ErrNoRows) {
		return core.Address{}, false, nil
	}
	if err != nil {
		return core.Address{}, false, fmt.Errorf("owner's chat: %w", err)
	}
	return to, true, nil
}

// HasOwner reports whether the operator has an account on a chat platform.
func (s *Store) HasOwner(ctx context.Context, q store.Queryer) (ok bool, err error) {
	err = q.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM identities WHERE user_id = $1)`, core.Operator)
	return ok, err
}

// HasUser reports whether there is a user of this id.
func (s *Store) HasUser(ctx context.Context, q store.Queryer, id int64) (ok bool, err error) {
	err = q.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM users WHERE id = $1)`, id)
	return ok, err
}

// Remembered reports whether the user is stored and was not forgotten: of one who was,
// the empty row stays.
func (s *Store) Remembered(ctx context.Context, q store.Queryer, id int64) (ok bool, err error) {
	err = q.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM users WHERE id = $1 AND (display <> '' OR EXISTS (SELECT 1 FROM identities WHERE user_id = $1)))`, id)
	return ok, err
}

// Since returns when a user came to be; false for no one.
func (s *Store) Since(ctx context.Context, q store.Queryer, user int64) (time.Time, bool, error) {
	var at string
	err := q.Get(ctx, &at, `SELECT created_at FROM users WHERE id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("user: %w", err)
	}
	since, err := core.ParseStamp(at)
	return since, err == nil, err
}

// Ensure returns the user behind an identity; both are made when missing. Ids
// are never used twice, and 1 is the operator's.
func (s *Store) Ensure(ctx context.Context, tx *store.Tx, platform, id, display string) (int64, error) {
	var user int64
	err := tx.Get(ctx, &user, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id)
	if err == nil || !errors.Is(err, store.ErrNoRows) {
		return user, err
	}
	if user, err = s.Create(ctx, tx, display); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ($1, $2, $3, $4, $5)`,
		platform, id, user, display, core.Stamp(tx.Time()))
	return user, err
}

// Create returns a new user without an account on any platform, a guest in chat.
func (s *Store) Create(ctx context.Context, tx *store.Tx, display string) (user int64, err error) {
	if err := tx.Get(ctx, &user, `SELECT coalesce(max(id), 1) + 1 FROM users WHERE id >= 1`); err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO users (id, display, role, created_at) VALUES ($1, $2, 'guest', $3)`, user, display, core.Stamp(tx.Time()))
	return user, err
}

// Rename gives a user another name; the platforms' names of their accounts stay.
func (s *Store) Rename(ctx context.Context, tx *store.Tx, user int64, display string) error {
	_, err := tx.Exec(ctx, `UPDATE users SET display = $2 WHERE id = $1`, user, display)
	return err
}

// Unlisted returns the names of users who have neither an account on a platform nor access, by
// number: those of the panel's accounts, also after these were removed. At most 1,000.
func (s *Store) Unlisted(ctx context.Context) (map[int64]string, error) {
	var rows []struct {
		ID      int64  `db:"id"`
		Display string `db:"display"`
	}
	err := s.db.Select(ctx, &rows, `SELECT u.id, u.display FROM users u WHERE u.display <> '' AND u.id <> 1 AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.id)
		AND NOT EXISTS (SELECT 1 FROM access a WHERE a.user_id = u.id) ORDER BY u.id DESC LIMIT 1000`)
	if err != nil {
		return nil, fmt.Errorf("names: %w", err)
	}
	out := make(map[int64]string, len(rows))
	for _, r := range rows {
		out[r.ID] = r.Display
	}
	return out, nil
}

// Accounts names a user's accounts, one a line, in plain text.
func (s *Store) Accounts(ctx context.Context, tx *store.Tx, user int64) (string, error) {
	var rows []struct {
		Platform string `db:"platform"`
		ID       string `db:"platform_user_id"`
		Display  string `db:"display"`
	}
	err := tx.Select(ctx, &rows, `SELECT platform, platform_user_id, display FROM identities WHERE user_id = $1 ORDER BY platform, platform_user_id LIMIT 10`, user)
	lines := make([]string, len(rows))
	for i, r := range rows {
		lines[i] = texts.Text("link_account", texts.With{"Platform": r.Platform, "Name": core.CleanName(r.Display), "ID": r.ID})
	}
	return strings.Join(lines, "\n"), err
}

// Merge makes an account one of the user to, and gives to all that the user from
// had, if it is not 0.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, account core.Peer, from, to int64) error {
	if err := s.Bind(ctx, tx, account, to); err != nil || from == 0 {
		return err
	}
	var names []string
	if err := tx.Select(ctx, &names, `SELECT DISTINCT bot FROM access WHERE user_id = $1`, from); err != nil {
		return err
	}
	for _, bot := range names { // what runs was begun in the other name
		s.changes.Abort(tx, bot, from)
	}
	for _, q := range []string{
		`UPDATE identities SET user_id = $1 WHERE user_id = $2`,
		`UPDATE access SET user_id = $1 WHERE user_id = $2 AND NOT EXISTS (SELECT 1 FROM access o WHERE o.user_id = $1 AND o.bot = access.bot AND o.scope = access.scope AND o.place = access.place)`,
	} {
		if _, err := tx.Exec(ctx, q, to, from); err != nil {
			return fmt.Errorf("link accounts: %w", err)
		}
	}
	for _, q := range []string{
		`DELETE FROM access WHERE user_id = $1`,
		`UPDATE users SET display = '', settings = NULL WHERE id = $1`, // no one any more; the number is not given again
	} {
		if _, err := tx.Exec(ctx, q, from); err != nil {
			return fmt.Errorf("link accounts: %w", err)
		}
	}
	return nil
}

// Bind makes an account the user's, whose ever it was.
func (s *Store) Bind(ctx context.Context, tx *store.Tx, account core.Peer, user int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO identities (platform, platform_user_id, user_id, display, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (platform, platform_user_id) DO UPDATE SET user_id = excluded.user_id, display = excluded.display`,
		account.Platform, account.ID, user, core.CleanName(account.Name), core.Stamp(tx.Time()))
	return err
}

// ReplaceOperator takes from the operator the account on the platform, and what
// it may do on that platform's bots and on bot.
func (s *Store) ReplaceOperator(ctx context.Context, tx *store.Tx, platform, bot string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM identities WHERE user_id = $1 AND platform = $2`, core.Operator, platform); err != nil {
		return err
	}
	return s.StripAll(ctx, tx, platform, bot, core.Operator)
}

// StripAll deletes the user's access to bot and to every bot of the platform.
func (s *Store) StripAll(ctx context.Context, tx *store.Tx, platform, bot string, user int64) error {
	for _, name := range append(s.bots.Of(bots.Every, platform), bot) {
		if _, err := s.Strip(ctx, tx, name, user); err != nil {
			return err
		}
	}
	return nil
}

// HasAccount reports whether the user has an account on the platform.
func (s *Store) HasAccount(ctx context.Context, tx *store.Tx, user int64, platform string) (has bool, err error) {
	err = tx.Get(ctx, &has, `SELECT EXISTS (SELECT 1 FROM identities WHERE user_id = $1 AND platform = $2)`, user, platform)
	return has, err
}

// SharePlatform reports whether two users have accounts on the same platform.
func (s *Store) SharePlatform(ctx context.Context, tx *store.Tx, one, other int64) (share bool, err error) {
	err = tx.Get(ctx, &share, `SELECT EXISTS (SELECT 1 FROM identities a JOIN identities b ON b.platform = a.platform AND b.user_id = $1 WHERE a.user_id = $2)`, one, other)
	return share, err
}

// HasAccess reports whether a user has valid access to a bot in this scope and place.
func (s *Store) HasAccess(ctx context.Context, tx *store.Tx, bot string, user int64, scope core.Scope, place string) (has bool, err error) {
	err = tx.Get(ctx, &has, `SELECT EXISTS (SELECT 1 FROM access WHERE bot = $1 AND user_id = $2 AND scope = $3 AND place = $4 AND (expires_at = '' OR expires_at > $5))`,
		bot, user, string(scope), place, core.Stamp(tx.Time()))
	return has, err
}
