package connectors_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/connectors"
	"gatehouse/core"
)

// account is a connector that says who it is when it sends, and whether it runs.
type account struct {
	fake
	token  string
	lives  atomic.Int32
	closed atomic.Bool
}

func newAccount(name, token string) *account {
	a := &account{token: token}
	a.name = name
	a.run = func(ctx context.Context, in connectors.Inbox, report func(core.BotState)) error {
		a.lives.Add(1)
		return well(ctx, in, report)
	}
	a.send = func() core.Delivery { return core.Delivery{Outcome: core.Sent, MessageID: token} }
	return a
}

func (a *account) Close() error { a.closed.Store(true); return nil }

func (a *account) Render(text string) []core.Part {
	return []core.Part{{Text: a.token + " " + text}}
}

func (w *world) state(bot string) core.BotState {
	w.t.Helper()
	for _, s := range w.hub.States() {
		if s.Bot == bot {
			return s
		}
	}
	return core.BotState{}
}

// becomes waits for a bot's state as it is now. await tells what it was, and
// the words of a bot that was replaced under the same name with it.
func (w *world) becomes(bot string, phase core.Phase) core.BotState {
	w.t.Helper()
	end := time.After(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if s := w.state(bot); s.State == phase {
			return s
		}
		select {
		case <-w.changes:
		case <-tick.C:
		case <-end:
			w.t.Fatalf("%s did not become %s: %+v", bot, phase, w.hub.States())
		}
	}
}

func (w *world) send(bot string) core.Delivery {
	return w.hub.Send(w.t.Context(), core.Outgoing{Address: core.Address{Bot: bot}})
}

func TestABotGetsAnotherConnectorWhileTheOthersRunOn(t *testing.T) {
	old, other := newAccount("bot", "old"), newAccount("other", "other")
	w := start(t, &inbox{}, old, other)
	w.becomes("other", core.Running)
	fresh := newAccount("bot", "fresh")
	if err := w.hub.Put(fresh); err != nil {
		t.Fatal(err)
	}
	w.becomes("bot", core.Running)
	if d := w.send("bot"); d.MessageID != "fresh" || !old.closed.Load() || fresh.lives.Load() != 1 {
		t.Errorf("sent by %q, the old one closed: %v, %d lives", d.MessageID, old.closed.Load(), fresh.lives.Load())
	}
	late := newAccount("late", "late")
	if err := w.hub.Put(late); err != nil {
		t.Fatal(err)
	}
	w.becomes("late", core.Running)
	if err := w.hub.Remove("late"); err != nil {
		t.Fatal(err)
	}
	if d := w.send("late"); d.Outcome != core.Refused || !late.closed.Load() {
		t.Errorf("a removed bot: %+v", d)
	}
	if n, err := testutil.GatherAndCount(w.reg, "gatehouse_connector_state"); err != nil || n != 2*len(core.Phases) {
		t.Errorf("%d series of states, %v: a removed bot has none", n, err)
	}
	if other.lives.Load() != 1 || w.state("other").State != core.Running {
		t.Errorf("the other bot was touched: %d lives, %+v", other.lives.Load(), w.state("other"))
	}
	if err := w.hub.Remove("late"); core.KindOf(err) != core.NotFound {
		t.Errorf("Remove of nobody: %v", err)
	}
}

