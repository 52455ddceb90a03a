package backoff

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core/coretest"
)

func TestBackOffForgetsAndIsBounded(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	b := New(clock, 3, time.Minute)
	var waits []string
	for range 12 {
		b.Fail("a")
		waits = append(waits, b.Wait("a").String())
	}
	if got, want := strings.Join(waits, " "), "0s 0s 1s 2s 4s 8s 16s 32s 1m0s 1m0s 1m0s 1m0s"; got != want {
		t.Errorf("waits %s, want %s", got, want)
	}
	clock.Advance(-30 * time.Minute) // a clock that jumps back must not lock for long
	if w := b.Wait("a"); w > time.Hour {
		t.Errorf("after a jump back: %v", w)
	}
	clock.Advance(2 * time.Hour)
	if w := b.Wait("a"); w != 0 {
		t.Errorf("after an hour: %v", w)
	}
	for i := range 2 * MaxTracked {
		clock.Advance(time.Millisecond)
		b.Fail(fmt.Sprint("x", i))
	}
	if len(b.seen) > MaxTracked {
		t.Errorf("%d tracked, want at most %d", len(b.seen), MaxTracked)
	}
}
