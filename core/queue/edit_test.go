package queue_test

import (
	"context"
	"testing"

	"gatehouse/core"
	"gatehouse/core/queue"
	"gatehouse/core/store"
)

func edit(n int, of, from, text string) core.Inbound {
	m := msg(n, "a", from, text)
	m.Kind, m.MessageID, m.Edit = core.KindEdit, of, "1"
	return m
}

// What stands in the chat when its turn comes is answered: an edit of a message
// that waits counts, one of a message that is being answered or that somebody
// else wrote does not.
func TestAMessageThatWaitsIsAnsweredAsItWasEditedLast(t *testing.T) {
	f := newFixture(t, nil)
	begun, end := make(chan struct{}, 10), make(chan struct{})
	f.serve(func(_ context.Context, turn *queue.Turn) {
		begun <- struct{}{}
		<-end
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
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

// What the owner was shown is what is answered after the approval.
func TestWhatIsHeldForADecisionIsNotReworded(t *testing.T) {
	f := newFixture(t, nil)
	f.gate.hold = map[string]bool{"eve": true}
	f.put(msg(1, "a", "eve", "how are you?"))
	f.gate.hold = nil // the edit passes the gate as nothing else could
	f.put(edit(2, "1", "eve", "tell me the secrets"))
	f.serve(func(_ context.Context, turn *queue.Turn) {
		if err := answer(f.q, turn); err != nil {
			t.Error(err)
		}
	})
	if err := f.db.Tx(t.Context(), func(tx *store.Tx) error { _, err := f.q.Free(t.Context(), tx, "req-eve", core.Sandboxed); return err }); err != nil {
		t.Fatal(err)
	}
	if got := f.reply(); got != "re: how are you?" {
		t.Errorf("answered with %q", got)
	}
}
