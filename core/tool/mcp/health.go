package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool/mcp/entry"
	"gatehouse/core/tool/mcp/program"
)

// States of a server.
const (
	Idle     = "idle"     // not in use; it starts when it is needed
	Starting = "starting" // has not answered yet
	Ready    = "ready"    // answers
	Failing  = "failing"  // could not be used when it was last tried
	Mistaken = "mistaken" // its entry in the file is not as it must be
)

// A state is how a server is, over all its connections.
type state struct {
	s     *entry.Server
	name  string
	since time.Time
	err   string // the last one, without secrets; kept until it answers again
	tools int
	fails int       // in a row, without a call that went well
	again time.Time // not before

	awaited map[core.Trust]bool // a turn has waited for the first connection; at most three
}

func (st *state) is(name, err string, now time.Time) {
	if st.name != name {
		st.name, st.since = name, now
	}
	if err != "" || name == Ready {
		st.err = err
	}
}

// became notes what a connection's server does now.
func (v *Servers) became(l *link, name, err string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	st := v.states[l.s.Short]
	if st == nil || st.s != l.s {
		return
	}
	if name == Idle { // others may still be in use
		for _, x := range v.links {
			if x.s == l.s && x != l {
				return
			}
		}
		if st.name == Failing {
			return
		}
	}
	if name == Ready && st.name != Ready {
		v.o.Log.Info("an MCP server answers", "server", l.s.Name, "trust", l.key.trust, "tools", st.tools)
	}
	st.is(name, err, v.o.Clock.Now())
}

// failed notes that a connection could not be made or has broken; it is made
// again at once, after a second time in a row only after some time, which doubles.
func (v *Servers) failed(l *link, err error) {
	text := reason(l.s, err)
	v.o.Log.Warn("an MCP server failed", "server", l.s.Name, "trust", l.key.trust, "err", text)
	v.mu.Lock()
	defer v.mu.Unlock()
	st := v.states[l.s.Short]
	if st == nil || st.s != l.s {
		return
	}
	now := v.o.Clock.Now()
	st.is(Failing, text, now)
	if st.fails++; st.fails > 1 {
		st.again = now.Add(min(time.Second<<min(st.fails-2, 10), maxBackoff))
	}
	delete(v.known, toolsKeyOf(l.s, l.key.trust))
}

// well notes that a call went well.
func (v *Servers) well(l *link) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if st := v.states[l.s.Short]; st != nil && st.s == l.s {
		st.fails = 0
	}
}

// maxReason bounds what is notified of an error, in bytes.
const maxReason = 500

// reason returns err for the owner: of one line, and without the server's secrets.
func reason(s *entry.Server, err error) string {
	text := err.Error()
	if core.KindOf(err) != core.Other {
		text = core.TextOf(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		text = "it did not answer in time"
	}
	return core.CutRunes(program.Plain(s.Redact(text)), maxReason)
}

// A Health is how one server is, for users who run the gateway.
type Health struct {
	Name      string
	Transport string // entry.Stdio or entry.HTTP; "" where it is Mistaken
	Trust     core.Trust
	State     string
	Since     time.Time // in this state; Failing lasts until the server answers again
	Next      time.Time // of a try, if it is Failing; zero: it is being tried
	Error     string    // the last one, until it answers again; secrets are taken out
	Tools     int       // that it named last
	Line      int       // of its entry in the file
}

// Health returns how every server of the file is, in its order, and then the
// mistakes in it: at most 2 × entry.MaxServers + 1.
func (v *Servers) Health() []Health {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []Health
	for _, s := range v.list {
		st := v.states[s.Short]
		h := Health{Name: s.Name, Transport: s.Transport, Trust: s.Trust, State: st.name, Since: st.since, Error: st.err, Tools: st.tools, Line: s.Line}
		if st.name == Failing && !v.trying(s) {
			h.Next = st.again
			if h.Next.IsZero() {
				h.Next = v.o.Clock.Now()
			}
		}
		all = append(all, h)
	}
	for _, m := range v.mistakes {
		all = append(all, Health{Name: m.Server, State: Mistaken, Error: m.Text, Line: m.Line})
	}
	return all
}

// trying reports whether a connection to s is being made; v.mu is held.
func (v *Servers) trying(s *entry.Server) bool {
	for _, l := range v.links {
		if l.s == s && !l.isReady() {
			return true
		}
	}
	return false
}

// within returns a context that ends with ctx, and after d of the clock.
func (v *Servers) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	late := v.o.Clock.After(d)
	go func() {
		defer cancel()
		select {
		case <-late:
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func errLate(limit time.Duration) error { return fmt.Errorf("it did not answer within %s", limit) }
