package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/queue"
	"gatehouse/core/queue/flight"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// gate lets everybody in at vault but the names in its lists.
type gate struct {
	mu      sync.Mutex
	hold    map[string]bool
	drop    map[string]bool
	forget  map[string]bool
	revoked map[string]bool
	strict  bool // only what is addressed
	asked   int
}

func (g *gate) Admit(_ context.Context, _ *store.Tx, in *core.Inbound) (core.Verdict, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked++
	switch {
	case g.hold[in.From.ID]:
		return core.Verdict{Action: core.Hold, Request: "req-" + in.From.ID}, nil
	case g.drop[in.From.ID], g.strict && !in.Addressed:
		return core.Verdict{}, nil
	case g.forget[in.From.ID]:
		return core.Verdict{Action: core.Forget}, nil
	}
	return core.Verdict{Action: core.Run, Trust: core.Vault}, nil
}

func (g *gate) Trust(_ context.Context, _ *store.Tx, in *core.Inbound) (core.Trust, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.revoked[in.From.ID] {
		return core.Stranger, nil
	}
	return core.Vault, nil
}

// platform is what the sender talks to.
type platform struct {
	mu      sync.Mutex
	sent    []core.Outgoing
	answers []core.Delivery // consumed first; then Sent
	seen    chan core.Outgoing
	repeats time.Duration
}

func newPlatform() *platform { return &platform{seen: make(chan core.Outgoing, 1000)} }

func (p *platform) Wait(core.Address) time.Duration { return 0 }

func (p *platform) Repeats(string) time.Duration { return p.repeats }

func (p *platform) Send(_ context.Context, out core.Outgoing) core.Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := core.Delivery{Outcome: core.Sent, MessageID: fmt.Sprint("m", len(p.sent)+1)}
	if len(p.answers) > 0 {
		d, p.answers = p.answers[0], p.answers[1:]
	}
	p.sent = append(p.sent, out)
	p.seen <- out
	return d
}

type fixture struct {
	t     *testing.T
	db    *store.DB
	clock *coretest.Clock
	gate  *gate
	plat  *platform
	q     *queue.Queue
	out   *outbox.Outbox
	parts map[*queue.Queue]*parts
	turns chan *queue.Turn
	stop  func()
}

// parts are what one queue of a fixture works with.
type parts struct {
	out   *outbox.Outbox
	o     options
	taken bool // over
}

// options are those of the queue, and of the outbox under it.
type options struct {
	queue.Options
	sender outbox.Sender
	late   string
	flight *flight.Recorder

	notices outbox.Notices

	Waiting func(in *core.Inbound) bool
	Collect bool
	Prepare func(ctx context.Context, tx *store.Tx, t *queue.Turn) error
	Ended   func(ctx context.Context, tx *store.Tx, run string) error
	Behind  func(in *core.Inbound, lane string)
}

// turns are the queue's Turns by a gate and options.
type turns struct {
	*gate
	o options
}

func (t turns) Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (queue.Admission, error) {
	v, err := t.gate.Admit(ctx, tx, in)
	a := queue.Admission{Admission: core.Admission{Verdict: v}, Collect: t.o.Collect, Control: in.Command == "stop", Shows: in.Command == "show"}
	a.Answer = t.o.Waiting != nil && t.o.Waiting(in)
	return a, err
}

func (t turns) Claim(ctx context.Context, tx *store.Tx, in *core.Inbound) (queue.Admission, error) {
	trust, err := t.gate.Trust(ctx, tx, in)
	return queue.Admission{Admission: core.Admission{Verdict: core.Verdict{Trust: trust}}, Collect: t.o.Collect, Control: in.Command == "stop", Shows: in.Command == "show"}, err
}

func (t turns) Prepare(ctx context.Context, tx *store.Tx, turn *queue.Turn) error {
	if t.o.Prepare == nil {
		return nil
	}
	return t.o.Prepare(ctx, tx, turn)
}

func (t turns) Ended(ctx context.Context, tx *store.Tx, run string) error {
	if t.o.Ended == nil {
		return nil
	}
	return t.o.Ended(ctx, tx, run)
}

// handler is the queue's Handler by functions.
type handler struct {
	handle func(context.Context, *queue.Turn)
	behind func(in *core.Inbound, lane string)
}