func TestABotThatIsHeldBackFailsWithItsReasonAndItsRepliesWait(t *testing.T) {
	old := newAccount("bot", "old")
	w := start(t, &inbox{}, old)
	w.becomes("bot", core.Running)
	if err := w.hub.Fail("bot", "p", "the token file is empty: fill it"); err != nil {
		t.Fatal(err)
	}
	if s := w.becomes("bot", core.FailedPhase); s.Reason != "the token file is empty: fill it" {
		t.Errorf("%+v", s)
	}
	to := core.Address{Bot: "bot"}
	if d := w.send("bot"); d.Outcome != core.NotSent || d.Reason == "" {
		t.Errorf("the old connector still sends: %+v", d)
	}
	if p := w.hub.Render(to, "x"); len(p) != 1 || p[0].Text != "old x" {
		t.Errorf("replies are rendered as %+v", p)
	}
	if _, err := w.hub.Test(t.Context(), "bot"); core.KindOf(err) != core.Denied {
		t.Errorf("test: %v", err)
	}
	if err := w.hub.Start("bot"); err != nil {
		t.Fatal(err)
	}
	w.becomes("bot", core.FailedPhase) // again, for the same reason
	if old.lives.Load() != 1 || old.closed.Load() {
		t.Errorf("the old connector: %d lives, closed %v", old.lives.Load(), old.closed.Load())
	}
	if err := w.hub.Put(newAccount("bot", "fresh")); err != nil {
		t.Fatal(err)
	}
	w.becomes("bot", core.Running)
	if d := w.send("bot"); d.MessageID != "fresh" || !old.closed.Load() {
		t.Errorf("sent by %q", d.MessageID)
	}
	if err := w.hub.Fail("new", "p", "no token yet"); err != nil {
		t.Fatal(err)
	}
	if s := w.becomes("new", core.FailedPhase); s.Platform != "p" || w.send("new").Outcome != core.NotSent {
		t.Errorf("a bot that never had a connector: %+v", s)
	}
}

func TestABotStoppedByHandStaysStoppedWhenItIsReplaced(t *testing.T) {
	w := start(t, &inbox{}, newAccount("bot", "old"))
	w.becomes("bot", core.Running)
	if err := w.hub.Stop("bot"); err != nil {
		t.Fatal(err)
	}
	fresh := newAccount("bot", "fresh")
	if err := w.hub.Put(fresh); err != nil {
		t.Fatal(err)
	}
	if s := w.state("bot"); s.State != core.Stopped || fresh.lives.Load() != 0 || w.send("bot").MessageID != "fresh" {
		t.Errorf("%+v, %d lives", s, fresh.lives.Load())
	}
	if err := w.hub.Start("bot"); err != nil {
		t.Fatal(err)
	}
	w.becomes("bot", core.Running)
}

// Two runs of one bot would take each other's messages: as long as the old one
// does not end, the new one does not begin.
func TestABotThatDoesNotStopIsNotReplaced(t *testing.T) {
	let := make(chan struct{})
	stubborn := newAccount("bot", "old")
	stubborn.run = func(_ context.Context, _ connectors.Inbox, report func(core.BotState)) error {
		report(core.BotState{State: core.Running})
		<-let
		return nil
	}
	w := start(t, &inbox{}, stubborn)
	w.becomes("bot", core.Running)
	fresh := newAccount("bot", "fresh")
	put := make(chan error, 1)
	go func() { put <- w.hub.Put(fresh) }()
	w.clock.AwaitWaiters(1)
	if err := w.hub.Start("bot"); core.KindOf(err) != core.Busy {
		t.Errorf("Start while it is being replaced: %v", err)
	}
	w.clock.Advance(6 * time.Second)
	if err := <-put; core.KindOf(err) != core.Busy || fresh.lives.Load() != 0 {
		t.Errorf("Put: %v, %d lives", err, fresh.lives.Load())
	}
	close(let)
	w.becomes("bot", core.Stopped)
	if err := w.hub.Put(fresh); err != nil {
		t.Fatal(err)
	}
	w.becomes("bot", core.Running)
}

func TestAHubTakesNoMoreBotsThanItsBound(t *testing.T) {
	hub, err := connectors.NewHub(&inbox{}, connectors.HubOptions{Metrics: connectors.NewMetrics(prometheus.NewRegistry())})
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for i := range connectors.MaxBots {
		errs = append(errs, hub.Put(newAccount("bot"+string(rune('a'+i%26))+string(rune('a'+i/26)), "")))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := hub.Put(newAccount("onemore", "")); core.KindOf(err) != core.TooLarge {
		t.Errorf("one more: %v", err)
	}
	if err := hub.Put(newAccount("botaa", "")); err != nil {
		t.Errorf("another connector for one that is there: %v", err)
	}
	for _, name := range []string{"", core.APIBot} {
		if err := hub.Put(newAccount(name, "")); core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := hub.Close(); err != nil {
		t.Fatal(err)
	}
	if err := hub.Put(newAccount("late", "")); core.KindOf(err) != core.Conflict {
		t.Errorf("after Close: %v", err)
	}
}
