package auth

import (
	"net/http"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web/auth/link"
)

const LinkTime = link.Life // how long a link signs in

// NewLink returns a token that signs one browser in to the operator's account, once and
// within LinkTime, in place of the one before. Only the demo prints one.
func (a *Admins) NewLink() (token string) {
	token = random(24)
	a.link.Set(token, a.clock.Now())
	return token
}

// FollowLink begins a session for the token of NewLink, or returns a Refusal, or a
// *CodeNeeded where the account signs in with a code, too. The session need not choose
// a password first, and the one-time password stays valid.
func (a *Admins) FollowLink(w http.ResponseWriter, r *http.Request, token string) error {
	if !a.link.Take(token, a.clock.Now()) {
		a.log.WarnContext(r.Context(), "sign-in link refused", "from", a.o.Address(r))
		return refuse("unauthorized", 0, "this link was used, or has expired; sign in with the password")
	}
	acc, _, err := a.account(r.Context(), a.db, core.Operator)
	if err == nil {
		err = a.codeNeeded(r, acc)
	}
	if err != nil {
		return err
	}
	if err := a.db.Tx(r.Context(), func(tx *store.Tx) error {
		return store.Audit(r.Context(), tx, core.Actor{User: core.Operator, Via: "panel"}, "admin.signin", "", map[string]any{"by": "link"})
	}); err != nil {
		return err
	}
	return a.begin(w, r, acc, true)
}
