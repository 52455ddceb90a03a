package dispatch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"gatehouse/core"
)

// A guest has three runs at work, however many chats and requests there are:
// further messages wait without a slot, and are answered.
func TestAGuestHasThreeRunsAtOnce(t *testing.T) {
	h := open(t)
	h.level = core.Sandboxed
	var at, most atomic.Int32
	goOn := make(chan struct{})
	h.model = func(ctx context.Context, _ string) (string, error) {
		if n := at.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer at.Add(-1)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return "ok", nil
	}
	for i := range 5 {
		h.put(core.Inbound{Address: chat(fmt.Sprint("c", i)), Text: "hello"})
	}
	h.until("three are at work", func() bool { return at.Load() == 3 })
	h.put(core.Inbound{Address: core.Address{Bot: core.APIBot, Chat: "5f3c1a52-5a0c-4a5e-9a39-0a4c2f0f6d11"}, Text: "hello", Turn: &core.Options{User: 2, Run: "5f3c1a52-5a0c-4a5e-9a39-0a4c2f0f6d12"}})
	h.until("a request is refused", func() bool {
		var n int
		return h.db.Get(t.Context(), &n, `SELECT count(*) FROM runs WHERE error = 'busy'`) == nil && n == 1
	})
	close(goOn)
	h.until("all are answered", func() bool {
		for i := range 5 {
			if len(h.heard(fmt.Sprint("c", i))) != 1 {
				return false
			}
		}
		return true
	})
	if most.Load() != 3 {
		t.Errorf("%d at once", most.Load())
	}
}
