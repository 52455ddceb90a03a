package backup

import (
	"fmt"
	"time"

	"gatehouse/core"
)

// A Meter prints how far Make or Restore is, at most twice a second. A nil one
// prints nothing. It is for one goroutine.
type Meter struct {
	what  string
	print func(line string)
	shown time.Time
	any   bool
}

// NewMeter returns a meter that prints lines beginning with what.
func NewMeter(what string, print func(line string)) *Meter {
	return &Meter{what: what, shown: time.Now(), print: print}
}

// Show is a Progress.
func (m *Meter) Show(entries int, bytes int64) {
	if m == nil || time.Since(m.shown) < 500*time.Millisecond {
		return
	}
	m.shown, m.any = time.Now(), true
	m.print(fmt.Sprintf("%s: %d entries, %s", m.what, entries, SizeText(bytes)))
}

// End prints an empty line in place of the last one.
func (m *Meter) End() {
	if m != nil && m.any {
		m.print("")
		m.any = false
	}
}

// SizeText returns n bytes in a unit that suits their number.
func SizeText(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return core.ByteSize(int(n))
}
