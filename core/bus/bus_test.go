package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a run's events, published in order.
var script = []core.Event{core.Session{ID: "s"}, core.UserMessage{Content: "hi"}, core.TextDelta{Content: "a"}, core.TextDelta{Content: "b"},
	core.TextDelta{Content: "c"}, core.Done{Response: "abc"}, core.MessageStop{}}

func read(t *testing.T, b *bus.Bus, f bus.Follow) (ids, types []string, err error) {
	t.Helper()
	for e, err := range b.Follow(t.Context(), f) {
		if err != nil {
			return ids, types, err
		}
		ids, types = append(ids, e.ID()), append(types, e.Type)
	}
	return ids, types, nil
}

const want = "session user_message text text text done message_stop"

// A reader that comes back with the id of its last event, wherever it was cut,
// gets exactly the rest: from memory, from storage, or from both.
func TestReplayHasNoGapAndNoRepeatWhereverItWasCut(t *testing.T) {
	var stored []bus.Entry
	load := func(_ context.Context, run string, attempt, n int) (out []bus.Entry, _ error) {
		for _, e := range stored {
			if e.Run == run && e.Attempt == attempt && e.N > n {
				e.Event = nil
				out = append(out, e)
			}
		}
		return out, nil
	}
	latest := func(context.Context, string) (int, int, error) { return 1, 0, nil }
	for _, restarted := range []bool{false, true} {
		b := bus.New(load, latest)
		s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
		stored = nil
		var all []string
		for _, e := range script {
			entry := s.Publish(e)
			stored, all = append(stored, entry), append(all, entry.ID())
		}
		s.End()
		if restarted {
			b = bus.New(load, latest)
		}
		for cut := range len(all) + 1 {
			last := ""
			if cut > 0 {
				last = all[cut-1]
			}
			ids, _, err := read(t, b, bus.Follow{Session: "s", Run: "r", LastID: last})
			if err != nil || strings.Join(ids, " ") != strings.Join(all[cut:], " ") {
				t.Errorf("restarted %v, cut at %d: %v, %v; want %v", restarted, cut, ids, err, all[cut:])
			}
		}
	}
}

// Who has a run's end already waits for nothing, even while the run is still
// being closed.
func TestAReaderThatHasTheEndWaitsForNothing(t *testing.T) {
	b := bus.New(nil, nil)
	s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
	defer s.End()
	var last bus.Entry
	for _, e := range script {
		last = s.Publish(e)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for e, err := range b.Follow(ctx, bus.Follow{Session: "s", Run: "r", LastID: last.ID()}) {
		t.Errorf("after the end came %v, %v", e.ID(), err)
	}
	if ctx.Err() != nil {
		t.Error("it waited")
	}
}

func TestAReaderThatJoinsBeforeTheRunSeesAllOfIt(t *testing.T) {
	b := bus.New(nil, nil)
	seq := b.Follow(t.Context(), bus.Follow{Session: "s"})
	s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
	for _, e := range script {
		s.Publish(e)
	}
	s.End()
	var types []string
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if types = append(types, e.Type); e.Type == "message_stop" {
			break
		}
	}
	if strings.Join(types, " ") != want {
		t.Errorf("got %v", types)
	}
}

func TestASessionsReaderContinuesWithItsNextRun(t *testing.T) {
	b := bus.New(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan string, 100)
	done := make(chan struct{})
	seq := b.Follow(ctx, bus.Follow{Session: "s"})
	go func() {
		defer close(done)
		for e := range seq {
			got <- e.ID()
		}
	}()
	for _, run := range []string{"r1", "r2"} {
		s := b.Begin(bus.Info{Run: run, Session: "s", Attempt: 1})
		s.Publish(core.TextDelta{Content: "x"})
		if id := <-got; id != run+".1:1" {
			t.Errorf("got %s", id)
		}
		s.End()
	}
	cancel()
	<-done
}

func TestASlowReaderIsCutOffAndTheRunIsNot(t *testing.T) {
	b := bus.New(nil, nil)
	s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
	seq := b.Follow(t.Context(), bus.Follow{Session: "s", Run: "r"})
	for range 3000 {
		s.Publish(core.TextDelta{Content: "x"})
	}
	n := 0
	var last error
	for _, err := range seq {
		if last = err; err == nil {
			n++
		}
	}
	if !errors.Is(last, bus.ErrLagged) || n == 0 || n >= 3000 {
		t.Errorf("read %d, %v", n, last)
	}
	// It comes back by id and misses nothing.
	s.Publish(core.MessageStop{})
	s.End()
	ids, _, err := read(t, b, bus.Follow{Session: "s", Run: "r", LastID: bus.EventID("r", 1, n)})
	if err != nil || len(ids) != 3001-n {
		t.Errorf("after coming back %d events, %v; want %d", len(ids), err, 3001-n)
	}
}

