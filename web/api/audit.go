package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/web"
	"gatehouse/web/auth"
)

type (
	// A Log is what was done, by whom (store.AuditLog). Did adds what is done in
	// no transaction of its own.
	Log interface {
		Did(ctx context.Context, by core.Actor, action, subject string) error
		AuditLog(ctx context.Context, f store.AuditFilter) (page []store.AuditEvent, next string, err error)
	}
	// Figures are what the models took (usage.Ledger).
	Figures interface {
		Report(ctx context.Context, q usage.ReportQuery) ([]usage.Figure, error)
	}
)

// auditLog serves GET /api/audit.
func (a *API) auditLog(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeAdmin); err != nil {
		return err
	}
	f, err := auditFilter(r.URL.Query())
	if err != nil {
		return err
	}
	page, next, err := a.Audit.AuditLog(r.Context(), f)
	if err != nil {
		return err
	}
	if page == nil {
		page = []store.AuditEvent{}
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"events": page, "next_cursor": next})
}

func auditFilter(v url.Values) (f store.AuditFilter, err error) {
	if f.Limit, err = number(v, "limit", 50, 1, 500); err != nil {
		return f, err
	}
	for name, dest := range map[string]*string{"action": &f.Action, "subject": &f.Subject, "via": &f.Via, "cursor": &f.Cursor} {
		if *dest = v.Get(name); len(*dest) > 256 {
			return f, core.Errorf(core.Invalid, "%s is over 256 bytes", name)
		}
	}
	if f.User, err = person(v); err != nil {
		return f, err
	}
	if f.Since, err = moment(v, "since"); err != nil {
		return f, err
	}
	f.Until, err = moment(v, "until")
	return f, err
}

// person returns the query's user_id; nil without one.
func person(v url.Values) (*int64, error) {
	if !v.Has("user_id") {
		return nil, nil
	}
	id, err := strconv.ParseInt(v.Get("user_id"), 10, 64)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "user_id must be a number")
	}
	return &id, nil
}

// moment returns a time of the query, as RFC 3339 or as a day in UTC; zero without one.
func moment(v url.Values, name string) (time.Time, error) {
	if !v.Has(name) {
		return time.Time{}, nil
	}
	given := v.Get(name)
	if day, err := time.Parse(time.DateOnly, given); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, given)
	if err != nil {
		return at, core.Errorf(core.Invalid, "%s must be a time such as 2026-03-01T12:00:00Z, or a day such as 2026-03-01", name)
	}
	return at, nil
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
	if q.User, err = person(v); err != nil {
		return err
	}
	if q.Since, err = moment(v, "since"); err != nil {
		return err
	}
	if q.Until, err = moment(v, "until"); err != nil {
		return err
	}
	if q.Until.IsZero() {
		q.Until = a.Clock.Now().UTC()
	}
	if q.Since.IsZero() {
		q.Since = q.Until.Add(-usageSince).Truncate(24 * time.Hour)
	}
	rows, err := a.Figures.Report(r.Context(), q)
	if err != nil {
		return err
	}
	out := make([]figure, 0, len(rows))
	for f := range slices.Values(rows) {
		out = append(out, figure{f, float64(f.MicroUSD) / 1e6})
	}
	return web.WriteJSON(w, http.StatusOK, map[string]any{"by": q.By, "since": q.Since, "until": q.Until, "figures": out})
}
