// Package account keeps the accounts of the panel: who may sign in, under which name and in which
// role. It owns the tables admin_totp and admin_recovery, and admin_accounts but for the
// columns that signing in changes (web/auth).
//
// An account is a user: what it does is audited under its user's number. The owner's account (user
// 1) is made by the first start or by GATEHOUSE_ADMIN_PASSWORD; it always is an admin.
package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
	"gatehouse/web/auth"
	"gatehouse/web/auth/password"
)

// Max bounds the accounts.
const Max = 100

type (
	// SignIn is the sign-in (auth.Admins).
	SignIn interface {
		Hash(ctx context.Context, password string) (string, error)
		// EndSession ends one session of user, or with "" all.
		EndSession(ctx context.Context, tx *store.Tx, user int64, id string) (int, error)
		// Ended has streams and turns checked again after the commit: an account may do less.
		Ended(tx *store.Tx)
		// Configured reports whether the configuration sets the password of user's account.
		Configured(user int64) bool
	}
	// Keys are the API keys.
	Keys interface {
		// Forget revokes the keys of user, and those that user made for others.
		Forget(ctx context.Context, tx *store.Tx, user int64) error
	}
	// Invitations are the codes that let users in.
	Invitations interface {
		// Withdraw ends the invitations that user made.
		Withdraw(ctx context.Context, tx *store.Tx, user int64) error
	}
	// A Box encrypts the secrets of apps (sealed.Box).
	Box interface {
		Seal(at sealed.Place, text string) (string, error)
		Open(at sealed.Place, value string) (string, error)
	}
	// Users are all users, also those without an account of the panel.
	Users interface {
		Create(ctx context.Context, tx *store.Tx, display string) (int64, error)
		Rename(ctx context.Context, tx *store.Tx, user int64, display string) error
	}
)

// Options of New. All are needed.
type Options struct {
	DB          *store.DB
	SignIn      SignIn
	Users       Users
	Keys        Keys
	Invitations Invitations
	Box         Box
	// Abort stops the turns of a user who may take none any more; it is called after the commit.
	Abort func(user int64)
}

// A Store is the accounts. It is safe for concurrent use.
type Store struct {
	Options
	db *store.DB
}

// New returns a Store.
func New(o Options) *Store { return &Store{Options: o, db: o.DB} }

// An Account is one as it is shown.
type Account struct {
	User       int64     `json:"user_id"`
	Name       string    `json:"name"`
	Role       string    `json:"role"`           // auth.RoleAdmin or auth.RoleViewer
	MustChange bool      `json:"must_change"`    // its password is a one-time password
	TwoStep    bool      `json:"two_step"`       // it signs in with a code, too
	Recovery   int       `json:"recovery_codes"` // left
	CreatedAt  time.Time `json:"created_at,omitzero"`
	SignedInAt time.Time `json:"signed_in_at,omitzero"` // the last time
}

// Owner reports whether a is the owner's account.
func (a Account) Owner() bool { return a.User == core.Operator }

type row struct {
	User       int64  `db:"user_id"`
	Name       string `db:"name"`
	Role       string `db:"role"`
	MustChange bool   `db:"must_change"`
	TwoStep    bool   `db:"two_step"`
	Recovery   int    `db:"recovery"`
	CreatedAt  string `db:"created_at"`
	SignedInAt string `db:"signed_in_at"`
}

func (r row) account() Account {
	return Account{User: r.User, Name: r.Name, Role: r.Role, MustChange: r.MustChange, TwoStep: r.TwoStep, Recovery: r.Recovery, CreatedAt: core.TimeOf(r.CreatedAt), SignedInAt: core.TimeOf(r.SignedInAt)}
}

const columns = `SELECT user_id, name, role, must_change, created_at, signed_in_at,
	(SELECT count(*) FROM admin_totp t WHERE t.user_id = admin_accounts.user_id AND t.confirmed = 1) AS two_step,
	(SELECT count(*) FROM admin_recovery c WHERE c.user_id = admin_accounts.user_id) AS recovery FROM admin_accounts`

// List returns all accounts: the owner's first, then by name.
func (s *Store) List(ctx context.Context) ([]Account, error) {
	var rows []row
	if err := s.db.Select(ctx, &rows, columns+` ORDER BY user_id <> 1, name LIMIT 1000`); err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	out := make([]Account, len(rows))
	for i, r := range rows {
		out[i] = r.account()
	}
	return out, nil
}

// Of returns the account of a user; core.NotFound without one.
func (s *Store) Of(ctx context.Context, user int64) (Account, error) {
	return one(ctx, s.db, ` WHERE user_id = $1`, user)
}

