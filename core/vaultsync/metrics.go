package vaultsync

import (
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core/vaultsync/wire"
)

type metrics struct {
	files  *prometheus.CounterVec
	hashed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		files: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_sync_files_total",
			Help: "Files that devices sent or deleted, by what became of them."}, []string{"outcome"}),
		hashed: prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_sync_hashed_files_total",
			Help: "Files of the vault that were read to compute their hash."}),
	}
	for _, o := range []string{wire.Stored, wire.Unchanged, wire.Merged, wire.Copied, wire.Deleted, wire.Kept, "error"} {
		m.files.WithLabelValues(o)
	}
	if reg != nil {
		reg.MustRegister(m.files, m.hashed)
	}
	return m
}
