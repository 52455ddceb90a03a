package memory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	chatask "gatehouse/connectors/chat/ask"
	chatmemory "gatehouse/connectors/chat/memory"
	"gatehouse/core"
	"gatehouse/core/ask"
	"gatehouse/core/command"
	"gatehouse/core/coretest"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const ann = 7

type world struct {
	*testing.T
	clock    *coretest.Clock
	db       *store.DB
	asks     *ask.Store
	store    *memory.Store
	commands *chatmemory.Commands
	at       core.Address
	here     memory.Place // the conversation of the chat
	seq      int64
}

func newWorld(t *testing.T) *world {
	clock := coretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	db := storetest.Open(t, clock)
	w := &world{T: t, clock: clock, db: db, asks: ask.New(db, clock), store: memory.New(memory.Options{DB: db, Clock: clock}), at: core.Address{Bot: "b", Chat: "1"}}
	w.commands = chatmemory.New(w.store, func(context.Context, core.Address) (memory.Place, error) { return w.here, nil }, chatask.NewButtons(chatask.ButtonOptions{DB: db, Clock: clock, Asks: w.asks, Questions: w.asks}), clock)
	return w
}

// run runs /memory with arguments, in a direct chat unless w.at is another, and stores what it
// writes.
func (w *world) run(args string) command.Outcome {
	w.Helper()
	return w.command("memory", args, w.commands.Run)
}

func (w *world) remember(args string) command.Outcome {
	w.Helper()
	return w.command("remember", args, w.commands.Remember)
}

func (w *world) forget(args string) command.Outcome {
	w.Helper()
	return w.command("forget", args, w.commands.Forget)
}

