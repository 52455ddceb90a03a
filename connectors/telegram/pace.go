package telegram

import (
	"time"

	"gatehouse/connectors"
	"gatehouse/core"
)

// typingShare is how many typing signs cost as much as one message: they are
// none, but go through the same gate.
const typingShare = 4

// newGate returns the platform's rate limits (https://core.telegram.org/bots/faq, "My
// bot is hitting limits"): about one message a second in one chat with short bursts, 20
// a minute in a group, 30 a second over all chats. Ours are below each in any window: a
// group gets 3 at once and 17 a minute after that. Chats are identified by number:
// threads of one group share its limit, and a negative number is a group.
func newGate(clock core.Clock, on bool) *connectors.Pace[int64] {
	return connectors.NewPace(clock, on, connectors.Rate{Every: 40 * time.Millisecond, Burst: 5}, func(chat int64) connectors.Rate {
		if chat < 0 {
			return connectors.Rate{Every: 3500 * time.Millisecond, Burst: 3}
		}
		return connectors.Rate{Every: time.Second, Burst: 3}
	})
}
