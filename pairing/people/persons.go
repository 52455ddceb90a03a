package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/pairing/bots"
)

// A Person is one user with all their accounts.
type Person struct {
	User     int64
	Display  string // hostile text
	Role     core.Role
	Since    time.Time
	Accounts []Account
}

// An Account is a user as one platform knows them.
type Account struct {
	Platform string
	ID       string
	Display  string // hostile text
	Since    time.Time
}

// A PersonWithAccess is a user with what they may do.
type PersonWithAccess struct {
	Person
	Access []core.AccessRow // newest first, at most 20
}

// Name returns what the user is called, cleaned. A user without a name of their own, and the
// operator, whose row has a name of the program's, are called as their oldest account is.
func (p Person) Name() string {
	oldest := -1
	for i, a := range p.Accounts {
		if a.Display != "" && (oldest < 0 || a.Since.Before(p.Accounts[oldest].Since)) {
			oldest = i
		}
	}
	if oldest < 0 || p.Display != "" && p.User != core.Operator {
		return core.CleanName(p.Display)
	}
	return core.CleanName(p.Accounts[oldest].Display)
}

// known users: those with an account or an access; others are numbers alone.
const knownPeople = `FROM users u WHERE EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.id) OR EXISTS (SELECT 1 FROM access a WHERE a.user_id = u.id)`

// listedPeople are those that Persons lists.
const listedPeople = knownPeople + ` ORDER BY u.role = 'guest', u.id DESC LIMIT $1`

// Persons lists at most limit users (1,000 at most), with and without access:
// the owner and admins first, then the newest.
func (s *Store) Persons(ctx context.Context, limit int) ([]Person, error) {
	people, err := s.persons(ctx, listedPeople, Limit(limit))
	if err != nil {
		return nil, fmt.Errorf("people: %w", err)
	}
	return people, nil
}

// PersonOf returns one user by their number; core.NotFound where nothing is known
// of them.
func (s *Store) PersonOf(ctx context.Context, user int64) (Person, error) {
	people, err := s.persons(ctx, `FROM users u WHERE u.id = $1 AND (u.id IN (SELECT user_id FROM identities) OR u.id IN (SELECT user_id FROM access) OR u.id = 1)`, user)
	if err == nil && len(people) == 0 {
		err = core.Errorf(core.NotFound, "no person has this number")
	}
	if err != nil {
		return Person{}, fmt.Errorf("person: %w", err)
	}
	return people[0], nil
}

func (s *Store) persons(ctx context.Context, which string, arg any) ([]Person, error) {
	var users []struct {
		ID      int64     `db:"id"`
		Display string    `db:"display"`
		Role    core.Role `db:"role"`
		Created string    `db:"created_at"`
	}
	var accounts []struct {
		User     int64  `db:"user_id"`
		Platform string `db:"platform"`
		ID       string `db:"platform_user_id"`
		Display  string `db:"display"`
		Created  string `db:"created_at"`
	}
	err := errors.Join(
		s.db.Select(ctx, &users, `SELECT u.id, u.display, u.role, u.created_at `+which, arg),
		s.db.Select(ctx, &accounts, `SELECT i.user_id, i.platform, i.platform_user_id, i.display, i.created_at FROM identities i
			JOIN (SELECT u.id `+which+`) AS who ON who.id = i.user_id ORDER BY i.platform, i.platform_user_id`, arg))
	if err != nil {
		return nil, err
	}
	out, at := make([]Person, len(users)), make(map[int64]int, len(users))
	for i, u := range users {
		out[i], at[u.ID] = Person{User: u.ID, Display: u.Display, Role: u.Role, Since: core.TimeOf(u.Created)}, i
	}
	for _, a := range accounts {
		if i, ok := at[a.User]; ok { // someone may have come between the two
			out[i].Accounts = append(out[i].Accounts, Account{Platform: a.Platform, ID: a.ID, Display: a.Display, Since: core.TimeOf(a.Created)})
		}
	}
	return out, nil
}

// AccessOf returns what one user may do, newest first, at most 1,000 rows.
func (s *Store) AccessOf(ctx context.Context, user int64) ([]core.AccessRow, error) {
	return s.access(ctx, ` WHERE a.user_id = $1 ORDER BY a.id DESC LIMIT 1000`, user)
}

