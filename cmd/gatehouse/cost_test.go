package main

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/store/storetest"
)

// unguarded lets everybody talk, each message being a turn of its own. Nothing else
// writes: the vault is not indexed.
func unguarded(c *configs.Config) {
	c.TelegramDMPolicy, c.BusyMode, c.RateLimit = "open", "queue", values.Rate{}
	c.LimitRuns = 2000
	c.Index = "off"
}

// exchange sends a message and waits for what the bot says after it.
func (w *world) exchange(u *telegramtest.User) {
	w.t.Helper()
	sent := u.Send("where do we stand with this?")
	w.hears(u.DM(), func(m telegramtest.Message) bool { return m.ID > sent.ID })
}

// Stored and claimed, answered, sent: a message alone costs three commits.
func TestAMessageAloneCostsThreeCommits(t *testing.T) {
	w := newWorld(t, unguarded)
	u := w.sim.NewUser("Ada")
	const warm, n = 3, 20
	for range warm {
		w.exchange(u)
	}
	before := w.app.db.Commits()
	for range n {
		w.exchange(u)
	}
	w.stop() // the last send is settled
	// One for the last warm message's send, three for what a stop or a clock may write.
	if got := w.app.db.Commits() - before; got > 3*n+4 {
		t.Errorf("%d messages took %d commits, want %d", n, got, 3*n)
	}
}

// That an answer has arrived is stored without waiting for the disk.
func TestOfThreeCommitsOfAMessageTwoWaitForTheDisk(t *testing.T) {
	storetest.SQLiteOnly(t, "a commit of TxSoon waits on a server")
	w := newWorld(t, unguarded)
	u := w.sim.NewUser("Ada")
	w.exchange(u)
	const n = 20
	before := w.app.db.Synced()
	for range n {
		w.exchange(u)
	}
	w.stop()
	if got := w.app.db.Synced() - before; got > 2*n+4 || got < 2*n-2 {
		t.Errorf("%d messages waited for the disk %d times, want %d", n, got, 2*n)
	}
}

// The writer is the one thing that messages share: what each may ask of it is
// bounded, and in a burst many messages share one commit.
func TestABurstSharesCommitsAndKeepsItsStatementsFew(t *testing.T) {
	storetest.SQLiteOnly(t, "nothing is recalled on a server")
	if raceEnabled {
		t.Skip("slower, fewer messages share what is done once for several; make counts runs it without the race detector")
	}
	w := newWorld(t, unguarded)
	users := w.crowd(100)
	w.burst(users, 1) // makes the sessions
	commits, statements, reads := w.app.db.Commits(), w.app.db.Statements(), w.app.db.Reads()
	const each = 4
	w.burst(users, each)
	w.stop()
	n := int64(each * len(users))
	// The user's own budget is read for each message, and what hardly anybody has is not.
	if got, most := float64(w.app.db.Reads()-reads)/float64(n), 1.4; got > most && !raceEnabled {
		t.Errorf("a message takes %.2f reads beside the writer, want at most %.1f", got, most)
	}
	if got := w.app.db.Commits() - commits; got > n {
		t.Errorf("%d messages at once took %d commits; want three writes each to share them", n, got)
	}
	got := float64(w.app.db.Statements()-statements) / float64(n)
	t.Logf("%.1f statements a message", got)
	if got > 31 {
		t.Errorf("a message takes %.1f statements of the one writer, want at most 31", got)
	}
}

// crowd is n people who have written nothing yet.
func (w *world) crowd(n int) []*telegramtest.User {
	users := make([]*telegramtest.User, n)
	for i := range users {
		users[i] = w.sim.NewUser(fmt.Sprintf("Person %d", i))
	}
	return users
}

// burst sends each messages of every user at once and waits for the answers.
func (w *world) burst(users []*telegramtest.User, each int) {
	w.t.Helper()
	left, done := int64(each*len(users)), make(chan struct{})
	stop := w.sim.Watch(func(c telegramtest.Change) {
		if c.Kind == telegramtest.ChangeMessage && c.Message.FromBot() {
			if left--; left == 0 {
				close(done)
			}
		}
	})
	defer stop()
	for range each {
		for _, u := range users {
			u.Send("where do we stand with this?")
		}
	}
	select {
	case <-done:
	case <-time.After(2 * patience):
		w.t.Fatal("the answers did not come\n" + w.log.String())
	}
}

// A chat that nothing happens in costs rows, and no goroutine.
func TestAnIdleChatHasNoGoroutine(t *testing.T) {
	w := newWorld(t, unguarded)
	w.burst(w.crowd(1), 2)
	before := ours()
	w.burst(w.crowd(100), 1)
	w.until("every goroutine of the chats has ended", func() bool { return ours() <= before+2 })
}

// ours counts the goroutines that run the gateway's own code, the simulator's left out.
func ours() (n int) {
	buf := make([]byte, 32<<20)
	buf = buf[:runtime.Stack(buf, true)]
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "gatehouse/") && !strings.Contains(stack, "telegramtest") && !strings.Contains(stack, "testing.tRunner") {
			n++
		}
	}
	return n
}

// What a message allocates, the simulated platform's part included, is bounded:
// a figure that leaps here is a figure that leaps in production.
func TestAMessageAllocatesLittle(t *testing.T) {
	storetest.SQLiteOnly(t, "nothing is recalled on a server")
	if raceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	w := newWorld(t, unguarded)
	users := w.crowd(100)
	w.burst(users, 1)
	w.burst(users[:1], 1) // the first message after an answer compiles the rules of corrections
	const each, rounds = 4, 5
	objects, bytes := math.Inf(1), math.Inf(1)
	for range rounds { // the least: on a busy machine answers take so long that typing is shown
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.burst(users, each)
		runtime.ReadMemStats(&after)
		n := float64(each * len(users))
		objects, bytes = min(objects, float64(after.Mallocs-before.Mallocs)/n), min(bytes, float64(after.TotalAlloc-before.TotalAlloc)/n)
		t.Logf("%.0f objects, %.0f bytes", objects, bytes)
		if objects <= 2230 && bytes <= 235_000 {
			return
		}
	}
	t.Errorf("a message allocates %.0f objects and %.0f bytes, want at most 2,230 and 235,000", objects, bytes)
}

// BenchmarkBurst is one burst of 500 chats on a whole gateway in this process,
// to be profiled: go test -tags sqlite_fts5 -run - -bench Burst -cpuprofile cpu.out ./cmd/gatehouse
func BenchmarkBurst(b *testing.B) {
	w := newWorld(b, unguarded)
	users := w.crowd(500)
	w.burst(users, 1)
	for b.Loop() {
		w.burst(users, 4)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*4*len(users)), "µs/message")
}
