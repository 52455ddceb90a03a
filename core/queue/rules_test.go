package queue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

func TestAnAlbumCountsOnceForTheRate(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 2, Per: time.Minute} } })
	for i := range 5 {
		m := msg(i, "dm", "ann", "photo")
		m.Album = "a1"
		f.put(m)
	}
	f.put(msg(10, "dm", "ann", "second"), msg(11, "dm", "ann", "third"))
	if got := f.states(); got != "0:limited 1:ready 2:ready 3:ready 4:ready 10:ready 11:limited" {
		t.Errorf("inbox %s", got) // 0 waits a moment for the others
	}
}

// An album over the rate is refused as a whole: otherwise its second picture would
// run without counting. In a direct message it waits as a whole.
func TestAnAlbumOverTheRateIsRefusedOrWaitsAsAWhole(t *testing.T) {
	for place, want := range map[string]string{"g": "0:ready 1:refused 2:refused 3:refused 4:refused 5:ready", "": "0:ready 1:limited 2:ready 3:limited 4:limited 5:limited"} {
		t.Run("place "+place, func(t *testing.T) {
			f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 1, Per: time.Minute} } })
			write := func(n int, album string, after time.Duration) {
				m := msg(n, "c", "ann", fmt.Sprint(n))
				m.Place, m.Album, m.At = place, album, epoch.Add(after)
				f.put(m)
			}
			write(0, "", 0)
			write(1, "a1", 0)
			write(2, "a1", 0)
			write(3, "a1", 5*time.Second) // too late for the burst
			write(4, "a2", 5*time.Second)
			write(5, "", time.Minute) // a group's refused messages do not count
			if got := f.states(); got != want {
				t.Errorf("inbox %s, want %s", got, want)
			}
		})
	}
}

func TestATurnGivenBackCountsNoAttemptAndRunsAgainUnderItsRun(t *testing.T) {
	f := newFixture(t, nil)
	runs := make(chan string, 10)
	n := 0
	f.serve(func(_ context.Context, turn *queue.Turn) {
		runs <- turn.Run
		if turn.Attempt != 1 {
			t.Errorf("attempt %d after being given back", turn.Attempt)
		}
		if n++; n <= queue.MaxAttempts+2 {
			_ = f.q.GiveBack(context.Background(), turn)
			return
		}
		_ = answer(f.q, turn)
	})
	f.put(msg(1, "a", "ann", "one"))
	if got := f.reply(); got != "re: one" {
		t.Errorf("reply %q", got)
	}
	first := <-runs
	for range n - 1 {
		if run := <-runs; run != first {
			t.Errorf("run %s after %s", run, first)
		}
	}
}

// A process that was suspended past its lease (SIGSTOP, a paused machine) renews
// its own leases before it checks for expired ones, if no other node took them.
func TestASleeperThatNoOneReplacedKeepsItsTurn(t *testing.T) {
	f := newFixture(t, nil)
	running, release := make(chan struct{}), make(chan struct{})
	turns := 0
	f.serve(func(_ context.Context, turn *queue.Turn) {
		turns++
		close(running)
		<-release
		if err := answer(f.q, turn); err != nil {
			t.Errorf("after the sleep: %v", err)
		}
	})
	f.put(msg(1, "a", "ann", "one"))
	<-running
	f.clock.AwaitWaiters(1)
	f.clock.Advance(time.Hour)
	<-f.clock.Waiting(1) // the poll has looked
	close(release)
	if got := f.reply(); got != "re: one" || turns != 1 {
		t.Errorf("reply %q after %d turns", got, turns)
	}
}

func TestAClockSetBackStallsNoLane(t *testing.T) {
	f := newFixture(t, nil)
	f.put(msg(1, "a", "ann", "before")) // waits since "now"
	f.clock.Advance(-24 * time.Hour)
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	if got := f.reply(); got != "re: before" {
		t.Errorf("reply %q", got)
	}
	f.clock.Advance(-24 * time.Hour)
	f.put(msg(2, "a", "ann", "after"))
	if got := f.reply(); got != "re: after" {
		t.Errorf("reply %q", got)
	}
}

