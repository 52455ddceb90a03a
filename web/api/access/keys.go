package access

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// Keys are the API keys. Create refuses a user that there is not, and one that only the owner
	// may act for.
	Keys interface {
		KeyChanges
		List(ctx context.Context, limit int) ([]auth.KeyRow, error)
		Create(ctx context.Context, n auth.NewKey, by core.Actor) (secret string, row auth.KeyRow, err error)
	}
	// KeyChanges change one key.
	KeyChanges interface {
		Change(ctx context.Context, id string, c auth.KeyChange, by core.Actor) (auth.KeyRow, error)
		Rotate(ctx context.Context, id string, o auth.KeyRotation, by core.Actor) (secret string, row auth.KeyRow, err error)
		Revoke(ctx context.Context, id string, by core.Actor) error
	}
)

// keys serves GET /api/keys.
func (a *API) keys(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	rows, err := a.Keys.List(r.Context(), auth.MaxKeys+1)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = []auth.KeyRow{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"keys": rows})
}

// createKey serves POST /api/keys. A caller cannot make a key that may more than they may,
// and only the owner makes one of another user.
func (a *API) createKey(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	n := auth.NewKey{User: p.User} // unless the body names another user
	into := map[string]any{"label": &n.Label, "user_id": &n.User, "trust_level": &n.Trust, "scopes": &n.Scopes, "expires_at": &n.ExpiresAt}
	if err := web.ReadFieldsInto(w, r, into); err != nil {
		return err
	}
	if err := labelFits(n.Label); err != nil {
		return err
	}
	if err := mayGive(p, n); err != nil {
		return err
	}
	secret, row, err := a.Keys.Create(r.Context(), n, p.Actor())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusCreated, map[string]any{"key": secret, "record": row})
}

// mayGive returns why p may not have the secret of a key, or give it more scopes.
func mayGive(p auth.Principal, n auth.NewKey) error {
	if n.Trust > p.Trust {
		return core.Errorf(core.Denied, "the trust level %s is above your own, which is %s", n.Trust, p.Trust)
	}
	for _, s := range n.Scopes {
		if slices.Contains(auth.Scopes(), s) && !p.Has(s) {
			return core.Errorf(core.Denied, "you don't have the scope %s yourself", s)
		}
	}
	return nil
}

func labelFits(label string) error {
	if len(label) > 400 {
		return web.FieldProblem(web.TooLarge, "label", "the field label is over 400 bytes")
	}
	return nil
}

// changeKey serves PATCH /api/keys/{id}. A caller cannot give a key what they may not do
// themselves.
func (a *API) changeKey(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	c := auth.KeyChange{May: func(was auth.KeyRow, added []string) error {
		if len(added) == 0 {
			return nil
		}
		return mayGive(p, auth.NewKey{User: was.User, Trust: was.Trust, Scopes: added})
	}}
	if err := web.ReadFieldsInto(w, r, map[string]any{"label": &c.Label, "scopes": &c.Scopes}); err != nil {
		return err
	}
	if c.Label != nil {
		if err := labelFits(*c.Label); err != nil {
			return err
		}
	}
	row, err := a.Keys.Change(r.Context(), r.PathValue("id"), c, p.Actor())
	if err != nil {
		return fmt.Errorf("change key: %w", err)
	}
	return web.WriteJSON(w, http.StatusOK, row)
}

// rotateKey serves POST /api/keys/{id}/rotate. A caller gets no secret of a key that may more
// than they may.
func (a *API) rotateKey(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	o := auth.KeyRotation{May: func(was auth.KeyRow) error {
		return mayGive(p, auth.NewKey{User: was.User, Trust: was.Trust, Scopes: was.Scopes})
	}}
	if r.ContentLength != 0 {
		if err := web.ReadFieldsInto(w, r, map[string]any{"old_expires_at": &o.OldExpiresAt}); err != nil {
			return err
		}
	}
	secret, row, err := a.Keys.Rotate(r.Context(), r.PathValue("id"), o, p.Actor())
	if err != nil {
		return fmt.Errorf("rotate key: %w", err)
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"key": secret, "record": row})
}

// revokeKey serves DELETE /api/keys/{id}.
func (a *API) revokeKey(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	if err := a.Keys.Revoke(r.Context(), r.PathValue("id"), p.Actor()); err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
