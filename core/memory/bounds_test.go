package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"gatehouse/core/memory"
	"gatehouse/core/sealed"
	"gatehouse/core/store"
)

// counting is a Box that counts the texts that are read.
type counting struct {
	reversed
	opened *int
}

func (c counting) Open(at sealed.Place, value string) (string, error) {
	*c.opened++
	return c.reversed.Open(at, value)
}

// At most 32 persons are held: then the one who was read first is read again.
func TestThePersonWhoWasReadFirstIsDroppedFromMemory(t *testing.T) {
	r := open(t)
	opened := 0
	r.Store = memory.New(memory.Options{DB: r.db, Clock: r.clock, Box: counting{opened: &opened}})
	const held = 32
	for user := range int64(held + 1) {
		if _, err := r.Add(t.Context(), 100+user, memory.Draft{Text: "always use metric units"}, me); err != nil {
			t.Fatal(err)
		}
	}
	read := func(user int64) bool {
		before := opened
		r.clock.Advance(1)
		if got := r.recall(100+user, "hello"); !strings.Contains(got, "metric") {
			t.Fatalf("user %d: %q", user, got)
		}
		return opened > before
	}
	var again []int64
	for user := range int64(held) {
		if !read(user) {
			t.Errorf("user %d was held before anything was read", user)
		}
	}
	for user := range int64(held) {
		if read(user) {
			again = append(again, user)
		}
	}
	if len(again) > 0 {
		t.Errorf("of %d persons %d are read again", held, again)
	}
	read(held) // one too many: the first is dropped
	for _, user := range []int64{1, held - 1, held, 0} {
		if read(user) {
			again = append(again, user)
		}
	}
	if !slices.Equal(again, []int64{0}) {
		t.Errorf("read again are %d, want the first alone", again)
	}
}

func TestOfEachCorrectionTheNewest200EventsAreKept(t *testing.T) {
	r := open(t)
	var ids []string
	for _, text := range []string{"always use metric units", "never use emojis"} {
		l, err := r.Add(t.Context(), ann, memory.Draft{Text: text}, me)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.Correction.ID)
	}
	uses := func(id string, from, n int) {
		t.Helper()
		c, err := r.Get(t.Context(), ann, id)
		if err == nil {
			err = r.db.Tx(t.Context(), func(tx *store.Tx) error {
				for i := range n {
					if err := r.Used(t.Context(), tx, []memory.Correction{c}, memory.Use{Run: fmt.Sprint("r", from+i), Session: "s", Answer: "x"}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	uses(ids[0], 0, 250)
	uses(ids[1], 0, 150)
	if n := r.chore("memory_events"); n != 51 { // and that it was created
		t.Errorf("%d events are deleted", n)
	}
	for i, want := range []int{200, 151} {
		if n := r.count(`SELECT count(*) FROM correction_events WHERE correction_id = $1`, ids[i]); n != want {
			t.Errorf("correction %d has %d events, want %d", i+1, n, want)
		}
	}
	if n := r.count(`SELECT count(*) FROM correction_events WHERE correction_id = $1 AND run IN ('r249', 'r50')`, ids[0]); n != 2 {
		t.Errorf("%d of the newest are kept", n)
	}
	if n := r.count(`SELECT count(*) FROM correction_events WHERE correction_id = $1 AND run = 'r49'`, ids[0]); n != 0 {
		t.Error("an older one is kept")
	}
}

func TestMetricsOfTheMemoryCountWhatHappens(t *testing.T) {
	r := open(t)
	reg := prometheus.NewPedanticRegistry()
	r.Store = memory.New(memory.Options{DB: r.db, Clock: r.clock, Box: reversed{}, Metrics: memory.NewMetrics(reg)})
	r.hear(ann, "From now on never use emojis.")                                                  // rules, stored
	r.hear(ann, "No, the capital of Australia is Canberra.")                                      // rules, asked
	r.hear(ann, "What is the capital of France?")                                                 // none
	r.hear(ann, "correction: the password is hunter2")                                            // explicit, a secret
	r.hear(ann, "correction: always use metric units", func(m *memory.Message) { m.Answer = "" }) // explicit, stored
	r.use("r1", "Hi 🙂")
	r.use("r2", "Hi")
	if err := r.db.Tx(t.Context(), func(tx *store.Tx) error {
		c, err := r.Get(t.Context(), ann, "1")
		if err != nil {
			return err
		}
		return r.Used(t.Context(), tx, []memory.Correction{c}, memory.Use{Run: "r3", Answer: "Hi", Rewritten: []string{c.ID}})
	}); err != nil {
		t.Fatal(err)
	}
	want := `# HELP gatehouse_memory_checks_total Answers against what a user wants of them, by result.
# TYPE gatehouse_memory_checks_total counter
gatehouse_memory_checks_total{check="followed"} 2
gatehouse_memory_checks_total{check="rewritten"} 1
gatehouse_memory_checks_total{check="violated"} 1
# HELP gatehouse_memory_learnt_total Corrections in messages, by what became of them.
# TYPE gatehouse_memory_learnt_total counter
gatehouse_memory_learnt_total{fate="asked"} 1
gatehouse_memory_learnt_total{fate="full"} 0
gatehouse_memory_learnt_total{fate="secret"} 1
gatehouse_memory_learnt_total{fate="stored"} 2
# HELP gatehouse_memory_messages_total Messages that were read for corrections, by the layer that found one; none for most.
# TYPE gatehouse_memory_messages_total counter
gatehouse_memory_messages_total{layer="explicit"} 2
gatehouse_memory_messages_total{layer="implicit"} 0
gatehouse_memory_messages_total{layer="none"} 1
gatehouse_memory_messages_total{layer="rules"} 2
# HELP gatehouse_memory_used_total Corrections that were in the prompt of a finished answer.
# TYPE gatehouse_memory_used_total counter
gatehouse_memory_used_total 5
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
