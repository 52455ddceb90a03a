package daily

import "time"

// Results of a run.
const (
	Completed         = "completed"           // it wrote its output
	CompletedNoOutput = "completed_no_output" // it ended well and wrote none
	Skipped           = "skipped"             // the date had been run before
	Failed            = "error"
)

// Results are all results of a run.
var Results = []string{Completed, CompletedNoOutput, Skipped, Failed}

// Causes of a run; another is who started it by hand.
const (
	ByTime = "schedule" // its time came
	Missed = "missed"   // its time came while the gateway was down
)

// A Run is one run of a daily agent.
type Run struct {
	Agent   string
	Date    string // 2026-01-28
	N       int    // 1, 2 …: of the date
	Run     string
	Session string
	Cause   string
	Result  string // "" while it waits or runs
	Error   string // why, for the operator
	Output  string // the file that it has written
	Model   string
	Due     time.Time
	Created time.Time
	Ended   time.Time
}

// A Line is a daily agent with how it is.
type Line struct {
	Agent
	Next time.Time // zero: it does not run by its schedule
	Last *Run      // the newest run; nil for none
}

// Running reports whether the newest run has not ended.
func (l Line) Running() bool { return l.Last != nil && l.Last.Result == "" }
