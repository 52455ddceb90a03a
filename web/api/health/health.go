// Package health serves the probes of the API and its metrics.
package health

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/auth"
)

// A Check is one thing readiness depends on. Func gets two seconds.
type Check struct {
	Name string
	Func func(context.Context) error
}

// Bots reports the state of each bot.
type Bots interface {
	States() []core.BotState
}

// An API serves the routes of probes and of metrics.
type API struct {
	ready    *readiness
	gatherer prometheus.Gatherer
}

// New returns an API that is ready when the checks succeed and a bot is
// connected, if there is one.
func New(checks []Check, bots Bots, clock core.Clock, gatherer prometheus.Gatherer) *API {
	return &API{ready: &readiness{clock: clock, checks: checks, bots: bots, ended: map[string]chan error{}}, gatherer: gatherer}
}

// Routes returns the handlers by pattern.
func (a *API) Routes() map[string]web.Handler {
	return map[string]web.Handler{
		"GET /readyz":  a.readyz,
		"GET /metrics": a.metrics,
	}
}

// Live serves GET /healthz: the process answers, so it is alive.
func Live(w http.ResponseWriter, _ *http.Request) error {
	return web.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// fresh is how long an answer of readiness holds: the route is open, and a
// check writes.
const fresh = time.Second

// checkTime bounds one check.
const checkTime = 2 * time.Second

type checkResult struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// readiness checks at most once a second for all callers.
type readiness struct {
	clock  core.Clock
	checks []Check
	bots   Bots

	mu      sync.Mutex
	ended   map[string]chan error // by name, of checks that run; one each
	at      time.Time
	ok      bool
	itself  bool // the checks succeed
	results []checkResult
}

// run runs one check. It does not wait for one that does not heed its time, and does not
// begin it again before it has ended.
func (c *readiness) run(ctx context.Context, check Check) error {
	limited, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	ended := c.ended[check.Name]
	if ended == nil {
		ended = make(chan error, 1)
		c.ended[check.Name] = ended
		go func() { ended <- check.Func(limited) }()
	}
	late := time.NewTimer(checkTime + checkTime/4)
	defer late.Stop()
	select {
	case err := <-ended:
		delete(c.ended, check.Name)
		return err
	case <-late.C:
		return fmt.Errorf("no answer in %s", checkTime)
	}
}

// state returns whether the program is ready, whether it is apart from its bots, and the result of each check.
func (c *readiness) state(ctx context.Context) (ok, itself bool, results []checkResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if !c.at.IsZero() && now.Sub(c.at) < fresh && !now.Before(c.at) {
		return c.ok, c.itself, c.results
	}
	c.at, c.itself, c.results = now, true, nil
	for _, check := range c.checks {
		err := c.run(context.WithoutCancel(ctx), check)
		r := checkResult{Name: check.Name, OK: err == nil}
		if err != nil {
			r.Detail, c.itself = core.CutRunes(err.Error(), 300), false
		}
		c.results = append(c.results, r)
	}
	configured, failed := 0, 0
	for _, s := range c.bots.States() {
		if s.State == core.Stopped {
			continue // it was stopped on purpose
		}
		configured++
		r := checkResult{Name: "bot " + s.Bot, OK: s.State != core.FailedPhase, Detail: string(s.State)}
		if s.Reason != "" {
			r.Detail += ": " + s.Reason
		}
		if !r.OK {
			failed++
		}
		c.results = append(c.results, r)
	}
	c.ok = c.itself && (configured == 0 || failed < configured)
	return c.ok, c.itself, c.results
}

// readyz serves GET /readyz. Without a key of the right scope it returns the status only. With bots=false the bots
// do not count: a load balancer must not take away the panel, where a bot is mended.
func (a *API) readyz(w http.ResponseWriter, r *http.Request) error {
	ok, itself, results := a.ready.state(r.Context())
	switch bots := r.URL.Query().Get("bots"); bots {
	case "", "true":
	case "false":
		ok = itself
	default:
		return &web.Problem{Fault: web.Invalid, Detail: "bots is true or false"}
	}
	body := map[string]any{"status": "ready"}
	status := http.StatusOK
	if !ok {
		body["status"], status = "unavailable", http.StatusServiceUnavailable
	}
	if p, known := auth.From(r.Context()); known && (p.Has(auth.ScopeMetrics) || p.Has(auth.ScopeAdmin)) {
		if results == nil {
			results = []checkResult{}
		}
		body["checks"] = results
	}
	return web.WriteJSON(w, status, body)
}

// metrics serves GET /metrics on the main listener.
func (a *API) metrics(w http.ResponseWriter, r *http.Request) error {
	if _, err := auth.Require(r, auth.ScopeMetrics); err != nil {
		return err
	}
	web.MetricsPage(a.gatherer).ServeHTTP(w, r)
	return nil
}
