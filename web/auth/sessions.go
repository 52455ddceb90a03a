package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/web"
	"gatehouse/web/auth/visit"
)

// How long a session of the panel lasts.
const (
	SessionIdle     = visit.Idle
	SessionAbsolute = visit.Absolute
)

const (
	touchEvery = time.Minute // how often a session in use is written again
	maxAgent   = 300         // runes of a browser's name
)

// CookieName is the session cookie's, before web.CookieName.
const CookieName = "gatehouse_session"

// newManager does without scs.New, which begins a goroutine for a store in unused memory.
func newManager(db *store.DB, clock core.Clock) *scs.SessionManager {
	return &scs.SessionManager{Store: sessionTable{db: db, clock: clock}, Codec: visit.Codec{}, HashTokenInStore: true, Lifetime: SessionAbsolute}
}

// sessionTable is the table admin_sessions as the session manager sees it.
// Tokens arrive hashed.
type sessionTable struct {
	db    *store.DB
	clock core.Clock
}

func (t sessionTable) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	var data []byte
	err := t.db.Get(ctx, &data, `SELECT data FROM admin_sessions WHERE token = $1 AND expiry > $2`, token, core.Stamp(t.clock.Now()))
	if errors.Is(err, store.ErrNoRows) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// CommitCtx stores a session. One that isn't new is only updated: what has
// been signed out in the meantime must not come back by being touched.
func (t sessionTable) CommitCtx(ctx context.Context, token string, data []byte, _ time.Time) error {
	var v visit.Visit
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return t.db.Tx(ctx, func(tx *store.Tx) error {
		if v.Seen != v.Started {
			_, err := tx.Exec(ctx, `UPDATE admin_sessions SET data = $2, expiry = $3 WHERE token = $1`, token, data, core.Stamp(v.Expiry()))
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM admin_sessions WHERE token IN (SELECT token FROM admin_sessions ORDER BY expiry DESC LIMIT 1000000 OFFSET $1)`, visit.Max-1); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO admin_sessions (token, data, expiry) VALUES ($1, $2, $3)`, token, data, core.Stamp(v.Expiry()))
		return err
	})
}

