package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

func collecting(o *options) {
	o.Collect = true
}

// A kind that gets a standard reply is a turn of its own: messages collected with
// it would be settled unread.
func TestWordsNextToAVoiceMessageAreATurnOfTheirOwn(t *testing.T) {
	f := newFixture(t, collecting)
	voice := func(n int) core.Inbound {
		m := msg(n, "c", "ada", "")
		m.Unsupported = "voice message"
		return m
	}
	f.put(msg(1, "c", "ada", "one"), voice(2), msg(3, "c", "ada", "three"), msg(4, "c", "ada", "four"), voice(5))
	var mu sync.Mutex
	var turns []string
	f.serve(func(_ context.Context, tn *queue.Turn) {
		var texts []string
		for _, r := range tn.Rows {
			texts = append(texts, r.Text+r.Unsupported)
		}
		mu.Lock()
		turns = append(turns, strings.Join(texts, "+"))
		mu.Unlock()
		if err := answer(f.q, tn); err != nil {
			t.Error(err)
		}
	})
	for range 4 {
		f.reply()
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(turns, " | "); got != "one | voice message | three+four | voice message" {
		t.Errorf("the turns were %q", got)
	}
}

// A row that cannot be claimed is retried alone; it must not fail the transaction
// that stores or settles another sender's message.
func TestATurnThatCannotBePreparedHoldsNoOneElse(t *testing.T) {
	for _, how := range []string{"error", "panic"} {
		t.Run(how, func(t *testing.T) {
			f := newFixture(t, func(o *options) {
				o.Prepare = func(ctx context.Context, tx *store.Tx, tn *queue.Turn) error {
					if tn.First().Chat != "bad" {
						return nil
					}
					if _, err := tx.Exec(ctx, `INSERT INTO metadata (key, value, updated_at) VALUES ('half', 'done', '')`); err != nil {
						return err
					}
					if how == "panic" {
						panic("a broken row")
					}
					return errors.New("a broken row")
				}
			})
			f.serve(func(ctx context.Context, tn *queue.Turn) {
				var err error
				if tn.Err != nil {
					err = f.q.Fail(ctx, tn, tn.Err)
				} else {
					err = answer(f.q, tn)
				}
				if err != nil {
					t.Error(err)
				}
			})
			f.put(msg(1, "bad", "eve", "poison"))
			f.put(msg(2, "good", "ada", "hello"))
			if got := f.reply(); got != "re: hello" {
				t.Fatalf("the other chat reads %q", got)
			}
			hold := f.timePasses()
			defer hold()
			if got := f.reply(); got != "gave up" {
				t.Errorf("the chat of the broken row reads %q", got)
			}
			if got := f.states(); got != "1:dead 2:done" {
				t.Errorf("the rows are %s", got)
			}
			var half int
			if err := f.db.Get(t.Context(), &half, `SELECT count(*) FROM metadata WHERE key = 'half'`); err != nil || half != 0 {
				t.Errorf("half a preparation was kept: %d %v", half, err)
			}
		})
	}
}

// Lines of a group that were not meant for the bot are no use of it.
func TestWhatTheGateDropsDoesNotCountAgainstTheRate(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 2, Per: time.Minute} } })
	f.gate.drop = map[string]bool{"ada": true}
	f.put(msg(1, "c", "ada", "chatter"), msg(2, "c", "ada", "chatter"), msg(3, "c", "ada", "chatter"))
	f.gate.drop = nil
	f.put(msg(4, "c", "ada", "hello bot"))
	if got := f.states(); got != "1:done 2:done 3:done 4:ready" {
		t.Errorf("the rows are %s", got)
	}
}

type paused struct {
	*platform
	mu   sync.Mutex
	wait time.Duration
}

func (p *paused) Wait(core.Address) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wait
}

func (p *paused) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	d := p.platform.Send(ctx, out)
	p.mu.Lock()
	p.wait = time.Hour // the platform limited a typing indicator during this send
	p.mu.Unlock()
	return d
}

