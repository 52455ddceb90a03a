package discordtest

import "gatehouse/connectors/simulator"

// A Fault is something to go wrong in requests to come. Its Method is a route's
// name, such as "createMessage", or "gateway", the opening of a connection.
type Fault = simulator.Fault[float64]

// A FaultKind is how an exchange goes wrong.
type FaultKind = simulator.FaultKind

// The kinds of faults.
const (
	Slow    = simulator.Slow
	Broken  = simulator.Broken
	Flooded = simulator.Flooded // the limit of the route, or with Global that of the bot
	Reset   = simulator.Reset
	Half    = simulator.Half
	Hang    = simulator.Hang
	// Banned answers 429 without JSON, as the proxy in front does ([limits]
	// "Cloudflare bans"): RetryAfter seconds (1 when 0) in the header only.
	Banned FaultKind = "banned"
)

var faultAnswers = simulator.Answers[float64]{
	Broken: func(f Fault) answer { return f.Page(htmlPage, proxy) },
	Banned: func(f Fault) answer { return banned(f.Wait()) },
	Flooded: func(f Fault) answer {
		scope := "user"
		if f.Global {
			scope = "global"
		}
		return failed(&apiError{status: 429, wait: f.Wait(), global: f.Global, scope: scope})
	},
}
