package queue_test

import (
	"testing"
)

// What waits is counted for one sender of one bot, and no further than asked.
func TestWhatWaitsOfASenderIsCounted(t *testing.T) {
	f := newFixture(t, nil)
	for i := range 5 {
		f.put(msg(i, "dm", "ann", "one"))
	}
	f.put(msg(10, "other", "bob", "two"))
	bot := msg(0, "dm", "ann", "").Bot
	for _, c := range []struct {
		bot, sender string
		most, want  int
	}{{bot, "ann", 100, 5}, {bot, "ann", 3, 3}, {bot, "bob", 100, 1}, {bot, "eve", 100, 0}, {"x", "ann", 100, 0}} {
		if n, err := f.inspect().Queued(t.Context(), c.bot, c.sender, c.most); err != nil || n != c.want {
			t.Errorf("%s on %s, up to %d: %d, %v", c.sender, c.bot, c.most, n, err)
		}
	}
}
