package interactions

import (
	"context"
	"testing"
)

// A command that the platform sends again is pending again.
func TestThinkingIsNotDeletedWhileAnotherResponseIsPending(t *testing.T) {
	r := New(Options{}, nil)
	slot := slotPrefix + "1/2/token"
	r.slots.add(slot)
	first := make(chan struct{})
	r.pending["1/2/token"] = first
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r.abandon(ended, slot) || r.pending["1/2/token"] != first {
		t.Error("the pending response is replaced")
	}
	r.Release([]string{"1/2/token"})
	if !r.abandon(t.Context(), slot) {
		t.Error("the slot is not open any more")
	}
}