func (h handler) Handle(ctx context.Context, t *queue.Turn) { h.handle(ctx, t) }

func (h handler) Behind(in *core.Inbound, lane string, _ queue.Admission) {
	if h.behind != nil {
		h.behind(in, lane)
	}
}

func (h handler) Refused(*core.Inbound) {}

func newFixture(t *testing.T, change func(*options)) *fixture {
	t.Helper()
	clock := coretest.NewClock(time.Time{})
	f := &fixture{t: t, clock: clock, db: storetest.Open(t, clock), gate: &gate{}, plat: newPlatform(), turns: make(chan *queue.Turn, 100), parts: map[*queue.Queue]*parts{}}
	f.q = f.newQueue(change)
	f.out = f.parts[f.q].out
	return f
}

func (f *fixture) newQueue(change func(*options)) *queue.Queue {
	o := options{sender: f.plat, Options: queue.Options{
		Log:   slog.New(slog.NewTextHandler(f.t.Output(), nil)),
		Clock: f.clock,
		Lane: func(_ context.Context, _ *store.Tx, in *core.Inbound) (string, error) {
			return in.Bot + "|" + in.Chat, nil
		},
		Texts: queue.Texts{TooMany: "too many", GaveUp: "gave up"},
	}}
	if change != nil {
		change(&o)
	}
	out := outbox.New(f.db, outbox.Options{Clock: o.Clock, Log: o.Log, Ring: o.Ring, Node: o.Node, Late: o.late, Flight: o.flight, Notices: o.notices})
	q := queue.New(f.db, out, o.Options)
	f.parts[q] = &parts{out: out, o: o}
	return q
}

func (f *fixture) inspect() *inspect.Reader {
	return inspect.New(f.db, inspect.Options{Clock: f.clock, Leased: f.out.Leased})
}

func (f *fixture) tables() maintenance.Tables {
	return maintenance.Tables{DB: f.db, Clock: f.clock, Queue: f.q}
}

// serve starts f.q; handle nil sends turns to f.turns.
func (f *fixture) serve(handle func(context.Context, *queue.Turn)) {
	f.t.Helper()
	f.stop = f.serveQueue(f.q, handle)
	f.t.Cleanup(f.stop)
}

// serveHeld reports when a turn has begun, and answers all once end is closed.
func (f *fixture) serveHeld() (begun <-chan struct{}, end chan<- struct{}) {
	f.t.Helper()
	starts, goOn := make(chan struct{}, 10), make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		starts <- struct{}{}
		<-goOn
		if err := answer(f.q, turn); err != nil {
			f.t.Error(err)
		}
	})
	return starts, goOn
}

// takeOver has q take its tables over, once.
func (f *fixture) takeOver(q *queue.Queue) {
	f.t.Helper()
	p := f.parts[q]
	if p.taken {
		return
	}
	p.taken = true
	if err := q.TakeOver(context.Background(), []string{"bot"}, turns{f.gate, p.o}, p.o.sender); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) serveQueue(q *queue.Queue, handle func(context.Context, *queue.Turn)) (stop func()) {
	if handle == nil {
		handle = func(_ context.Context, t *queue.Turn) { f.turns <- t; <-t.Work.(chan struct{}) }
	}
	f.takeOver(q)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Serve(ctx, time.Minute, handler{handle, f.parts[q].o.Behind}) }()
	var once sync.Once
	return func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				f.t.Errorf("Serve: %v", err)
			}
		})
	}
}

