package auth

import (
	"context"
	"net/http"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/web/auth/backoff"
	"gatehouse/web/auth/watch"
)

// AuthenticatorOptions for NewAuthenticator.
type AuthenticatorOptions struct {
	Clock core.Clock // nil: the system's
	// Localhost opens chat at sandboxed to keyless requests for which Local holds.
	Localhost bool
	// Local reports whether a request comes from this machine without a proxy
	// between; nil: never. The origin checks have been made before.
	Local func(*http.Request) bool
	// Address is the address that wrong keys are counted against; nil: all together.
	Address func(*http.Request) string
}

// An Authenticator identifies callers.
type Authenticator struct {
	keys   *Keys
	admins *Admins
	o      AuthenticatorOptions
	wrong  *backoff.Counter
	watch  *watch.Watch
}

// NewAuthenticator returns an Authenticator of callers with API keys or a session of admins.
func NewAuthenticator(keys *Keys, admins *Admins, o AuthenticatorOptions) *Authenticator {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Local == nil {
		o.Local = func(*http.Request) bool { return false }
	}
	if o.Address == nil {
		o.Address = func(*http.Request) string { return "" }
	}
	d := &Authenticator{keys: keys, admins: admins, o: o, wrong: backoff.New(o.Clock, 10, time.Minute)}
	d.watch = watch.New(o.Clock, watch.Checks{Keys: keys.live, Session: d.signedIn})
	if keys != nil {
		keys.changed = append(keys.changed, func() { go d.Look() })
	}
	return d
}

// Identify returns r with its Principal: of the API key sent, else of the admin session, else
// the keyless one of this machine where that is open. A request without any of them passes as
// no one. A key that is wrong is refused, also next to a good session; too many wrong ones
// from one address are answered with 429, while a right one is let in even then.
// A request that has a Principal already keeps it (AsOperator).
func (a *Authenticator) Identify(r *http.Request) (*http.Request, error) {
	if _, known := From(r.Context()); known {
		return r, nil
	}
	secret, sent, err := keyOf(r.Header)
	if err != nil {
		return nil, err
	}
	if sent {
		return a.byKey(r, secret)
	}
	p, ok, err := a.admins.resume(r)
	if err != nil {
		return nil, err
	}
	if !ok && a.o.Localhost && a.o.Local(r) {
		p, ok = Principal{User: LocalUser, Trust: core.Sandboxed, Scopes: []string{ScopeChat}, Key: LocalKey}, true
	}
	if !ok {
		return r, nil
	}
	return with(r, p), nil
}

func with(r *http.Request, p Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
}

func (a *Authenticator) byKey(r *http.Request, secret string) (*http.Request, error) {
	row, ok, err := a.keys.Find(r.Context(), secret)
	if err != nil {
		return nil, err
	}
	from := a.o.Address(r)
	if !ok {
		if wait := a.wrong.Wait(from); wait > 0 {
			return nil, refuse("too-many-requests", wait, "too many wrong keys from this address")
		}
		a.wrong.Fail(from)
		return nil, refuse("unauthorized", 0, "the API key is not valid, or not any more")
	}
	a.wrong.Clear(from)
	return with(r, Principal{User: row.User, Trust: row.Trust, Scopes: row.Scopes, Key: row.ID, sum: digest(secret)}), nil
}

// keyOf finds the key in the headers. Two different ones are refused.
func keyOf(h http.Header) (secret string, sent bool, err error) {
	secret = strings.TrimSpace(h.Get("X-API-Key"))
	sent = h.Get("X-API-Key") != ""
	authorization := h.Get("Authorization")
	if authorization == "" {
		return secret, sent, nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", false, refuse("unauthorized", 0, "the Authorization header must be: Bearer <key>")
	}
	if sent && secret != token {
		return "", false, refuse("unauthorized", 0, "two different keys were sent")
	}
	return token, true, nil
}