// PersonsWithAccess lists what Persons lists, with what each may do.
func (s *Store) PersonsWithAccess(ctx context.Context, limit int) ([]PersonWithAccess, error) {
	rows, err := s.Persons(ctx, limit)
	if err != nil {
		return nil, err
	}
	access, err := s.access(ctx, ` JOIN (SELECT x.id, row_number() OVER (PARTITION BY x.user_id ORDER BY x.id DESC) AS n
		FROM access x JOIN (SELECT u.id `+listedPeople+`) AS who ON who.id = x.user_id) AS newest ON newest.id = a.id AND newest.n <= 20 ORDER BY a.id DESC`, Limit(limit))
	if err != nil {
		return nil, err
	}
	of := map[int64][]core.AccessRow{} // bounded by limit
	for _, a := range access {
		of[a.User] = append(of[a.User], a)
	}
	out := make([]PersonWithAccess, len(rows))
	for i, p := range rows {
		out[i] = PersonWithAccess{p, of[p.User]}
	}
	return out, nil
}

// ChangeAccess gives one access another level and end; no end is without end. A
// level that is not given stays. What is lowered, or ends earlier, holds at
// once: what runs is stopped. core.NotFound without the access.
func (s *Store) ChangeAccess(ctx context.Context, id int64, a core.Approval, by core.Actor) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		was, err := accessByID(ctx, tx, id, by)
		if err != nil {
			return err
		}
		trust, err := bots.Grantable(a.Trust, was.Trust)
		if err != nil {
			return err
		}
		end, err := endOf(a, tx.Time())
		if err != nil {
			return err
		}
		if err := s.endExpired(ctx, tx, was.User, was.ExpiresAt); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE access SET trust_level = $1, expires_at = $2, raised_to = '', raised_until = '' WHERE id = $3`, trust, end, id)
		if err != nil {
			return err
		}
		if trust < was.Trust || end != "" && (was.ExpiresAt == "" || end < was.ExpiresAt) {
			s.changes.Abort(tx, was.Bot, was.User)
		}
		s.changes.Decided(tx, was.Bot, "", core.TopicPeople)
		return store.Audit(ctx, tx, by, "access.change", fmt.Sprint(was.User), map[string]any{"bot": was.Bot, "access": id, "trust": trust.String(), "until": end})
	})
	if err != nil {
		return fmt.Errorf("change access: %w", err)
	}
	return nil
}

// endOf returns the end of an access as it is stored.
func endOf(a core.Approval, now time.Time) (string, error) {
	end := core.Stamp(a.ExpiresAt)
	if end != "" && end <= core.Stamp(now) {
		return "", core.Errorf(core.Invalid, "until: this end (%s UTC) is over already", a.ExpiresAt.UTC().Format("2 Jan 2006, 15:04"))
	}
	return end, nil
}

// accessByID returns one row that by may change.
func accessByID(ctx context.Context, tx *store.Tx, id int64, by core.Actor) (a Grant, err error) {
	err = tx.Get(ctx, &a, `SELECT id, bot, user_id, scope, place, trust_level, expires_at, chat, "by", at FROM access WHERE id = $1`, id)
	switch {
	case errors.Is(err, store.ErrNoRows):
		return a, core.Errorf(core.NotFound, "there is no such access; it may have been revoked already")
	case err == nil && a.User == core.Operator && by.User != core.Operator && by.User != 0:
		return a, errOwnerOnly()
	}
	return a, err
}

// GiveAccess lets a user who has an account on the bot's platform in to one
// more place: direct messages, or with a place an enabled group. An access that
// is there already gets the new terms. The user is not notified.
func (s *Store) GiveAccess(ctx context.Context, user int64, bot, place string, a core.Approval, by core.Actor) error {
	if !s.bots.Configured(bot) {
		return core.Errorf(core.Invalid, "bot: there is no bot of this name")
	}
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		if user == core.Operator && by.User != core.Operator && by.User != 0 {
			return errOwnerOnly()
		}
		row := Grant{Bot: bot, User: user, Scope: core.ScopeDM, Place: place, By: by.String(), At: core.Stamp(tx.Time())}
		fallback := s.bots.Policy(bot).DMTrust
		if place != "" {
			row.Scope, fallback = core.ScopeGroup, s.bots.Policy(bot).GroupTrust
		}
		if err := s.mayBeGiven(ctx, tx, &row); err != nil {
			return err
		}
		var err error
		if row.Trust, err = bots.Grantable(a.Trust, fallback); err != nil {
			return err
		}
		if row.ExpiresAt, err = endOf(a, tx.Time()); err != nil {
			return err
		}
		if err := s.Put(ctx, tx, row); err != nil {
			return err
		}
		s.changes.Abort(tx, bot, user) // it may have been lowered
		s.changes.Decided(tx, bot, "", core.TopicPeople)
		return store.Audit(ctx, tx, by, "access.give", fmt.Sprint(user), map[string]any{"bot": bot, "scope": row.Scope, "place": place, "trust": row.Trust.String(), "until": row.ExpiresAt})
	})
	if err != nil {
		return fmt.Errorf("give access: %w", err)
	}
	return nil
}

// mayBeGiven refuses what would open nothing, or a second way past a decision
// that waits; the chat that is known already stays.
func (s *Store) mayBeGiven(ctx context.Context, tx *store.Tx, row *Grant) error {
	var ids []string
	platform := s.bots.Platform(row.Bot)
	err := tx.Select(ctx, &ids, `SELECT platform_user_id FROM identities WHERE user_id = $1 AND platform = $2`, row.User, platform)
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return core.Errorf(core.Invalid, "bot: this person has no account on %s, where the bot %s lives", platform, row.Bot)
	}
	if row.Place != "" {
		enabled, err := s.places.IsEnabled(ctx, tx, row.Bot, row.Place)
		if err != nil {
			return err
		}
		if !enabled {
			return core.Errorf(core.Invalid, "where: this group is not enabled for %s; enable it first, under Groups", row.Bot)
		}
	}
	for _, id := range ids {
		var blocked, waits bool
		if err := errors.Join(
			tx.Get(ctx, &blocked, `SELECT EXISTS (SELECT 1 FROM blocks WHERE platform = $1 AND platform_user_id = $2 AND bot IN ($3, '*'))`, platform, id, row.Bot),
			tx.Get(ctx, &waits, `SELECT EXISTS (SELECT 1 FROM pairing_requests WHERE platform = $1 AND platform_user_id = $2 AND bot = $3 AND scope = $4 AND place = $5 AND status = 'pending')`,
				platform, id, row.Bot, string(row.Scope), row.Place)); err != nil {
			return err
		}
		switch {
		case blocked:
			return core.Errorf(core.Conflict, "they are blocked there: unblock them first")
		case waits:
			return core.Errorf(core.Conflict, "they wait for just this under Pairing: decide it there")
		}
	}
	var chats []string
	err = tx.Select(ctx, &chats, `SELECT chat FROM access WHERE bot = $1 AND user_id = $2 AND scope = 'dm'`, row.Bot, row.User)
	if err == nil && len(chats) > 0 && row.Scope == core.ScopeDM {
		row.Chat = chats[0]
	}
	return err
}

// Unlink parts a user from their account on a platform, when they have
// another one: the account loses what it may there and is a stranger's from now
// on, who may ask at once. What it wrote stays the user's.
func (s *Store) Unlink(ctx context.Context, user int64, platform string, by core.Actor) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		if user == core.Operator && by.User != core.Operator && by.User != 0 {
			return errOwnerOnly()
		}
		var all []string
		if err := tx.Select(ctx, &all, `SELECT platform FROM identities WHERE user_id = $1`, user); err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `DELETE FROM identities WHERE user_id = $1 AND platform = $2`, user, platform)
		switch {
		case err != nil:
			return err
		case n == 0:
			return core.Errorf(core.NotFound, "this person has no account on %s any more", core.CleanName(platform))
		case int64(len(all)) == n:
			return core.Errorf(core.Conflict, "it is their only account: revoke their access, or forget them")
		}
		var names []string
		if err := tx.Select(ctx, &names, `SELECT DISTINCT bot FROM access WHERE user_id = $1 ORDER BY bot`, user); err != nil {
			return err
		}
		for _, bot := range names {
			if s.bots.Platform(bot) != platform {
				continue
			}
			if _, err := s.Strip(ctx, tx, bot, user); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `DELETE FROM link_codes WHERE user_id = $1`, user); err != nil {
			return err
		}
		s.changes.Decided(tx, "", "", core.TopicPeople)
		return store.Audit(ctx, tx, by, "identity.unlink", fmt.Sprint(user), map[string]any{"platform": platform})
	})
	if err != nil {
		return fmt.Errorf("unlink: %w", err)
	}
	return nil
}
