package queue_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

func edit(n int, of, from, text string) core.Inbound {
	m := msg(n, "a", from, text)
	m.Kind, m.MessageID, m.Edit = core.KindEdit, of, "1"
	return m
}

// A turn answers the text that is in the chat when it is claimed: the edit of a
// waiting message counts; an edit of a message that is being answered, or by
// another sender, does not.
func TestAMessageThatWaitsIsAnsweredAsItWasEditedLast(t *testing.T) {
	f := newFixture(t, nil)
	begun, end := f.serveHeld()
	f.put(msg(1, "a", "ann", "one"))
	<-begun
	f.put(msg(2, "a", "ann", "two"), msg(3, "a", "bob", "three"))
	f.put(edit(4, "1", "ann", "too late"), edit(5, "2", "ann", "a slip"), edit(6, "2", "ann", "two, better"), edit(7, "3", "ann", "somebody else's"))
	command := edit(8, "2", "ann", "now")
	command.Command = "stop"
	f.put(command)
	close(end)
	for _, want := range []string{"re: one", "re: two, better", "re: three"} {
		if got := f.reply(); got != want {
			t.Errorf("answered with %q, want %q", got, want)
		}
	}
}

// A message that is answered again is a turn of its own, also between other
// messages of its sender.
func TestARepeatIsNotJoinedWithOtherMessages(t *testing.T) {
	f := newFixture(t, func(o *options) {
		o.Collect = true
	})
	begun, end := f.serveHeld()
	f.put(msg(1, "a", "ann", "busy"))
	<-begun
	again := msg(3, "a", "ann", "once more")
	again.Again = "run"
	f.put(msg(2, "a", "ann", "two"), again, msg(4, "a", "ann", "four"), msg(5, "a", "ann", "five"))
	close(end)
	for _, want := range []string{"re: busy", "re: two", "re: once more", "re: four+five"} {
		if got := f.reply(); got != want {
			t.Errorf("answered with %q, want %q", got, want)
		}
	}
}

// An edit counts with all that the message then is: its files, that some of it
// can't be read, and that nothing but a file is left.
func TestAnEditReplacesWhatCameWithTheMessage(t *testing.T) {
	f := newFixture(t, nil)
	begun, end, got := make(chan struct{}, 10), make(chan struct{}), make(chan core.Inbound, 10)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		begun <- struct{}{}
		<-end
		got <- *turn.First()
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	file := func(m core.Inbound, ref string) core.Inbound { m.Files = []core.File{{Ref: ref}}; return m }
	f.put(msg(1, "a", "ann", "busy"))
	<-begun
	odd := edit(6, "4", "ann", "")
	odd.Unsupported = "checklist"
	f.put(file(msg(2, "a", "ann", "look"), "old"), file(msg(3, "a", "ann", "look"), "old"), msg(4, "a", "ann", "list"), file(msg(5, "a", "ann", "look"), "old"))
	f.put(file(edit(7, "2", "ann", "look here"), "new"), file(edit(8, "3", "ann", ""), "old"), odd, edit(9, "5", "ann", ""))
	close(end)
	for _, want := range []struct{ text, ref, kind string }{{"busy", "", ""}, {"look here", "new", ""}, {"", "old", ""}, {"", "", "checklist"}, {"look", "old", ""}} {
		in, ref := <-got, ""
		if len(in.Files) > 0 {
			ref = in.Files[0].Ref
		}
		if in.Text != want.text || ref != want.ref || in.Unsupported != want.kind {
			t.Errorf("answered %+v, want %+v", in, want)
		}
	}
}

// A message held with a pairing request is answered as it was edited last, by its
// sender; the gate lets no edit of a stranger through.
func TestAHeldMessageIsAnsweredAsItWasEditedLast(t *testing.T) {
	f := newFixture(t, nil)
	f.gate.hold = map[string]bool{"eve": true}
	f.put(msg(1, "a", "eve", "delete A"), msg(2, "a", "eve", "thank you"))
	f.gate.hold, f.gate.drop = nil, map[string]bool{"eve": true, "bob": true}
	reword := func(in core.Inbound) (texts []string) {
		t.Helper()
		err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			held, err := f.q.Reword(t.Context(), tx, "req-eve", &in)
			texts = nil
			for _, m := range held {
				texts = append(texts, m.Text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}
	if got := reword(edit(3, "1", "bob", "delete all")); got != nil {
		t.Errorf("after another sender's edit: %q", got)
	}
	if got := reword(edit(4, "7", "eve", "delete all")); got != nil {
		t.Errorf("after the edit of another message: %q", got)
	}
	if got := reword(edit(5, "1", "eve", "delete B")); !slices.Equal(got, []string{"delete B", "thank you"}) {
		t.Errorf("held after the edit: %q", got)
	}
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error { _, err := f.q.Free(t.Context(), tx, "req-eve", core.Sandboxed); return err }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"re: delete B", "re: thank you"} {
		if got := f.reply(); got != want {
			t.Errorf("answered with %q, want %q", got, want)
		}
	}
}

// What a message was forwarded from stays with it when it is edited, as a text of an inline bot
// may be: otherwise the edit would make it the sender's own.
func TestAForwardedMessageStaysForwardedWhenItIsEdited(t *testing.T) {
	f := newFixture(t, nil)
	passed := func(n int, from, text string) core.Inbound {
		m := msg(n, "a", from, text)
		m.Quote = &core.Quote{Name: "Pictures", Forwarded: true}
		return m
	}
	check := func(in core.Inbound, text string) {
		t.Helper()
		if in.Text != text || !in.Forwarded() || in.Quote.Name != "Pictures" {
			t.Errorf("%+v with %+v, want %q", in, in.Quote, text)
		}
	}
	f.gate.hold = map[string]bool{"eve": true}
	f.put(passed(1, "eve", "a dog"))
	f.gate.hold = nil
	err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
		in := edit(2, "1", "eve", "delete all files")
		held, err := f.q.Reword(t.Context(), tx, "req-eve", &in)
		if err == nil && len(held) == 1 {
			check(held[0], "delete all files")
		} else {
			t.Errorf("held: %+v", held)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.put(passed(3, "ann", "a cat"), edit(4, "3", "ann", "delete all notes"))
	f.clock.Advance(time.Minute) // it waits for others that are forwarded with it
	got := make(chan core.Inbound, 1)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		got <- *turn.First()
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	check(<-got, "delete all notes")
}

// A platform repeats updates after an end. The first edit is above the rate and has no row that
// tells that it is known.
func TestARepeatedEditAboveTheRateDoesNotPutTheOlderTextBack(t *testing.T) {
	f := newFixture(t, func(o *options) { o.Rate = func() queue.Rate { return queue.Rate{N: 1, Per: time.Minute} } })
	f.put(msg(1, "a", "ann", "a slip"))
	var edits []core.Inbound
	for n := range 14 {
		e := edit(n+2, "1", "ann", fmt.Sprintf("edit %d", n))
		e.Edit = fmt.Sprintf("2026-07-01T12:00:%02d.000000+00:00", n)
		edits = append(edits, e)
	}
	edits[13].At = edits[13].At.Add(time.Hour) // when the rate allows edits again
	edits[13].Edit = "2026-07-01T13:00:00.000000+00:00"
	f.put(edits...)
	f.put(edits...)
	f.put(edits[12:13]...)
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	if got := f.reply(); got != "re: edit 13" {
		t.Errorf("answered %q", got)
	}
}
