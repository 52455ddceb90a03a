package dispatch_test

import (
	"context"
	"slices"
	"testing"

	"gatehouse/core"
	"gatehouse/core/dispatch"
)

func TestAReactionIsRemovedLaterWhereThePlatformHasNoRoomNow(t *testing.T) {
	for _, full := range []int{0, 3} {
		h := open(t)
		h.fullFor = full
		held, began := make(chan struct{}), make(chan struct{})
		h.model = func(ctx context.Context, text string) (string, error) {
			if text == "first" {
				close(began)
				<-held
			}
			return "re: " + text, nil
		}
		reacted := func(emoji string) func() bool {
			return func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return slices.Contains(h.reacted, "a/2:"+emoji)
			}
		}
		h.put(core.Inbound{Address: chat("a"), Text: "first"})
		<-began
		h.put(core.Inbound{Address: chat("a"), Text: "second"})
		h.until("it is shown that the second waits", reacted(dispatch.Waits))
		close(held)
		h.until("the emoji is removed", reacted(""))
	}
}
