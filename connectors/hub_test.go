package connectors_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/coretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake connector whose Run is the test's.
type fake struct {
	name string
	run  func(ctx context.Context, in connectors.Inbox, report func(core.BotState)) error
	send func() core.Delivery
}

func (f *fake) Name() string { return f.name }
func (f *fake) Run(ctx context.Context, in connectors.Inbox, report func(core.BotState)) error {
	return f.run(ctx, in, report)
}
func (f *fake) Send(context.Context, core.Outgoing) core.Delivery { return f.send() }

// able is a fake with abilities that panic.
type able struct{ fake }

func (*able) Typing(context.Context, core.Address) error { panic("typing") }
func (*able) Preview(context.Context, core.Address, string, core.Part) (string, error) {
	panic("preview")
}

type inbox struct {
	mu  sync.Mutex
	ids []string
}

func (i *inbox) Put(_ context.Context, page []core.Inbound, _ *core.Cursor) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, in := range page {
		i.ids = append(i.ids, in.UpdateID)
	}
	return nil
}

// well reports that it runs, and runs until it is stopped.
func well(ctx context.Context, _ connectors.Inbox, report func(core.BotState)) error {
	report(core.BotState{State: core.Running, Username: "well_bot"})
	<-ctx.Done()
	return ctx.Err()
}

type world struct {
	t       *testing.T
	hub     *connectors.Hub
	clock   *coretest.Clock
	changes chan core.BotState
	reg     *prometheus.Registry
	end     context.CancelFunc
	ended   chan error
}

// start runs a Hub whose backoff always takes the longest wait.
func start(t *testing.T, in connectors.Inbox, cs ...connectors.Connector) *world {
	t.Helper()
	w := &world{t: t, clock: coretest.NewClock(time.Time{}), changes: make(chan core.BotState, 10_000), reg: prometheus.NewRegistry(), ended: make(chan error, 1)}
	hub, err := connectors.NewHub(in, connectors.HubOptions{Clock: w.clock, Metrics: connectors.NewMetrics(w.reg), Random: func(n int64) int64 { return n - 1 }}, cs...)
	if err != nil {
		t.Fatal(err)
	}
	w.hub = hub
	hub.OnChange(func(s core.BotState) { w.changes <- s })
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	go func() { w.ended <- hub.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-w.ended
		hub.Close()
	})
	return w
}

// await reads changes until bot is in phase.
func (w *world) await(bot string, phase core.Phase) core.BotState {
	w.t.Helper()
	for {
		select {
		case s := <-w.changes:
			if s.Bot == bot && s.State == phase {
				return s
			}
		case <-time.After(5 * time.Minute):
			w.t.Fatalf("%s did not become %s: %+v", bot, phase, w.hub.States())
		}
	}
}

// recorder is a still clock that tells how long its users want to wait.
type recorder struct {
	*coretest.Clock
	waits chan time.Duration
}

func (r *recorder) After(d time.Duration) <-chan time.Time {
	r.waits <- d
	return r.Clock.After(d)
}

func TestAConnectorThatEndsIsRestartedForEverWithoutAStorm(t *testing.T) {
	n := 0
	bad := &fake{name: "bad", run: func(context.Context, connectors.Inbox, func(core.BotState)) error {
		switch n++; n % 3 {
		case 0:
			panic("boom")
		case 1:
			return errors.New("lost")
		}
		return nil
	}}
	clock := &recorder{coretest.NewClock(time.Time{}), make(chan time.Duration, 1)}
	hub, err := connectors.NewHub(&inbox{}, connectors.HubOptions{Clock: clock, Random: func(n int64) int64 { return n - 1 }}, bad)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	for i, d := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		select {
		case got := <-clock.waits:
			if got.Round(10*time.Millisecond) != d*time.Second {
				t.Errorf("wait %d is %v, want %v", i, got, d*time.Second)
			}
		case <-time.After(5 * time.Minute):
			t.Fatal("the connector is not started again")
		}
		if s := hub.States()[0]; s.State != core.Reconnecting || s.LastError == "" || s.Reason == "" {
			t.Errorf("state %+v", s)
		}
		clock.AwaitWaiters(1)
		clock.Advance(time.Minute + time.Second)
	}
	<-clock.waits
	cancel()
	<-ended
}

