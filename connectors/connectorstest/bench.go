package connectorstest

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// A bench is the connector of one test with its store and platform.
type bench struct {
	*testing.T
	p          *Platform
	conn       connectors.Connector
	store      *Store
	log        coretest.Log
	states     chan core.BotState
	dm, thread core.Address
	cancel     context.CancelFunc
	ended      chan error
}

// start runs the connector; stop ends it.
func (b *bench) start() {
	ctx, cancel := context.WithCancel(b.Context())
	b.cancel, b.ended = cancel, make(chan error, 1)
	go func() { b.ended <- b.conn.Run(ctx, b.store, func(s core.BotState) { b.states <- s }) }()
}

func (b *bench) stop() {
	if b.cancel != nil {
		b.cancel()
		<-b.ended
		b.cancel = nil
	}
	if c, ok := b.conn.(interface{ Close() error }); ok {
		c.Close()
	}
}

// await reads reports until one is in phase.
func (b *bench) await(phase core.Phase) core.BotState {
	b.Helper()
	late := time.After(5 * time.Minute)
	for {
		select {
		case s := <-b.states:
			if s.State == phase {
				return s
			}
		case <-late:
			b.Fatalf("never reported %s", phase)
		}
	}
}

// send sends at the connector's pace.
func (b *bench) send(to core.Address, replaces string, part core.Part) core.Delivery {
	if p, ok := b.conn.(connectors.Pacer); ok {
		for wait := p.Wait(to); wait > 0; wait = p.Wait(to) {
			if !core.Sleep(b.Context(), core.System{}, min(wait, 5*time.Second)) {
				break
			}
		}
	}
	return b.conn.Send(b.Context(), core.Outgoing{Address: to, Part: part, Replaces: replaces})
}

// meet makes the user write first, as platforms require.
func (b *bench) meet() {
	b.p.Say("hello")
}

func (b *bench) seen(to core.Address, want ...string) {
	b.Helper()
	if got := b.p.Seen(to); strings.Join(got, "\x00") != strings.Join(want, "\x00") {
		b.Errorf("the person sees %q, want %q", got, want)
	}
}
