package activity

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons of failures.
const (
	failModel      = "model"
	failBudget     = "budget"
	failTranscript = "transcript"
	failFile       = "file"
)

type metrics struct{ failures *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer, w *Worker) metrics {
	m := metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_activity_failures_total", Help: "What the log of activity could not do, by reason.",
	}, []string{"reason"})}
	for _, r := range []string{failModel, failBudget, failTranscript, failFile} {
		m.failures.WithLabelValues(r)
	}
	if reg != nil {
		reg.MustRegister(m.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gatehouse_activity_backlog", Help: "Finished runs that are not in the log of activity yet.",
		}, w.backlog))
	}
	return m
}

func (m metrics) failed(reason string) { m.failures.WithLabelValues(reason).Inc() }

// backlog returns how many runs are to be followed or written; -1 while that is unknown.
func (w *Worker) backlog() float64 {
	ctx := context.Background()
	runs, err := w.o.Runs.CountToFollow(ctx)
	var rows int
	if err == nil {
		err = w.o.DB.Get(ctx, &rows, `SELECT count(*) FROM activity WHERE state = 'new'`)
	}
	if err != nil {
		return -1
	}
	return float64(runs + rows)
}
