package main

import (
	"context"
	"fmt"
	"net/url"
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

// A stranger on each platform, one approval each, by the panel and by the API:
// both first messages are answered, and what one may is nothing to the other,
// also where both have the same id.
func TestAConversationAcrossBothPlatformsWithOneApprovalEach(t *testing.T) {
	w, sim := onDiscord(t)
	ada := w.sim.NewUser("Ada")
	same, err := sim.AddUser(discordtest.Account{ID: discordtest.ID(ada.ID()), Name: "Ada"}) // Telegram's number, here another person
	if err != nil {
		t.Fatal(err)
	}
	dm := same.DM()
	ada.Send("How long should green tea brew?")
	same.Send("How long should green tea brew?")
	onTelegram := w.request(ada)
	discordHears(w, sim, dm, "code")
	onDiscord := discordRequest(w, same)
	if onTelegram.ID == onDiscord.ID || onTelegram.Code == onDiscord.Code {
		t.Fatalf("one request for two people: %+v, %+v", onTelegram, onDiscord)
	}

	b := w.browser()
	page := b.page("/admin/pairing")
	for _, name := range []string{"Telegram", "Discord"} {
		if !strings.Contains(page, name) {
			t.Errorf("the panel does not say that somebody waits on %s", name)
		}
	}
	if status, body := b.submit("/admin/pairing/"+onTelegram.ID+"/approve", page, url.Values{"trust": {"sandboxed"}}); status != 200 {
		t.Fatal("the panel: ", status, body)
	}
	w.hearsText(ada, "Public/tea.md")
	// Approved on one, a stranger on the other.
	same.Send("And black tea?")
	if r := discordRequest(w, same); r.Status != "pending" {
		t.Fatalf("an approval on Telegram made the one on Discord %q", r.Status)
	}
	if n := w.count("SELECT count(*) FROM access WHERE bot = 'discord'"); n != 0 {
		t.Errorf("%d people may write on Discord before anybody was approved there", n)
	}
	if status, body := w.call("POST", "/api/bots/pairing/"+onDiscord.ID+"/approve", map[string]string{}); status != 200 {
		t.Fatal("the API: ", status, body)
	}
	discordHears(w, sim, dm, "Public/tea.md")
	for _, bot := range []string{"telegram", "discord"} {
		if n := w.count("SELECT count(*) FROM access WHERE bot = $1", bot); n != 1 {
			t.Errorf("%d people may write to the bot on %s, want one", n, bot)
		}
	}
	// Taken back on one, it stands on the other.
	if _, err := w.app.book.Revoke(t.Context(), "telegram", fmt.Sprint(ada.ID()), cli); err != nil {
		t.Fatal(err)
	}
	before := len(sim.History(dm))
	same.Send("And herbal tea?")
	w.until("an answer on Discord", func() bool {
		for _, m := range sim.History(dm)[before:] {
			if m.From.Bot && strings.Contains(m.Text, "Public/") {
				return true
			}
		}
		return false
	})
}

// discordRequest is the newest request of a person there.
func discordRequest(w *world, u *discordtest.User) core.PairingRequest {
	w.t.Helper()
	rs, err := w.app.book.Requests(w.t.Context(), "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rs {
		if r.Platform == "discord" && r.PlatformUserID == u.ID().String() {
			return r
		}
	}
	w.t.Fatalf("no request of %s on Discord among %d", u.Account().Name, len(rs))
	return core.PairingRequest{}
}
