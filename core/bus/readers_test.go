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

// A reader that comes back from an earlier run gets the present one whole, also
// what is no longer in memory.
func TestAReaderOfAnEarlierRunGetsAllOfALongOne(t *testing.T) {
	var stored []bus.Entry
	load := func(_ context.Context, run string, attempt, n int) (out []bus.Entry, _ error) {
		for _, e := range stored {
			if e.Run == run && e.Attempt == attempt && e.N > n {
				out = append(out, e)
			}
		}
		return out, nil
	}
	b := bus.New(load, func(context.Context, string) (int, int, error) { return 1, 0, nil })
	first := b.Begin(bus.Info{Run: "r1", Session: "s", Attempt: 1})
	last := ""
	for _, e := range script {
		entry := first.Publish(e)
		stored, last = append(stored, entry), entry.ID()
	}
	first.End()
	second := b.Begin(bus.Info{Run: "r2", Session: "s", Attempt: 1})
	const long = 6000
	for range long {
		entry := second.Publish(core.TextDelta{Content: "word "})
		stored = append(stored, entry)
		second.Stored(entry.N)
	}
	n := 0
	for e, err := range b.Follow(t.Context(), bus.Follow{Session: "s", LastID: last}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; e.ID() != bus.EventID("r2", 1, n) {
			t.Fatalf("event %d is %s (%s)", n, e.ID(), e.Type)
		}
		if n == long {
			break
		}
	}
}

// What never reached storage is told, not skipped in silence.
func TestAHoleInStorageIsReported(t *testing.T) {
	load := func(_ context.Context, run string, attempt, n int) ([]bus.Entry, error) {
		var out []bus.Entry
		for _, i := range []int{1, 2, 5, 6} {
			if i > n {
				out = append(out, bus.Entry{Run: run, Attempt: attempt, N: i, Type: "text", Data: []byte("{}")})
			}
		}
		return out, nil
	}
	b := bus.New(load, func(context.Context, string) (int, int, error) { return 1, 0, nil })
	ids, types, err := read(t, b, bus.Follow{Session: "s", Run: "r"})
	if err != nil || strings.Join(types, " ") != "text text gap text text" || ids[2] != "r.1:4" {
		t.Errorf("%v %v %v", ids, types, err)
	}
}

// A run that is taken up again after its end (a message retried by hand) is in
// progress again, however many others have ended since.
func TestARunTakenUpAgainStaysVisible(t *testing.T) {
	b := bus.New(nil, nil)
	b.Begin(bus.Info{Run: "again", Session: "s", Attempt: 1}).End()
	s := b.Begin(bus.Info{Run: "again", Session: "s", Attempt: 2})
	for i := range 300 {
		b.Begin(bus.Info{Run: fmt.Sprint("other", i), Session: fmt.Sprint("o", i), Attempt: 1}).End()
	}
	if active := b.Active(); len(active) != 1 || active[0].Run != "again" {
		t.Errorf("active %+v", active)
	}
	s.End()
}

func TestANewReaderBeginsWithTheRunThatJustEnded(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	b := bus.New(nil, nil)
	b.Clock = clock
	run := func(session, id string) {
		s := b.Begin(bus.Info{Run: id, Session: session, Attempt: 1})
		s.Publish(core.MessageStop{})
		s.End()
	}
	first := func(f bus.Follow) string {
		f.Session = "s"
		events := b.Follow(t.Context(), f)
		run("s", "next")
		for e := range events {
			return e.Run
		}
		return ""
	}
	run("s", "r1")
	run("s", "r2")
	run("other", "r3")
	if got := first(bus.Follow{JustEnded: true}); got != "r2" {
		t.Errorf("began with %s", got)
	}
	if got := first(bus.Follow{}); got != "next" {
		t.Errorf("without JustEnded it began with %s", got)
	}
	clock.Advance(bus.JustEnded + time.Second)
	if got := first(bus.Follow{JustEnded: true}); got != "next" {
		t.Errorf("long after the end it began with %s", got)
	}
	live := b.Begin(bus.Info{Run: "live", Session: "s", Attempt: 1})
	defer live.End()
	live.Publish(core.TextDelta{Content: "x"})
	for e := range b.Follow(t.Context(), bus.Follow{Session: "s", JustEnded: true}) {
		if e.Run != "live" {
			t.Errorf("beside a running run it began with %s", e.Run)
		}
		break
	}
}

func TestAReaderThatNeverReadsLeavesWithItsContext(t *testing.T) {
	b := bus.New(nil, nil)
	ctx, stop := context.WithCancel(t.Context())
	_ = b.Follow(ctx, bus.Follow{Session: "s"})
	if n := b.Waiting("s"); n != 1 {
		t.Fatalf("%d readers wait, want 1", n)
	}
	stop()
	for patience := time.Now().Add(time.Minute); b.Waiting("s") > 0; runtime.Gosched() {
		if time.Now().After(patience) {
			t.Fatal("its place is kept for good")
		}
	}
}
