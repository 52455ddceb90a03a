package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

// failing is a platform that does not take one text.
type failing struct {
	*platform
	text string
	with core.Delivery
	gate chan struct{} // a send of the text waits for it; nil: it does not
}

func (p *failing) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	d := p.platform.Send(ctx, out)
	if out.Text != p.text {
		return d
	}
	if p.gate != nil {
		<-p.gate
	}
	return p.with
}

var unavailable = core.Delivery{Outcome: core.NotSent, Declined: true, Reason: "500 Internal Server Error"}

// failingFixture serves a chat in which "bad" fails with d, and "good" waits behind it.
func failingFixture(t *testing.T, d core.Delivery) (*fixture, *failing) {
	t.Helper()
	var p *failing
	f := newFixture(t, func(o *options) { p = &failing{platform: o.sender.(*platform), text: "bad", with: d}; o.sender = p })
	f.serve(nil)
	f.post("send:bad", "a", "", "bad")
	if got := f.reply(); got != "bad" {
		t.Fatalf("first %q is sent", got)
	}
	f.rest()
	f.post("send:good", "a", "", "good")
	f.rest()
	return f, p
}

// rest waits until nothing is being sent.
func (f *fixture) rest() {
	f.t.Helper()
	f.until("lanes and chats are busy", func() bool { return f.q.Busy() == 0 })
}

// later has the queue look after a time, and once more a second after it: a look that was under way saw
// the time before.
func (f *fixture) later(d time.Duration) {
	f.t.Helper()
	for _, step := range []time.Duration{d, time.Second} {
		select {
		case <-f.clock.Waiting(1):
		case <-time.After(5 * time.Minute):
			f.t.Fatal("the queue does not look")
		}
		f.clock.Advance(step)
	}
}

// replyAfter returns the reply that is sent after a time. A transaction that began before may find it not
// due yet, so seconds pass until one is sent, no more than the queue looks.
func (f *fixture) replyAfter(d time.Duration) string {
	f.t.Helper()
	f.later(d)
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		f.rest() // what has been begun is sent
		select {
		case out := <-f.plat.seen:
			return out.Text
		case <-f.clock.Waiting(1):
		}
		select {
		case out := <-f.plat.seen:
			return out.Text
		default:
			f.clock.Advance(time.Second)
		}
	}
	f.t.Fatal("no reply was sent")
	return ""
}

// retried returns the error of the one reply that waits for its next try, "" without one.
func (f *fixture) retried() (seq int64, why string) {
	f.t.Helper()
	rows, err := f.inspect().Retrying(f.t.Context(), 10)
	if err != nil || len(rows) > 1 {
		f.t.Fatalf("retried: %+v, %v", rows, err)
	}
	if len(rows) == 0 {
		return 0, ""
	}
	return rows[0].Seq, rows[0].Error
}

// failed returns the number and the error of the one reply that failed.
func (f *fixture) failed() (seq int64, why string) {
	f.t.Helper()
	rows, err := f.inspect().Unsure(f.t.Context(), 10)
	if err != nil || len(rows) != 1 || rows[0].State != "failed" {
		f.t.Fatalf("failed: %+v, %v", rows, err)
	}
	return rows[0].Seq, rows[0].Error
}

