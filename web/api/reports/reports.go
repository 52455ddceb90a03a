// Package reports serves what was done and what it cost: the audit log and the
// usage of models.
package reports

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// A Log reads the audit log (store.AuditLog).
	Log interface {
		AuditLog(ctx context.Context, f store.AuditFilter) (page []store.AuditEvent, next string, err error)
	}
	// Figures sums up the usage of models (usage.Ledger).
	Figures interface {
		Report(ctx context.Context, q usage.ReportQuery) ([]usage.Figure, error)
	}
)

// An API serves the routes of the audit log and of usage.
type API struct {
	log     Log
	figures Figures
	clock   core.Clock
}

// New returns an API.
func New(log Log, figures Figures, clock core.Clock) *API { return &API{log, figures, clock} }

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /api/audit": a.auditLog,
		"GET /api/usage": a.usage,
	}
}

// auditLog serves GET /api/audit.
func (a *API) auditLog(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	f, err := auditFilter(r.URL.Query())
	if err != nil {
		return err
	}
	page, next, err := a.log.AuditLog(r.Context(), f)
	if err != nil {
		return err
	}
	if page == nil {
		page = []store.AuditEvent{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"events": page, "next_cursor": next})
}

func auditFilter(v url.Values) (f store.AuditFilter, err error) {
	if f.Limit, err = web.QueryNumber(v, "limit", 50, 1, 500); err != nil {
		return f, err
	}
	for name, dest := range map[string]*string{"action": &f.Action, "subject": &f.Subject, "via": &f.Via, "cursor": &f.Cursor} {
		if *dest = v.Get(name); len(*dest) > 256 {
			return f, core.Errorf(core.Invalid, "%s is over 256 bytes", name)
		}
	}
	if f.User, err = web.QueryUser(v); err != nil {
		return f, err
	}
	if f.Since, err = web.QueryTime(v, "since"); err != nil {
		return f, err
	}
	f.Until, err = web.QueryTime(v, "until")
	return f, err
}

// usageSince is how far back figures reach unless they are asked for otherwise.
const usageSince = 30 * 24 * time.Hour

// A figure as it is sent.
type figure struct {
	usage.Figure
	Cost float64 `json:"cost_usd"`
}

// usage serves GET /api/usage.
func (a *API) usage(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	v := r.URL.Query()
	q := usage.ReportQuery{By: []string{"day"}}
	if v.Has("by") {
		q.By = strings.Split(v.Get("by"), ",")
	}
	var err error
	if q.User, err = web.QueryUser(v); err != nil {
		return err
	}
	if q.Since, err = web.QueryTime(v, "since"); err != nil {
		return err
	}
	if q.Until, err = web.QueryTime(v, "until"); err != nil {
		return err
	}
	if q.Until.IsZero() {
		q.Until = a.clock.Now().UTC()
	}
	if q.Since.IsZero() {
		q.Since = q.Until.Add(-usageSince).Truncate(24 * time.Hour)
	}
	rows, err := a.figures.Report(r.Context(), q)
	if err != nil {
		return err
	}
	out := make([]figure, 0, len(rows))
	for f := range slices.Values(rows) {
		out = append(out, figure{f, float64(f.MicroUSD) / 1e6})
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"by": q.By, "since": q.Since, "until": q.Until, "figures": out})
}
