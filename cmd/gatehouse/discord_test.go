package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

// onDiscord is a whole gateway with a bot on each platform.
func onDiscord(t *testing.T) (*world, *discordtest.Server) {
	t.Helper()
	sim := newDiscord(t)
	w := newWorld(t, func(c *configs.Config) {
		c.DiscordToken, c.DiscordApiURL = configs.NewSecret(sim.Token()), sim.URL()
	})
	w.until("the bot is online", func() bool {
		for _, b := range w.app.hub.States() {
			if b.Bot == "discord" && (b.State == core.Running || b.State == core.Degraded) {
				return true
			}
		}
		return false
	})
	return w, sim
}

// newDiscord is a platform that gives its bot what people write.
func newDiscord(t *testing.T) *discordtest.Server {
	t.Helper()
	sim := discordtest.New(discordtest.Options{FloodOff: true, Bots: []discordtest.BotAccount{{Intents: discordtest.IntentContent}}})
	t.Cleanup(func() { _ = sim.Close() })
	return sim
}

func discordHears(w *world, sim *discordtest.Server, in discordtest.ID, text string) discordtest.Message {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	m, err := sim.AwaitMessage(ctx, in, func(m discordtest.Message) bool { return m.From.Bot && strings.Contains(m.Text, text) })
	if err != nil {
		w.t.Fatalf("the bot did not say %q: %v\n%s", text, err, w.log.String())
	}
	return m
}

// The same gate, on the second platform: a stranger is shown a code, is
// approved, and is answered; the first platform's people stay what they were.
func TestOnTheSecondPlatformAStrangersFirstMessageIsAnsweredAfterApproval(t *testing.T) {
	w, sim := onDiscord(t)
	ada := sim.NewUser("Ada")
	dm := ada.DM()
	ada.Send("How long should green tea brew?")
	discordHears(w, sim, dm, "code")
	rs, err := w.app.book.Requests(t.Context(), "pending", 10)
	if err != nil || len(rs) != 1 || rs[0].Platform != "discord" || rs[0].PlatformUserID != fmt.Sprint(uint64(ada.ID())) {
		t.Fatalf("requests %+v, %v", rs, err)
	}
	if _, err := w.app.book.Approve(t.Context(), rs[0].ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	if m := discordHears(w, sim, dm, "Public/tea.md"); strings.Contains(m.Text, "Private/") {
		t.Errorf("the answer: %q", m.Text)
	}
	// The same number on the other platform is another person.
	bob := w.sim.NewUser("Bob")
	bob.Send("hello")
	w.hearsText(bob, "Your code is")
}
