package discord

import "github.com/prometheus/client_golang/prometheus"

// What may become of a RESUME.
const (
	resumed = "resumed" // the session goes on, nothing was missed
	refused = "refused" // the session is gone: identified anew, the channels read back
)

// Metrics are shared by all Discord bots; their label is the bot's configured
// name.
type Metrics struct {
	resumes *prometheus.CounterVec
}

// NewMetrics registers gatehouse_discord_resumes_total{bot,result} with reg,
// result being resumed or refused; a nil reg leaves it unregistered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{resumes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gatehouse_discord_resumes_total",
		Help: "Tries to go on with a gateway session, by how they ended.",
	}, []string{"bot", "result"})}
	if reg != nil {
		reg.MustRegister(m.resumes)
	}
	return m
}

func (m *Metrics) start(bot string) {
	m.resumes.WithLabelValues(bot, resumed)
	m.resumes.WithLabelValues(bot, refused)
}

func (m *Metrics) resume(bot, result string) { m.resumes.WithLabelValues(bot, result).Inc() }
