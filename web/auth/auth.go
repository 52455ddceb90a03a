// Package auth identifies who makes a request and what they may do: API keys, the
// sign-in to accounts of the panel and their sessions, and keyless chat from this machine. It
// owns the tables api_keys and admin_sessions, and the columns of admin_accounts that signing in
// changes; the others are those of package web/account.
package auth

import (
	"cmp"
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
)

// Scopes of a key. What no scope allows is not allowed.
const (
	ScopeChat    = "chat"    // talk, in own sessions
	ScopeRead    = "read"    // read own sessions; everyone's only together with admin
	ScopeSend    = "send"    // have a bot send a message unasked
	ScopeSync    = "sync"    // copy the own files of the vault to a device and back
	ScopeMetrics = "metrics" // /metrics and the details of /readyz
	ScopeAdmin   = "admin"   // bots, pairing, access, keys
)

// Roles of an account of the panel.
const (
	RoleAdmin  = "admin"
	RoleViewer = "viewer" // reads everything and changes nothing
)

// viewerScopes are those of a viewer's session, for requests that change nothing (MayChange).
func viewerScopes() []string { return []string{ScopeRead, ScopeMetrics, ScopeAdmin} }

// Scopes lists all scopes in the order they are shown.
func Scopes() []string {
	return []string{ScopeChat, ScopeRead, ScopeSend, ScopeSync, ScopeMetrics, ScopeAdmin}
}

// LocalUser owns the sessions of keyless requests from this machine
// (LOCALHOST_ACCESS=chat). It is no row of users, so that anyone who reaches the
// loopback interface shares sessions with no one else.
const LocalUser int64 = -1

// LocalKey is the key id of such a request.
const LocalKey = "localhost"

// A Principal is who makes a request.
type Principal struct {
	User       int64
	Trust      core.Trust // ceiling of every turn
	Scopes     []string
	Key        string // the key's id; LocalKey; "" for an admin session
	Session    bool   // an admin session: unsafe requests need its CSRF token
	MustChange bool   // the account has its one-time password, and no scopes until it is changed
	Name       string // the account's; "" without a session
	Viewer     bool   // the account may read everything and change nothing
	csrf       string
	seal       string // of the password that the session began with (visit.Fits)
	sum        string // the digest of the key's secret that was sent
	via        string // for audit rows; "": the API
}

// Has reports whether p has scope. A scope that is not listed is never had.
func (p Principal) Has(scope string) bool { return slices.Contains(p.Scopes, scope) }

// ReadsEveryone reports whether p may read the sessions of all users, in lists and by id.
// Continuing or changing one of another user needs this too.
func (p Principal) ReadsEveryone() bool { return p.Has(ScopeAdmin) && p.Has(ScopeRead) }

// Governs reports whether p may do what in a chat only the owner and admins may.
func (p Principal) Governs() bool { return p.User == core.Operator || p.Has(ScopeAdmin) }

// Caller returns what limits and idempotency keys count p by: its key, or its user.
func (p Principal) Caller() string { return cmp.Or(p.Key, fmt.Sprint("user", p.User)) }

// Actor returns p as audit rows name it.
func (p Principal) Actor() core.Actor {
	return core.Actor{User: p.User, Via: cmp.Or(p.via, "api")}
}

// CSRF returns the token that p's session sends back with forms; "" without a session.
func (p Principal) CSRF() string { return p.csrf }

// CheckCSRF refuses an unsafe request of a session without the session's token
// in the header X-CSRF-Token or in the form field "csrf". Requests by key need
// none: a browser never adds a key automatically.
func (p Principal) CheckCSRF(r *http.Request) error {
	if safe(r.Method) || !p.Session {
		return nil
	}
	given := r.Header.Get("X-CSRF-Token")
	if given == "" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		given = r.PostFormValue("csrf")
	}
	if p.csrf == "" || subtle.ConstantTimeCompare([]byte(given), []byte(p.csrf)) != 1 {
		return core.Errorf(core.Denied, "the CSRF token is missing or not this session's; reload the page and try again")
	}
	return nil
}

// MayChange refuses an unsafe request of a viewer. The API asks it in Require, and the panel for
// every route but those of the viewer's own account.
func (p Principal) MayChange(r *http.Request) error {
	if !p.Viewer || safe(r.Method) {
		return nil
	}
	return core.Errorf(core.Denied, "your account is a viewer: it can look at everything and change nothing. An admin can make it an admin")
}

// safe reports whether requests of this method change nothing.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

type principalKey struct{}

// From returns the Principal of a request that passed Door.Identify, and whether there is one.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// AsOperator returns r as made by the operator, with every scope and full trust,
// for a transport that no one else can reach. Audit rows name via.
func AsOperator(r *http.Request, via string) *http.Request {
	return with(r, Principal{User: core.Operator, Trust: core.Full, Scopes: Scopes(), via: via})
}

// Narrow returns r with only those scopes of its Principal that are listed.
func Narrow(r *http.Request, scopes ...string) *http.Request {
	p, ok := From(r.Context())
	if !ok {
		return r
	}
	p.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), func(s string) bool { return !slices.Contains(scopes, s) })
	return with(r, p)
}

// Require returns the Principal of r when it has one of the scopes and, in a
// session, sent the CSRF token. Without a Principal it returns a Refusal of 401.
func Require(r *http.Request, scopes ...string) (Principal, error) {
	p, ok := From(r.Context())
	if !ok {
		return p, refuse("unauthorized", 0, "send an API key in Authorization: Bearer or X-API-Key")
	}
	if p.MustChange {
		return p, refuse("password-change-required", 0, "choose a new password in the panel first")
	}
	if err := p.MayChange(r); err != nil {
		return p, err
	}
	if !slices.ContainsFunc(scopes, p.Has) {
		return p, core.Errorf(core.Denied, "this needs the scope %s", strings.Join(scopes, " or "))
	}
	return p, p.CheckCSRF(r)
}

// A Refusal is an error that names the problem HTTP answers with.
type Refusal struct {
	slug  string
	after time.Duration
	err   error
}

func refuse(slug string, after time.Duration, text string) error {
	return &Refusal{slug: slug, after: after, err: core.Errorf(core.Denied, "%s", text)}
}

func (e *Refusal) Error() string { return e.err.Error() }
func (e *Refusal) Unwrap() error { return e.err }

// Problem returns the problem's slug and, for back-off, how long to wait.
func (e *Refusal) Problem() (slug string, retryAfter time.Duration) { return e.slug, e.after }
