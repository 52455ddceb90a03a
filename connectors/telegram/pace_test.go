package telegram

import (
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/core/coretest"
)

// run counts how many messages the gate lets into the chats within d when
// each waits as long as it is told.
func run(g *connectors.Pace[int64], clock *coretest.Clock, chats []int64, d time.Duration) (sent []time.Time) {
	end := clock.Now().Add(d)
	for clock.Now().Before(end) {
		wait := time.Hour
		for _, c := range chats {
			for g.Wait(c) == 0 && clock.Now().Before(end) {
				g.Take(c)
				sent = append(sent, clock.Now())
			}
			wait = min(wait, g.Wait(c))
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
			if g.Try(chat, 1) {
				shown++
			}
			g.Try(chat, typingShare)
			if wait := g.Wait(chat); wait > 0 {
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
		g.Take(7)
	}
	if g.Wait(7) != 0 {
		t.Fatal("pace is off")
	}
	g.Block(7, time.Hour)
	g.Block(7, time.Second)
	if g.Wait(7) != time.Hour || g.Try(7, 1) || g.Wait(8) != 0 {
		t.Errorf("waits %v and %v", g.Wait(7), g.Wait(8))
	}
	clock.Advance(time.Hour)
	if g.Wait(7) != 0 || !g.Try(7, 1) {
		t.Errorf("still %v", g.Wait(7))
	}
}