func (f *fixture) put(ms ...core.Inbound) {
	f.t.Helper()
	f.takeOver(f.q)
	if err := f.q.Put(f.t.Context(), ms, nil); err != nil {
		f.t.Fatal(err)
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func msg(n int, chat, from, text string) core.Inbound {
	return core.Inbound{UpdateID: fmt.Sprint(n), Address: core.Address{Bot: "bot", Chat: chat}, Kind: core.KindMessage,
		MessageID: fmt.Sprint(n), From: core.Peer{Platform: "p", ID: from}, Text: text, At: epoch, Addressed: true}
}

func answer(q *queue.Queue, t *queue.Turn) error {
	var texts []string
	for _, r := range t.Rows {
		texts = append(texts, r.Text)
	}
	return q.Ack(context.Background(), t, queue.Result{Replies: []core.Reply{{Address: t.First().Address, Key: "run:" + t.Run,
		Parts: []core.Part{{Text: "re: " + strings.Join(texts, "+")}}}}})
}

func (f *fixture) reply() string {
	f.t.Helper()
	select {
	case out := <-f.plat.seen:
		return out.Text
	case <-time.After(5 * time.Minute):
		f.t.Fatal("no reply was sent")
		return ""
	}
}

// timePasses advances the clock, as fast as the queue reads it, until the returned
// function is called.
func (f *fixture) timePasses() (hold func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-f.clock.Waiting(1):
				f.clock.Advance(time.Second)
				_ = f.db.Tx(f.t.Context(), func(*store.Tx) error { return nil }) // time does not outrun a slow store
				runtime.Gosched()
			}
		}
	}()
	return func() { close(stop); <-done }
}

func (f *fixture) states() string {
	f.t.Helper()
	var s []string
	if err := f.db.Select(f.t.Context(), &s, `SELECT update_id || ':' || state FROM inbox ORDER BY seq`); err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(s, " ")
}

func TestAMessageIsAnsweredOnceHoweverOftenItIsPut(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	m := msg(1, "a", "ann", "hello")
	for range 3 {
		f.put(m)
	}
	if got := f.reply(); got != "re: hello" {
		t.Errorf("reply %q", got)
	}
	again := m
	again.UpdateID = "2" // the same message under another update id
	f.put(again, msg(3, "a", "ann", "next"))
	if got := f.reply(); got != "re: next" {
		t.Errorf("the repeat was answered: %q", got)
	}
	f.stop()
	if got := f.states(); got != "1:done 3:done" {
		t.Errorf("inbox %s", got)
	}
}

func TestOneChatIsAnsweredInOrderAndChatsDoNotWaitForEachOther(t *testing.T) {
	f := newFixture(t, nil)
	first := make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if turn.First().Text == "a1" {
			<-first
		}
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	f.put(msg(1, "a", "ann", "a1"), msg(2, "a", "ann", "a2"), msg(3, "b", "bob", "b1"))
	if got := f.reply(); got != "re: b1" {
		t.Errorf("while a1 thinks, b waits: %q", got)
	}
	close(first)
	if got := []string{f.reply(), f.reply()}; !slices.Equal(got, []string{"re: a1", "re: a2"}) {
		t.Errorf("order %q", got)
	}
}

func TestStopPassesByTheLine(t *testing.T) {
	f := newFixture(t, nil)
	busy, release := make(chan struct{}), make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if turn.First().Command != "stop" {
			close(busy)
			<-release
		} else {
			defer close(release)
		}
		_ = f.q.Ack(context.Background(), turn, queue.Result{})
	})
	f.put(msg(1, "a", "ann", "long"))
	<-busy
	stop := msg(2, "a", "ann", "")
	stop.Kind, stop.Command = core.KindCommand, "stop"
	f.put(stop)
	<-release
}

func TestCollectJoinsNeighboursOfOneSenderAndARetryIsOfThatRunAlone(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Collect = true
	})
	f.put(msg(1, "a", "ann", "one"), msg(2, "a", "ann", "two"), msg(3, "a", "bob", "three"))
	fail := true
	failed := make(chan struct{})
	runs := make(chan string, 4)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		runs <- turn.Run
		if fail {
			fail = false
			if err := f.q.Put(context.Background(), []core.Inbound{msg(4, "a", "ann", "late")}, nil); err != nil {
				t.Error(err)
			}
			_ = f.q.Fail(context.Background(), turn, errors.New("boom"))
			close(failed)
			return
		}
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	first := <-runs
	<-failed
	defer f.timePasses()()
	if got := f.reply(); got != "re: one+two" {
		t.Errorf("the retry was %q", got)
	}
	if second := <-runs; second != first {
		t.Errorf("the retry has another run id: %s, %s", first, second)
	}
	if got := f.reply(); got != "re: three" {
		t.Errorf("then %q", got)
	}
	if got := f.reply(); got != "re: late" {
		t.Errorf("then %q", got)
	}
}

