package sessions

import (
	"context"
	"net/http"
	"strings"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/web/auth"
)

type (
	// A Locator finds sessions by id. Locate returns the session of an id for
	// user: an own session or alias is known; an unknown one is the id it will
	// get when a turn makes it; another user's is core.NotFound, but for the operator, and a
	// malformed or reserved id core.Invalid.
	Locator interface {
		Locate(ctx context.Context, user int64, id string) (session string, known bool, err error)
		Session(ctx context.Context, id string) (Row, error)
	}
	// Begun reports whether user began a session whose first turn is queued.
	Begun interface {
		Owns(ctx context.Context, user int64, session string) (bool, error)
	}
	// Details reads one session.
	Details interface {
		Detail(ctx context.Context, id string) (session.Detail, error)
	}
)

// reserved are names in addresses that could be ids.
var reserved = map[string]bool{"session": true, "sessions": true, "stream": true, "active-streams": true, "count": true}

// A Finder finds the session that a request names, for callers who may see it.
type Finder struct {
	locator Locator
	begun   Begun
	details Details
}

// NewFinder returns a Finder.
func NewFinder(locator Locator, begun Begun, details Details) *Finder {
	return &Finder{locator, begun, details}
}

// Found returns the caller of r, who has one of the scopes, and the session in
// the address, which the caller may see.
func (f *Finder) Found(r *http.Request, scopes ...string) (auth.Principal, session.Detail, error) {
	p, err := auth.Require(r, scopes...)
	if err != nil {
		return p, session.Detail{}, err
	}
	id, err := f.Find(r, p)
	if err != nil {
		return p, session.Detail{}, err
	}
	d, err := f.details.Detail(r.Context(), id)
	return p, d, err
}

// Find returns the id of the session in the address, which must exist (or have
// just been enqueued) and be p's; with the scopes admin and read, of any user. To delete it or stop its
// turn, which shows nothing of it, admin is sufficient.
func (f *Finder) Find(r *http.Request, p auth.Principal) (string, error) {
	ctx, id := r.Context(), r.PathValue("id")
	if reserved[id] || id == "" || len(id) > 128 {
		return "", core.Errorf(core.Invalid, "this is not a session id")
	}
	others := p.ReadsEveryone()
	if r.Method == http.MethodDelete && strings.HasSuffix(r.Pattern, "/{id}") || strings.HasSuffix(r.Pattern, "/{id}/abort") {
		others = p.Has(auth.ScopeAdmin)
	}
	session, known, err := f.locate(ctx, p, id, others)
	if err == nil && !known {
		known, err = f.begun.Owns(ctx, p.User, session)
	}
	switch {
	case err == nil && known:
		return session, nil
	case err != nil && core.KindOf(err) != core.NotFound:
		return "", err
	}
	if others {
		row, err := f.locator.Session(ctx, id)
		return row.ID, err
	}
	return "", noSession()
}

func noSession() error { return core.Errorf(core.NotFound, "there is no such session") }

// Locate returns the session that an id means for p; one that is not known
// will be made. A reserved id is core.Invalid, another user's session core.NotFound; the operator
// finds it with the scopes admin and read, because an answer can repeat what was said in it.
func (f *Finder) Locate(ctx context.Context, p auth.Principal, id string) (session string, known bool, err error) {
	if reserved[id] {
		return "", false, core.Errorf(core.Invalid, "the session id %q is reserved", id)
	}
	return f.locate(ctx, p, id, p.ReadsEveryone())
}

// locate is Locate; others permits the operator the sessions of other users, which the Locator
// shows no one else.
func (f *Finder) locate(ctx context.Context, p auth.Principal, id string, others bool) (session string, known bool, err error) {
	session, known, err = f.locator.Locate(ctx, p.User, id)
	if err != nil || !known || others || p.User != core.Operator {
		return session, known, err
	}
	row, err := f.locator.Session(ctx, session)
	if err == nil && row.User != p.User {
		err = noSession()
	}
	if err != nil {
		return "", false, err
	}
	return session, true, nil
}

// Owner returns the user of a session, or core.NotFound.
func (f *Finder) Owner(ctx context.Context, id string) (user int64, err error) {
	row, err := f.locator.Session(ctx, id)
	return row.User, err
}