// declinedFor has the reply "bad" declined for a time already.
func (f *fixture) declinedFor(d time.Duration) {
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE outbox SET declined_at = $1 WHERE key = 'send:bad'`, core.Stamp(f.clock.Now().Add(-d)))
		return err
	})
}

// tried has the one reply that is waiting, "bad", tried again and again for a time.
func (f *fixture) tried(d time.Duration) {
	f.t.Helper()
	for end := f.clock.Now().Add(d); f.clock.Now().Before(end); {
		if got := f.replyAfter(time.Minute); got != "bad" {
			f.t.Fatalf("%q is sent", got)
		}
		f.rest()
	}
}

// A platform that answers a text by a failure for ever must not hold its chat for ever, and the text
// must not disappear.
func TestAReplyThatThePlatformDeclinesForADayFailsAndHoldsItsChatNoLonger(t *testing.T) {
	f, _ := failingFixture(t, unavailable)
	f.declinedFor(23 * time.Hour)
	f.tried(time.Hour)
	if _, why := f.retried(); why != unavailable.Reason {
		t.Errorf("it is retried because of %q", why)
	}
	for n := 0; ; n++ { // the second in which the queue looks is no time of trying
		if got := f.replyAfter(time.Minute); got != "bad" || n == 10 {
			t.Fatalf("after %d tries more %q is sent", n, got)
		}
		f.rest()
		if seq, _ := f.retried(); seq == 0 {
			break
		}
	}
	if got := f.reply(); got != "good" {
		t.Errorf("then %q is sent", got)
	}
	seq, why := f.failed()
	if !strings.Contains(why, "24 hours") || !strings.Contains(why, unavailable.Reason) {
		t.Errorf("it failed because of %q", why)
	}
	if err := f.out.SendAgain(t.Context(), seq, core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	f.reply()
	f.rest()
	if again, _ := f.retried(); again != seq {
		t.Error("sent again, it is tried no second time")
	}
}

// An outage is no failure of a reply.
func TestAReplyWaitsForAConnectionHoweverLong(t *testing.T) {
	f, _ := failingFixture(t, core.Delivery{Outcome: core.NotSent, Reason: "no connection"})
	for range 3 {
		if got := f.replyAfter(40 * time.Hour); got != "bad" {
			t.Fatalf("%q is sent", got)
		}
		f.rest()
	}
	if _, why := f.retried(); why != "no connection" {
		t.Errorf("it is retried because of %q", why)
	}
}

// An answer before and one after an outage are not a day of failures.
func TestAnOutageBetweenTwoFailuresOfThePlatformIsNoTimeInWhichItDeclines(t *testing.T) {
	for name, between := range map[string]core.Delivery{
		"no connection": {Outcome: core.NotSent, Reason: "no connection"},
		"a wait":        {Outcome: core.RetryAfter, After: 23 * time.Hour, Reason: "429"},
		"nothing":       unavailable, // the gateway is off, or the bot waits
	} {
		t.Run(name, func(t *testing.T) {
			f, p := failingFixture(t, unavailable)
			for _, d := range []core.Delivery{between, between, between, unavailable, unavailable} {
				p.with = d
				if got := f.replyAfter(23*time.Hour + time.Minute); got != "bad" {
					t.Fatalf("%q is sent", got)
				}
				f.rest()
			}
			if _, why := f.retried(); why != unavailable.Reason {
				t.Errorf("it is retried because of %q", why)
			}
		})
	}
}

// A try of which the outcome is in doubt keeps when it began, and is no earlier try of those behind it.
func TestAnOutageBetweenTwoFailuresOfAReplyInDoubtIsNoTimeInWhichItIsDeclined(t *testing.T) {
	for _, replaces := range []string{"", "m7"} {
		t.Run("replaces "+replaces, func(t *testing.T) {
			f, p := failingFixture(t, unavailable)
			p.repeats = time.Hour
			f.tx(func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, `UPDATE outbox SET replaces = $1 WHERE key = 'send:bad'`, replaces)
				return err
			})
			for _, d := range []core.Delivery{{Outcome: core.Unknown, Safe: true, Reason: "no response"}, unavailable} {
				p.with = d
				if got := f.replyAfter(time.Minute); got != "bad" {
					t.Fatalf("%q is sent", got)
				}
				f.rest()
			}
			// the gateway is off, or the bot waits
			if got := f.replyAfter(25 * time.Hour); got != "bad" {
				t.Fatalf("%q is sent", got)
			}
			f.rest()
			if seq, _ := f.retried(); seq == 0 {
				t.Error("it is not retried")
			}
		})
	}
}

// Connections fail now and then, and do not have a reply tried for ever that the platform does not take.
func TestAReplyThatIsDeclinedFailsAlsoWhereTheConnectionFailsNowAndThen(t *testing.T) {
	f, p := failingFixture(t, unavailable)
	f.declinedFor(22 * time.Hour)
	for n := 0; ; n++ {
		if p.with = unavailable; n%4 == 3 {
			p.with = core.Delivery{Outcome: core.NotSent, Reason: "no connection"}
		}
		got := f.replyAfter(time.Minute)
		if f.rest(); got == "good" {
			break
		}
		if n == 180 {
			t.Fatal("it is tried for three hours more than 22")
		}
	}
}

// A preview that the platform will not delete stays, and is no reply to decide on.
func TestADeletionThatThePlatformDeclinesForADayEnds(t *testing.T) {
	f, p := failingFixture(t, unavailable)
	p.text = ""
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE outbox SET key = 'preview:run:x', body = '{}', replaces = 'm7', declined_at = $1 WHERE key = 'send:bad'`, core.Stamp(f.clock.Now().Add(-25*time.Hour)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f.later(time.Minute)
	for _, want := range []string{"", "good"} {
		if got := f.reply(); got != want {
			t.Errorf("%q is sent, want %q", got, want)
		}
	}
	if rows, err := f.inspect().Unsure(t.Context(), 10); err != nil || len(rows) != 0 {
		t.Errorf("to decide on: %+v, %v", rows, err)
	}
}

func TestAReplyThatIsRetriedCanBeGivenUpAndSentAgainLater(t *testing.T) {
	f, p := failingFixture(t, unavailable)
	by := core.Actor{User: 1, Via: "panel"}
	seq, _ := f.retried()
	if err := f.out.GiveUp(t.Context(), seq, by); err != nil {
		t.Fatal(err)
	}
	if got := f.reply(); got != "good" {
		t.Errorf("then %q is sent", got)
	}
	if failed, why := f.failed(); failed != seq || why != "given up in the panel; the last try: "+unavailable.Reason {
		t.Errorf("reply %d failed because of %q", failed, why)
	}
	if err := f.out.GiveUp(t.Context(), seq, by); core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "already given up by operator via panel (") {
		t.Errorf("given up twice: %v", err)
	}
	if err := f.out.GiveUp(t.Context(), seq+1, by); core.KindOf(err) != core.NotFound {
		t.Errorf("a reply that was sent is given up: %v", err)
	}
	var audited int
	if err := f.db.Get(t.Context(), &audited, `SELECT count(*) FROM audit_events WHERE action = 'queue.give_up'`); err != nil || audited != 1 {
		t.Errorf("%d audit rows, %v", audited, err)
	}
	f.idle()
	p.text = ""
	if err := f.out.SendAgain(t.Context(), seq, by); err != nil {
		t.Fatal(err)
	}
	if got := f.reply(); got != "bad" {
		t.Errorf("sent again: %q", got)
	}
}

