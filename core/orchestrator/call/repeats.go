package call

import (
	"encoding/json"

	"gatehouse/core"
)

// maxRepeats is how often the same call may be made: more is a loop.
const maxRepeats = 3

// Repeats counts the same call made again and again. A call with effects lets
// others be created again: what they see may have changed.
type Repeats struct {
	seen map[string]int // bounded by the rounds of a run
	last string
	what string
}

// Note counts a call; effects reports whether it had some.
func (l *Repeats) Note(b *core.Block, effects bool) {
	var in any
	_ = json.Unmarshal(b.Input, &in)
	canonical, _ := json.Marshal(in) // sorted keys
	key := b.Name + "\x00" + string(canonical)
	if l.seen == nil {
		l.seen = map[string]int{}
	}
	if effects && key != l.last {
		clear(l.seen)
	}
	l.last = key
	if l.seen[key]++; l.seen[key] >= maxRepeats {
		l.what = Label(b.Name, b.Input)
	}
}

// Found returns the call that was made too often.
func (l *Repeats) Found() (string, bool) { return l.what, l.what != "" }