func TestAnAnswerToAnOpenQuestionPassesByTheLine(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Waiting = func(in *core.Inbound) bool { return in.Text == "yes" }
	})
	busy, release := make(chan struct{}), make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if turn.First().Kind == core.KindAnswer {
			close(release)
		} else {
			close(busy)
			<-release
		}
		_ = f.q.Ack(context.Background(), turn, queue.Result{})
	})
	f.put(msg(1, "a", "ann", "do it"))
	<-busy
	f.put(msg(2, "a", "ann", "yes"))
	<-release
}

func TestAnAPITurnWhoseKeyWasRevokedIsHandedOverRefused(t *testing.T) {
	f := newFixture(t, nil)
	m := msg(1, "s1", "user:7", "hi")
	m.Bot, m.Turn = core.APIBot, &core.Options{Session: "s1", Run: "r1"}
	f.put(m)
	f.gate.revoked = map[string]bool{"user:7": true}
	got := make(chan *queue.Turn, 1)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		_ = f.q.Ack(context.Background(), turn, queue.Result{Refused: true})
		got <- turn
	})
	turn := <-got
	if core.KindOf(turn.Err) != core.Denied || turn.Run != "r1" {
		t.Errorf("turn %+v: its stream would never end", turn)
	}
}

func TestPruneForgetsOnlyWhatIsFinishedAndOld(t *testing.T) {
	f := newFixture(t, nil)
	f.gate.hold = map[string]bool{"sue": true}
	f.gate.drop = map[string]bool{"dan": true}
	f.put(msg(1, "a", "dan", "old"), msg(2, "b", "sue", "held"))
	f.clock.Advance(49 * time.Hour)
	f.put(msg(3, "a", "dan", "new"))
	n, err := f.tables().Chores()[0].Run(t.Context())
	if err != nil || n != 1 {
		t.Errorf("%d rows pruned, %v", n, err)
	}
	if got := f.states(); got != "2:held 3:done" {
		t.Errorf("left %s", got)
	}
}

func TestDepthsCountWhatWaitsAndHowLong(t *testing.T) {
	f := newFixture(t, nil)
	f.gate.hold = map[string]bool{"sue": true}
	f.put(msg(1, "a", "ann", "x"), msg(2, "a", "ann", "y"), msg(3, "b", "sue", "z"))
	f.clock.Advance(7 * time.Second)
	ds, err := f.inspect().Depths(t.Context())
	if err != nil || len(ds) != 1 {
		t.Fatalf("%+v, %v", ds, err)
	}
	if d := ds[0]; d.Ready != 2 || d.Held != 1 || d.OldestReady != 7*time.Second {
		t.Errorf("%+v", d)
	}
	lanes, err := f.inspect().Lanes(t.Context(), 10)
	if err != nil || len(lanes) != 1 || lanes[0].Key != "bot|a" || lanes[0].Ready != 2 {
		t.Errorf("lanes %+v, %v", lanes, err)
	}
}

// What a message costs the disk, in commits: stored and claimed, answered,
// sent; fewer when messages come together.
func TestAMessageCostsAtMostThreeCommits(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	f.put(msg(0, "warm", "ann", "up"))
	f.reply()
	const n = 50
	before := f.db.Commits()
	for i := range n {
		f.put(msg(100+i, "a", "ann", "m"))
		f.reply()
	}
	f.stop()
	// A few more are the clock's: on a busy machine more seconds go by.
	if got := f.db.Commits() - before; got > 3*n+n/5 {
		t.Errorf("%d commits for %d messages, one at a time", got, n)
	}
}

func TestCompanyMakesMessagesCheaper(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	f.put(msg(0, "warm", "ann", "up"))
	f.reply()
	const n = 200
	before := f.db.Commits()
	var page []core.Inbound
	for i := range n {
		page = append(page, msg(100+i, fmt.Sprint("chat", i), "ann", "m"))
	}
	f.put(page...)
	for range n {
		f.reply()
	}
	f.stop()
	if got := f.db.Commits() - before; got > 3*n/2 {
		t.Errorf("%d commits for %d messages in as many chats at once", got, n)
	}
}

func TestNoGoroutineStaysForAnIdleChat(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	for i := range 300 {
		f.put(msg(i, fmt.Sprint("chat", i), "ann", "m"))
		f.reply()
	}
	f.until("no chat is in memory", func() bool { return f.q.Busy() == 0 }) // the last mark of a send follows its arrival
}

