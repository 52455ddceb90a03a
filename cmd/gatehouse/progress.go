package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"gatehouse/core"
)

// A progress tells somebody at a terminal how far a long command is, in one
// line, at most twice a second. nil tells nobody. It is for one goroutine.
type progress struct {
	out     io.Writer
	what    string
	entries int
	bytes   int64
	shown   time.Time
	any     bool
}

// newProgress is for p's terminal; nil without one.
func newProgress(p *process, what string) *progress {
	if !p.tty {
		return nil
	}
	return &progress{out: p.stderr, what: what, shown: time.Now()}
}

func (g *progress) entry() {
	if g != nil {
		g.entries++
		g.show()
	}
}

func (g *progress) read(n int) {
	if g != nil {
		g.bytes += int64(n)
		g.show()
	}
}

func (g *progress) show() {
	if time.Since(g.shown) < 500*time.Millisecond {
		return
	}
	g.shown, g.any = time.Now(), true
	fmt.Fprintf(g.out, "\r%s: %d entries, %s\x1b[K", g.what, g.entries, sizeText(g.bytes))
}

// end takes the line away.
func (g *progress) end() {
	if g != nil && g.any {
		fmt.Fprint(g.out, "\r\x1b[K")
		g.any = false
	}
}

// watched is a reader whose progress is told and which ends with ctx.
type watched struct {
	ctx  context.Context
	r    io.Reader
	show *progress
}

func (w *watched) Read(p []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	w.show.read(n)
	return n, err
}

// sizeText is n bytes for people, also where it is many.
func sizeText(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return core.ByteSize(int(n))
}
