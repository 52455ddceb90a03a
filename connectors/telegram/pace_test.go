package telegram

import (
	"testing"
	"time"

	"gatehouse/core/coretest"
)

// run counts how many messages the gate lets into the chats within d when
// each waits as long as it is told.
func run(g *gate, clock *coretest.Clock, chats []int64, d time.Duration) (sent []time.Time) {
	end := clock.Now().Add(d)
	for clock.Now().Before(end) {
		wait := time.Hour
		for _, c := range chats {
			for g.wait(c) == 0 && clock.Now().Before(end) {
				g.take(c)
				sent = append(sent, clock.Now())
			}
			wait = min(wait, g.wait(c))
		}
		clock.Advance(wait)
	}
	return sent
}

// most is the largest number of times within any window.
func most(times []time.Time, window time.Duration) int {
	best, from := 0, 0
	for i, at := range times {
		for at.Sub(times[from]) >= window {
			from++
		}
		best = max(best, i-from+1)
	}
	return best
}

func TestThePlatformsPaceIsHeldInEveryWindow(t *testing.T) {
	var many []int64
	for i := range int64(200) {
		many = append(many, i+1)
	}
	for _, c := range []struct {
		name   string
		chats  []int64
		window time.Duration
		most   int
	}{
		{"one private chat", []int64{7}, 10 * time.Second, 12},
		{"one group", []int64{-7}, time.Minute, 20},
		{"all chats", many, time.Second, 30},
	} {
		clock := coretest.NewClock(time.Time{})
		got := most(run(newGate(clock, true), clock, c.chats, 5*time.Minute), c.window)
		if got > c.most || got < c.most*2/3 {
			t.Errorf("%s: up to %d in %v, want at most %d and not far less", c.name, got, c.window, c.most)
		}
	}
}

func TestAPreviewNeverDelaysAFinal(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	for _, chat := range []int64{7, -7} {
		g := newGate(clock, true)
		shown := 0
		for range 600 {
			if g.try(chat, 1) {
				shown++
			}
			g.try(chat, typingShare)
			if wait := g.wait(chat); wait > 0 {
				t.Fatalf("chat %d: a final would wait %v after %d previews", chat, wait, shown)
			}
			clock.Advance(100 * time.Millisecond)
		}
		if shown < 5 {
			t.Errorf("chat %d: %d previews in a minute", chat, shown)
		}
	}
}

func TestRetryAfterIsLawEvenWithoutPace(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	g := newGate(clock, false)
	for range 1000 {
		g.take(7)
	}
	if g.wait(7) != 0 {
		t.Fatal("pace is off")
	}
	g.block(7, time.Hour)
	g.block(7, time.Second)
	if g.wait(7) != time.Hour || g.try(7, 1) || g.wait(8) != 0 {
		t.Errorf("waits %v and %v", g.wait(7), g.wait(8))
	}
	clock.Advance(time.Hour)
	if g.wait(7) != 0 || !g.try(7, 1) {
		t.Errorf("still %v", g.wait(7))
	}
}

func TestTheGateForgetsIdleChatsFirst(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	g := newGate(clock, true)
	g.block(1, time.Hour)
	for i := range int64(maxPaced - 1) {
		g.take(i + 100)
	}
	g.wait(1)
	g.of(1)
	for i := range int64(maxPaced / 2) {
		g.take(i + 1_000_000)
	}
	if len(g.chats) != maxPaced || g.order.Len() != maxPaced {
		t.Errorf("%d chats remembered, bound is %d", len(g.chats), maxPaced)
	}
	if g.wait(1) == 0 {
		t.Error("a chat in use was forgotten")
	}
}