// A platform may ask for a pause of hours; a stop does not sit it out.
func TestAStopDoesNotWaitOutAPlatformsPause(t *testing.T) {
	slow := &paused{platform: newPlatform()}
	f := newFixture(t, func(o *options) { o.sender = slow })
	f.plat = slow.platform
	f.serve(func(_ context.Context, tn *queue.Turn) {
		err := f.q.Ack(context.Background(), tn, queue.Result{Replies: []core.Reply{{Address: tn.First().Address, Key: "run:" + tn.Run,
			Parts: []core.Part{{Text: "first"}, {Text: "second"}}}}})
		if err != nil {
			t.Error(err)
		}
	})
	f.put(msg(1, "c", "ada", "hello"))
	f.reply()
	stopped := make(chan struct{})
	go func() { f.stop(); close(stopped) }()
	f.q.Stopping()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 60 { // half an hour: the grace period has passed, the pause has not
		select {
		case <-stopped:
			var open int
			if err := f.db.Get(t.Context(), &open, `SELECT count(*) FROM outbox WHERE state = 'ready'`); err != nil || open != 1 {
				t.Errorf("%d replies wait for the next start (%v), want 1", open, err)
			}
			return
		case <-tick.C:
			f.clock.Advance(30 * time.Second)
		}
	}
	t.Error("the stop waits for the platform's pause")
	f.clock.Advance(time.Hour)
}

// The preview of a turn that was given up is not used again: the next answer
// would be an edit far up in the chat, where users do not see it.
func TestThePreviewOfAGivenUpTurnIsNotEditedByTheNextAnswer(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(func(ctx context.Context, tn *queue.Turn) {
		var err error
		if tn.First().Text == "poison" {
			err = errors.Join(f.q.SetPreview(ctx, tn, "p1"), f.q.Fail(ctx, tn, errors.New("no")))
		} else {
			err = answer(f.q, tn)
		}
		if err != nil {
			t.Error(err)
		}
	})
	f.put(msg(1, "c", "ada", "poison"), msg(2, "c", "ada", "hello"))
	hold := f.timePasses()
	defer hold()
	var last core.Outgoing
	for range 2 {
		select {
		case last = <-f.plat.seen:
		case <-time.After(5 * time.Minute):
			t.Fatal("no reply")
		}
		if last.Text == "gave up" && last.Replaces != "p1" {
			t.Errorf("the preview stands on beside the word that the message was given up: %+v", last)
		}
	}
	if last.Text != "re: hello" || last.Replaces != "" {
		t.Errorf("the next answer is %q over message %q", last.Text, last.Replaces)
	}
}

