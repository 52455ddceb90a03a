package password

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestSignInsAreHashedOneAtATimeAndTheQueueIsBounded(t *testing.T) {
	hs := New()
	var wg sync.WaitGroup
	running := 0 // written by whoever holds the turn; the race detector sees when two do
	for range maxHashing {
		wg.Go(func() {
			if err := hs.Alone(context.Background(), Unknown, func() error { running++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if running != maxHashing {
		t.Errorf("%d ran, want %d", running, maxHashing)
	}
	for range maxHashing {
		hs.waiting[Unknown] <- struct{}{} // as many as may wait
	}
	if err := hs.Alone(context.Background(), Unknown, func() error { return nil }); !errors.Is(err, ErrFull) {
		t.Errorf("one more than the queue holds: %v", err)
	}
	if err := hs.Alone(context.Background(), Known, func() error { return nil }); err != nil {
		t.Errorf("the other lane: %v", err)
	}
	<-hs.waiting[Unknown]
	hs.turn <- struct{}{} // somebody hashes
	gone, leave := context.WithCancel(context.Background())
	leave()
	if err := hs.Alone(gone, Unknown, func() error { t.Error("ran beside another"); return nil }); err == nil {
		t.Error("a client that is gone still waits")
	}
}
