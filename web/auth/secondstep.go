package auth

import (
	"context"
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/password"
	"gatehouse/web/auth/proof"
)

// A Second is the second step of signing in (account.Store).
type Second interface {
	// CodeAsked reports whether the user's account signs in with a code, too.
	CodeAsked(ctx context.Context, user int64) (bool, error)
	// UseCode reports whether code is right, and uses it up.
	UseCode(ctx context.Context, user int64, code string) (bool, error)
	// Replaced is called in the transaction that replaces a user's password.
	Replaced(ctx context.Context, tx *store.Tx, user int64) error
}

// AskSecond has codes asked for. It is called before the first request.
func (a *Admins) AskSecond(s Second) { a.second = s }

// CodeNeeded is SignIn's error when the password is right and the account's code is asked for next:
// Confirm takes it with the ticket, for five minutes.
type CodeNeeded struct{ Ticket string }

func (*CodeNeeded) Error() string { return "the code is asked for" }

// ticketOf returns the account that a ticket is for; false for one that is forged or over. It ends with
// the password that it was given for.
func (a *Admins) ticketOf(ctx context.Context, ticket string) (acc account, ok bool, err error) {
	claim, ok := a.proofs.Read(proof.Ticket, ticket)
	if !ok {
		return account{}, false, nil
	}
	acc, known, err := a.account(ctx, a.db, claim.User)
	if err != nil || !known || !a.proofs.Proves(claim, acc.Hash) {
		return account{}, false, err
	}
	return acc, true, nil
}

// Confirm checks the code that SignIn asked for and begins the session. Wrong codes are counted as
// wrong passwords are and, because a guesser knows the password, for the account itself: from
// everywhere together, but for known devices, which count alone.
func (a *Admins) Confirm(w http.ResponseWriter, r *http.Request, ticket, code string) error {
	ctx := r.Context()
	acc, ok, err := a.ticketOf(ctx, ticket)
	if err != nil {
		return err
	}
	if !ok || a.second == nil {
		return refuse("unauthorized", 0, "that took too long; sign in again")
	}
	at := attempt{from: a.o.Address(r), name: acc.Name, device: a.device(r, acc, true)}
	// One at a time, so that no burst gets more tries.
	if err := a.alone(ctx, at.lane(), func() error { return a.tryCode(ctx, at, acc, code) }); err != nil {
		return err
	}
	a.devices.Clear(at.codes(acc))
	return a.enter(w, r, at, acc)
}

// codes names the counter of wrong codes.
func (at attempt) codes(acc account) string { return fmt.Sprintf("code %d %s", acc.User, at.device) }

func (a *Admins) tryCode(ctx context.Context, at attempt, acc account, code string) error {
	if err := a.slow(at, acc, true); err != nil {
		return err
	}
	if wait := a.devices.Wait(at.codes(acc)); wait > 0 {
		return refuse("too-many-requests", wait, "too many wrong codes; wait before you try again")
	}
	if right, err := a.second.UseCode(ctx, acc.User, code); err != nil || right {
		return err
	}
	a.devices.Fail(at.codes(acc))
	a.log.WarnContext(ctx, "sign-in refused: wrong code", "from", at.from, "known_device", at.device != "")
	if err := a.failed(ctx, at, acc, true); err != nil {
		return err
	}
	return refuse("unauthorized", 0, "the code is wrong or was used already; enter the one that the app shows now, or a recovery code")
}

// enter begins the session of an attempt that was right, and forgets the wrong ones before it. acc is
// as it was when it was proven: where its password was replaced since, the attempt is refused.
func (a *Admins) enter(w http.ResponseWriter, r *http.Request, at attempt, acc account) error {
	ctx := r.Context()
	if err := a.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE admin_accounts SET used = 1, failed = 0, locked_until = '', signed_in_at = $2 WHERE user_id = $1 AND argon2id = $3`,
			acc.User, core.Stamp(tx.Time()), acc.Hash)
		if err == nil && n == 0 {
			err = replaced()
		}
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, core.Actor{User: acc.User, Via: "panel"}, "admin.signin", "", nil)
	}); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	a.address.Clear(at.from)
	a.devices.Clear(at.device)
	a.waiting.Clear(at.from)
	return a.begin(w, r, acc, false)
}

// CheckPassword checks the password of the signed-in principal again, before what a stolen session
// must not do. Wrong ones are slowed as in ChangePassword.
func (a *Admins) CheckPassword(r *http.Request, given string) error {
	p, ok := From(r.Context())
	if !ok || !p.Session {
		return refuse("unauthorized", 0, "sign in first")
	}
	return a.alone(r.Context(), password.Known, func() error { return a.verified(r.Context(), p, given) })
}

// verified refuses what is not p's password. Wrong ones are counted by the account
// alone: only who is signed in comes this far.
func (a *Admins) verified(ctx context.Context, p Principal, given string) error {
	counter := fmt.Sprint("change ", p.User)
	if wait := a.devices.Wait(counter); wait > 0 {
		return refuse("too-many-requests", wait, "too many wrong passwords; wait before you try again")
	}
	acc, known, err := a.account(ctx, a.db, p.User)
	if err != nil {
		return err
	}
	if !known || len(given) > password.Max || !password.Verify(acc.Hash, given) {
		a.devices.Fail(counter)
		return core.Errorf(core.Denied, "the password is wrong")
	}
	a.devices.Clear(counter)
	return nil
}
