package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
)

// upkeepEvery is how often the housekeeping is checked.
const upkeepEvery = time.Minute

// upkeep runs every chore now and then; each one's last success is a metric.
type upkeep struct {
	chores []core.Chore
	clock  core.Clock
	log    *slog.Logger
	last   *prometheus.GaugeVec
}

func newUpkeep(chores []core.Chore, clock core.Clock, log *slog.Logger, reg prometheus.Registerer) *upkeep {
	u := &upkeep{chores: chores, clock: clock, log: log, last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gatehouse_upkeep_last_success_timestamp_seconds", Help: "When each housekeeping job last succeeded (at start: when the program began).",
	}, []string{"job"})}
	reg.MustRegister(u.last)
	for _, c := range chores {
		u.last.WithLabelValues(c.Name).Set(float64(clock.Now().Unix()))
	}
	return u
}

// Run does the chores until ctx ends.
func (u *upkeep) Run(ctx context.Context) {
	for minute := 1; core.Sleep(ctx, u.clock, upkeepEvery); minute++ {
		u.once(ctx, minute)
	}
}

func (u *upkeep) once(ctx context.Context, minute int) {
	for _, c := range u.chores {
		if minute%max(1, int(c.Every/upkeepEvery)) != 0 {
			continue
		}
		n, err := c.Run(ctx)
		if err != nil {
			if ctx.Err() == nil {
				u.log.Error("upkeep", "job", c.Name, "err", err)
			}
			continue
		}
		u.last.WithLabelValues(c.Name).Set(float64(u.clock.Now().Unix()))
		if n > 0 {
			u.log.Debug("upkeep", "job", c.Name, "rows", n)
		}
	}
}
