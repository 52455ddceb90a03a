package queue

import "testing"

// Two claims of one lane can have the same number, where the first was rolled back.
func TestAClaimThatFailedHidesNoOtherTurnOfItsLane(t *testing.T) {
	s := &slots{open: true, free: 4, running: map[string]*Turn{}}
	turn := func() *Turn {
		if !s.reserve(false) {
			t.Fatal("no slot")
		}
		x := &Turn{Lane: "l", Epoch: 5}
		s.begin(x)
		return x
	}
	failed, kept := turn(), turn()
	s.cancelTurn(failed)
	if !s.runs("l") {
		t.Error("the turn that was claimed after the failed one is not known to run")
	}
	next := turn() // claimed by the transaction that settles kept, which fails
	s.cancelTurn(next)
	if !s.runs("l") {
		t.Error("the turn whose settling failed is not known to run")
	}
	s.end(kept)
	if s.runs("l") || s.count() != 0 {
		t.Error("a turn that has ended is still known")
	}
}
