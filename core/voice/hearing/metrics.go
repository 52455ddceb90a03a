package hearing

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core/voice"
)

// Results of recordings next to the codes of faults.
const (
	resultText   = "text"
	resultSilent = "silent"
)

// Metrics count what is transcribed. A nil *Metrics counts nothing.
type Metrics struct {
	recordings *prometheus.CounterVec
	seconds    prometheus.Counter
	open       prometheus.Gauge
}

// NewMetrics registers the metrics with reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		recordings: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gatehouse_voice_recordings_total", Help: "Recordings, by what became of them."}, []string{"result"}),
		seconds:    prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_voice_seconds_total", Help: "Audio that the engine transcribed, also repeatedly."}),
		open:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_voice_streams", Help: "Streams that are being transcribed."}),
	}
	for _, r := range append([]string{resultText, resultSilent}, voice.Faults...) {
		m.recordings.WithLabelValues(r)
	}
	reg.MustRegister(m.recordings, m.seconds, m.open)
	return m
}

func (m *Metrics) ended(text string, err error) {
	if m == nil {
		return
	}
	result := resultText
	var f *voice.Fault
	switch {
	case errors.As(err, &f):
		result = f.Code
	case text == "":
		result = resultSilent
	}
	m.recordings.WithLabelValues(result).Inc()
}

func (m *Metrics) heard(d time.Duration) {
	if m != nil {
		m.seconds.Add(d.Seconds())
	}
}

func (m *Metrics) streams(n float64) {
	if m != nil {
		m.open.Add(n)
	}
}
