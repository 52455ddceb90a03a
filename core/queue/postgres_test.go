package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestTheseTestsRunOnPostgresWhereTheyAreAskedTo(t *testing.T) { storetest.Runs(t) }

// Another node's transaction has locked the first lane: the claim takes the
// next one and does not wait.
func TestALaneInAnothersHandsIsPassedBy(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite has one writer")
	f := newFixture(t, nil)
	f.put(msg(1, "a", "ann", "one"), msg(2, "b", "bob", "two"))
	other := storetest.OpenAt(t, f.db.Path(), f.clock)
	locked, release, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		over <- other.Tx(t.Context(), func(tx *store.Tx) error {
			var key string
			err := tx.Get(t.Context(), &key, `SELECT key FROM lane WHERE pending = 1 AND owner = '' ORDER BY key LIMIT 1`+tx.SkipLocked())
			if key != "bot|a" {
				t.Errorf("locked %q, %v", key, err)
			}
			close(locked)
			<-release
			return err
		})
	}()
	<-locked
	f.serve(func(_ context.Context, turn *queue.Turn) { _ = answer(f.q, turn) })
	if got := f.reply(); got != "re: two" {
		t.Errorf("first %q", got)
	}
	close(release)
	if err := <-over; err != nil {
		t.Error(err)
	}
	defer f.timePasses()()
	if got := f.reply(); got != "re: one" {
		t.Errorf("then %q", got)
	}
}

// A message that another node stores while a turn of its chat is settled is not
// forgotten: the lane stays pending whichever of the two commits first.
func TestALaneIsNotLetGoOverWhatAnotherNodeStores(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite has one writer")
	f := newFixture(t, nil)
	f.put(msg(1, "a", "ann", "one"))
	other := storetest.OpenAt(t, f.db.Path(), f.clock)
	held, settled := make(chan struct{}), make(chan struct{})
	settle := sync.OnceFunc(func() { close(settled) })
	stored, release, over := make(chan int), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if turn.First().Text == "one" {
			close(held)
			<-settled
		}
		_ = answer(f.q, turn)
	})
	t.Cleanup(settle) // before the queue is stopped
	<-held
	go func() {
		over <- other.Tx(t.Context(), func(tx *store.Tx) error {
			for _, s := range []string{
				`INSERT INTO inbox (seq, bot, update_id, chat, lane, kind, message_id, sender, trust, payload, state, received_at)
					SELECT seq + 1000, bot, 'two', chat, lane, kind, 'two', sender, trust, replace(payload, 'one', 'two'), state, received_at FROM inbox`,
				`UPDATE lane SET ver = ver + 1, pending = 1`,
			} {
				if _, err := tx.Exec(t.Context(), s); err != nil {
					return err
				}
			}
			var pid int
			err := tx.Get(t.Context(), &pid, `SELECT pg_backend_pid()`)
			once.Do(func() { stored <- pid; <-release })
			return err
		})
	}()
	var pid int
	select {
	case pid = <-stored:
	case err := <-over:
		t.Fatal(err)
	}
	settle() // the turn is settled, and meets the other's transaction
	for waits := false; !waits; {
		if err := f.db.Get(t.Context(), &waits, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE $1::int = ANY(pg_blocking_pids(pid)))`, pid); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	defer f.timePasses()()
	for _, want := range []string{"re: one", "re: two"} {
		if got := f.reply(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Two processes work on one database at once, in transactions of many chats:
// none is refused for the other's sake, and each message runs once, in order.
func TestTwoNodesShareTheLanes(t *testing.T) {
	storetest.PostgresOnly(t, "SQLite has one writer")
	const chats, each = 12, 8
	f := newFixture(t, func(o *options) { o.Node, o.Slots = "one", 4 })
	second := *f
	second.db = storetest.OpenAt(t, f.db.Path(), f.clock)
	second.q = second.newQueue(func(o *options) { o.Node, o.Slots = "two", 4 })

	var mu sync.Mutex
	got := map[string][]string{}
	by := map[string]int{}
	all := make(chan struct{})
	left := 2 * chats * each
	handle := func(node string, q *queue.Queue) func(context.Context, *queue.Turn) {
		return func(_ context.Context, turn *queue.Turn) {
			// Noted before the Ack: after it the next of the chat may begin elsewhere.
			mu.Lock()
			got[turn.First().Chat] = append(got[turn.First().Chat], turn.First().Text)
			by[node]++
			mu.Unlock()
			if err := q.Ack(context.Background(), turn, queue.Result{}); err != nil {
				t.Errorf("node %s: %v", node, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if left--; left == 0 {
				close(all)
			}
		}
	}
	f.serve(handle("one", f.q))
	second.serve(handle("two", second.q))
	var puts sync.WaitGroup
	for c := range chats {
		q := []*queue.Queue{f.q, second.q}[c%2]
		puts.Go(func() {
			for i := range each {
				// Each page wakes a lane of its own and one that all share, where the nodes meet.
				page := []core.Inbound{msg(c*1000+i, fmt.Sprint("c", c), "ann", fmt.Sprint(i)), msg(c*1000+500+i, "shared", "ann", fmt.Sprint(c, i))}
				if err := q.Put(context.Background(), page, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for done := false; !done; {
		select {
		case <-all:
			done = true
		case <-f.clock.Waiting(2): // both nodes have looked, and renewed what they hold
			f.clock.Advance(time.Second)
		}
	}
	puts.Wait()
	for c := range chats {
		var want []string
		for i := range each {
			want = append(want, fmt.Sprint(i))
		}
		if texts := got[fmt.Sprint("c", c)]; !slices.Equal(texts, want) {
			t.Errorf("chat %d: %s", c, strings.Join(texts, " "))
		}
	}
	slices.Sort(got["shared"])
	if n := len(slices.Compact(slices.Clone(got["shared"]))); n != chats*each || len(got["shared"]) != n {
		t.Errorf("of the shared chat's %d messages %d were answered, in %d turns", chats*each, n, len(got["shared"]))
	}
	t.Logf("turns by node: %v", by) // the first node to ask claims them
}
