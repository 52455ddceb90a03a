package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/backoff"
	"gatehouse/web/auth/password"
	"gatehouse/web/auth/proof"
)

// An attempt is one try to sign in.
type attempt struct {
	from   string // the caller's address
	name   string
	device string // the known device it comes from; "" for any other
}

// lane returns where the attempt waits for its turn.
func (at attempt) lane() password.Lane {
	if at.device != "" {
		return password.Known
	}
	return password.Unknown
}

// SignIn checks name and password given and begins a session, or returns a *CodeNeeded where the
// account signs in with a code, too. A wrong name and a wrong password look and cost the same.
//
// Failed attempts never lock the account: a known device (see device) is slowed by its
// own, any other caller by those from its address, and once by at most mostAccount while
// the account is being guessed. A caller that must wait gets a Refusal with the time.
func (a *Admins) SignIn(w http.ResponseWriter, r *http.Request, name, given string) error {
	ctx := r.Context()
	at := attempt{from: a.o.Address(r), name: name}
	acc, known, err := a.byName(ctx, name)
	if err != nil {
		return err
	}
	at.device = a.device(r, acc, known)
	if err := a.slow(at, acc, known); err != nil {
		return err
	}
	if err := a.alone(ctx, at.lane(), func() (err error) {
		acc, err = a.try(ctx, at, given)
		return err
	}); err != nil {
		return err
	}
	if err := a.codeNeeded(r, acc); err != nil {
		return err
	}
	return a.enter(w, r, at, acc)
}

// codeNeeded returns a *CodeNeeded where acc signs in with a code, too.
func (a *Admins) codeNeeded(r *http.Request, acc account) error {
	if a.second == nil {
		return nil
	}
	asked, err := a.second.CodeAsked(r.Context(), acc.User)
	if err == nil && asked {
		return &CodeNeeded{Ticket: a.proofs.Make(proof.Ticket, acc.User, acc.Hash)}
	}
	return err
}

// try checks the password once. It looks again at what was counted while it
// waited for its turn.
func (a *Admins) try(ctx context.Context, at attempt, given string) (acc account, err error) {
	acc, known, err := a.byName(ctx, at.name)
	if err != nil {
		return account{}, err
	}
	if err := a.slow(at, acc, known); err != nil {
		return account{}, err
	}
	encoded := a.hasher.Nobody()
	if known {
		encoded = acc.Hash
	}
	if len(given) <= password.Max && password.Verify(encoded, given) && known {
		return acc, nil
	}
	a.log.WarnContext(ctx, "sign-in refused", "from", at.from, "known_device", at.device != "")
	if err := a.failed(ctx, at, acc, known); err != nil {
		return account{}, err
	}
	return account{}, refuse("unauthorized", 0, "name or password is wrong")
}

func (a *Admins) byName(ctx context.Context, name string) (acc account, ok bool, err error) {
	err = a.db.Get(ctx, &acc, accountColumns+` WHERE name = $1`, name)
	if errors.Is(err, store.ErrNoRows) {
		return account{}, false, nil
	}
	return acc, err == nil, err
}

// slow returns a Refusal while the attempt must wait.
func (a *Admins) slow(at attempt, acc account, known bool) error {
	var wait time.Duration
	if at.device != "" {
		wait = a.devices.Wait(at.device)
	} else {
		wait = max(a.address.Wait(at.from), a.busyAccount(at, acc, known))
	}
	if wait > 0 {
		return refuse("too-many-requests", wait, "too many wrong passwords; wait before you try again")
	}
	return nil
}

// busyAccount returns how long the attempt must wait because of wrong tries
// from everywhere. Its address waits once from its first try on, whatever
// others do in the meantime, so that no one can be kept out by guesses.
func (a *Admins) busyAccount(at attempt, acc account, known bool) time.Duration {
	n, last := a.names.Count(core.CutRunes(at.name, 64))
	if known {
		n, last = acc.guessed(a.clock.Now())
	}
	d := backoff.Delay(n, freeAccount, mostAccount)
	if d == 0 || a.clock.Now().Sub(last) >= d {
		return 0
	}
	return a.waiting.Wait(at.from, d)
}

// guessed returns how many wrong tries of unknown devices count, and when the
// last one was. locked_until is when they stop counting.
func (acc account) guessed(now time.Time) (n int, last time.Time) {
	until, err := core.ParseStamp(acc.LockedUntil)
	if err != nil || !now.Before(until) || until.Sub(now) > backoff.Forget { // none, over, or damaged
		return 0, time.Time{}
	}
	return acc.Failed, until.Add(-backoff.Forget)
}

// failed counts a wrong try: of a known device for itself, of any other for
// its address and the account.
func (a *Admins) failed(ctx context.Context, at attempt, acc account, known bool) error {
	if at.device != "" {
		a.devices.Fail(at.device)
		return nil
	}
	a.address.Fail(at.from)
	a.waiting.Clear(at.from)
	if !known {
		a.names.Fail(core.CutRunes(at.name, 64))
		return nil
	}
	now := a.clock.Now()
	return a.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE admin_accounts SET failed = CASE WHEN locked_until > $1 THEN failed + 1 ELSE 1 END, locked_until = $2 WHERE user_id = $3`,
			core.Stamp(now), core.Stamp(now.Add(backoff.Forget)), acc.User)
		return err
	})
}
