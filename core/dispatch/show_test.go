package dispatch

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/queue"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

// What a model writes goes through the renderer while it is still half a
// text: a panic there must not end the program, nor the run.
func TestAPanicInAPreviewEndsOnlyThePreview(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	d := New(Options{Clock: clock, Queue: queue.New(nil, nil, queue.Options{Clock: clock}), Outbox: outbox.New(nil, outbox.Options{Clock: clock}), Screen: blank{},
		Render: func(core.Address, string) []core.Part { panic("half a table") }})
	s := d.watch(t.Context(), &queue.Turn{Rows: []core.Inbound{{Address: core.Address{Bot: "b", Chat: "c"}}}})
	s.see(core.TextDelta{Content: "| a | b"})
	for {
		select {
		case <-s.done:
			return
		case <-clock.Waiting(1):
			clock.Advance(time.Second)
		case <-time.After(5 * time.Minute):
			t.Fatal("the preview goes on")
		}
	}
}

type blank struct{ Screen }

func (blank) Typing(context.Context, core.Address) error { return nil }

// A platform's typing sign fades by itself after five seconds: it is renewed in
// time while the answer is made, and with the answer it ends.
func TestTypingIsRenewedWhileTheRunLastsAndEndsWithIt(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	seen := &typist{clock: clock, began: clock.Now()}
	d := New(Options{Clock: clock, Queue: queue.New(nil, nil, queue.Options{Clock: clock}), Outbox: outbox.New(nil, outbox.Options{Clock: clock}), Screen: seen})
	s := d.watch(t.Context(), &queue.Turn{Rows: []core.Inbound{{Address: core.Address{Bot: "b", Chat: "c"}}}})
	for range 200 {
		clock.AwaitWaiters(1)
		clock.Advance(100 * time.Millisecond)
	}
	clock.AwaitWaiters(1)
	ended := make(chan struct{})
	go func() { s.end(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(5 * time.Minute):
		t.Fatal("the typing sign goes on after the run")
	}
	n := len(seen.at)
	clock.Advance(time.Minute)
	if len(seen.at) != n || n < 4 {
		t.Fatalf("typing %d times in 20 s, and %d times after the end", n, len(seen.at)-n)
	}
	if seen.at[0] > time.Second {
		t.Errorf("typing began after %v", seen.at[0])
	}
	for i := 1; i < n; i++ {
		if pause := seen.at[i] - seen.at[i-1]; pause >= 5*time.Second || pause < 3*time.Second {
			t.Errorf("a pause of %v", pause)
		}
	}
}

// A typist notes when typing was shown. The show that calls it has ended, or
// waits for the clock, whenever the test looks.
type typist struct {
	Screen
	clock core.Clock
	began time.Time
	at    []time.Duration
}

func (p *typist) Typing(context.Context, core.Address) error {
	p.at = append(p.at, p.clock.Now().Sub(p.began))
	return nil
}

// After a minute in which nothing happens the preview says that work goes on,
// and for how long already.
func TestAPreviewReportsThatWorkContinues(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	d := New(Options{Clock: clock})
	s := &show{d: d, began: clock.Now(), moved: clock.Now()}
	s.see(core.ToolUseStart{Name: "Bash", Input: []byte(`{"command":"make"}`)})
	clock.Advance(59 * time.Second)
	if got := s.now().text; strings.Contains(got, "still") || !strings.Contains(got, "make") {
		t.Errorf("after 59 s: %q", got)
	}
	clock.Advance(2*time.Minute + time.Second)
	if got := s.now().text; !strings.Contains(got, "make") || !strings.HasSuffix(got, "*still working after 3 min*") {
		t.Errorf("after three minutes: %q", got)
	}
	s.progress("half of it")
	if got := s.now().text; strings.Contains(got, "still") || !strings.Contains(got, "half of it") {
		t.Errorf("after a sign of life: %q", got)
	}
}

// A shown is a turn that is shown while it runs, of lane "l" under epoch 1.
type shown struct {
	*testing.T
	clock *coretest.Clock
	db    *store.DB
	seen  *previews
	show  *show
}

// showing begins to show a turn; before is done in the database first.
func showing(t *testing.T, before func(tx *store.Tx, out *outbox.Outbox, to core.Address) error) *shown {
	clock := coretest.NewClock(time.Time{})
	s := &shown{T: t, clock: clock, db: storetest.Open(t, clock), seen: &previews{}}
	out := outbox.New(s.db, outbox.Options{Clock: clock})
	q := queue.New(s.db, out, queue.Options{Clock: clock, Node: "node"})
	to := core.Address{Bot: "b", Chat: "c"}
	s.change(`INSERT INTO lane (key, owner, epoch) VALUES ('l', 'node', 1)`)
	if err := s.db.Tx(t.Context(), func(tx *store.Tx) error { return before(tx, out, to) }); err != nil {
		t.Fatal(err)
	}
	d := New(Options{Clock: clock, Queue: q, Outbox: out, Screen: s.seen, Render: func(_ core.Address, text string) []core.Part { return []core.Part{{Text: text}} }})
	s.show = d.watch(t.Context(), &queue.Turn{Lane: "l", Epoch: 1, Rows: []core.Inbound{{Address: to}}})
	s.show.see(core.TextDelta{Content: "the next answer"})
	return s
}

func (s *shown) change(query string) {
	s.Helper()
	if err := s.db.Tx(s.Context(), func(tx *store.Tx) error { _, err := tx.Exec(s.Context(), query); return err }); err != nil {
		s.Fatal(err)
	}
}

// passes has ten seconds pass.
func (s *shown) passes() {
	for range 20 {
		s.clock.AwaitWaiters(1)
		s.clock.Advance(500 * time.Millisecond)
	}
	s.clock.AwaitWaiters(1)
}

// While the answer to an earlier message is still on its way a preview would
// stand above it: it waits until that is sent.
func TestAPreviewDoesNotStandAboveAnEarlierAnswer(t *testing.T) {
	s := showing(t, func(tx *store.Tx, out *outbox.Outbox, to core.Address) error {
		return out.Post(t.Context(), tx, core.Reply{Address: to, Key: "run:earlier", Parts: []core.Part{{Text: "the earlier answer"}}})
	})
	if s.passes(); s.seen.n != 0 {
		t.Errorf("%d previews above an answer that was not sent yet", s.seen.n)
	}
	s.change(`UPDATE outbox SET state = 'sent'`)
	if s.passes(); s.seen.n == 0 {
		t.Error("no preview after it was sent")
	}
	s.show.end()
}

// Another gateway that has taken this one's place may have put its answer into the preview.
func TestATurnThatAnotherGatewayHasIsNotShown(t *testing.T) {
	storetest.PostgresOnly(t, "a file has one gateway")
	s := showing(t, func(*store.Tx, *outbox.Outbox, core.Address) error { return nil })
	s.change(`UPDATE lane SET epoch = 2`)
	if s.passes(); s.seen.n != 0 {
		t.Errorf("%d previews of a turn that is another gateway's", s.seen.n)
	}
	s.change(`UPDATE lane SET epoch = 1`)
	if s.passes(); s.seen.n == 0 {
		t.Error("no preview of its own turn")
	}
	s.show.end()
}

// previews counts them. The show that calls it waits for the clock whenever the
// test looks.
type previews struct {
	blank
	n    int
	each func(text string) // if set, gets what a preview shows
}

func (p *previews) Preview(_ context.Context, _ core.Address, _ string, part core.Part) (string, error) {
	p.n++
	if p.each != nil {
		p.each(part.Text)
	}
	return "", nil
}

// A platform bounds the edits of a message, so a preview is edited only for enough
// new text. Text is counted in characters, whatever the alphabet.
func TestAPreviewIsEditedFor150NewCharactersAndEverMoreSeldom(t *testing.T) {
	for _, c := range []struct {
		name, text string
		each       int // characters in 100 ms
	}{
		{"slow Latin text", "a", 1}, {"slow Cyrillic text", "я", 1}, {"slow Chinese text", "字", 1},
		{"fast Latin text", "a", 40}, {"fast Cyrillic text", "я", 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := showing(t, func(*store.Tx, *outbox.Outbox, core.Address) error { return nil })
			var at []time.Duration
			var size []int
			began := s.clock.Now()
			s.seen.each = func(text string) {
				at, size = append(at, s.clock.Now().Sub(began)), append(size, utf8.RuneCountInString(text))
			}
			for range 900 { // 90 s
				s.clock.AwaitWaiters(1)
				s.show.see(core.TextDelta{Content: strings.Repeat(c.text, c.each)})
				s.clock.Advance(100 * time.Millisecond)
			}
			s.clock.AwaitWaiters(1)
			s.show.end()
			if len(at) < 5 {
				t.Fatalf("%d previews in 90 s", len(at))
			}
			if at[0] != time.Second {
				t.Errorf("first shown after %v", at[0])
			}
			for i := 1; i < len(at); i++ {
				if grown := size[i] - size[i-1]; grown < 150 {
					t.Errorf("edit %d for %d new characters", i, grown)
				}
				pause := at[i] - at[i-1]
				if pause > 10*time.Second && c.each > 1 {
					t.Errorf("edit %d after %v, with enough new text", i, pause)
				}
				if i > 1 && c.each > 1 {
					if last := at[i-1] - at[i-2]; pause < last || pause == last && pause < 10*time.Second {
						t.Errorf("edit %d after %v, the one before after %v", i, pause, last)
					}
				}
			}
			if c.each > 1 && at[len(at)-1]-at[len(at)-2] != 10*time.Second {
				t.Errorf("at last edited every %v", at[len(at)-1]-at[len(at)-2])
			}
		})
	}
}