// Named returns the account of a name; core.NotFound without one.
func (s *Store) Named(ctx context.Context, name string) (Account, error) {
	a, err := one(ctx, s.db, ` WHERE name = $1`, name)
	if core.KindOf(err) == core.NotFound {
		err = core.Errorf(core.NotFound, "no account has the name %s", core.CleanName(name))
	}
	return a, err
}

func one(ctx context.Context, q store.Queryer, where string, arg any) (Account, error) {
	var r row
	err := q.Get(ctx, &r, columns+where, arg)
	if errors.Is(err, store.ErrNoRows) {
		return Account{}, core.Errorf(core.NotFound, "there is no such account; it may have been removed")
	}
	if err != nil {
		return Account{}, fmt.Errorf("account: %w", err)
	}
	return r.account(), nil
}

// Create makes an account and returns it with its one-time password, which is shown once.
func (s *Store) Create(ctx context.Context, name, role string, by core.Actor) (a Account, oneTime string, err error) {
	if err := errors.Join(checkName(name), checkRole(role)); err != nil {
		return a, "", err
	}
	oneTime = password.OneTime()
	encoded, err := s.SignIn.Hash(ctx, oneTime)
	if err != nil {
		return a, "", err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		var n int
		if err := tx.Get(ctx, &n, `SELECT count(*) FROM admin_accounts`); err != nil {
			return err
		}
		if n >= Max {
			return core.Errorf(core.Conflict, "there are %d accounts already; remove one first", n)
		}
		if err := free(ctx, tx, name, 0); err != nil {
			return err
		}
		user, err := s.Users.Create(ctx, tx, name)
		if err != nil {
			return err
		}
		a = Account{User: user, Name: name, Role: role, MustChange: true, CreatedAt: tx.Time()}
		if _, err := tx.Exec(ctx, `INSERT INTO admin_accounts (user_id, name, role, argon2id, must_change, created_at) VALUES ($1, $2, $3, $4, 1, $5)`,
			user, name, role, encoded, core.Stamp(tx.Time())); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.create", fmt.Sprint(user), map[string]any{"role": role})
	})
	if err != nil {
		return Account{}, "", fmt.Errorf("create account: %w", err)
	}
	return a, oneTime, nil
}

// Rename gives an account another name to sign in with.
func (s *Store) Rename(ctx context.Context, user int64, name string, by core.Actor) error {
	if err := checkName(name); err != nil {
		return err
	}
	return s.change(ctx, "rename account", user, by, func(tx *store.Tx, was Account) error {
		if was.Name == name {
			return nil
		}
		if err := free(ctx, tx, name, user); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE admin_accounts SET name = $2 WHERE user_id = $1`, user, name); err != nil {
			return err
		}
		if !was.Owner() { // the owner's name in chat is their own
			if err := s.Users.Rename(ctx, tx, user, name); err != nil {
				return err
			}
		}
		return store.Audit(ctx, tx, by, "admin.rename", fmt.Sprint(user), nil)
	})
}

// SetRole makes an account an admin or a viewer, from its next request on. A new viewer's API keys,
// invitations and turns end. The owner's and the last admin's stay admins.
func (s *Store) SetRole(ctx context.Context, user int64, role string, by core.Actor) error {
	if err := checkRole(role); err != nil {
		return err
	}
	return s.change(ctx, "role of account", user, by, func(tx *store.Tx, was Account) error {
		if was.Role == role {
			return nil
		}
		if role != auth.RoleAdmin {
			if err := replaceable(ctx, tx, was, "be made a viewer"); err != nil {
				return err
			}
			if err := s.strip(ctx, tx, user); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE admin_accounts SET role = $2 WHERE user_id = $1`, user, role); err != nil {
			return err
		}
		s.SignIn.Ended(tx)
		return store.Audit(ctx, tx, by, "admin.role", fmt.Sprint(user), map[string]any{"role": role})
	})
}

// Reset gives an account a new one-time password, which is returned once, and ends its sessions.
func (s *Store) Reset(ctx context.Context, user int64, by core.Actor) (oneTime string, err error) {
	if s.SignIn.Configured(user) {
		return "", core.Errorf(core.Conflict, "the password is set by GATEHOUSE_ADMIN_PASSWORD; change it there and restart")
	}
	oneTime = password.OneTime()
	encoded, err := s.SignIn.Hash(ctx, oneTime)
	if err != nil {
		return "", err
	}
	err = s.change(ctx, "reset password", user, by, func(tx *store.Tx, _ Account) error {
		const q = `UPDATE admin_accounts SET argon2id = $2, must_change = 1, by_link = 0, failed = 0, locked_until = '' WHERE user_id = $1`
		if _, err := tx.Exec(ctx, q, user, encoded); err != nil {
			return err
		}
		if _, err := s.SignIn.EndSession(ctx, tx, user, ""); err != nil {
			return err
		}
		if err := s.Replaced(ctx, tx, user); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.reset", fmt.Sprint(user), nil)
	})
	if err != nil {
		return "", err
	}
	return oneTime, nil
}