// Neither is it by the next turn's second attempt, where the gateway died five times in the first.
func TestThePreviewOfATurnThatEndedTheGatewayFiveTimesIsNotEditedByARetry(t *testing.T) {
	f := newFixture(t, nil)
	f.put(msg(1, "c", "ada", "poison"), msg(2, "c", "ada", "hello"))
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE inbox SET run = 'r', attempts = 5 WHERE update_id = '1'`)
		_, other := tx.Exec(t.Context(), `UPDATE lane SET preview = 'p1'`)
		return errors.Join(err, other)
	}); err != nil {
		t.Fatal(err)
	}
	f.serve(func(ctx context.Context, tn *queue.Turn) {
		err := errors.New("no")
		if tn.Attempt > 1 {
			err = answer(f.q, tn)
		} else {
			err = f.q.Fail(ctx, tn, err)
		}
		if err != nil {
			t.Error(err)
		}
	})
	hold := f.timePasses()
	defer hold()
	for _, want := range []string{"p1:gave up", ":re: hello"} {
		select {
		case out := <-f.plat.seen:
			if got := out.Replaces + ":" + out.Text; got != want {
				t.Errorf("the chat reads %q, want %q", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("no reply")
		}
	}
}

// An edit of the preview notifies nobody.
func TestAnAnswerThatNotifiesIsANewMessageAndThePreviewIsDeletedBehindIt(t *testing.T) {
	for _, anew := range []bool{false, true} {
		f := newFixture(t, nil)
		f.serve(func(ctx context.Context, tn *queue.Turn) {
			if err := f.q.SetPreview(ctx, tn, "p1"); err != nil {
				t.Error(err)
			}
			replies := []core.Reply{
				{Address: tn.First().Address, Key: "run:" + tn.Run, Parts: []core.Part{{Text: "one"}, {Text: "two"}}},
				{Address: tn.First().Address, Key: "notice:" + tn.Run, Parts: []core.Part{{Text: "aside"}}},
			}
			if err := f.q.Ack(ctx, tn, queue.Result{Replies: replies, Anew: anew}); err != nil {
				t.Error(err)
			}
		})
		f.put(msg(1, "c", "ada", "hello"))
		want := []string{"p1:one", ":two", ":aside"}
		if anew {
			want = []string{":one", ":two", "p1:", ":aside"}
		}
		for _, w := range want {
			if out := <-f.plat.seen; out.Replaces+":"+out.Text != w {
				t.Errorf("anew %v: sent %q over %q, want %q", anew, out.Text, out.Replaces, w)
			}
		}
	}
}

// Messages that were given up together have one run; retried one by one the
// second would meet the answer of the first.
func TestARetryOfMessagesThatWereOneTurnIsThatTurn(t *testing.T) {
	f := newFixture(t, collecting)
	fails := true
	var mu sync.Mutex
	f.put(msg(1, "c", "ada", "one"), msg(2, "c", "ada", "two"))
	f.serve(func(ctx context.Context, tn *queue.Turn) {
		mu.Lock()
		defer mu.Unlock()
		var err error
		if fails {
			err = f.q.Fail(ctx, tn, errors.New("no"))
		} else {
			err = answer(f.q, tn)
		}
		if err != nil {
			t.Error(err)
		}
	})
	hold := f.timePasses()
	defer hold()
	if got := f.reply(); got != "gave up" {
		t.Fatalf("the chat reads %q", got)
	}
	mu.Lock()
	fails = false
	mu.Unlock()
	dead, err := f.inspect().Dead(t.Context(), 10)
	if err != nil || len(dead) != 2 {
		t.Fatalf("%d dead rows, %v", len(dead), err)
	}
	if err := f.q.Retry(t.Context(), dead[0].Seq, core.Actor{User: 1}); err != nil {
		t.Fatal(err)
	}
	if got := f.reply(); got != "re: one+two" {
		t.Errorf("the chat reads %q", got)
	}
	if got := f.states(); got != "1:done 2:done" {
		t.Errorf("the rows are %s", got)
	}
}

// The caller can retry a page that could not be stored: Put has not changed it.
func TestAPageThatCouldNotBeStoredIsAsItWas(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Waiting = func(*core.Inbound) bool { return true }
	})
	f.breakWrites("INSERT ON inbox", "NEW.kind <> ''")
	page := []core.Inbound{msg(1, "c", "ada", "hello")}
	if err := f.q.Put(t.Context(), page, nil); err == nil {
		t.Fatal("stored on a full disk")
	}
	if page[0].Kind != core.KindMessage {
		t.Errorf("the message has become %s", page[0].Kind)
	}
}

// Ended is called for a run when its message becomes a dead letter, or is refused
// because its sender lost access between two attempts.
func TestARunWhoseMessageIsGivenUpHasEnded(t *testing.T) {
	for _, how := range []string{"dead", "refused"} {
		t.Run(how, func(t *testing.T) {
			ended := make(chan string, 10)
			f := newFixture(t, func(o *options) {
				o.Ended = func(_ context.Context, tx *store.Tx, run string) error {
					tx.OnCommit(func() { ended <- run })
					return nil
				}
			})
			runs := make(chan string, 10)
			f.serve(func(ctx context.Context, tn *queue.Turn) {
				runs <- tn.Run
				if how == "refused" {
					f.gate.mu.Lock()
					f.gate.revoked = map[string]bool{"ada": true}
					f.gate.mu.Unlock()
				}
				if err := f.q.Fail(ctx, tn, errors.New("no")); err != nil {
					t.Error(err)
				}
			})
			f.put(msg(1, "c", "ada", "poison"))
			hold := f.timePasses()
			defer hold()
			select {
			case run := <-ended:
				if run != <-runs {
					t.Errorf("another run ended: %s", run)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("nobody is told")
			}
			if got := f.states(); got != "1:"+how {
				t.Errorf("the row is %s", got)
			}
		})
	}
}

// Replies wait without keeping the queue awake for a bot that is not configured,
// and for more chats than maxSending.
func TestRepliesThatCannotBeSentNowDoNotKeepTheQueueAwake(t *testing.T) {
	f := newFixture(t, nil)
	f.serve(func(_ context.Context, tn *queue.Turn) { _ = answer(f.q, tn) })
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		return f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "gone", Chat: "c"}, Key: "k", Parts: []core.Part{{Text: "x"}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	f.put(msg(1, "c", "ada", "")) // rings once more
	select {
	case <-f.clock.Waiting(50):
		t.Error("the queue looks again and again while the clock stands still")
	case <-time.After(300 * time.Millisecond):
	}
	if got := f.reply(); got != "re: " {
		t.Errorf("the chat reads %q", got)
	}
}

// A throttled platform lets the bot write to one chat alone now.
type throttled struct{ *platform }

func (throttled) Wait(to core.Address) time.Duration {
	if to.Chat == "free" {
		return 0
	}
	return time.Hour
}

// A chat whose oldest reply waits has others in front of it, however many of its replies do not wait.
func TestChatsWhoseOldestReplyWaitsKeepNoOtherOut(t *testing.T) {
	plat := newPlatform()
	f := newFixture(t, func(o *options) { o.sender = throttled{plat} })
	f.plat = plat
	const chats = 600
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		for i := range chats {
			r := core.Reply{Address: core.Address{Bot: "bot", Chat: fmt.Sprint(i)}, Key: fmt.Sprint(i), Parts: []core.Part{{Text: "first"}, {Text: "second"}}}
			if err := f.out.Post(ctx, tx, r); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE outbox SET not_before = $1 WHERE seq IN (SELECT min(seq) FROM outbox GROUP BY chat)`, core.Stamp(f.clock.Now().Add(time.Hour)))
		return err
	})
	f.post("free", "free", "", "hello")
	f.serve(nil)
	select {
	case out := <-plat.seen:
		if out.Text != "hello" {
			t.Errorf("%q is sent", out.Text)
		}
	case <-time.After(time.Minute):
		t.Error("the one chat that may be written to waits for the others")
	}
}

