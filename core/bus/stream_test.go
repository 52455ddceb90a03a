package bus_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/bus"
)

// Whatever waits to be stored is there for a reader, however much it is; the
// writer is told when to wait, and when there is room again.
func TestWhatIsNotStoredIsNeverDropped(t *testing.T) {
	for name, piece := range map[string]string{"many bytes": strings.Repeat("x", 20<<10), "many events": "x"} {
		t.Run(name, func(t *testing.T) {
			b := bus.New(nil, nil)
			s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
			asked := 0
			s.Durable(func() { asked++ })
			n := 0
			for s.Full() == nil {
				s.Publish(core.TextDelta{Content: piece})
				if n++; n > 100_000 {
					t.Fatal("it is never full")
				}
			}
			if asked != 1 {
				t.Errorf("asked %d times to be stored", asked)
			}
			for range 200 { // what is told in spite of it
				s.Publish(core.TextDelta{Content: piece})
				n++
			}
			got := 1
			for e, err := range b.Follow(t.Context(), bus.Follow{Session: "s", Run: "r", LastID: bus.EventID("r", 1, 1)}) {
				if got++; err != nil || e.N != got {
					t.Fatalf("event %d is %s, %v", got, e.ID(), err)
				}
				if got == n {
					break
				}
			}
			full, unstored := s.Full(), s.Unstored()
			if len(unstored) != n {
				t.Errorf("%d of %d events are to be stored", len(unstored), n)
			}
			s.Stored(n)
			select {
			case <-full:
			default:
				t.Error("the writer is not told that there is room")
			}
			if s.Full() != nil || s.Unstored() != nil {
				t.Error("it is full, with everything stored")
			}
			s.Finish(true)
			if kept := b.Lingering(); kept > 2<<20 {
				t.Errorf("%d bytes are kept of what is stored", kept)
			}
		})
	}
}

// The numbers that a run's last events are stored under are those they are told
// under, whoever publishes meanwhile.
func TestTheLastEventsAreNumberedOnce(t *testing.T) {
	b := bus.New(nil, nil)
	s := b.Begin(bus.Info{Run: "r", Session: "s", Attempt: 1})
	s.Durable(func() {})
	s.Publish(core.TextDelta{Content: "a"})
	follow := b.Follow(t.Context(), bus.Follow{Session: "s", Run: "r"})
	if s.Seal(core.Aborted{}, core.MessageStop{}) {
		t.Error("nobody has asked for its events, and some are stored")
	}
	s.Unstored() // of the flush that came too late
	begun := s.Seal(core.Done{Response: "a"}, core.MessageStop{})
	unstored := s.Rest()
	if s.Publish(core.TextDelta{Content: "late"}); begun || s.Unstored() != nil {
		t.Error("a sealed stream is stored by others")
	}
	s.Finish(true)
	var told, stored []string
	for e, err := range follow {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, fmt.Sprint(e.N, e.Type, string(e.Data)))
	}
	for _, e := range unstored {
		stored = append(stored, fmt.Sprint(e.N, e.Type, string(e.Data)))
	}
	if len(told) != 3 || strings.Join(told, "\n") != strings.Join(stored, "\n") {
		t.Errorf("told:\n%s\nstored:\n%s", strings.Join(told, "\n"), strings.Join(stored, "\n"))
	}
}
