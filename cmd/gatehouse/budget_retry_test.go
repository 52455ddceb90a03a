package main

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/usage"
)

// A client whose budget is used up is told to return when the budget starts again, not
// earlier: with the next day or the next month.
func TestABudgetRefusalSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	day := func(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }
	month := func(now time.Time) time.Time {
		return time.Date(now.UTC().Year(), now.UTC().Month()+1, 1, 0, 0, 0, 0, time.UTC)
	}
	for name, c := range map[string]struct {
		general usage.Budget
		own     usage.Own
		until   func(now time.Time) time.Time
	}{
		"of the day":   {usage.Budget{Tokens: 1}, usage.Own{}, day},
		"of the month": {usage.Budget{}, usage.Own{Month: usage.Budget{Tokens: 1}}, month},
		"of both":      {usage.Budget{}, usage.Own{Day: &usage.Budget{Tokens: 1}, Month: usage.Budget{Tokens: 1}}, month},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newModelWorld(t, func(cfg *configs.Config) { cfg.BudgetDay = values.Budget{Tokens: c.general.Tokens} })
			err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
				return w.app.usage.SetOwn(t.Context(), tx, core.Operator, c.own, cli)
			})
			if err != nil {
				t.Fatal(err)
			}
			for path, body := range map[string]map[string]any{
				"/api/chat":            {"message": "Hello"},
				"/v1/chat/completions": {"model": fakeModel, "messages": user("Hello")},
			} {
				before := time.Now()
				resp := w.open("POST", path, body, http.Header{"Accept": {"application/json"}})
				resp.Body.Close()
				after := time.Now()
				wait, err := strconv.Atoi(resp.Header.Get("Retry-After"))
				if resp.StatusCode != 429 || err != nil {
					t.Errorf("%s: %d %v", path, resp.StatusCode, resp.Header)
					continue
				}
				back := time.Duration(wait) * time.Second
				if at := before.Add(back); at.After(c.until(after).Add(time.Second)) || after.Add(back).Before(c.until(before)) {
					t.Errorf("%s: come back in %s, at %s; the budget starts again at %s", path, back, at.UTC(), c.until(before))
				}
			}
		})
	}
}
