package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
	"gatehouse/web/auth/totp"
)

// Two-step sign-in: an account whose app is confirmed is asked for its code behind the password
// (auth.Second).

type app struct {
	Secret    string `db:"secret"` // encrypted; "" where its key was lost
	Confirmed bool   `db:"confirmed"`
	Step      int64  `db:"step"`
	At        string `db:"at"`
}

// setUpTime is how long a secret waits for its first code.
const setUpTime = 15 * time.Minute

func appOf(ctx context.Context, q store.Queryer, user int64) (a app, ok bool, err error) {
	err = q.Get(ctx, &a, `SELECT secret, confirmed, step, at FROM admin_totp WHERE user_id = $1`, user)
	if errors.Is(err, store.ErrNoRows) {
		return app{}, false, nil
	}
	return a, err == nil, err
}

// Sealed returns the encrypted column, and the expression of its row in sealed.Place.
func Sealed() (table, column, row string) { return "admin_totp", "secret", "CAST(user_id AS TEXT)" }

func place(user int64) sealed.Place {
	table, column, _ := Sealed()
	return sealed.Place{Table: table, Column: column, Row: fmt.Sprint(user)}
}

// secretOf returns the secret of the app of a user.
func (s *Store) secretOf(a app, user int64) (string, error) {
	secret, err := s.Box.Open(place(user), a.Secret)
	if err != nil {
		return "", fmt.Errorf("the secret of the app of user %d: %w", user, err)
	}
	return secret, nil
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
		secret, err := s.secretOf(a, user)
		if err != nil {
			return err
		}
		step, right := totp.Check(secret, code, tx.Time(), a.Step)
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

// BeginTwoStep returns a new secret for the app of a user, who enters a code of it next
// (ConfirmTwoStep), within setUpTime. It takes the place of one that was not confirmed, which others
// may have seen.
func (s *Store) BeginTwoStep(ctx context.Context, user int64) (secret string, err error) {
	secret = totp.NewSecret()
	stored, err := s.Box.Seal(place(user), secret)
	if err != nil {
		return "", err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `INSERT INTO admin_totp (user_id, secret, at) VALUES ($1, $2, $3)
			ON CONFLICT (user_id) DO UPDATE SET secret = excluded.secret, step = 0, at = excluded.at WHERE admin_totp.confirmed = 0`, user, stored, core.Stamp(tx.Time()))
		if err == nil && n == 0 {
			err = core.Errorf(core.Conflict, "two-step sign-in is on already")
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("two-step sign-in: %w", err)
	}
	return secret, nil
}

// A WrongCode is ConfirmTwoStep's error for a wrong code: the next may be entered. Secret is the one
// that was begun with, to show it again.
type WrongCode struct{ Secret string }

func (*WrongCode) Error() string {
	return "the code is wrong; check the clock of the phone, and enter the one that the app shows now"
}

// Unwrap returns the error as core.Invalid.
func (e *WrongCode) Unwrap() error { return core.Errorf(core.Invalid, "%s", e.Error()) }

// SetUp returns what names a secret, and does not reveal it.
func SetUp(secret string) string { return totp.Hash(secret) }

// ConfirmTwoStep turns two-step sign-in on with a code of the app, and returns the recovery codes,
// which are shown once. setUp names the secret that the user was shown (SetUp); another session of the
// account may have begun with another since, which is core.Conflict.
func (s *Store) ConfirmTwoStep(ctx context.Context, user int64, setUp, code string, by core.Actor) (recovery []string, err error) {
	recovery = totp.NewRecovery()
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		a, ok, err := appOf(ctx, tx, user)
		if err != nil {
			return err
		}
		secret, err := s.secretOf(a, user)
		switch {
		case err != nil:
			return err
		case ok && a.Confirmed:
			return core.Errorf(core.Conflict, "two-step sign-in is on already")
		case !ok || SetUp(secret) != setUp || a.At <= core.Stamp(tx.Time().Add(-setUpTime)):
			return core.Errorf(core.Conflict, "the key has expired or was replaced; begin again and scan the new one")
		}
		step, right := totp.Check(secret, code, tx.Time(), a.Step)
		if !right {
			return &WrongCode{Secret: secret}
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

// Replaced drops the secret that was begun with and not confirmed: a user's password is replaced in tx.
func (s *Store) Replaced(ctx context.Context, tx *store.Tx, user int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM admin_totp WHERE user_id = $1 AND confirmed = 0`, user)
	return err
}

// Expire drops the secrets that were not confirmed within setUpTime; upkeep calls it now and then.
func (s *Store) Expire(ctx context.Context) (int, error) {
	var n int64
	err := s.db.Tx(ctx, func(tx *store.Tx) (err error) {
		n, err = tx.Exec(ctx, `DELETE FROM admin_totp WHERE confirmed = 0 AND at <= $1`, core.Stamp(tx.Time().Add(-setUpTime)))
		return err
	})
	return int(n), err
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
