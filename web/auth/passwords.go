package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/password"
	"gatehouse/web/auth/visit"
)

// MinPassword is the shortest password that is accepted, in bytes.
const MinPassword = password.Min

// alone runs f when no other sign-in hashes; where too many wait it returns a Refusal.
func (a *Admins) alone(ctx context.Context, l password.Lane, f func() error) error {
	err := a.hasher.Alone(ctx, l, f)
	if errors.Is(err, password.ErrFull) {
		return refuse("too-many-requests", password.FullWait, "too many sign-ins at once; try again in a moment")
	}
	return err
}

// Hash returns the hash of a new password, as it is stored.
func (a *Admins) Hash(ctx context.Context, given string) (encoded string, err error) {
	err = a.alone(ctx, password.Known, func() error { encoded = a.hasher.Hash(given); return nil })
	return encoded, err
}

// Prepare sees to the operator's account at start. A configured password rules: when it is not
// the stored one it is stored, and all the account's sessions end. Without one, and when offer is
// set, a new one-time password is made and returned unless someone has signed in already, to
// whichever account; "" means that there is nothing to show.
func (a *Admins) Prepare(ctx context.Context, offer bool) (oneTime string, err error) {
	acc, known, err := a.account(ctx, a.db, core.Operator)
	if err != nil {
		return "", fmt.Errorf("admin account: %w", err)
	}
	if a.o.Password != "" {
		if err := password.Check(a.o.Password); err != nil {
			return "", core.Errorf(core.Invalid, "GATEHOUSE_ADMIN_PASSWORD: %s", core.TextOf(err))
		}
		err := a.alone(ctx, password.Known, func() error {
			if known && !acc.MustChange && password.Verify(acc.Hash, a.o.Password) {
				return nil
			}
			return a.set(ctx, core.Operator, "", a.hasher.Hash(a.o.Password), false, core.Actor{Via: "cli"})
		})
		return "", err
	}
	if !offer {
		return "", nil
	}
	var used bool
	if err := a.db.Get(ctx, &used, `SELECT EXISTS (SELECT 1 FROM admin_accounts WHERE used = 1)`); err != nil || used {
		return "", err
	}
	return a.Reset(ctx, core.Actor{Via: "cli"})
}

// Reset gives the operator a new one-time password, which is returned once,
// and ends all the account's sessions.
func (a *Admins) Reset(ctx context.Context, by core.Actor) (oneTime string, err error) {
	oneTime = password.OneTime()
	err = a.alone(ctx, password.Known, func() error { return a.set(ctx, core.Operator, "", a.hasher.Hash(oneTime), true, by) })
	return oneTime, err
}

// Configured reports whether the configuration sets the password of user's account.
func (a *Admins) Configured(user int64) bool { return user == core.Operator && a.o.Password != "" }

// HasPassword reports whether anyone can sign in.
func (a *Admins) HasPassword(ctx context.Context) (ok bool, err error) {
	err = a.db.Get(ctx, &ok, `SELECT EXISTS (SELECT 1 FROM admin_accounts)`)
	return ok, err
}

// set stores a password of user, whose account is made if it is the operator's, and ends its
// sessions. It is refused where the stored hash differs from was, unless was is "".
func (a *Admins) set(ctx context.Context, user int64, was, encoded string, mustChange bool, by core.Actor) error {
	return a.db.Tx(ctx, func(tx *store.Tx) error {
		const update = `UPDATE admin_accounts SET argon2id = $2, must_change = $3, failed = 0, locked_until = '' WHERE user_id = $1 AND (argon2id = $4 OR $4 = '')`
		n, err := tx.Exec(ctx, update, user, encoded, mustChange, was)
		switch {
		case err == nil && n == 0 && was != "":
			err = replaced()
		case err == nil && n == 0 && user == core.Operator:
			_, err = tx.Exec(ctx, `INSERT INTO admin_accounts (user_id, name, argon2id, must_change, created_at) VALUES ($1, $2, $3, $4, $5)`,
				user, AdminName, encoded, mustChange, core.Stamp(tx.Time()))
		}
		if err != nil {
			return err
		}
		if a.second != nil {
			err = a.second.Replaced(ctx, tx, user)
		}
		if err == nil {
			_, err = a.EndSession(ctx, tx, user, "")
		}
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.password", fmt.Sprint(user), nil)
	})
}

// ChangePassword replaces the password of the signed-in principal, ends all
// the account's sessions and begins a new one for this request. Who signed in with a one-time
// password is not asked for it again: old is ignored. A password that the configuration sets
// can't be changed here.
func (a *Admins) ChangePassword(w http.ResponseWriter, r *http.Request, old, fresh string) error {
	ctx := r.Context()
	p, ok := From(ctx)
	if !ok || !p.Session {
		return refuse("unauthorized", 0, "sign in first")
	}
	if a.Configured(p.User) {
		return core.Errorf(core.Conflict, "the password is set by GATEHOUSE_ADMIN_PASSWORD; change it there and restart")
	}
	if err := password.Check(fresh); err != nil {
		return err
	}
	var acc account
	err := a.alone(ctx, password.Known, func() (err error) {
		var known bool
		if acc, known, err = a.account(ctx, a.db, p.User); err != nil {
			return err
		}
		if !known || !visit.Fits(acc.Hash, p.csrf, p.seal) { // it was replaced while this waited: the session has ended
			return replaced()
		}
		if acc.MustChange && p.MustChange {
			if password.Verify(acc.Hash, fresh) {
				return core.Errorf(core.Invalid, "the new password is the one-time password; choose another")
			}
		} else if err := a.verified(ctx, p, old); err != nil {
			return err
		} else if old == fresh {
			return core.Errorf(core.Invalid, "the new password is the old one")
		}
		was := acc.Hash
		acc.Hash = a.hasher.Hash(fresh)
		return a.set(ctx, p.User, was, acc.Hash, false, p.Actor())
	})
	if err != nil {
		return err
	}
	return a.begin(w, r, acc, false)
}