func TestAGivenUpReplyOfWhichATryMayHaveArrivedSaysSo(t *testing.T) {
	f, _ := failingFixture(t, core.Delivery{Outcome: core.Unknown})
	seq, _ := f.retried()
	if err := f.out.GiveUp(t.Context(), seq, core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	f.reply()
	if _, why := f.failed(); !strings.Contains(why, "an earlier try may have arrived") {
		t.Errorf("it failed because of %q", why)
	}
}

// The hand does not wait for the pause, nor for the second in which the queue looks.
func TestAReplyIsRetriedAtOnceByHandButNotWhileItIsBeingSent(t *testing.T) {
	f, p := failingFixture(t, unavailable)
	by := core.Actor{User: 1, Via: "panel"}
	seq, _ := f.retried()
	p.gate = make(chan struct{})
	if err := f.out.RetryNow(t.Context(), seq, by); err != nil {
		t.Fatal(err)
	}
	if got := f.reply(); got != "bad" {
		t.Errorf("%q is sent", got)
	}
	for what, err := range map[string]error{"retry": f.out.RetryNow(t.Context(), seq, by), "give up": f.out.GiveUp(t.Context(), seq, by)} {
		if core.KindOf(err) != core.Conflict {
			t.Errorf("%s while it is being sent: %v", what, err)
		}
	}
	close(p.gate)
	f.rest()
	if again, _ := f.retried(); again != seq {
		t.Error("it is not retried any more")
	}
}

// The platform's wait is not the outbox's to cut short: after a restart nothing else would hold the send.
func TestAReplyThatThePlatformAsksToWaitWithIsNotRetriedByHand(t *testing.T) {
	f, _ := failingFixture(t, core.Delivery{Outcome: core.RetryAfter, After: time.Hour, Reason: "429"})
	seq, _ := f.retried()
	err := f.out.RetryNow(t.Context(), seq, core.Actor{User: 1, Via: "panel"})
	if core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "in 1h0m0s") {
		t.Errorf("retried: %v", err)
	}
	f.later(time.Minute)
	select {
	case got := <-f.plat.seen:
		t.Errorf("%q is sent", got.Text)
	default:
	}
	if got := f.replyAfter(time.Hour); got != "bad" {
		t.Errorf("after the wait %q is sent", got)
	}
}

// waiting asks to wait before each send to a chat.
type waiting struct {
	*failing
	chat map[string]time.Duration
}

func (p waiting) Wait(to core.Address) time.Duration { return p.chat[to.Chat] }

