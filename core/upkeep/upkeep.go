// Package upkeep runs the housekeeping of the owners of tables and files.
package upkeep

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

const (
	every = time.Minute // the housekeeping is checked as often
	// long is the interval from which on a chore runs first a while after the start: a
	// gateway that is started every day would never run it otherwise.
	long  = 2 * time.Hour
	first = 10 // minutes after the start that it runs first
)

// An Upkeep runs each chore at its interval. The last success of each is a metric.
type Upkeep struct {
	chores []core.Chore
	clock  core.Clock
	log    *slog.Logger
	last   *prometheus.GaugeVec
}

// New returns the upkeep of the chores, with its metric in reg.
func New(chores []core.Chore, clock core.Clock, log *slog.Logger, reg prometheus.Registerer) *Upkeep {
	u := &Upkeep{chores: chores, clock: clock, log: log, last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gatehouse_upkeep_last_success_timestamp_seconds", Help: "When each housekeeping task last succeeded (at start: when the program began).",
	}, []string{"task"})} // "job" is a label of Prometheus itself
	reg.MustRegister(u.last)
	for _, c := range chores {
		u.last.WithLabelValues(c.Name).Set(float64(clock.Now().Unix()))
	}
	return u
}

// Run runs the chores when they are due, until ctx ends.
func (u *Upkeep) Run(ctx context.Context) {
	for minute := 1; core.Sleep(ctx, u.clock, every); minute++ {
		u.Once(ctx, minute)
	}
}

// Once runs the chores that are due in this minute after the start. Those with an interval of
// hours run in the tenth, too.
func (u *Upkeep) Once(ctx context.Context, minute int) {
	for _, c := range u.chores {
		if minute%max(1, int(c.Every/every)) != 0 && (c.Every < long || minute != first) {
			continue
		}
		n, err := c.Run(ctx)
		if err != nil {
			if ctx.Err() == nil {
				u.log.Error("upkeep", "task", c.Name, "err", err)
			}
			continue
		}
		u.last.WithLabelValues(c.Name).Set(float64(u.clock.Now().Unix()))
		if n > 0 {
			u.log.Debug("upkeep", "task", c.Name, "rows", n)
		}
	}
}
