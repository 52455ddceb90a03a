package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"

	"gatehouse/core"
	"gatehouse/core/store"
)

// AdminName is the name the operator signs in with.
const AdminName = "admin"

// Free wrong tries, and the longest wait after further ones: of one address, of
// one known device, and of all addresses together for one account.
const (
	freeAddress, mostAddress = 5, 15 * time.Minute
	freeDevice, mostDevice   = 5, 15 * time.Minute
	freeAccount, mostAccount = 10, time.Minute
)

// AdminOptions for NewAdmins; the zero value works.
type AdminOptions struct {
	Clock core.Clock   // nil: the system's
	Log   *slog.Logger // nil: none
	// Password is the configured one (ADMIN_PASSWORD); "" when there is none.
	Password string
	// Address is whom wrong passwords are counted against; nil: all together.
	Address func(*http.Request) string
	// Secure reports whether a request came over TLS; nil: by r.TLS.
	Secure func(*http.Request) bool
}

// Admins are the accounts that may sign in to the panel, and their sessions.
type Admins struct {
	db      *store.DB
	clock   core.Clock
	log     *slog.Logger
	o       AdminOptions
	manager *scs.SessionManager
	hasher  *hasher
	address *backoff
	names   *backoff // of names without account: they look the same from outside
	devices *backoff // of known devices, by their id, and of password changes
	waiting *knocks  // addresses that were asked to come back later
}

// NewAdmins uses db.
func NewAdmins(db *store.DB, o AdminOptions) *Admins {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Address == nil {
		o.Address = func(*http.Request) string { return "" }
	}
	if o.Secure == nil {
		o.Secure = func(r *http.Request) bool { return r.TLS != nil }
	}
	return &Admins{db: db, clock: o.Clock, log: o.Log, o: o, manager: newManager(db, o.Clock), hasher: newHasher(),
		address: newBackoff(o.Clock, freeAddress, mostAddress), names: newBackoff(o.Clock, freeAccount, mostAccount),
		devices: newBackoff(o.Clock, freeDevice, mostDevice), waiting: newKnocks(o.Clock)}
}

type account struct {
	User        int64  `db:"user_id"`
	Hash        string `db:"argon2id"`
	MustChange  bool   `db:"must_change"`
	Used        bool   `db:"used"`
	Failed      int    `db:"failed"`
	LockedUntil string `db:"locked_until"`
}

func (a *Admins) account(ctx context.Context, q store.Queryer, user int64) (acc account, ok bool, err error) {
	err = q.Get(ctx, &acc, `SELECT user_id, argon2id, must_change, used, failed, locked_until FROM admin_accounts WHERE user_id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return account{}, false, nil
	}
	return acc, err == nil, err
}

// Prepare sees to the operator's account at start. A configured password rules: when it is not
// the stored one it is stored, and all sessions end. Without one, and when offer is set, a new
// one-time password is made and returned unless someone has signed in already; "" means that
// there is nothing to show.
func (a *Admins) Prepare(ctx context.Context, offer bool) (oneTime string, err error) {
	acc, known, err := a.account(ctx, a.db, core.Operator)
	if err != nil {
		return "", fmt.Errorf("admin account: %w", err)
	}
	if a.o.Password != "" {
		if err := checkPassword(a.o.Password); err != nil {
			return "", core.Errorf(core.Invalid, "GATEHOUSE_ADMIN_PASSWORD: %s", core.TextOf(err))
		}
		err := a.hasher.alone(ctx, laneKnown, func() error {
			if known && !acc.MustChange && verify(acc.Hash, a.o.Password) {
				return nil
			}
			return a.set(ctx, a.hasher.hash(a.o.Password), false, core.Actor{Via: "cli"})
		})
		return "", err
	}
	if !offer || known && acc.Used {
		return "", nil
	}
	return a.Reset(ctx, core.Actor{Via: "cli"})
}

// Reset gives the operator a new one-time password, which is returned once,
// and ends all sessions.
func (a *Admins) Reset(ctx context.Context, by core.Actor) (oneTime string, err error) {
	oneTime = oneTimePassword()
	err = a.hasher.alone(ctx, laneKnown, func() error { return a.set(ctx, a.hasher.hash(oneTime), true, by) })
	return oneTime, err
}

// HasPassword reports whether the operator can sign in.
func (a *Admins) HasPassword(ctx context.Context) (bool, error) {
	_, ok, err := a.account(ctx, a.db, core.Operator)
	return ok, err
}

func (a *Admins) set(ctx context.Context, encoded string, mustChange bool, by core.Actor) error {
	return a.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO admin_accounts (user_id, name, argon2id, must_change) VALUES ($1, $2, $3, $4)
			ON CONFLICT (user_id) DO UPDATE SET argon2id = excluded.argon2id, must_change = excluded.must_change, failed = 0, locked_until = ''`,
			core.Operator, AdminName, encoded, mustChange)
		if err != nil {
			return err
		}
		if _, err := deleteSessions(ctx, tx, core.Operator); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.password", fmt.Sprint(core.Operator), nil)
	})
}

// ChangePassword replaces the password of the signed-in principal, ends all
// the account's sessions and begins a new one for this request. A password
// that the configuration sets can't be changed here.
func (a *Admins) ChangePassword(w http.ResponseWriter, r *http.Request, old, password string) error {
	ctx := r.Context()
	p, ok := From(ctx)
	if !ok || !p.Session {
		return refuse("unauthorized", 0, "sign in first")
	}
	if a.o.Password != "" {
		return core.Errorf(core.Conflict, "the password is set by GATEHOUSE_ADMIN_PASSWORD; change it there and restart")
	}
	if err := checkPassword(password); err != nil {
		return err
	}
	if old == password {
		return core.Errorf(core.Invalid, "the new password is the old one")
	}
	// Counted by the account alone: only who is signed in comes this far.
	counter := fmt.Sprint("change ", p.User)
	err := a.hasher.alone(ctx, laneKnown, func() error {
		acc, known, err := a.account(ctx, a.db, p.User)
		if err != nil {
			return err
		}
		if wait := a.devices.wait(counter); wait > 0 {
			return refuse("too-many-requests", wait, "too many wrong passwords; wait before you try again")
		}
		if !known || len(old) > MaxPassword || !verify(acc.Hash, old) {
			a.devices.fail(counter)
			return core.Errorf(core.Denied, "the old password is wrong")
		}
		return a.set(ctx, a.hasher.hash(password), false, p.Actor())
	})
	if err != nil {
		return err
	}
	a.devices.clear(counter)
	return a.begin(w, r, p.User)
}
