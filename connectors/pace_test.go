package connectors

import (
	"testing"
	"time"

	"gatehouse/core/coretest"
)

func TestTheGateForgetsIdleChatsFirst(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	g := NewPace(clock, true, Rate{time.Second, 5}, func(int64) Rate { return Rate{time.Second, 3} })
	g.Block(1, time.Hour)
	for i := range int64(maxPaced - 1) {
		g.Take(i + 100)
	}
	g.Wait(1)
	g.of(1)
	for i := range int64(maxPaced / 2) {
		g.Take(i + 1_000_000)
	}
	if g.chats.Len() != maxPaced || len(g.chats.nodes) != maxPaced+1 {
		t.Errorf("%d chats remembered, bound is %d", g.chats.Len(), maxPaced)
	}
	if g.Wait(1) == 0 {
		t.Error("a chat in use was forgotten")
	}
}