func TestDeniedCredentialsStopThatBotOnlyAndReportWhatToDo(t *testing.T) {
	denied := &fake{name: "denied", run: func(context.Context, connectors.Inbox, func(core.BotState)) error {
		return core.Errorf(core.Denied, "the token was revoked: get a new one")
	}}
	w := start(t, &inbox{}, denied, &fake{name: "well", run: well})
	s := w.await("denied", core.FailedPhase)
	if s.Reason != "the token was revoked: get a new one" {
		t.Errorf("reason %q", s.Reason)
	}
	for _, s := range w.hub.States() {
		if s.Bot == "well" && s.State == core.FailedPhase {
			t.Errorf("the other bot failed too: %+v", s)
		}
	}
	if n, err := testutil.GatherAndCount(w.reg, "gatehouse_connector_state"); err != nil || n != 2*len(core.Phases) {
		t.Errorf("%d series, %v: every bot has every phase", n, err)
	}
}

func TestStopStartAndTwoStepEnd(t *testing.T) {
	in := &inbox{}
	var old connectors.Inbox
	lives := 0
	c := &fake{name: "bot", send: func() core.Delivery { return core.Delivery{Outcome: core.Sent} }}
	c.run = func(ctx context.Context, i connectors.Inbox, report func(core.BotState)) error {
		if lives++; lives == 1 {
			old = i
		}
		return well(ctx, i, report)
	}
	w := start(t, in, c)
	if s := w.await("bot", core.Running); s.Username != "well_bot" {
		t.Errorf("state %+v", s)
	}
	if err := w.hub.Stop("bot"); err != nil {
		t.Fatal(err)
	}
	if s := w.hub.States()[0]; s.State != core.Stopped {
		t.Errorf("after Stop: %+v", s)
	}
	if err := w.hub.Start("bot"); err != nil {
		t.Fatal(err)
	}
	w.await("bot", core.Running)
	if err := w.hub.Start("bot"); err != nil || lives != 2 {
		t.Errorf("Start of a running bot: %v, %d lives", err, lives)
	}
	page := []core.Inbound{{UpdateID: "1"}}
	if err := old.Put(t.Context(), page, nil); err == nil || len(in.ids) != 0 {
		t.Errorf("the inbox of an ended run still takes: %v %v", err, in.ids)
	}
	w.end()
	if err := <-w.ended; err != nil {
		t.Fatal(err)
	}
	w.ended <- nil
	if d := w.hub.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "bot"}}); d.Outcome != core.Sent {
		t.Errorf("between Run's end and Close: %+v", d)
	}
	if err := w.hub.Start("bot"); core.KindOf(err) != core.Conflict {
		t.Errorf("Start after the end: %v", err)
	}
	w.hub.Close()
	if d := w.hub.Send(t.Context(), core.Outgoing{Address: core.Address{Bot: "bot"}}); d.Outcome != core.NotSent {
		t.Errorf("after Close: %+v", d)
	}
}

func TestABotThatWasStoppedBeforeIsNotStarted(t *testing.T) {
	lives := make(chan string, 10)
	live := func(name string) *fake {
		return &fake{name: name, run: func(ctx context.Context, in connectors.Inbox, report func(core.BotState)) error {
			lives <- name
			return well(ctx, in, report)
		}}
	}
	hub, err := connectors.NewHub(&inbox{}, connectors.HubOptions{Clock: coretest.NewClock(time.Time{})}, live("a"), live("b"), live("c"))
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Stop("b"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hub.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended; _ = hub.Close() })
	for <-lives != "c" { // they are started in order of their names
	}
	if i := slices.IndexFunc(hub.States(), func(s core.BotState) bool { return s.Bot == "b" && s.State == core.Stopped }); i < 0 {
		t.Errorf("it was started: %+v", hub.States())
	}
	if err := hub.Start("b"); err != nil {
		t.Fatal(err)
	}
	for <-lives != "b" {
	}
}

