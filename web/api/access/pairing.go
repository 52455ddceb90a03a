// Package access serves who may use the gateway: pairing requests, the users with
// access, and API keys.
package access

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// Pairings are the requests of strangers.
	Pairings interface {
		Requests(ctx context.Context, status string, limit int) ([]core.PairingRequest, error)
		Request(ctx context.Context, id string) (core.PairingRequest, error)
	}
	// Decisions decide requests of strangers. A second decision on one is
	// core.Conflict with a text that names who decided first.
	Decisions interface {
		Approve(ctx context.Context, ref string, a core.Approval, by core.Actor) (core.PairingRequest, error)
		Deny(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
		Block(ctx context.Context, ref string, by core.Actor) (core.PairingRequest, error)
	}
	// People are the users with access.
	People interface {
		Revoke(ctx context.Context, bot, platformUserID string, by core.Actor) (int, error)
		Access(ctx context.Context, limit int) ([]core.AccessRow, error)
		RemoveAccess(ctx context.Context, id int64, by core.Actor) error
	}
	// Bots finds a bot by its name, or by a platform that has one bot only.
	Bots interface {
		Find(name string) (core.BotState, error)
	}
)

// Options for New; all are needed.
type Options struct {
	Pairings  Pairings
	Decisions Decisions
	People    People
	Bots      Bots
	Keys      Keys
	Clock     core.Clock
}

// An API serves the routes of pairing requests, access and keys.
type API struct{ Options }

// New returns an API.
func New(o Options) *API { return &API{o} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/bots/pairing":                    a.requests,
		"GET /api/bots/pairing/{id}":               a.request,
		"POST /api/bots/pairing/{id}/approve":      a.approve,
		"POST /api/bots/pairing/{id}/deny":         a.deny,
		"POST /api/bots/pairing/{id}/block":        a.block,
		"DELETE /api/bots/pairing/{bot}/{user_id}": a.revoke,
		"GET /api/bots/access":                     a.access,
		"DELETE /api/bots/access/{id}":             a.removeAccess,
		"GET /api/keys":                            a.keys,
		"POST /api/keys":                           a.createKey,
		"PATCH /api/keys/{id}":                     a.changeKey,
		"POST /api/keys/{id}/rotate":               a.rotateKey,
		"DELETE /api/keys/{id}":                    a.revokeKey,
	}
}

// requests serves GET /api/bots/pairing.
func (a *API) requests(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	status := r.URL.Query().Get("status")
	if r.URL.Query().Has("status") && !slices.Contains([]string{"pending", "approved", "denied", "expired"}, status) {
		return core.Errorf(core.Invalid, "status must be pending, approved, denied or expired")
	}
	limit, err := web.QueryNumber(r.URL.Query(), "limit", 100, 1, 500)
	if err != nil {
		return err
	}
	rows, err := a.Pairings.Requests(r.Context(), status, limit)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = []core.PairingRequest{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"requests": rows})
}

// request serves GET /api/bots/pairing/{id}.
func (a *API) request(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	row, err := a.Pairings.Request(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, row)
}

// approve serves POST /api/bots/pairing/{id}/approve. No one gives away more trust
// than their own key has, not even by the bot's preset.
func (a *API) approve(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	var approval core.Approval
	if r.ContentLength != 0 {
		if approval, err = readApproval(w, r); err != nil {
			return err
		}
	}
	if approval.Trust > p.Trust {
		return core.Errorf(core.Denied, "the trust level %s is above your own, which is %s", approval.Trust, p.Trust)
	}
	approval.Most = p.Trust
	if !approval.ExpiresAt.IsZero() && !approval.ExpiresAt.After(a.Clock.Now()) {
		return web.FieldProblem(web.Invalid, "expires_at", "the field expires_at is in the past")
	}
	return a.decide(w, r, func(ctx context.Context, id string) (core.PairingRequest, error) {
		return a.Decisions.Approve(ctx, id, approval, p.Actor())
	})
}

func readApproval(w http.ResponseWriter, r *http.Request) (approval core.Approval, err error) {
	err = web.ReadFieldsInto(w, r, map[string]any{"trust_level": &approval.Trust, "scope": &approval.Scope, "expires_at": &approval.ExpiresAt})
	if err != nil {
		return approval, err
	}
	switch approval.Scope {
	case "", core.ScopeDM, core.ScopeGroup:
		return approval, nil
	}
	return approval, web.FieldProblem(web.Invalid, "scope", "the field scope must be dm or group")
}

// deny serves POST /api/bots/pairing/{id}/deny.
func (a *API) deny(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	return a.decide(w, r, func(ctx context.Context, id string) (core.PairingRequest, error) {
		return a.Decisions.Deny(ctx, id, p.Actor())
	})
}

// block serves POST /api/bots/pairing/{id}/block.
func (a *API) block(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	return a.decide(w, r, func(ctx context.Context, id string) (core.PairingRequest, error) {
		return a.Decisions.Block(ctx, id, p.Actor())
	})
}

// decide responds with the request as it is after do. A second decision gets the first
// one's author.
func (a *API) decide(w http.ResponseWriter, r *http.Request, do func(context.Context, string) (core.PairingRequest, error)) error {
	ctx, id := r.Context(), r.PathValue("id")
	row, err := do(ctx, id)
	if err == nil {
		return web.WriteJSON(w, http.StatusOK, row)
	}
	if core.KindOf(err) != core.Conflict {
		return err
	}
	p := &web.Problem{Fault: web.Conflict, Detail: core.TextOf(err), Err: err}
	if now, e := a.Pairings.Request(ctx, id); e == nil {
		p.Extra = map[string]any{"request_status": now.Status}
		if now.ResolvedBy != "" {
			p.Extra["resolved_by"] = now.ResolvedBy
		}
		if !now.ResolvedAt.IsZero() {
			p.Extra["resolved_at"] = now.ResolvedAt
		}
	}
	return p
}

// revoke serves DELETE /api/bots/pairing/{bot}/{user_id}. Access may outlive its
// bot's configuration, so a name that no bot has is tried as it is.
func (a *API) revoke(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	name := r.PathValue("bot")
	s, err := a.Bots.Find(name)
	switch {
	case err == nil:
		name = s.Bot
	case core.KindOf(err) != core.NotFound:
		return err
	}
	n, err := a.People.Revoke(r.Context(), name, r.PathValue("user_id"), p.Actor())
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, map[string]int{"revoked": n})
}

// access serves GET /api/bots/access.
func (a *API) access(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	limit, err := web.QueryNumber(r.URL.Query(), "limit", 100, 1, 500)
	if err != nil {
		return err
	}
	rows, err := a.People.Access(r.Context(), limit)
	if err != nil {
		return err
	}
	if rows == nil {
		rows = []core.AccessRow{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"access": rows})
}

// removeAccess serves DELETE /api/bots/access/{id}.
func (a *API) removeAccess(w http.ResponseWriter, r *http.Request) error {
	p, err := auth.Require(r, auth.ScopeAdmin)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return core.Errorf(core.Invalid, "the id must be a number")
	}
	if err := a.People.RemoveAccess(r.Context(), id, p.Actor()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