// strip ends the API keys, the invitations and the turns of a user.
func (s *Store) strip(ctx context.Context, tx *store.Tx, user int64) error {
	tx.OnCommit(func() { s.Abort(user) })
	if err := s.Invitations.Withdraw(ctx, tx, user); err != nil {
		return err
	}
	return s.Keys.Forget(ctx, tx, user)
}

// Remove removes an account and ends its sessions, API keys, invitations and turns. Its user stays, so that the audit
// log can name it. The owner's and the last admin's account can't be removed.
func (s *Store) Remove(ctx context.Context, user int64, by core.Actor) error {
	return s.change(ctx, "remove account", user, by, func(tx *store.Tx, was Account) error {
		if err := replaceable(ctx, tx, was, "be removed"); err != nil {
			return err
		}
		if _, err := s.SignIn.EndSession(ctx, tx, user, ""); err != nil {
			return err
		}
		if err := s.strip(ctx, tx, user); err != nil {
			return err
		}
		if err := dropApp(ctx, tx, user); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM admin_accounts WHERE user_id = $1`, user); err != nil {
			return err
		}
		s.SignIn.Ended(tx)
		return store.Audit(ctx, tx, by, "admin.remove", fmt.Sprint(user), nil)
	})
}

// EndSession ends one session of an account, or with "" all of them, and returns how many there
// were. core.NotFound where that one has ended already.
func (s *Store) EndSession(ctx context.Context, user int64, id string, by core.Actor) (n int, err error) {
	err = s.change(ctx, "end session", user, by, func(tx *store.Tx, _ Account) error {
		if n, err = s.SignIn.EndSession(ctx, tx, user, id); err != nil {
			return err
		}
		if n == 0 && id != "" {
			return core.Errorf(core.NotFound, "this session has ended already")
		}
		return store.Audit(ctx, tx, by, "admin.session_end", fmt.Sprint(user), map[string]any{"sessions": n})
	})
	return n, err
}

// change runs f on an account that by may change: the owner's is the owner's alone.
func (s *Store) change(ctx context.Context, what string, user int64, by core.Actor, f func(tx *store.Tx, was Account) error) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		was, err := one(ctx, tx, ` WHERE user_id = $1`, user)
		if err != nil {
			return err
		}
		if was.Owner() && by.User != core.Operator && by.User != 0 {
			return core.Errorf(core.Denied, "only the owner can change the owner's account")
		}
		return f(tx, was)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// replaceable refuses to take an admin away who must stay.
func replaceable(ctx context.Context, tx *store.Tx, a Account, what string) error {
	if a.Owner() {
		return core.Errorf(core.Conflict, "the owner's account can't %s; rename it or reset its password instead", what)
	}
	if a.Role != auth.RoleAdmin {
		return nil
	}
	var others int
	err := tx.Get(ctx, &others, `SELECT count(*) FROM admin_accounts WHERE role = 'admin' AND user_id <> $1`, a.User)
	if err == nil && others == 0 {
		err = core.Errorf(core.Conflict, "%s is the last admin and can't %s; make another account an admin first", a.Name, what)
	}
	return err
}

// free refuses a name that is taken, or is kept for the owner's account.
func free(ctx context.Context, tx *store.Tx, name string, user int64) error {
	var taken bool
	err := tx.Get(ctx, &taken, `SELECT EXISTS (SELECT 1 FROM admin_accounts WHERE name = $1 AND user_id <> $2)`, name, user)
	if err == nil && (taken || name == auth.AdminName && user != core.Operator) {
		err = core.Errorf(core.Conflict, "another account has the name %s; choose another name", name)
	}
	return err
}

var nameForm = core.Pattern(`^[a-z0-9][a-z0-9._@-]{0,39}$`)

func checkName(name string) error {
	if !nameForm().MatchString(name) {
		return core.Errorf(core.Invalid, "name: 1 to 40 characters: a-z, 0-9, and . _ @ - behind the first")
	}
	return nil
}

func checkRole(role string) error {
	if role != auth.RoleAdmin && role != auth.RoleViewer {
		return core.Errorf(core.Invalid, "role: it is admin or viewer")
	}
	return nil
}
