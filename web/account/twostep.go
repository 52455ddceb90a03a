package account

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/totp"
)

// Two-step sign-in: an account whose app is confirmed is asked for its code behind the password
// (auth.Second).

type app struct {
	Secret    string `db:"secret"`
	Confirmed bool   `db:"confirmed"`
	Step      int64  `db:"step"`
}

func appOf(ctx context.Context, q store.Queryer, user int64) (a app, ok bool, err error) {
	err = q.Get(ctx, &a, `SELECT secret, confirmed, step FROM admin_totp WHERE user_id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return app{}, false, nil
	}
	return a, err == nil, err
}

// CodeAsked reports whether a user signs in with a code, too.
func (s *Store) CodeAsked(ctx context.Context, user int64) (bool, error) {
	a, ok, err := appOf(ctx, s.db, user)
	return ok && a.Confirmed, err
}

// UseCode reports whether code is one of the user's app or a recovery code, and uses it up: it
// works this once.
func (s *Store) UseCode(ctx context.Context, user int64, code string) (used bool, err error) {
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		used = false
		if totp.IsRecovery(code) {
			n, err := tx.Exec(ctx, `DELETE FROM admin_recovery WHERE user_id = $1 AND sha256 = $2`, user, totp.Hash(code))
			if used = n == 1; err != nil || !used {
				return err
			}
			var left int
			if err := tx.Get(ctx, &left, `SELECT count(*) FROM admin_recovery WHERE user_id = $1`, user); err != nil {
				return err
			}
			return store.Audit(ctx, tx, core.Actor{User: user, Via: "panel"}, "admin.recovery_code", fmt.Sprint(user), map[string]any{"left": left})
		}
		a, ok, err := appOf(ctx, tx, user)
		if err != nil || !ok || !a.Confirmed {
			return err
		}
		step, right := totp.Check(a.Secret, code, tx.Time(), a.Step)
		if !right {
			return nil
		}
		n, err := tx.Exec(ctx, `UPDATE admin_totp SET step = $2 WHERE user_id = $1 AND step < $2`, user, step)
		used = n == 1
		return err
	})
	if err != nil {
		return false, fmt.Errorf("code: %w", err)
	}
	return used, nil
}

// BeginTwoStep returns the secret for the app of a user, who enters a code of it next
// (ConfirmTwoStep). It is the same until then.
func (s *Store) BeginTwoStep(ctx context.Context, user int64) (secret string, err error) {
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		a, ok, err := appOf(ctx, tx, user)
		switch {
		case err != nil:
			return err
		case ok && a.Confirmed:
			return core.Errorf(core.Conflict, "two-step sign-in is on already")
		case ok:
			secret = a.Secret
			return nil
		}
		secret = totp.NewSecret()
		_, err = tx.Exec(ctx, `INSERT INTO admin_totp (user_id, secret, at) VALUES ($1, $2, $3)`, user, secret, core.Stamp(tx.Time()))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("two-step sign-in: %w", err)
	}
	return secret, nil
}

// ConfirmTwoStep turns two-step sign-in on with a code of the app, and returns the recovery codes,
// which are shown once.
func (s *Store) ConfirmTwoStep(ctx context.Context, user int64, code string, by core.Actor) (recovery []string, err error) {
	recovery = totp.NewRecovery()
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		a, ok, err := appOf(ctx, tx, user)
		switch {
		case err != nil:
			return err
		case !ok:
			return core.Errorf(core.Conflict, "begin again: the secret was dropped in the meantime")
		case a.Confirmed:
			return core.Errorf(core.Conflict, "two-step sign-in is on already")
		}
		step, right := totp.Check(a.Secret, code, tx.Time(), a.Step)
		if !right {
			return core.Errorf(core.Invalid, "the code is wrong; check the clock of the phone, and enter the one that the app shows now")
		}
		if _, err := tx.Exec(ctx, `UPDATE admin_totp SET confirmed = 1, step = $2, at = $3 WHERE user_id = $1`, user, step, core.Stamp(tx.Time())); err != nil {
			return err
		}
		if err := replaceRecovery(ctx, tx, user, recovery); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.two_step_on", fmt.Sprint(user), nil)
	})
	if err != nil {
		return nil, fmt.Errorf("two-step sign-in: %w", err)
	}
	return recovery, nil
}

// RenewRecovery replaces the recovery codes of a user and returns the new ones, which are shown once.
func (s *Store) RenewRecovery(ctx context.Context, user int64, by core.Actor) (recovery []string, err error) {
	recovery = totp.NewRecovery()
	err = s.change(ctx, "recovery codes", user, by, func(tx *store.Tx, was Account) error {
		if !was.TwoStep {
			return core.Errorf(core.Conflict, "two-step sign-in is off")
		}
		if err := replaceRecovery(ctx, tx, user, recovery); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.recovery_codes", fmt.Sprint(user), nil)
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}

func replaceRecovery(ctx context.Context, tx *store.Tx, user int64, codes []string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM admin_recovery WHERE user_id = $1`, user); err != nil {
		return err
	}
	for _, c := range codes {
		if _, err := tx.Exec(ctx, `INSERT INTO admin_recovery (user_id, sha256) VALUES ($1, $2)`, user, totp.Hash(c)); err != nil {
			return err
		}
	}
	return nil
}

// EndTwoStep turns two-step sign-in off, or drops what was begun of it: the password alone signs in.
func (s *Store) EndTwoStep(ctx context.Context, user int64, by core.Actor) error {
	return s.change(ctx, "two-step sign-in", user, by, func(tx *store.Tx, was Account) error {
		if err := dropApp(ctx, tx, user); err != nil || !was.TwoStep {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.two_step_off", fmt.Sprint(user), nil)
	})
}

// dropApp deletes the app and the recovery codes of a user.
func dropApp(ctx context.Context, tx *store.Tx, user int64) error {
	for _, q := range [...]string{`DELETE FROM admin_totp WHERE user_id = $1`, `DELETE FROM admin_recovery WHERE user_id = $1`} {
		if _, err := tx.Exec(ctx, q, user); err != nil {
			return err
		}
	}
	return nil
}