// Two thousand messages in forty chats, from many goroutines, with handlers
// that fail now and then: each is answered once and in its chat's order.
func TestOrderAndOnceUnderLoad(t *testing.T) {
	f := newFixture(t, nil)
	var mu sync.Mutex
	fails := 0
	f.serve(func(_ context.Context, turn *queue.Turn) {
		mu.Lock()
		fail := turn.Attempt == 1 && len(turn.First().Text)%7 == 3
		if fail {
			fails++
		}
		mu.Unlock()
		if fail {
			_ = f.q.GiveBack(context.Background(), turn)
			return
		}
		_ = answer(f.q, turn)
	})
	const chats, each = 40, 25
	var wg sync.WaitGroup
	for c := range chats {
		wg.Go(func() {
			for i := range each {
				if err := f.q.Put(context.Background(), []core.Inbound{msg(c*1000+i, fmt.Sprint("c", c), "ann", fmt.Sprint(i))}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := map[string]int{}
	for range chats * each {
		select {
		case out := <-f.plat.seen:
			want := fmt.Sprint("re: ", next[out.Chat])
			if out.Text != want {
				t.Fatalf("chat %s got %q, want %q", out.Chat, out.Text, want)
			}
			next[out.Chat]++
		case <-time.After(5 * time.Minute):
			t.Fatalf("stopped after %v", next)
		}
	}
	wg.Wait()
	f.stop()
	if s := f.states(); strings.Contains(s, ":ready") || strings.Contains(s, ":dead") {
		t.Errorf("left: %s", s)
	}
}

// An HTTP client is disconnected by a restart: a request that had not begun is not
// answered, unless it asked for that. Its turn comes as a second attempt, which
// the handler ends as interrupted.
func TestAnAPITurnThatHadNotBegunBeforeARestartComesAsInterrupted(t *testing.T) {
	f := newFixture(t, nil)
	m := msg(1, "s1", "user:1", "hi")
	m.Bot, m.Turn = core.APIBot, &core.Options{Session: "s1", Run: "r1"}
	f.put(m, msg(2, "a", "ann", "hello"))
	f.q = f.newQueue(nil) // the gateway's next process
	attempts := make(chan int, 2)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if turn.First().Turn != nil {
			attempts <- turn.Attempt
		} else if turn.Attempt != 1 {
			t.Errorf("a chat's message counts as tried: %d", turn.Attempt)
		}
		_ = f.q.Ack(context.Background(), turn, queue.Result{})
	})
	if n := <-attempts; n != 2 {
		t.Errorf("attempt %d", n)
	}
}

// An update for which the gate or the lane lookup fails (a bug of ours) fails its
// page five times; then it is a dead letter, and the bot receives updates again.
func TestAnUpdateThatCannotBeStoredDoesNotMakeTheBotDeaf(t *testing.T) {
	f := newFixture(t, func(o *options) {
		lane := o.Lane
		o.Lane = func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error) {
			if in.Text == "poison" {
				panic("boom")
			}
			return lane(ctx, tx, in)
		}
	})
	page := []core.Inbound{msg(1, "a", "ann", "before"), msg(2, "b", "eve", "poison"), msg(3, "a", "ann", "after")}
	f.takeOver(f.q)
	for i := range queue.MaxAttempts {
		if err := f.q.Put(t.Context(), page, nil); err == nil {
			t.Fatalf("put %d went well", i+1)
		}
	}
	f.put(page...)
	if got := f.states(); got != "1:ready 2:dead 3:ready" {
		t.Errorf("inbox %s", got)
	}
	dead, err := f.inspect().Dead(t.Context(), 10)
	if err != nil || len(dead) != 1 || dead[0].Text != "poison" || !strings.Contains(dead[0].Error, "boom") {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

func TestAReplyThatCannotBeReadHoldsNotItsChat(t *testing.T) {
	f := newFixture(t, nil)
	f.put(msg(1, "a", "ann", "one"))
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO outbox (bot, chat, key, ordinal, body, state, created_at) VALUES ('bot', 'a', 'k', 0, '{"text":', 'ready', '')`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	if got := f.reply(); got != "re: one" {
		t.Errorf("reply %q", got)
	}
}

// A reply with an unknown outcome, or one that the platform refused, is settled
// once: it leaves the list, is not sent, and the audit log names who settled it.
func TestASettledReplyIsShownNoMoreAndNotSent(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.answers = []core.Delivery{{Outcome: core.Refused, Reason: "blocked"}}
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	f.put(msg(1, "a", "ann", "one"))
	<-f.plat.seen
	f.put(msg(2, "a", "ann", "two"))
	if got := f.reply(); got != "re: two" {
		t.Errorf("after the refusal: %q", got)
	}
	rows, err := f.inspect().Unsure(t.Context(), 10)
	if err != nil || len(rows) != 1 || rows[0].State != "failed" {
		t.Fatalf("unsure %+v, %v", rows, err)
	}
	by := core.Actor{User: 1, Via: "panel"}
	if err := f.out.Settle(t.Context(), rows[0].Seq, by); err != nil {
		t.Fatal(err)
	}
	for what, again := range map[string]error{"settle": f.out.Settle(t.Context(), rows[0].Seq, by), "send again": f.out.SendAgain(t.Context(), rows[0].Seq, by)} {
		if core.KindOf(again) != core.Conflict || !strings.Contains(again.Error(), "already settled by operator via panel (") {
			t.Errorf("%s after it was settled: %v", what, again)
		}
	}
	if rows, err := f.inspect().Unsure(t.Context(), 10); err != nil || len(rows) != 0 {
		t.Errorf("still shown: %+v, %v", rows, err)
	}
	var audited int
	if err := f.db.Get(t.Context(), &audited, `SELECT count(*) FROM audit_events WHERE action = 'queue.settle'`); err != nil || audited != 1 {
		t.Errorf("%d audit rows, %v", audited, err)
	}
	f.put(msg(3, "a", "ann", "three"))
	if got := f.reply(); got != "re: three" {
		t.Errorf("the settled reply was sent: %q", got)
	}
}

// What is due when the gateway is asked to stop is sent, also when it was
// asked in the moment it began.
func TestAStopSendsWhatIsDue(t *testing.T) {
	f := newFixture(t, nil)
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		return f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "bot", Chat: "a"}, Key: "k", Parts: []core.Part{{Text: "one"}, {Text: "two"}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.serveQueue(f.q, nil)() // starts and stops at once
	if n := len(f.plat.seen); n != 2 {
		t.Errorf("%d of 2 parts were sent", n)
	}
}

// A row that a crash left in sending is sent again without a question where
// the platform knows it again, for as long as it does, and only there.
func TestACrashInASendIsRepeatedWhereThePlatformKnowsTheMessageAgain(t *testing.T) {
	for name, c := range map[string]struct {
		repeats, ago time.Duration
		again        bool
	}{
		"in time":                          {2 * time.Minute, time.Minute, true},
		"too late":                         {2 * time.Minute, 3 * time.Minute, false},
		"the clock was set back":           {2 * time.Minute, -time.Minute, false},
		"a platform that knows none again": {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.plat.repeats = c.repeats
			err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO outbox (bot, chat, key, ordinal, body, state, attempts, created_at, sent_at)
					VALUES ('bot', 'a', 'run:1', 0, '{"text":"half sent"}', 'sending', 1, $1, $2)`, core.Stamp(tx.Time()), core.Stamp(tx.Time().Add(-c.ago)))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			f.serve(nil)
			if c.again {
				if out := <-f.plat.seen; out.Text != "half sent" || out.Repeat || out.Seq != 1 {
					t.Errorf("sent again: %+v", out)
				}
			}
			rows, err := f.inspect().Unsure(t.Context(), 10)
			if err != nil || (len(rows) == 0) != c.again {
				t.Errorf("in doubt: %+v, %v", rows, err)
			}
		})
	}
}