func TestAConnectorThatDoesNotStopIsNotStartedTwice(t *testing.T) {
	let, lives := make(chan struct{}), 0
	stubborn := &fake{name: "bot", run: func(_ context.Context, _ connectors.Inbox, report func(core.BotState)) error {
		lives++
		report(core.BotState{State: core.Running})
		<-let
		return nil
	}}
	w := start(t, &inbox{}, stubborn)
	w.await("bot", core.Running)
	stopped := make(chan error, 1)
	go func() { stopped <- w.hub.Stop("bot") }()
	w.clock.AwaitWaiters(1)
	w.clock.Advance(6 * time.Second)
	if err := <-stopped; core.KindOf(err) != core.Busy {
		t.Errorf("Stop: %v", err)
	}
	if err := w.hub.Start("bot"); core.KindOf(err) != core.Busy || lives != 1 {
		t.Errorf("Start while the old run lives: %v, %d lives", err, lives)
	}
	close(let)
	w.await("bot", core.Stopped)
}

func TestWhatAConnectorCanNotDoHasAQuietAnswer(t *testing.T) {
	plain := &fake{name: "plain", run: well, send: func() core.Delivery { panic("send") }}
	wild := &able{fake{name: "wild", run: well}}
	hub, err := connectors.NewHub(&inbox{}, connectors.HubOptions{}, plain, wild)
	if err != nil {
		t.Fatal(err)
	}
	to := core.Address{Bot: "plain", Chat: "1"}
	if id, err := hub.Preview(t.Context(), to, "7", core.Part{Text: "x"}); id != "7" || err != nil {
		t.Errorf("Preview: %q %v", id, err)
	}
	if err := errors.Join(hub.Typing(t.Context(), to), hub.Acknowledge(t.Context(), to, "1", "")); err != nil || hub.Wait(to) != 0 {
		t.Errorf("abilities that are missing: %v", err)
	}
	if p := hub.Render(to, "**a**"); len(p) != 1 || p[0].Text != "**a**" || hub.Render(to, "") != nil {
		t.Errorf("Render: %+v", p)
	}
	if _, err := hub.Test(t.Context(), "plain"); core.KindOf(err) != core.Invalid {
		t.Errorf("Test: %v", err)
	}
	if d := hub.Send(t.Context(), core.Outgoing{Address: to}); d.Outcome != core.Unknown {
		t.Errorf("a panic in Send: %+v", d)
	}
	to.Bot = "wild"
	if _, err := hub.Preview(t.Context(), to, "", core.Part{}); err == nil {
		t.Error("a panic in Preview is no error")
	}
	if err := hub.Typing(t.Context(), to); err == nil {
		t.Error("a panic in Typing is no error")
	}
	to.Bot = "nobody"
	if d := hub.Send(t.Context(), core.Outgoing{Address: to}); d.Outcome != core.Refused || d.Reason == "" {
		t.Errorf("unknown bot: %+v", d)
	}
	if err := hub.Start("nobody"); core.KindOf(err) != core.NotFound {
		t.Errorf("unknown bot: %v", err)
	}
}

func TestBotNamesAreDifferentAndBounded(t *testing.T) {
	for _, names := range [][]string{{"a", "a"}, {""}, {core.APIBot}} {
		var cs []connectors.Connector
		for _, n := range names {
			cs = append(cs, &fake{name: n})
		}
		if _, err := connectors.NewHub(nil, connectors.HubOptions{}, cs...); core.KindOf(err) != core.Invalid {
			t.Errorf("%q: %v", names, err)
		}
	}
	if _, err := connectors.NewHub(nil, connectors.HubOptions{}, make([]connectors.Connector, connectors.MaxBots+1)...); core.KindOf(err) != core.TooLarge {
		t.Errorf("too many: %v", err)
	}
}

func TestBackoffIsBoundedAndSpread(t *testing.T) {
	for failures := range 200 {
		top := connectors.Backoff(failures, func(n int64) int64 { return n - 1 })
		low := connectors.Backoff(failures, func(int64) int64 { return 0 })
		if top > connectors.BackoffMax+time.Millisecond || top < time.Second || low <= 0 || low > time.Millisecond {
			t.Fatalf("after %d failures: %v..%v", failures, low, top)
		}
	}
}