func TestAfterFiveTriesAMessageIsDeadTheChatIsNotifiedAndTheLaneContinues(t *testing.T) {
	rung := make(chan core.Topic, 10)
	f := newFixture(t, func(o *options) { o.Ring = func(topics ...core.Topic) { rung <- topics[0] } })
	tries := 0
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if turn.First().Text == "poison" {
			tries++
			_ = f.q.Fail(context.Background(), turn, errors.New("boom"))
			return
		}
		_ = answer(f.q, turn)
	})
	f.put(msg(1, "a", "ann", "poison"), msg(2, "a", "ann", "fine"))
	hold := f.timePasses()
	defer hold()
	if got := []string{f.reply(), f.reply()}; !slices.Equal(got, []string{"gave up", "re: fine"}) {
		t.Errorf("replies %q", got)
	}
	if tries != 5 {
		t.Errorf("%d tries", tries)
	}
	select {
	case topic := <-rung:
		if topic != core.TopicQueue {
			t.Errorf("the panel was rung for %q", topic)
		}
	default:
		t.Error("the panel was not rung for a dead letter")
	}
	dead, err := f.inspect().Dead(t.Context(), 10)
	if err != nil || len(dead) != 1 || dead[0].Text != "poison" || dead[0].Error != "boom" {
		t.Fatalf("dead letters %+v, %v", dead, err)
	}
	if err := f.q.Dismiss(t.Context(), dead[0].Seq, core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Error(err)
	}
	if err := f.q.Retry(t.Context(), dead[0].Seq, core.Actor{User: 1, Via: "panel"}); core.KindOf(err) != core.Conflict {
		t.Errorf("retry after dismissal: %v", err)
	}
}

// Two queues over one database are two processes: the second one's start
// takes the lanes, and the first one's late result is dropped whole.
func TestAResultUnderAnOldEpochIsDropped(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Slots = 1 }) // asleep, the first takes no second turn
	old := make(chan *queue.Turn, 1)
	settled := make(chan error, 1)
	go1 := make(chan struct{})
	stop1 := f.serveQueue(f.q, func(_ context.Context, turn *queue.Turn) {
		old <- turn
		<-go1
		settled <- answer(f.q, turn)
	})
	f.put(msg(1, "a", "ann", "hello"))
	first := <-old
	second := f.newQueue(nil)
	got := make(chan *queue.Turn, 1)
	stop2 := f.serveQueue(second, func(_ context.Context, turn *queue.Turn) {
		_ = answer(second, turn)
		got <- turn
	})
	again := <-got
	if again.Run != first.Run || again.Attempt != 2 || again.Epoch <= first.Epoch {
		t.Errorf("second claim %+v after %+v", again, first)
	}
	close(go1)
	if err := <-settled; !errors.Is(err, queue.ErrFenced) {
		t.Errorf("the sleeper's Ack = %v", err)
	}
	if text := f.reply(); text != "re: hello" {
		t.Errorf("reply %q", text)
	}
	stop1()
	stop2()
	var n int
	if err := f.db.Get(t.Context(), &n, `SELECT count(*) FROM outbox`); err != nil || n != 1 {
		t.Errorf("%d replies stored, %v", n, err)
	}
}

func TestRevokedBeforeItsTurnAMessageIsRefusedWithoutARun(t *testing.T) {
	f := newFixture(t, nil)
	f.put(msg(1, "a", "ann", "hello"))
	f.gate.revoked = map[string]bool{"ann": true}
	f.put(msg(2, "b", "bob", "x")) // claimed after the first: its answer shows that the first was checked
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if turn.First().From.ID == "ann" {
			t.Errorf("ran %+v", turn)
		}
		_ = answer(f.q, turn)
	})
	f.reply()
	f.stop()
	if got := f.states(); got != "1:refused 2:done" {
		t.Errorf("inbox %s", got)
	}
}

