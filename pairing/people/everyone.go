package people

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/store"
)

// States of a user in a list.
const (
	HasAccess = "access"  // to at least one bot
	ByPolicy  = "policy"  // none of their own; the policy of a bot lets them in, unless it was just revoked
	NoAccess  = "none"    // never given, revoked, or expired; an enabled group may still answer them
	IsBlocked = "blocked" // an account of theirs, on one bot or on all
)

// A Listed is a user as lists show them, with what they may do.
type Listed struct {
	User     int64            `json:"user_id"`
	Name     string           `json:"name"` // cleaned
	Role     core.Role        `json:"role"`
	State    string           `json:"state"`
	Trust    string           `json:"trust_level"` // the highest of the accesses that are valid, or of policies; "" without one
	Accounts []ListedAccount  `json:"accounts"`
	Access   []core.AccessRow `json:"access"` // newest first, at most 20
}

// A ListedAccount is an account of a user on a platform.
type ListedAccount struct {
	Platform string `json:"platform"`
	ID       string `json:"platform_user_id"`
	Name     string `json:"name"` // cleaned
}

// Everyone lists at most limit users (1,000 at most) with what they may do: the owner
// first, who is listed before they have an account, then admins, then the newest.
func (s *Store) Everyone(ctx context.Context, limit int) ([]Listed, error) {
	rows, err := s.PersonsWithAccess(ctx, limit)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(rows, func(p PersonWithAccess) bool { return p.User == core.Operator }) {
		owner, err := s.PersonOf(ctx, core.Operator)
		if err != nil && core.KindOf(err) != core.NotFound {
			return nil, err
		}
		if err == nil {
			rows = append([]PersonWithAccess{{Person: owner}}, rows[:min(len(rows), Limit(limit)-1)]...)
		}
	}
	blocks, err := s.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Listed, len(rows))
	for i, p := range rows {
		out[i] = s.listed(p, blocks)
	}
	core.Sort(out, func(a, b Listed) int { return cmp.Compare(min(a.User, 2), min(b.User, 2)) })
	return out, nil
}

func (s *Store) listed(p PersonWithAccess, blocks []Blocked) Listed {
	l := Listed{User: p.User, Name: p.Name(), Role: p.Role, State: NoAccess, Accounts: []ListedAccount{}, Access: p.Access}
	if p.Access == nil {
		l.Access = []core.AccessRow{}
	}
	if most := s.highest(p.Access); most > core.Stranger {
		l.State, l.Trust = HasAccess, most.String()
	}
	for _, a := range p.Accounts {
		l.Accounts = append(l.Accounts, ListedAccount{a.Platform, a.ID, core.CleanName(a.Display)})
		if slices.ContainsFunc(blocks, func(b Blocked) bool { return b.Platform == a.Platform && b.PlatformUserID == a.ID }) {
			l.State = IsBlocked
		}
	}
	if most := s.byPolicy(p.Person); l.State == NoAccess && most > core.Stranger {
		l.State, l.Trust = ByPolicy, most.String()
	}
	return l
}

// highest returns the most that valid accesses allow; Stranger without one.
func (s *Store) highest(access []core.AccessRow) (most core.Trust) {
	now := s.clock.Now()
	for _, a := range access {
		if a.ExpiresAt.IsZero() || a.ExpiresAt.After(now) {
			most = max(most, a.Trust)
		}
	}
	return most
}

// byPolicy returns the most that policies of bots allow a user who has no access.
func (s *Store) byPolicy(p Person) (most core.Trust) {
	for _, bot := range s.bots.List() {
		for _, a := range p.Accounts {
			if a.Platform == bot.Platform {
				most = max(most, s.bots.Policy(bot.Name).Admits(a.ID))
			}
		}
	}
	return most
}

// Most returns the most trust that a user has anywhere, which no key of theirs exceeds: full
// for the operator, vault for an admin of the panel, else the highest of their valid
// accesses, Stranger without one: policies and groups give none. It is core.NotFound where
// no one has this number.
func (s *Store) Most(ctx context.Context, user int64) (core.Trust, error) {
	if user == core.Operator {
		return core.Full, nil
	}
	if _, admin, err := s.Role(ctx, s.db, user); err != nil || admin {
		return core.Vault, err
	}
	access, err := s.AccessOf(ctx, user)
	if err != nil || len(access) > 0 {
		return s.highest(access), err
	}
	known, err := s.Remembered(ctx, s.db, user)
	if err == nil && !known {
		err = unknownNumber(user)
	}
	return core.Stranger, err
}

const whoThereIs = "'gatehouse people list' and the panel's page People show who there is"

