package queue_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// pausing is a platform of which one bot may not write now.
type pausing struct {
	*platform
	bot string
}

func (p pausing) Wait(to core.Address) time.Duration {
	if to.Bot == p.bot {
		return time.Hour
	}
	return 0
}

// More chats of a bot wait for its platform than are worked on, and there are older replies of a
// bot that this process does not send for.
func TestWhatWaitsForOneBotDelaysNoOther(t *testing.T) {
	f := newFixture(t, func(o *options) { o.sender = pausing{o.sender.(*platform), "bot"} })
	f.serve(nil)
	post := func(bot string, chats int) {
		t.Helper()
		if err := f.db.Tx(t.Context(), func(tx *store.Tx) error {
			for i := range chats {
				if err := f.out.Post(t.Context(), tx, core.Reply{Address: core.Address{Bot: bot, Chat: fmt.Sprint(i)}, Key: fmt.Sprint(bot, i), Parts: []core.Part{{Text: bot}}}); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	post("gone", 1100)
	post("bot", 600)
	if err := f.out.Hold(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	post("other", 1)
	if got := f.reply(); got != "other" {
		t.Errorf("sent %q", got)
	}
	pass := f.timePasses() // the grace period of a stop, in which the others are not sent either
	defer pass()
	f.stop()
}
