package discord

import (
	"context"
	"errors"
	"testing"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/connectorstest"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

// With the platform's rate limits: each change needs two requests in a row.
func TestNoReactionStaysUnderAnAnsweredMessage(t *testing.T) {
	s := platform(t, discordtest.Options{})
	b := connect(t, s, &connectorstest.Store{}, nil)
	ada := s.NewUser("Ada")
	ada.Send("hello")
	message := s.Screen(ada.DM()).Messages[0].ID
	to := core.Address{Bot: "bot", Chat: ada.DM().String()}
	for _, step := range []struct{ emoji, want string }{{"👀", "👀"}, {"✍", "✍"}, {"", ""}} {
		if err := b.React(t.Context(), to, message.String(), step.emoji); err != nil {
			t.Fatalf("%q: %v", step.emoji, err)
		}
		got := ""
		for _, r := range s.Screen(ada.DM()).Messages[0].Reactions {
			got += r.Emoji
		}
		if got != step.want {
			t.Errorf("after %q the message has %q", step.emoji, got)
		}
	}
}

// A removal that was left out is tried again.
func TestAReactionThatTheRateLimitLeavesNoRoomForIsReportedAsLeftOut(t *testing.T) {
	s := platform(t, discordtest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	b := connect(t, s, &connectorstest.Store{}, func(o *Options) { o.Clock = endless{core.System{}, cancel} })
	ada := s.NewUser("Ada")
	ada.Send("hello")
	message := s.Screen(ada.DM()).Messages[0].ID
	to := core.Address{Bot: "bot", Chat: ada.DM().String()}
	err := b.React(ctx, to, message.String(), "👀")
	if err == nil {
		err = b.React(ctx, to, message.String(), "")
	}
	if !errors.Is(err, connectors.ErrNotNow) {
		t.Errorf("React returned %v", err)
	}
}

// An endless wait never ends, and cancels what waits.
type endless struct {
	core.Clock
	cancel func()
}

func (e endless) After(time.Duration) <-chan time.Time {
	e.cancel()
	return nil
}
