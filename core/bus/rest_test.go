package bus_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/coretest"
)

// A reader of a finished run gets the same events after a rest as before it: those of a
// short run, which are in memory alone, and those in storage, which memory has dropped.
func TestReadersGetTheSameEventsAfterARest(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored bool
		after  time.Duration
		held   bool
	}{
		{"stored, ended just now", true, bus.JustEnded / 2, true},
		{"stored", true, 2 * bus.JustEnded, false},
		{"not stored", false, 2 * bus.JustEnded, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stored []bus.Entry
			b := bus.New(func(_ context.Context, run string, attempt, n int) (out []bus.Entry, _ error) {
				for _, e := range stored {
					if e.Run == run && e.Attempt == attempt && e.N > n {
						out = append(out, e)
					}
				}
				return out, nil
			}, func(context.Context, string) (int, int, error) { return min(1, len(stored)), 0, nil })
			clock := coretest.NewClock(time.Time{})
			b.Clock = clock
			s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
			for _, e := range script[:len(script)-2] {
				s.Publish(e)
			}
			s.Seal(script[len(script)-2:]...)
			if c.stored {
				stored = s.Rest()
			}
			s.Finish(c.stored)
			whole, _, err := read(t, b, bus.Follow{Session: "s", Run: "r"})
			if err != nil || len(whole) != len(script) {
				t.Fatalf("before the rest %v, %v", whole, err)
			}
			clock.Advance(c.after)
			b.Rest()
			if held := b.Lingering() > 0; held != c.held {
				t.Errorf("in memory: %v, want %v", held, c.held)
			}
			for range 2 { // a second rest changes nothing either
				for cut := range len(whole) + 1 {
					last := ""
					if cut > 0 {
						last = whole[cut-1]
					}
					got, types, err := read(t, b, bus.Follow{Session: "s", Run: "r", LastID: last})
					if err != nil || strings.Join(got, " ") != strings.Join(whole[cut:], " ") || cut == 0 && strings.Join(types, " ") != want {
						t.Errorf("after %q %v %v, %v; want %v", last, got, types, err, whole[cut:])
					}
				}
				b.Rest()
			}
		})
	}
}

// A rest does not concern a run in progress and its readers, nor the order in which
// finished runs are dropped.
func TestARestLeavesRunsInProgress(t *testing.T) {
	b := bus.New(nil, nil)
	for i := range 3 {
		s := b.Begin(bus.Info{Run: fmt.Sprint("old", i), Session: "other", Attempt: 1})
		s.Publish(core.MessageStop{})
		s.End()
	}
	s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
	s.Publish(script[0])
	follow := b.Follow(t.Context(), bus.Follow{Session: "s", Run: "r"})
	b.Rest()
	if active := b.Active(); len(active) != 1 || active[0].Run != "r" {
		t.Errorf("active: %v", active)
	}
	for _, e := range script[1:] {
		s.Publish(e)
	}
	s.End()
	b.Rest()
	var types []string
	for e, err := range follow {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	if got := strings.Join(types, " "); got != want {
		t.Errorf("the reader got %s", got)
	}
	for i := range 256 { // as many as linger
		s := b.Begin(bus.Info{Run: fmt.Sprint("new", i), Session: "s", Attempt: 1})
		s.Publish(core.MessageStop{})
		s.End()
	}
	for run, want := range map[string]int{"old0": 0, "r": 0, "new0": 1, "new255": 1} {
		if ids, _, err := read(t, b, bus.Follow{Session: "s", Run: run}); len(ids) != want || err != nil {
			t.Errorf("%s has %v, %v", run, ids, err)
		}
	}
}

// Finished runs are scattered among garbage; after a rest they are not.
func TestARestGathersFinishedRuns(t *testing.T) {
	b := bus.New(nil, nil)
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	before := inUse()
	var garbage [][]byte
	for i := range 256 {
		s := b.Begin(bus.Info{Run: fmt.Sprint("run-", i), Session: fmt.Sprint("session-", i), Attempt: 1})
		for _, e := range script {
			s.Publish(e)
			for range 20 {
				for _, n := range []int{16, 32, 48, 64, 80, 96, 112, 128, 256, 512} {
					garbage = append(garbage, make([]byte, n))
				}
			}
		}
		s.End()
	}
	runtime.KeepAlive(garbage)
	garbage = nil
	scattered := inUse() - before
	b.Rest()
	gathered := int64(inUse() - before)
	t.Logf("%d KiB in use before the rest, %d after it, of %d in all", scattered>>10, gathered>>10, b.Lingering()>>10)
	if gathered > int64(scattered)/4 {
		t.Errorf("%d KiB are in use, %d before the rest", gathered>>10, scattered>>10)
	}
	runtime.KeepAlive(b)
}