func (w *world) command(name, args string, run func(context.Context, command.Request) (command.Outcome, error)) command.Outcome {
	w.Helper()
	w.seq++
	r := command.Request{User: ann, Call: command.Call{Seq: w.seq, In: &core.Inbound{Address: w.at, Kind: core.KindCommand, Command: name, Text: args, At: w.clock.Now()}}}
	out, err := run(w.Context(), r)
	if err == nil && out.Write != nil {
		err = w.db.Tx(w.Context(), func(tx *store.Tx) error { return out.Write(w.Context(), tx) })
	}
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// card stores what a card asks about.
func (w *world) card() memory.Correction {
	w.Helper()
	w.seq++
	l, err := w.store.Hear(w.Context(), memory.Message{User: ann, Source: fmt.Sprint("run:", w.seq), Session: "s1", Text: "No, it is Canberra.", Question: "What is the capital of Australia?", Answer: "It is Sydney.", Model: "m"})
	if err != nil || l.Outcome != memory.Asked {
		w.Fatal(l, err)
	}
	return l.Correction
}

func labels(out command.Outcome) (all []string) {
	for _, row := range out.Buttons {
		for _, b := range row {
			all = append(all, b.Label)
		}
	}
	return all
}

// The press has used up the card's own buttons.
func TestACardCanBeAnsweredUntilItsNewTextIsWritten(t *testing.T) {
	w := newWorld(t)
	c := w.card()
	out := w.run("edit " + c.ID)
	if !strings.Contains(out.Text, "How should I remember this?") || !slices.Equal(labels(out), []string{"Save", "Skip"}) {
		t.Fatalf("%q with the buttons %q", out.Text, labels(out))
	}
	var open []string
	if err := w.db.Select(t.Context(), &open, `SELECT kind FROM asks WHERE state = 'open' ORDER BY kind`); err != nil || !slices.Equal(open, []string{ask.KindChoice, ask.KindNext}) {
		t.Errorf("open are %q, %v", open, err)
	}
	if out = w.run("save " + c.ID); !strings.Contains(out.Text, "Remembered as #1: “No, it is Canberra.”") {
		t.Errorf("Save is answered with %q", out.Text)
	}
	if out = w.run("edit " + c.ID); len(labels(out)) != 0 || !strings.Contains(out.Text, "How should") {
		t.Errorf("what is in force: %q with the buttons %q", out.Text, labels(out))
	}
	if out = w.run("edit " + c.ID + " It has been Canberra since 1927."); !strings.Contains(out.Text, "Remembered as #1: “It has been Canberra since 1927.”") {
		t.Errorf("%q", out.Text)
	}
}

func TestWhatIsNotInForceIsNotEdited(t *testing.T) {
	w := newWorld(t)
	c := w.card()
	refused := func(name string) {
		t.Helper()
		before, err := w.store.Get(t.Context(), ann, c.ID)
		for _, args := range []string{"edit " + c.ID, "edit " + c.ID + " It is Perth."} {
			if out := w.run(args); !strings.Contains(out.Text, "answered before, or has expired") {
				t.Errorf("%s: %q", name, out.Text)
			}
		}
		if now, e := w.store.Get(t.Context(), ann, c.ID); err != nil || e != nil || now.Text != before.Text {
			t.Errorf("%s: its text is %q, %v, %v", name, now.Text, err, e)
		}
	}
	w.clock.Advance(memory.Answer)
	refused("a card that has expired")
	c = w.card()
	w.run("save " + c.ID)
	err := w.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE corrections SET status = 'superseded' WHERE correction_id = $1`, c.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	refused("one that another has replaced")
}

// In a group Edit would only answer that it works in a direct chat, and use up the card.
func TestAGroupIsOfferedNoEdit(t *testing.T) {
	l := memory.Learnt{Outcome: memory.Asked, Correction: memory.Correction{Number: 4, Text: "Tables are hard.", Type: detect.Factual, Card: memory.CardReview}}
	for place, want := range map[string][]string{"": {"Save", "Edit", "Skip"}, "g": {"Save", "Skip"}} {
		if got := chatmemory.Say(l, core.Address{Place: place}).Offer.Labels; !slices.Equal(got, want) {
			t.Errorf("in %q: %q", place, got)
		}
	}
}

func TestAQuestionAfterAChangeNamesWhatIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.remember("always answer in German")
	w.remember("always use metric units")
	german, units := w.id("1"), w.id("2")
	w.forget("1")
	w.remember("always answer in French")
	if out := w.run("restore " + german); !strings.Contains(out.Text, "It contradicts #3: “always answer in French”") || !slices.Equal(labels(out), []string{"Replace #3", "Keep both", "Cancel"}) {
		t.Errorf("%q with the buttons %q", out.Text, labels(out))
	}
	if out := w.run("replace " + german); !strings.Contains(out.Text, "Remembered as #1: “always answer in German”. It replaces #3.") {
		t.Errorf("%q", out.Text)
	}
	if out := w.run("edit " + units + " always answer in English"); !strings.Contains(out.Text, "It contradicts #1") || !slices.Equal(labels(out), []string{"Replace #1", "Keep both"}) {
		t.Errorf("%q with the buttons %q", out.Text, labels(out))
	}
}

func TestWhatIsSupersededIsNotOfferedForReplacement(t *testing.T) {
	w := newWorld(t)
	w.remember("always answer in German")
	w.remember("always answer in French")
	w.run("both " + w.id("2"))
	w.remember("always answer in English")
	if c, err := w.store.Get(t.Context(), ann, "3"); err != nil || c.Card == memory.NoCard {
		t.Fatal(c, err)
	}
	french := w.id("2")
	if err := w.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE corrections SET status = 'superseded' WHERE correction_id = $1`, french)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if out := w.run(""); strings.Contains(out.Text, "It contradicts") || slices.Contains(labels(out), "Replace #2") {
		t.Errorf("%q with the buttons %q", out.Text, labels(out))
	}
	if out := w.run("replace " + w.id("3")); !strings.Contains(out.Text, "Remembered as #3") || strings.Contains(out.Text, "It replaces") {
		t.Errorf("%q", out.Text)
	}
}

// id returns the id of the correction with a number.
func (w *world) id(number string) string {
	w.Helper()
	c, err := w.store.Get(w.Context(), ann, number)
	if err != nil {
		w.Fatal(err)
	}
	return c.ID
}
