package fleet

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/queue/metrics"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store/storetest"
)

// Replies of a bot that is removed and has not stopped yet are still sent, and the bot is known
// to be stopping: configured again, it gets a new connector.
func TestABotThatHasNotStoppedIsNotReleased(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	late := &slow{"late", make(chan bool, 10), make(chan struct{})}
	hub, err := connectors.NewHub(nil, connectors.HubOptions{Clock: clock}, late)
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.Open(t, clock)
	out := outbox.New(db, outbox.Options{Clock: clock, Metrics: metrics.New(nil, nil)})
	if err := out.Hold(t.Context(), "late"); err != nil {
		t.Fatal(err)
	}
	f := &Fleet{Options: Options{Bots: &Bots{}, Outbox: out, DB: db, Log: slog.New(slog.DiscardHandler), Ring: func(...core.Topic) {}}, Hub: hub}
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(t.Context()) }()
	<-late.runs
	removed := make(chan bool, 1)
	go func() { removed <- f.remove(t.Context(), configs.Bot{Name: "late"}) }()
	clock.AwaitWaiters(1)
	clock.Advance(time.Minute)
	if <-removed || !slices.Equal(out.Leased(), []string{"late"}) || !slices.Equal(f.leaving, []string{"late"}) {
		t.Errorf("it sends for %q, and %q are stopping", out.Leased(), f.leaving)
	}
	close(late.goOn)
	<-late.runs
	if !f.remove(t.Context(), configs.Bot{Name: "late"}) || len(out.Leased())+len(f.leaving) > 0 {
		t.Errorf("it sends for %q, and %q are stopping", out.Leased(), f.leaving)
	}
}