// A platform knows a message again for some minutes only: what is still not
// answered then is repeated once, marked, like anywhere else.
func TestAnUnansweredSendIsRepeatedUnmarkedOnlyAsLongAsThePlatformKnowsIt(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.repeats = 10 * time.Minute
	for range 1000 {
		f.plat.answers = append(f.plat.answers, core.Delivery{Outcome: core.Unknown, Safe: true}, core.Delivery{Outcome: core.NotSent})
	}
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	f.put(msg(1, "a", "ann", "one"))
	defer f.timePasses()()
	unmarked := 0
	for out := range f.plat.seen {
		if out.Repeat {
			break
		}
		unmarked++
	}
	if unmarked < 2 || unmarked > 600 {
		t.Errorf("%d tries without a mark", unmarked)
	}
}

// A reply that could not be sent before the gateway ended is sent by the next
// one, once.
func TestWhatWasNotSentBeforeARestartIsSentAfterIt(t *testing.T) {
	f := newFixture(t, nil)
	f.plat.answers = []core.Delivery{{Outcome: core.NotSent}}
	stop := f.serveQueue(f.q, func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	f.put(msg(1, "a", "ann", "one"))
	if got := f.reply(); got != "re: one" {
		t.Errorf("the first try sent %q", got)
	}
	stop() // no time has passed: the next try is not due
	defer f.serveQueue(f.newQueue(nil), nil)()
	defer f.timePasses()()
	if got := f.reply(); got != "re: one" {
		t.Errorf("after the restart %q is sent", got)
	}
}

func TestAnUpdateWithoutAFileDescriptorIsNotSetAside(t *testing.T) {
	failing := true
	f := newFixture(t, func(o *options) {
		lane := o.Lane
		o.Lane = func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error) {
			if failing {
				return "", fmt.Errorf("open: %w", syscall.EMFILE)
			}
			return lane(ctx, tx, in)
		}
	})
	page := []core.Inbound{msg(1, "a", "ann", "one")}
	f.takeOver(f.q)
	for i := range queue.MaxAttempts + 2 {
		if err := f.q.Put(t.Context(), page, nil); err == nil {
			t.Fatalf("put %d went well", i+1)
		}
	}
	failing = false
	f.put(page...)
	if got := f.states(); got != "1:ready" {
		t.Errorf("inbox %s", got)
	}
}