func TestHeldRowsAreFreedInOrderWithTheApprovedTrust(t *testing.T) {
	f := newFixture(t, nil)
	f.gate.hold = map[string]bool{"sue": true}
	f.put(msg(1, "a", "sue", "one"), msg(2, "a", "sue", "two"))
	trusts := make(chan core.Trust, 2)
	f.serve(func(_ context.Context, turn *queue.Turn) { trusts <- turn.Trust; _ = answer(f.q, turn) })
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		n, err := f.q.Free(t.Context(), tx, "req-sue", core.Sandboxed)
		if n != 2 {
			t.Errorf("%d freed", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := []string{f.reply(), f.reply()}; !slices.Equal(got, []string{"re: one", "re: two"}) {
		t.Errorf("replies %q", got)
	}
	if a, b := <-trusts, <-trusts; a != core.Sandboxed || b != core.Sandboxed {
		t.Errorf("trust %v %v", a, b)
	}
}

func TestWhatTheGateForgetsLeavesNothingAndWhatItDropsOnlyItsKey(t *testing.T) {
	f := newFixture(t, nil)
	f.gate.forget, f.gate.drop = map[string]bool{"eve": true}, map[string]bool{"dan": true}
	f.put(msg(1, "a", "eve", "secret"), msg(2, "a", "dan", "secret"), msg(2, "a", "dan", "secret"))
	if got := f.states(); got != "2:done" {
		t.Errorf("inbox %s", got)
	}
	var n int
	if err := f.db.Get(t.Context(), &n, `SELECT count(*) FROM inbox WHERE payload IS NOT NULL OR sender <> ''`); err != nil || n != 0 {
		t.Errorf("%d payloads or senders kept, %v", n, err)
	}
}

// Who waits for the answer of a turn is told that there will be none; a chat is not.
func TestATurnOfTheAPIThatTheGateDropsIsRefused(t *testing.T) {
	f := newFixture(t, nil)
	f.gate.drop = map[string]bool{"dan": true}
	f.put(msg(2, "a", "dan", "secret"))
	turn := msg(1, "a", "dan", "secret")
	turn.Bot, turn.Turn = core.APIBot, &core.Options{Session: "s1", Run: "r1"}
	if err := f.q.Put(t.Context(), []core.Inbound{turn}, nil); core.KindOf(err) != core.Denied {
		t.Errorf("a turn that is dropped: %v", err)
	}
	if got := f.states(); got != "1:done 2:done" && got != "2:done 1:done" {
		t.Errorf("inbox %s", got)
	}
}

func TestOverTheRateADirectMessageWaitsAndAGroupsIsRefusedWithOneNotice(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 2, Per: time.Minute} } })
	var page []core.Inbound
	for i := range 30 {
		page = append(page, msg(i, "dm", "ann", fmt.Sprint("m", i)))
	}
	for i := range 5 {
		m := msg(100+i, "g", "bob", fmt.Sprint("g", i))
		m.Place = "g"
		page = append(page, m)
	}
	f.put(page...)
	var rows []struct {
		Chat  string `db:"chat"`
		State string `db:"state"`
		N     int    `db:"n"`
	}
	if err := f.db.Select(t.Context(), &rows, `SELECT chat, state, count(*) AS n FROM inbox GROUP BY chat, state ORDER BY chat, state`); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(rows); got != "[{dm limited 20} {dm ready 2} {dm refused 8} {g ready 2} {g refused 3}]" {
		t.Errorf("rows %s", got)
	}
	var notices int
	if err := f.db.Get(t.Context(), &notices, `SELECT count(*) FROM outbox WHERE key LIKE 'notice:rate:%'`); err != nil || notices != 2 {
		t.Errorf("%d notices, want one a chat, %v", notices, err)
	}
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	got := map[string]bool{}
	for range 6 { // 2 dm, 2 group, 2 notices
		got[f.reply()] = true
	}
	if !got["re: m0"] || !got["re: m1"] || got["re: m2"] {
		t.Errorf("at once: %v", got)
	}
	defer f.timePasses()()
	if a, b := f.reply(), f.reply(); a != "re: m2" || b != "re: m3" {
		t.Errorf("a minute later: %q %q", a, b)
	}
}

