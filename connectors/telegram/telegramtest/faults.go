package telegramtest

import "gatehouse/connectors/simulator"

// A Fault is something to go wrong in requests to come.
type Fault = simulator.Fault[int]

// A FaultKind is how an exchange goes wrong.
type FaultKind = simulator.FaultKind

// The kinds of faults.
const (
	Slow    = simulator.Slow
	Broken  = simulator.Broken
	Flooded = simulator.Flooded
	Reset   = simulator.Reset
	Half    = simulator.Half
	Hang    = simulator.Hang
)

var faultAnswers = simulator.Answers[int]{
	Broken:  func(f Fault) answer { return f.Page("text/html", "nginx") },
	Flooded: func(f Fault) answer { return failed(tooMany(f.Wait())) },
}
