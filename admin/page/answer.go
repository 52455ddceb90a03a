package page

import "time"

// An Answer is the answer of a group of pages to one question of the overview.
type Answer struct {
	Key, Question, Answer, Path, Link string
	Tone                              string // good, idle, note, warn or bad
	Short                             string // for the page's first line; "" when nothing needs attention
	Detail                            []Detail
	Broken                            string // why there is no answer
}

// A Detail is a line below the answer. Who is hostile text and set apart.
type Detail struct{ Who, Text string }

// A Job is the state of an operation that goes on after its request.
type Job struct {
	Running bool
	Tell    string    // how far it is, while it runs
	Said    []string  // what came of it
	Error   string    // why nothing came of it, fit to be shown
	At      time.Time // when it ended
	Size    int64     // of the file that it made
}