func TestAnUnansweredSendIsRepeatedOnceMarkedThenUnknown(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.answers = []core.Delivery{{Outcome: core.Unknown}, {Outcome: core.Unknown}}
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	f.put(msg(1, "a", "ann", "one"))
	first := <-f.plat.seen
	f.put(msg(2, "a", "ann", "two"))
	defer f.timePasses()()
	second := <-f.plat.seen
	if first.Repeat || !second.Repeat || second.Text != first.Text {
		t.Errorf("first %+v, second %+v", first, second)
	}
	if got := f.reply(); got != "re: two" {
		t.Errorf("after the doubt: %q", got)
	}
	rows, err := f.inspect().Unsure(t.Context(), 10)
	if err != nil || len(rows) != 1 || rows[0].State != "unknown" {
		t.Fatalf("unsure %+v, %v", rows, err)
	}
	if err := f.out.SendAgain(t.Context(), rows[0].Seq, core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	if again := <-f.plat.seen; again.Text != "re: one" || again.Repeat {
		t.Errorf("sent again: %+v", again)
	}
}

func TestASendThatNeverLeftIsTriedAgainAndARefusedOneIsShown(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.answers = []core.Delivery{{Outcome: core.NotSent}, {Outcome: core.RetryAfter, After: 5 * time.Second}, {Outcome: core.Refused, Reason: "blocked"}}
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	f.put(msg(1, "a", "ann", "one"))
	<-f.plat.seen
	hold := f.timePasses()
	for range 2 {
		if out := <-f.plat.seen; out.Repeat {
			t.Errorf("a send that never left is marked as a repeat: %+v", out)
		}
	}
	hold()
	f.stop()
	rows, err := f.inspect().Unsure(t.Context(), 10)
	if err != nil || len(rows) != 1 || rows[0].State != "failed" || rows[0].Error != "blocked" {
		t.Errorf("unsure %+v, %v", rows, err)
	}
}

// A chat whose earlier answer waits for a retry counts as being sent to: a preview
// shown now would precede that answer.
func TestAChatWhoseReplyWaitsToBeTriedAgainCountsAsSending(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.answers = []core.Delivery{{Outcome: core.RetryAfter, After: 5 * time.Second}}
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	to := core.Address{Bot: "bot", Chat: "a"}
	if f.out.Sending(t.Context(), to) {
		t.Error("nothing was ever said there")
	}
	f.put(msg(1, "a", "ann", "one"))
	<-f.plat.seen
	f.rest()
	if !f.out.Sending(t.Context(), to) {
		t.Error("the answer is not delivered, and the chat counts as free")
	}
	hold := f.timePasses()
	<-f.plat.seen
	hold()
	f.stop()
	if f.out.Sending(t.Context(), to) {
		t.Error("the answer is delivered, and the chat does not count as free")
	}
}

func TestASecondFinalOfARunIsRefused(t *testing.T) {
	f := newFixture(t, nil)
	post := func() error {
		return f.db.Tx(t.Context(), func(tx *store.Tx) error {
			return f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "bot", Chat: "a"}, Key: "run:x", Parts: []core.Part{{Text: "t"}}})
		})
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	if err := post(); core.KindOf(err) != core.Conflict {
		t.Errorf("second final: %v", err)
	}
}

func TestAMalformedUpdateIsADeadLetterAndTheCursorMoves(t *testing.T) {
	f := newFixture(t, nil)
	bad := core.Inbound{UpdateID: "9", Address: core.Address{Bot: "bot"}, Kind: core.KindMessage, Malformed: "cannot decode"}
	f.takeOver(f.q)
	if err := f.q.Put(t.Context(), []core.Inbound{bad}, &core.Cursor{Name: "c", Value: "10"}); err != nil {
		t.Fatal(err)
	}
	v, at, err := f.q.Cursor(t.Context(), "c")
	if err != nil || v != "10" || !at.Equal(f.clock.Now()) {
		t.Errorf("cursor %q %v %v", v, at, err)
	}
	dead, err := f.inspect().Dead(t.Context(), 10)
	if err != nil || len(dead) != 1 || dead[0].Error != "cannot decode" || f.gate.asked != 0 {
		t.Errorf("dead %+v, %v, gate asked %d times", dead, err, f.gate.asked)
	}
}

