package auth

import (
	"errors"
	"fmt"
	"net/http"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/link"
)

// LinkTime is how long a link signs in, once.
const LinkTime = link.Life

// NewLink returns a token that signs one browser in to the operator's account, once and
// within LinkTime, in place of the one before. Only the demo prints one.
func (a *Admins) NewLink() (token string) {
	token = random(24)
	a.link.Set(token, a.clock.Now())
	return token
}

// FollowLink begins a session for the token of NewLink, or returns a Refusal, or a
// *CodeNeeded where the account signs in with a code, too. After any other error the link still
// works. The session need not choose a password first, and the one-time password stays valid.
func (a *Admins) FollowLink(w http.ResponseWriter, r *http.Request, token string) error {
	var need *CodeNeeded
	ok, err := a.link.Use(token, a.clock.Now(), func() error {
		err := a.enterByLink(w, r)
		if errors.As(err, &need) {
			return nil
		}
		return err
	})
	if need != nil {
		return need
	}
	if !ok {
		a.log.WarnContext(r.Context(), "sign-in link refused", "from", a.o.Address(r))
		return refuse("unauthorized", 0, "this link was used, or has expired; sign in with the password")
	}
	return err
}

func (a *Admins) enterByLink(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	acc, _, err := a.account(ctx, a.db, core.Operator)
	if err == nil {
		err = a.codeNeeded(r, acc)
	}
	if err != nil {
		return err
	}
	if err := a.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE admin_accounts SET by_link = 1, signed_in_at = $1 WHERE user_id = $2 AND argon2id = $3`, core.Stamp(tx.Time()), acc.User, acc.Hash)
		if err == nil && n == 0 {
			err = replaced()
		}
		if err != nil {
			return err
		}
		return store.Audit(ctx, tx, core.Actor{User: acc.User, Via: "panel"}, "admin.signin", "", map[string]any{"by": "link"})
	}); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	return a.begin(w, r, acc, true)
}
