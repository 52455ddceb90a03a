package main

import (
	"fmt"
	"time"

	"gatehouse/core"
)

// A progress prints how far a long command is, at most twice a second. A nil
// one prints nothing. It is for one goroutine.
type progress struct {
	what  string
	print func(line string)
	shown time.Time
	any   bool
}

// newProgress returns a progress on p's terminal, or nil without one.
func newProgress(p *process, what string) *progress {
	if !p.tty {
		return nil
	}
	return &progress{what: what, shown: time.Now(), print: func(line string) { fmt.Fprint(p.stderr, "\r"+line+"\x1b[K") }}
}

func (g *progress) show(entries int, bytes int64) {
	if g == nil || time.Since(g.shown) < 500*time.Millisecond {
		return
	}
	g.shown, g.any = time.Now(), true
	g.print(fmt.Sprintf("%s: %d entries, %s", g.what, entries, sizeText(bytes)))
}

// end clears the line.
func (g *progress) end() {
	if g != nil && g.any {
		g.print("")
		g.any = false
	}
}

// sizeText returns n bytes in a unit that suits it.
func sizeText(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return core.ByteSize(int(n))
}
