package main

import "github.com/prometheus/client_golang/prometheus"

// registerBuild registers which build this is.
func registerBuild(reg prometheus.Registerer) {
	revision, goVersion := buildInfo()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gatehouse_build_info", Help: "Always 1."}, []string{"version", "revision", "go"})
	info.WithLabelValues(version, revision, goVersion).Set(1)
	reg.MustRegister(info)
}