func unknownNumber(user int64) error {
	return core.Errorf(core.NotFound, "no user has the number %d: %s", user, whoThereIs)
}

// A Reference is a user that was named.
type Reference struct {
	User int64  `json:"user_id"`
	Name string `json:"name"` // cleaned; "" where none is known
}

// Refer returns the user that ref names: their number, "owner", platform:id,
// the id of an account on a platform, or a name of theirs in any case, if it is no number. It is core.NotFound
// where no one is called so, and core.Invalid, which names them all, where several are.
func (s *Store) Refer(ctx context.Context, q store.Queryer, ref string) (r Reference, err error) {
	if r.User, err = s.refer(ctx, q, strings.TrimSpace(ref)); err != nil {
		return Reference{}, err
	}
	if r.Name, err = s.Name(ctx, q, r.User); err == nil && (r.Name == "" || r.User == core.Operator) {
		var own string
		own, err = s.AccountName(ctx, q, r.User)
		r.Name = cmp.Or(own, r.Name)
	}
	return r, err
}

func (s *Store) refer(ctx context.Context, q store.Queryer, ref string) (int64, error) {
	if ref == string(core.RoleOwner) {
		return core.Operator, nil
	}
	number, bad := strconv.ParseInt(ref, 10, 64)
	if bad == nil {
		known, err := s.Remembered(ctx, q, number)
		if err != nil || known {
			return number, err
		}
	}
	name := ref
	if bad == nil { // anyone can choose a name that is a number
		name = ""
	}
	found, err := s.called(ctx, q, ref, name)
	if err != nil {
		return 0, err
	}
	var who []string
	users := map[int64]bool{}
	for _, f := range found {
		users[f.User] = true
		who = append(who, strings.TrimSpace(fmt.Sprintf("%d (%s %s %s", f.User, core.CleanName(f.Name), f.Platform, f.ID))+")")
	}
	switch {
	case len(users) == 1:
		return found[0].User, nil
	case len(users) > 1:
		return 0, core.Errorf(core.Invalid, "%s is not clear: give one of these numbers: %s", core.CleanName(core.CutRunes(ref, 64)), strings.Join(who[:min(len(who), 50)], ", "))
	case bad == nil:
		return 0, unknownNumber(number)
	}
	return 0, core.Errorf(core.NotFound, "no user is called %s: give a number, platform:id, or a whole name; %s", core.CleanName(core.CutRunes(ref, 64)), whoThereIs)
}

// maxOfLength bounds the accounts whose names are compared with one.
const maxOfLength = 10_000

type calledRow struct {
	User     int64  `db:"user_id"`
	Name     string `db:"name"`
	Platform string `db:"platform"`
	ID       string `db:"platform_user_id"`
	Account  string `db:"account"`
}

// called returns the accounts whose platform:id or id is ref, and those of users with this
// name in any case; "" is no name. Where there are too many names to compare, it is those of
// the id, and core.Invalid without one.
func (s *Store) called(ctx context.Context, q store.Queryer, ref, name string) (found []calledRow, err error) {
	platform, id, _ := strings.Cut(ref, ":")
	length := -1
	if name != "" {
		length = utf8.RuneCountInString(name) // the case of a letter doesn't change it; lower() of SQLite knows ASCII alone
	}
	err = q.Select(ctx, &found, `SELECT u.id AS user_id, u.display AS name, coalesce(i.platform, '') AS platform, coalesce(i.platform_user_id, '') AS platform_user_id, coalesce(i.display, '') AS account
		FROM users u LEFT JOIN identities i ON i.user_id = u.id
		WHERE (i.platform = $1 AND i.platform_user_id = $2) OR i.platform_user_id = $3 OR length(u.display) = $4 OR length(i.display) = $4
		ORDER BY 1, 3, 4 LIMIT $5`, platform, id, ref, length, maxOfLength+1)
	if err != nil {
		return nil, fmt.Errorf("find a person: %w", err)
	}
	if len(found) > maxOfLength {
		if name != "" {
			if found, err = s.called(ctx, q, ref, ""); err != nil || len(found) > 0 {
				return found, err
			}
		}
		return nil, core.Errorf(core.Invalid, "too many users have a name of this length to look for one: give a number; %s", whoThereIs)
	}
	return slices.DeleteFunc(found, func(f calledRow) bool {
		byID := f.ID != "" && (f.ID == ref || f.Platform == platform && f.ID == id)
		return !byID && (name == "" || !strings.EqualFold(f.Name, name) && !strings.EqualFold(f.Account, name))
	}), nil
}
