package discord

import (
	"testing"

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