type slow struct {
	*platform
	hold chan struct{}
}

func (s slow) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	<-s.hold
	return s.platform.Send(ctx, out)
}

func TestMoreChatsThanMayBeSentToAtOnceAreAllServedWithoutATurnOfTheClock(t *testing.T) {
	s := slow{platform: newPlatform(), hold: make(chan struct{})}
	f := newFixture(t, func(o *options) { o.sender = s })
	f.plat = s.platform
	f.serve(nil)
	const chats = 700
	for i := range chats {
		err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			return f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: "bot", Chat: fmt.Sprint(i)}, Key: fmt.Sprint(i), Parts: []core.Part{{Text: "x"}}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-f.clock.Waiting(chats + 100):
		t.Error("the queue looks again and again while all sends are under way")
	case <-time.After(300 * time.Millisecond):
	}
	close(s.hold)
	for range chats {
		f.reply()
	}
}

// A bot that has more to send than it may have under way does not have the table searched for each
// message of another one.
func TestABotThatIsBusyIsNotLookedForWhenAnotherHasSent(t *testing.T) {
	s := slow{platform: newPlatform(), hold: make(chan struct{})}
	f := newFixture(t, func(o *options) { o.sender = oneSlow{s} })
	f.takeOver(f.q)
	f.out.Open(t.Context())
	defer func() { <-f.out.Close() }()
	if err := f.out.Hold(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	<-f.out.Bell()
	const room, chats = 512, 530
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		for i := range chats {
			if err := f.out.Post(ctx, tx, core.Reply{Address: core.Address{Bot: "bot", Chat: fmt.Sprint(i)}, Key: fmt.Sprint(i), Parts: []core.Part{{Text: "x"}}}); err != nil {
				return err
			}
		}
		return nil
	})
	f.tx(func(ctx context.Context, tx *store.Tx) error {
		return f.out.Post(ctx, tx, core.Reply{Address: core.Address{Bot: "other", Chat: "o"}, Key: "o", Parts: []core.Part{{Text: "x"}}})
	})
	<-s.seen
	f.until("the other bot has sent", func() bool { return f.out.Active() == room })
	select {
	case <-f.out.Bell():
		t.Error("it is looked for chats of the busy bot")
	default:
	}
	close(s.hold)
	<-f.out.Bell() // there is room
	f.until("all end", func() bool { return f.out.Active() == 0 })
	if err := f.out.SendWaiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range chats {
		<-s.seen
	}
}

// oneSlow holds the sends of one bot alone.
type oneSlow struct{ slow }

func (s oneSlow) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	if out.Bot == "bot" {
		return s.slow.Send(ctx, out)
	}
	return s.platform.Send(ctx, out)
}
