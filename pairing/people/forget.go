package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
)

// Find returns the user that ref names, with the accounts and names of them that
// are known: the number of a user, or "platform:id" for an account on a platform,
// let in or not. known is false where these tables have nothing of them.
func (s *Store) Find(ctx context.Context, q store.Queryer, ref string) (p core.Person, known bool, err error) {
	platform, id, byID := strings.Cut(ref, ":")
	if byID {
		err = q.Get(ctx, &p.User, `SELECT user_id FROM identities WHERE platform = $1 AND platform_user_id = $2`, platform, id)
		if errors.Is(err, store.ErrNoRows) {
			err = nil
			p.Identities = []core.Identity{{Platform: platform, ID: id}}
		}
	} else if p.User, err = strconv.ParseInt(ref, 10, 64); err != nil || p.User <= 0 {
		return p, false, core.Errorf(core.Invalid, "name a person by their number ('gatehouse people list' and the panel's page People show it) or by platform and id, such as telegram:12345678")
	}
	if err == nil && p.User != 0 {
		known, err = s.fill(ctx, q, &p)
	}
	for i := range p.Identities {
		if err != nil {
			break
		}
		var blocked bool
		id := &p.Identities[i]
		err = q.Get(ctx, &blocked, `SELECT EXISTS (SELECT 1 FROM blocks WHERE platform = $1 AND platform_user_id = $2)`, id.Platform, id.ID)
		known, id.Bots = known || blocked, s.bots.Of(bots.Every, id.Platform)
	}
	if err != nil {
		return p, false, fmt.Errorf("person: %w", err)
	}
	return p, known, nil
}

// fill adds the names and accounts of p.User, and reports whether there is such a user.
func (s *Store) fill(ctx context.Context, q store.Queryer, p *core.Person) (known bool, err error) {
	var users, names []string
	var ids []struct {
		Platform string `db:"platform"`
		ID       string `db:"platform_user_id"`
	}
	err = errors.Join(
		q.Select(ctx, &users, `SELECT display FROM users WHERE id = $1`, p.User),
		q.Select(ctx, &names, `SELECT display FROM identities WHERE user_id = $1`, p.User),
		q.Select(ctx, &ids, `SELECT platform, platform_user_id FROM identities WHERE user_id = $1 ORDER BY platform, platform_user_id`, p.User))
	for _, n := range append(users, names...) {
		if n != "" && !slices.Contains(p.Names, n) {
			p.Names = append(p.Names, n)
		}
	}
	for _, id := range ids {
		p.Identities = append(p.Identities, core.Identity{Platform: id.Platform, ID: id.ID})
	}
	return len(users) > 0, err
}

// Chats adds the direct chats that the user may use.
func (s *Store) Chats(ctx context.Context, q store.Queryer, p *core.Person) error {
	var rows []struct{ Bot, Chat string }
	if p.User != 0 {
		if err := q.Select(ctx, &rows, `SELECT bot, chat FROM access WHERE user_id = $1 AND scope = 'dm' AND chat <> ''`, p.User); err != nil {
			return fmt.Errorf("person: %w", err)
		}
	}
	for _, r := range rows {
		if a := (core.Address{Bot: r.Bot, Chat: r.Chat}); !slices.Contains(p.Chats, a) {
			p.Chats = append(p.Chats, a)
		}
	}
	return nil
}

// ShutOut revokes every access of a user, on every bot, so that no turn of the user
// begins any more, and stops the running ones.
func (s *Store) ShutOut(ctx context.Context, tx *store.Tx, user int64) error {
	if err := NotTheOperator(user); err != nil || user == 0 {
		return err
	}
	var names []string
	if err := tx.Select(ctx, &names, `SELECT DISTINCT bot FROM access WHERE user_id = $1 ORDER BY bot`, user); err != nil {
		return fmt.Errorf("shut out: %w", err)
	}
	for _, bot := range names {
		if _, err := s.Strip(ctx, tx, bot, user); err != nil {
			return fmt.Errorf("shut out: %w", err)
		}
	}
	s.changes.Abort(tx, core.APIBot, user)
	return nil
}

// NotTheOperator returns an error for the operator, who can't be forgotten.
func NotTheOperator(user int64) error {
	if user == core.Operator {
		return core.Errorf(core.Invalid, "the operator cannot be deleted")
	}
	return nil
}

// Forget deletes the accounts, access, blocks and names of a user. The empty
// user row stays, so that its number is never another user's. An account that
// was blocked is a stranger's again. The operator can't be forgotten.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, p core.Person) error {
	if err := s.ShutOut(ctx, tx, p.User); err != nil {
		return err
	}
	for _, id := range p.Identities {
		if _, err := tx.Exec(ctx, `DELETE FROM blocks WHERE platform = $1 AND platform_user_id = $2`, id.Platform, id.ID); err != nil {
			return err
		}
	}
	if p.User == 0 {
		return nil
	}
	for _, q := range [...]string{
		`DELETE FROM identities WHERE user_id = $1`,
		`UPDATE users SET display = '', role = 'guest', settings = NULL WHERE id = $1`,
	} {
		if _, err := tx.Exec(ctx, q, p.User); err != nil {
			return err
		}
	}
	return nil
}

// Move rewrites a group's id when the platform gave it a new one. A row under
// the new id gives way to one under the old.
func (s *Store) Move(ctx context.Context, tx *store.Tx, bot, from, to string) error {
	for _, q := range []string{
		`DELETE FROM access WHERE place = $1 AND bot = $2 AND scope = 'group' AND user_id IN (SELECT user_id FROM access o WHERE o.bot = $2 AND o.place = $3 AND o.scope = 'group')`,
		`UPDATE access SET place = $1 WHERE bot = $2 AND place = $3 AND scope = 'group'`,
	} {
		if _, err := tx.Exec(ctx, q, to, bot, from); err != nil {
			return fmt.Errorf("move group: %w", err)
		}
	}
	return s.moveTaken(ctx, tx, bot, from, to)
}
