package telegram

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

// Whoever watches the gauge sees a bot that has become deaf: it moves with
// every poll that is answered well, and with no other.
func TestTheTimeOfTheLastGoodPollIsExposed(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store, clock, reg := &connectorstest.Store{}, coretest.NewClock(time.Time{}), prometheus.NewRegistry()
	b := connect(t, s, store, func(o *Options) {
		o.Clock, o.Random, o.PollTimeout, o.Metrics = clock, longest, time.Millisecond, NewMetrics(reg)
	})
	last := func() float64 {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "gatehouse_poll_last_success_timestamp_seconds" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("there is no such gauge")
		return 0
	}
	ses := run1(t, b, store)
	ses.await(core.Running, "")
	before := last()
	clock.Advance(time.Hour)
	for end := time.Now().Add(5 * time.Minute); last() < before+3600; ses.await(core.Running, "") {
		if time.Now().After(end) {
			t.Fatalf("an hour later the gauge stands where it stood, at %v", last())
		}
	}
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Broken, Method: "getUpdates"})
	ses.await(core.Reconnecting, "")
	stands := last()
	for range 3 {
		clock.AwaitWaiters(1)
		clock.Advance(connectors.BackoffMax + time.Second)
		ses.await(core.Reconnecting, "")
	}
	if got := last(); got != stands {
		t.Errorf("failed polls moved the gauge by %v s", got-stands)
	}
}

// A poll that brings nothing is a good one too: what failed before it counts no
// more, so that one fault after a bad night is got over in a second.
func TestAGoodPollForgetsTheFailuresBeforeIt(t *testing.T) {
	s := platform(t, telegramtest.Options{FloodOff: true})
	store, tops := &connectorstest.Store{}, make(chan time.Duration, 100)
	b := connect(t, s, store, func(o *Options) {
		o.PollTimeout = time.Millisecond
		o.Random = func(n int64) int64 { tops <- time.Duration(n); return 0 }
	})
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Broken, Method: "getUpdates", Count: 8})
	ses := run1(t, b, store)
	for n, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := <-tops; got != want*time.Second {
			t.Errorf("after %d failures the wait is up to %v, want %v", n+1, got, want*time.Second)
		}
	}
	ses.await(core.Running, "")
	inject(t, s, telegramtest.Fault{Kind: telegramtest.Broken, Method: "getUpdates", Count: 1})
	if got := <-tops; got != time.Second {
		t.Errorf("after a good poll the wait is up to %v", got)
	}
}