// What the platform asks of the bot or of a chat holds each reply there, whatever that reply itself waits for.
func TestAReplyIsNotRetriedByHandWhileItsBotOrItsChatIsToWait(t *testing.T) {
	by := core.Actor{User: 1, Via: "panel"}
	refused := func(t *testing.T, f *fixture, seq int64) {
		t.Helper()
		err := f.out.RetryNow(t.Context(), seq, by)
		if core.KindOf(err) != core.Conflict || !strings.Contains(err.Error(), "in 1h0m0s") {
			defer f.timePasses()() // which a send waits for
			f.stop()
			t.Fatalf("retried: %v", err)
		}
	}
	t.Run("bot", func(t *testing.T) {
		f, _ := failingFixture(t, unavailable)
		seq, _ := f.retried()
		f.plat.answers = []core.Delivery{{Outcome: core.RetryAfter, After: time.Hour, All: true, Reason: "429"}}
		f.post("send:other", "b", "", "other")
		f.reply()
		f.until("the wait is stored", func() bool { return f.sending() == 0 })
		refused(t, f, seq)
	})
	t.Run("chat", func(t *testing.T) {
		var p waiting
		f := newFixture(t, func(o *options) {
			p = waiting{&failing{platform: o.sender.(*platform), text: "bad", with: unavailable}, map[string]time.Duration{}}
			o.sender = p
		})
		f.serve(nil)
		f.post("send:bad", "a", "", "bad")
		f.reply()
		f.rest()
		seq, _ := f.retried()
		p.chat["a"] = time.Hour
		refused(t, f, seq)
		delete(p.chat, "a")
		if err := f.out.RetryNow(t.Context(), seq, by); err != nil {
			t.Fatal(err)
		}
		if got := f.reply(); got != "bad" {
			t.Errorf("%q is sent", got)
		}
	})
}

// timed notes when it sends.
type timed struct {
	*platform
	clock *coretest.Clock
	at    chan time.Time
}

func (p timed) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	p.at <- p.clock.Now()
	return p.platform.Send(ctx, out)
}

// Discord bans bots that go on after it has asked them to wait with everything.
func TestABotThatMustWaitWithAllItsChatsWaitsAfterARestartToo(t *testing.T) {
	f := newFixture(t, nil)
	at := make(chan time.Time, 10)
	change := func(o *options) { o.sender = timed{f.plat, f.clock, at} }
	f.q = f.newQueue(change)
	f.out = f.parts[f.q].out
	f.plat.answers = []core.Delivery{{Outcome: core.RetryAfter, After: 2 * time.Minute, All: true}}
	stop := f.serveQueue(f.q, nil)
	f.post("send:one", "a", "", "one")
	until := (<-at).Add(2 * time.Minute)
	f.reply()
	f.rest()
	stop()
	f.q = f.newQueue(change)
	f.out = f.parts[f.q].out
	stop = f.serveQueue(f.q, func(context.Context, *queue.Turn) {})
	f.post("send:two", "b", "", "two")
	defer f.timePasses()()
	if again := <-at; again.Before(until) {
		t.Errorf("another chat is written to %v before the time", until.Sub(again))
	}
	<-at
	stop()
}

// gated asks to wait with the whole bot, in each chat when it is told for how long, and once.
type gated struct {
	timed
	waits map[string]chan time.Duration
}

func (p gated) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	d := p.timed.Send(ctx, out)
	if wait, more := <-p.waits[out.Chat]; more {
		return core.Delivery{Outcome: core.RetryAfter, After: wait, All: true}
	}
	return d
}

// Of two answers the longer wait counts, in whatever order they come, also after a restart.
func TestAShorterWaitOfABotDoesNotEndALongerOne(t *testing.T) {
	for _, restart := range []bool{false, true} {
		f := newFixture(t, nil)
		at := make(chan time.Time, 10)
		waits := map[string]chan time.Duration{"a": make(chan time.Duration), "b": make(chan time.Duration)}
		change := func(o *options) { o.sender = gated{timed{f.plat, f.clock, at}, waits} }
		f.q = f.newQueue(change)
		f.out = f.parts[f.q].out
		stop := f.serveQueue(f.q, nil)
		f.post("send:one", "a", "", "one")
		f.post("send:two", "b", "", "two")
		until := (<-at).Add(time.Hour)
		<-at
		waits["a"] <- time.Hour
		f.until("the first wait is stored", func() bool { return f.sending() == 1 })
		waits["b"] <- time.Second
		f.until("the second wait is stored", func() bool { return f.sending() == 0 })
		close(waits["a"])
		close(waits["b"])
		if restart {
			stop()
			f.q = f.newQueue(change)
			f.out = f.parts[f.q].out
			stop = f.serveQueue(f.q, func(context.Context, *queue.Turn) {})
		}
		f.wait(at, until)
		stop()
	}
}

// sending returns how many replies are being sent.
func (f *fixture) sending() (n int) {
	f.t.Helper()
	if err := f.db.Get(f.t.Context(), &n, `SELECT count(*) FROM outbox WHERE state = 'sending'`); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// wait lets time pass until something is sent, which must not be before until.
func (f *fixture) wait(at chan time.Time, until time.Time) {
	f.t.Helper()
	for {
		select {
		case again := <-at:
			if again.Before(until) {
				f.t.Errorf("a chat is written to %v before the time", until.Sub(again))
			}
			return
		case <-f.clock.Waiting(1):
			f.clock.Advance(10 * time.Second)
			_ = f.db.Tx(f.t.Context(), func(*store.Tx) error { return nil })
		}
	}
}
