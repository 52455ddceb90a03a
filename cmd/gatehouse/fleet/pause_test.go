package fleet

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// A slow bot returns from Run only when it is let go.
type slow struct {
	name string
	runs chan bool     // true: it begins
	goOn chan struct{} // nil: at once
}

func (s *slow) Name() string { return s.name }

func (s *slow) Send(context.Context, core.Outgoing) core.Delivery { return core.Delivery{} }

func (s *slow) Run(ctx context.Context, _ connectors.Inbox, report func(core.BotState)) error {
	report(core.BotState{State: core.Running})
	s.runs <- true
	<-ctx.Done()
	if s.goOn != nil {
		<-s.goOn
	}
	s.runs <- false
	return ctx.Err()
}

func TestBotsThatWerePausedReceiveAgainAlsoOneThatStoppedLate(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	late := &slow{"late", make(chan bool, 10), make(chan struct{})}
	quick := &slow{"quick", make(chan bool, 10), nil}
	off := &slow{"off", make(chan bool, 10), nil}
	hub, err := connectors.NewHub(nil, connectors.HubOptions{Clock: clock}, late, quick, off)
	if err != nil {
		t.Fatal(err)
	}
	f := &Fleet{Options: Options{Bots: &Bots{}, Log: slog.New(slog.DiscardHandler)}, Hub: hub}
	f.Bots.set([]configs.Bot{{Name: "late"}, {Name: "quick"}, {Name: "off"}}, "", clock.Now())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	all := []*slow{late, quick, off}
	for _, s := range all {
		<-s.runs
	}
	named := func(s core.BotState) bool { return s.Bot == "late" }
	paused := make(chan bool)
	go func() { paused <- f.Pause(true) }()
	<-quick.runs // all are stopped at once
	<-off.runs
	clock.AwaitWaiters(len(all)) // each stop waits by the clock, also those that have ended
	clock.Advance(time.Minute)
	<-paused
	f.Bots.set([]configs.Bot{{Name: "late"}, {Name: "quick"}, {Name: "off", Off: true}}, "", clock.Now()) // by the operator, meanwhile
	for again := false; !again; {                                                                         // as the guard does each second: the clock may have passed the quick one too
		if f.Pause(false) {
			t.Fatal("one that still stops counts as one that receives")
		}
		select {
		case again = <-quick.runs:
		case <-time.After(time.Millisecond):
		}
	}
	close(late.goOn)
	if <-late.runs {
		t.Error("it began before it had ended")
	}
	end := time.Now().Add(time.Minute)
	for i := slices.IndexFunc(hub.States(), named); hub.States()[i].State != core.Reconnecting; time.Sleep(time.Millisecond) { // stopped would silence the alert
		if hub.States()[i].State == core.Stopped || time.Now().After(end) {
			t.Fatal("one that stopped late is shown as stopped by an operator")
		}
	}
	for !f.Pause(false) {
		time.Sleep(time.Millisecond)
	}
	if !<-late.runs {
		t.Error("the late one does not receive")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(off.runs) > 0 && <-off.runs {
		t.Error("the one that the operator stopped began again")
	}
}