// An alert tells the operator of a message that was given up, until it is settled.
func TestTheGaugeOfDeadLettersGoesBackWhenTheLastIsDismissed(t *testing.T) {
	f := newFixture(t, nil)
	f.takeOver(f.q)
	gauge := func() string {
		t.Helper()
		reg := prometheus.NewRegistry()
		reg.MustRegister(f.inspect().Gauges([]string{"bot"}))
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range families {
			if m.GetName() == "gatehouse_dead_letters" {
				return fmt.Sprint(m.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return "missing"
	}
	if got := gauge(); got != "0" {
		t.Errorf("before it is %s", got)
	}
	bad := core.Inbound{UpdateID: "9", Address: core.Address{Bot: "bot"}, Kind: core.KindMessage, Malformed: "cannot decode"}
	if err := f.q.Put(t.Context(), []core.Inbound{bad}, nil); err != nil {
		t.Fatal(err)
	}
	if got := gauge(); got != "1" {
		t.Errorf("with a dead letter it is %s", got)
	}
	dead, err := f.inspect().Dead(t.Context(), 10)
	if err != nil || len(dead) != 1 {
		t.Fatal(dead, err)
	}
	if err := f.q.Dismiss(t.Context(), dead[0].Seq, core.Actor{}); err != nil {
		t.Fatal(err)
	}
	if got := gauge(); got != "0" {
		t.Errorf("when it is dismissed it is %s", got)
	}
}

// breakWrites has every statement that matches fail, as a full disk does, until
// the returned function is called. what is INSERT or UPDATE with its table.
func (f *fixture) breakWrites(what, when string) (mend func()) {
	f.t.Helper()
	_, table, _ := strings.Cut(what, " ON ")
	do := func(queries ...string) {
		err := f.db.Tx(f.t.Context(), func(tx *store.Tx) error {
			var errs []error
			for _, query := range queries {
				_, err := tx.Exec(f.t.Context(), query)
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if storetest.Postgres() {
		do(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk full'; END $$`,
			`CREATE TRIGGER full_disk BEFORE `+what+` FOR EACH ROW WHEN (`+when+`) EXECUTE FUNCTION full_disk()`)
		return func() { do(`DROP TRIGGER full_disk ON ` + table) }
	}
	do(`CREATE TRIGGER full_disk BEFORE ` + what + ` WHEN ` + when + ` BEGIN SELECT RAISE(FAIL, 'disk full'); END`)
	return func() { do(`DROP TRIGGER full_disk`) }
}

func TestASendWhoseOutcomeCannotBeStoredIsNotRepeatedAndHoldsNoOneForEver(t *testing.T) {
	f := newFixture(t, nil)
	mend := f.breakWrites("UPDATE ON outbox", "NEW.state = 'sent'")
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	f.put(msg(1, "a", "ann", "one"))
	if got := f.reply(); got != "re: one" {
		t.Fatalf("first %q", got)
	}
	f.put(msg(2, "a", "ann", "two"))
	<-f.clock.Waiting(2) // the poll, and the send that waits for the disk
	mend()
	defer f.timePasses()()
	if got := f.reply(); got != "re: two" {
		t.Errorf("then %q", got)
	}
}

func TestAResultThatCannotBeStoredIsTriedAgainWhenTheDiskTakesWrites(t *testing.T) {
	f := newFixture(t, nil)
	broken := make(chan struct{}, 10)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			broken <- struct{}{}
		}
	})
	mend := f.breakWrites("UPDATE ON lane", "NEW.owner = ''")
	f.put(msg(1, "a", "ann", "one"))
	<-broken
	mend()
	defer f.timePasses()()
	if got := f.reply(); got != "re: one" {
		t.Errorf("reply %q", got)
	}
	select {
	case out := <-f.plat.seen:
		t.Errorf("and again %q", out.Text)
	default:
	}
}

func TestAStopSendsWhatRunningTurnsStillAnswer(t *testing.T) {
	f := newFixture(t, nil)
	running, release := make(chan struct{}), make(chan struct{})
	stop := f.serveQueue(f.q, func(_ context.Context, turn *queue.Turn) {
		close(running)
		<-release
		_ = answer(f.q, turn)
	})
	f.put(msg(1, "a", "ann", "one"))
	<-running
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	f.q.Stopping() // serving has ended
	close(release)
	<-stopped
	select {
	case out := <-f.plat.seen:
		if out.Text != "re: one" {
			t.Errorf("sent %q", out.Text)
		}
	default:
		t.Error("the answer of a turn that ended in the grace period was not sent")
	}
}