// A sender who presses buttons without end is refused after twelve times the rate of messages,
// with one notice; /stop still runs, and another sender presses.
func TestPressesOfAButtonAreLimitedAndStopIsNot(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 2, Per: time.Minute} } })
	press := func(n int, from string) core.Inbound {
		m := msg(n, "c", from, "")
		m.Kind, m.MessageID, m.Callback = core.KindCallback, "7", &core.Callback{ID: fmt.Sprint(n), Data: "x"}
		return m
	}
	for n := range 30 {
		f.put(press(n, "eve"))
	}
	stop := msg(40, "c", "eve", "")
	stop.Kind, stop.Command = core.KindCommand, "stop"
	f.put(stop, press(41, "ann"))
	want := ""
	for n := range 30 {
		state := "ready"
		if n >= 24 {
			state = "refused"
		}
		want += fmt.Sprintf("%d:%s ", n, state)
	}
	if got := f.states(); got != want+"40:ready 41:ready" {
		t.Errorf("inbox %s", got)
	}
	if got := f.outbox(); strings.Count(got, "\n") != 0 || got == "" {
		t.Errorf("notices: %q", got)
	}
	late := press(50, "eve")
	late.At = late.At.Add(time.Minute + time.Second)
	f.put(late)
	if got := f.states(); !strings.HasSuffix(got, " 50:ready") {
		t.Errorf("in the next period: %s", got)
	}
}

// Who edits much can still press Stop, Allow and Deny, and who presses much can edit.
func TestEditsAndPressesHaveTheirOwnRoom(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 1, Per: time.Minute} } })
	for n := range 24 {
		m := edit(n+1, "x", "ann", "edit")
		m.Edit = fmt.Sprint(n)
		if n%2 == 1 {
			m = msg(n+1, "a", "ann", "")
			m.Kind, m.MessageID, m.Callback = core.KindCallback, "7", &core.Callback{ID: fmt.Sprint(n), Data: "x"}
		}
		f.put(m)
	}
	if got := f.states(); strings.Count(got, ":done") != 12 || strings.Count(got, ":ready") != 12 {
		t.Errorf("inbox %s", got)
	}
}

// Edits without end leave a bounded number of rows, and each still counts for a message that waits.
func TestEditsLeaveABoundedNumberOfRows(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 2, Per: time.Minute} } })
	f.put(msg(1, "a", "ann", "first"))
	for n := range 100 {
		m := edit(n+2, "1", "ann", fmt.Sprintf("edit %d", n))
		m.Edit = fmt.Sprint(n)
		f.put(m)
	}
	var rows int
	if err := f.db.Get(t.Context(), &rows, `SELECT count(*) FROM inbox WHERE kind = 'edit'`); err != nil || rows != 24 {
		t.Errorf("%d rows of edits, %v", rows, err)
	}
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	if got := f.reply(); got != "re: edit 99" {
		t.Errorf("answered %q", got)
	}
}