func TestANewAttemptBeginsWithAGapForReadersOfTheOldOne(t *testing.T) {
	b := bus.New(nil, nil)
	s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
	s.Publish(core.TextDelta{Content: "old"})
	seq := b.Follow(t.Context(), bus.Follow{Session: "s", Run: "r"})
	s.Leave()
	s = b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 2})
	for _, e := range script {
		s.Publish(e)
	}
	s.End()
	var types []string
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, e.Type)
	}
	if got := strings.Join(types, " "); got != "text gap "+want {
		t.Errorf("got %s", got)
	}
}

func TestTheListOfChatsIsRungWhenARunBeginsAndWhenItEnds(t *testing.T) {
	b := bus.New(nil, nil)
	rang := b.Listen(t.Context(), core.TopicChats)
	first := b.Begin(bus.Info{Run: "r1", Session: "s", Attempt: 1})
	if got := <-rang; got != core.TopicChats {
		t.Errorf("rang %q when a run began", got)
	}
	first.Leave()
	<-rang
	second := b.Begin(bus.Info{Run: "r1", Session: "s", Attempt: 2})
	<-rang
	second.End()
	<-rang
}

func TestRingsAreCoalescedAndNeverBlock(t *testing.T) {
	b := bus.New(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ch := b.Listen(ctx, core.TopicPairing, core.TopicBots)
	for range 1000 {
		b.Ring(core.TopicPairing, core.TopicQueue)
	}
	b.Ring(core.TopicBots)
	seen := map[core.Topic]bool{<-ch: true, <-ch: true}
	for !seen[core.TopicBots] || !seen[core.TopicPairing] {
		seen[<-ch] = true
	}
	cancel()
	for range ch {
	}
}

func TestMemoryOfARunIsBounded(t *testing.T) {
	b := bus.New(nil, nil)
	s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
	for range 20_000 {
		s.Publish(core.TextDelta{Content: strings.Repeat("x", 100)})
	}
	s.Publish(core.MessageStop{})
	s.End()
	ids, types, err := read(t, b, bus.Follow{Session: "s", Run: "r"})
	if err != nil || len(ids) > 5000 || types[0] != "gap" {
		t.Errorf("%d events kept, first %q, %v", len(ids), types[0], err)
	}
	if len(b.Active()) != 0 {
		t.Errorf("active: %v", b.Active())
	}
}

func BenchmarkPublish(b *testing.B) {
	bus := bus.New(nil, nil)
	s := bus.Begin(busInfo)
	b.ReportAllocs()
	for i := range b.N {
		s.Publish(core.TextDelta{Content: fmt.Sprint("piece ", i)})
	}
}

var busInfo = bus.Info{Run: "r", Session: "s", Attempt: 1}

// The next run of a session may begin before the end of the last one is told
// (its turn is claimed in the transaction that settles the other): a reader
// who waits for it misses nothing, whichever comes first.
func TestAReaderMissesNoRunThatBeganBeforeTheLastOnesEnd(t *testing.T) {
	for _, early := range []int{0, 3, len(script)} { // events of the second before the first's end
		t.Run(fmt.Sprint(early), func(t *testing.T) {
			b := bus.New(nil, nil)
			first := b.Begin(bus.Info{Run: "r1", Session: "s", Attempt: 1})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			follow := b.Follow(ctx, bus.Follow{Session: "s"})
			for _, e := range script[:5] {
				first.Publish(e)
			}
			second := b.Begin(bus.Info{Run: "r2", Session: "s", Attempt: 1})
			for _, e := range script[:early] {
				second.Publish(e)
			}
			for _, e := range script[5:] {
				first.Publish(e)
			}
			first.End()
			for _, e := range script[early:] {
				second.Publish(e)
			}
			second.End()
			var types []string
			for e, err := range follow {
				if err != nil {
					t.Fatal(err)
				}
				if types = append(types, e.Type); e.Run == "r2" && e.Type == "message_stop" {
					break
				}
			}
			if got := strings.Join(types, " "); got != want+" "+want {
				t.Errorf("the reader got %s", got)
			}
		})
	}
}

func TestMemoryOfFinishedRunsIsBoundedInAll(t *testing.T) {
	b := bus.New(nil, nil)
	last := ""
	for i := range 100 {
		last = fmt.Sprint("r", i)
		s := b.Begin(bus.Info{Run: last, Session: last, Attempt: 1})
		for range 9 {
			s.Publish(core.TextDelta{Content: strings.Repeat("x", 100<<10)})
		}
		s.Publish(core.MessageStop{})
		s.End()
	}
	if n := b.Lingering(); n > 10<<20 {
		t.Errorf("finished runs hold %d bytes", n)
	}
	if ids, _, err := read(t, b, bus.Follow{Session: last, Run: last}); err != nil || len(ids) != 10 {
		t.Errorf("the newest finished run has %d events, %v", len(ids), err)
	}
}
