package discord

import (
	"time"

	"gatehouse/connectors"
	"gatehouse/core"
)

// typingShare is how many typing signs cost as much as one message: they have a
// limit of their own, but go through the same gate.
const typingShare = 4

// newGate holds the platform's pace
// (https://discord.com/developers/docs/topics/rate-limits): 50 requests a
// second in all, and per channel what its headers say, usually 5 messages in 5
// seconds. Ours hold the same before the first header is seen.
func newGate(clock core.Clock, on bool) *connectors.Pace[string] {
	return connectors.NewPace(clock, on, connectors.Rate{Every: 25 * time.Millisecond, Burst: 10}, func(string) connectors.Rate {
		return connectors.Rate{Every: time.Second, Burst: 5}
	})
}