func (t sessionTable) DeleteCtx(ctx context.Context, token string) error {
	return t.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM admin_sessions WHERE token = $1`, token)
		return err
	})
}

// Delete, Find and Commit complete scs.Store; the manager calls the variants with a context.
func (t sessionTable) Delete(token string) error { return t.DeleteCtx(context.Background(), token) }
func (t sessionTable) Find(token string) ([]byte, bool, error) {
	return t.FindCtx(context.Background(), token)
}
func (t sessionTable) Commit(token string, b []byte, expiry time.Time) error {
	return t.CommitCtx(context.Background(), token, b, expiry)
}

// end ends the sessions that f chooses, and those whose row is damaged.
func (a *Admins) end(ctx context.Context, tx *store.Tx, f func(token string, v visit.Visit) bool) (n int, err error) {
	var rows []sessionRow
	if err := tx.Select(ctx, &rows, `SELECT token, data FROM admin_sessions`); err != nil { // at most visit.Max
		return 0, err
	}
	for _, r := range rows {
		var v visit.Visit
		if json.Unmarshal(r.Data, &v) == nil && !f(r.Token, v) {
			continue
		}
		if _, err := tx.Exec(ctx, `DELETE FROM admin_sessions WHERE token = $1`, r.Token); err != nil {
			return 0, err
		}
		n++
	}
	if n > 0 {
		a.Ended(tx)
	}
	return n, nil
}

type sessionRow struct {
	Token string `db:"token"`
	Data  []byte `db:"data"`
}

// load returns the request's session; false without a valid one. ctx serves the
// manager's other calls.
func (a *Admins) load(r *http.Request) (ctx context.Context, v visit.Visit, ok bool, err error) {
	token := ""
	if c, err := r.Cookie(web.CookieName(r, CookieName)); err == nil {
		token = c.Value
	}
	if len(token) > 128 {
		token = ""
	}
	if ctx, err = a.manager.Load(r.Context(), token); err != nil {
		return nil, visit.Visit{}, false, fmt.Errorf("session: %w", err)
	}
	v, ok = a.manager.Get(ctx, "visit").(visit.Visit)
	return ctx, v, ok && v.Expiry().After(a.clock.Now()), nil
}

// resume returns the Principal of the request's session, which it touches.
func (a *Admins) resume(r *http.Request) (Principal, bool, error) {
	if _, err := r.Cookie(web.CookieName(r, CookieName)); err != nil {
		return Principal{}, false, nil
	}
	ctx, v, ok, err := a.load(r)
	if err != nil || !ok {
		return Principal{}, false, err
	}
	acc, found, err := a.account(ctx, a.db, v.User)
	if err != nil || !found || !visit.Fits(acc.Hash, v.CSRF, v.Seal) {
		return Principal{}, false, err
	}
	now := a.clock.Now()
	if seen, err := core.ParseStamp(v.Seen); err != nil || now.Sub(seen) >= touchEvery {
		v.Seen = core.Stamp(now)
		a.manager.Put(ctx, "visit", v)
		if _, _, err := a.manager.Commit(ctx); err != nil {
			return Principal{}, false, fmt.Errorf("session: %w", err)
		}
	}
	p := Principal{User: v.User, Trust: core.Vault, Session: true, via: "panel", csrf: v.CSRF, seal: v.Seal, MustChange: acc.MustChange && !v.Link,
		Name: acc.Name, Viewer: acc.Role != RoleAdmin}
	switch {
	case p.MustChange:
	case p.Viewer:
		p.Trust, p.Scopes = core.Sandboxed, viewerScopes()
	default:
		p.Scopes = Scopes()
	}
	return p, true, nil
}

// begin ends the session that came with the request, if any, and begins a new one of acc under a new
// token, so that a planted token is worth nothing. acc is as it was when it was proven: a session for
// a password that was replaced since is refused.
func (a *Admins) begin(w http.ResponseWriter, r *http.Request, acc account, byLink bool) error {
	ctx, _, _, err := a.load(r)
	if err != nil {
		return err
	}
	if err := a.manager.RenewToken(ctx); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	now := core.Stamp(a.clock.Now())
	v := visit.Visit{User: acc.User, CSRF: random(24), Started: now, Seen: now, Link: byLink,
		Agent: core.CutRunes(strings.ToValidUTF8(r.UserAgent(), "?"), maxAgent), Address: a.o.Address(r)}
	v.Seal = visit.Seal(acc.Hash, v.CSRF)
	a.manager.Put(ctx, "visit", v)
	token, _, err := a.manager.Commit(ctx)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	a.cookie(w, r, token, int(SessionAbsolute/time.Second))
	a.remember(w, r, acc)
	return nil
}

func replaced() error {
	return refuse("unauthorized", 0, "the password was changed in the meantime; sign in again")
}

// SignOut ends the request's session.
func (a *Admins) SignOut(w http.ResponseWriter, r *http.Request) error {
	ctx, v, ok, err := a.load(r)
	if err != nil {
		return err
	}
	if err := a.manager.Destroy(ctx); err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	a.cookie(w, r, "", -1)
	if !ok {
		return nil
	}
	return a.db.Tx(r.Context(), func(tx *store.Tx) error {
		a.Ended(tx)
		return store.Audit(r.Context(), tx, core.Actor{User: v.User, Via: "panel"}, "admin.signout", "", nil)
	})
}

// SignOutEverywhere ends every session of user and returns how many there were.
func (a *Admins) SignOutEverywhere(ctx context.Context, user int64, by core.Actor) (n int, err error) {
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		if n, err = a.EndSession(ctx, tx, user, ""); err != nil {
			return err
		}
		return store.Audit(ctx, tx, by, "admin.signout_everywhere", fmt.Sprint(user), map[string]any{"sessions": n})
	})
	return n, err
}

// Sweep removes sessions that have ended; upkeep calls it now and then.
func (a *Admins) Sweep(ctx context.Context) (int, error) {
	var n int64
	err := a.db.Tx(ctx, func(tx *store.Tx) (err error) {
		n, err = tx.Exec(ctx, `DELETE FROM admin_sessions WHERE expiry <= $1`, core.Stamp(tx.Time()))
		return err
	})
	return int(n), err
}

func (a *Admins) cookie(w http.ResponseWriter, r *http.Request, token string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: web.CookieName(r, CookieName), Value: token, Path: "/", MaxAge: maxAge, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: a.o.Secure(r)})
}
