package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/core"
)

// onDiscord is a whole gateway with a bot on each platform.
func onDiscord(t *testing.T) (*world, *discordtest.Server) {
	t.Helper()
	sim := newDiscord(t)
	w := newWorld(t, func(c *configs.Config) {
		c.DiscordToken, c.DiscordApiURL = values.NewSecret(sim.Token()), sim.URL()
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
	t.Parallel()
	w, sim := onDiscord(t)
	ada := sim.NewUser("Ada")
	dm := ada.DM()
	ada.Send("How long should green tea brew?")
	discordHears(w, sim, dm, "code")
	rs, err := w.app.pairing.Requests(t.Context(), "pending", 10)
	if err != nil || len(rs) != 1 || rs[0].Platform != "discord" || rs[0].PlatformUserID != fmt.Sprint(uint64(ada.ID())) {
		t.Fatalf("requests %+v, %v", rs, err)
	}
	if _, err := w.app.pairing.Approve(t.Context(), rs[0].ID, core.Approval{}, cli); err != nil {
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
	t.Parallel()
	w, sim := onDiscord(t)
	ada := w.sim.NewUser("Ada")
	same, err := sim.AddUser(discordtest.Account{ID: discordtest.ID(ada.ID()), Name: "Ada"}) // Telegram's number, here another person
	if err != nil {
		t.Fatal(err)
	}
	dm := same.DM()
	ada.Send("How long should green tea brew?")
	same.Send("How long should green tea brew?")
	w.hearsText(ada, "Your code is")
	onTelegram := requestOn(w, "telegram", fmt.Sprint(ada.ID()))
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
	if _, err := w.app.pairing.People.Revoke(t.Context(), "telegram", fmt.Sprint(ada.ID()), cli); err != nil {
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
	return requestOn(w, "discord", u.ID().String())
}

// requestOn is the newest request under an id of a platform; the same number on
// another platform is somebody else.
func requestOn(w *world, platform, id string) core.PairingRequest {
	w.t.Helper()
	rs, err := w.app.pairing.Requests(w.t.Context(), "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rs {
		if r.Platform == platform && r.PlatformUserID == id {
			return r
		}
	}
	w.t.Fatalf("no request of %s on %s among %d", id, platform, len(rs))
	return core.PairingRequest{}
}

// discordOwner is a person who claimed the bots on Discord.
func discordOwner(w *world, sim *discordtest.Server) *discordtest.User {
	w.t.Helper()
	olga := sim.NewUser("Olga")
	code, _, err := w.app.pairing.Codes.NewClaim(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	olga.Send("/claim " + code)
	discordHears(w, sim, olga.DM(), "You are the owner now")
	return olga
}

// says writes in a channel, and is the message's id.
func says(w *world, u *discordtest.User, in discordtest.ID, text string) discordtest.ID {
	w.t.Helper()
	m, err := u.Say(in, text)
	if err != nil {
		w.t.Fatal(err)
	}
	return m.ID
}

// In a server's channel the bot is silent until its owner enables it there, then
// answers mentions, replies and commands behind a mention, each in its thread,
// and hears nothing else; a channel opens no direct messages.
func TestInAServersChannelOnlyWhatIsMeantForTheBotIsAnswered(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	olga, ada := discordOwner(w, sim), sim.NewUser("Ada")
	guild := sim.NewGuild("Reading circle", olga, ada)
	channel, us := guild.NewChannel("general"), sim.Bot().Mention()+" "

	says(w, ada, channel, us+"anybody there?")
	w.until("it is heard and refused", func() bool { return w.metric("gatehouse_denied_total", "rule", "place") == 1 })
	says(w, olga, channel, us+"/enable")
	discordHears(w, sim, channel, "This group is enabled")
	w.quiet()
	if n := len(sim.History(channel)); n != 3 {
		t.Errorf("%d messages: a channel that is not enabled was answered", n)
	}

	asked := says(w, ada, channel, us+"how long should green tea brew?")
	answer := discordHears(w, sim, channel, "Public/tea.md")
	if answer.ReplyTo != asked {
		t.Errorf("the answer replies to %s, want %s", answer.ReplyTo, asked)
	}
	w.quiet()
	says(w, ada, channel, "just talking of gatehouse and green tea")
	w.until("it is heard and passed over", func() bool { return w.metric("gatehouse_denied_total", "rule", "unaddressed") == 1 })
	says(w, ada, channel, us+"/whoami")
	discordHears(w, sim, channel, "sandboxed")

	thread, err := ada.StartThread(channel, 0, "Tea talk")
	if err != nil {
		t.Fatal(err)
	}
	says(w, ada, thread, us+"and black tea?")
	discordHears(w, sim, thread, "Public/tea.md")
	w.quiet()
	if n := w.count("SELECT count(DISTINCT session_id) FROM runs WHERE bot = 'discord'"); n != 2 {
		t.Errorf("channel and thread are %d conversations, want 2", n)
	}
	ada.Send("and here?")
	discordHears(w, sim, ada.DM(), "Your code is")
}

// What people wrote while the gateway was away and no session lived is read
// back, and goes the way of all messages: a friend's is answered once, a
// stranger's waits with their request.
func TestWhatWasWrittenOnDiscordConcurrentlyPassesTheSameGate(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	bob, eve := sim.NewUser("Bob"), sim.NewUser("Eve")
	for _, u := range []*discordtest.User{bob, eve} {
		u.Send("hello")
		discordHears(w, sim, u.DM(), "code")
	}
	if _, err := w.app.pairing.Approve(t.Context(), discordRequest(w, bob).ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	discordHears(w, sim, bob.DM(), "Your request was approved")
	w.quiet()
	w.stop()
	w.until("the platform has noticed that the bot is away", func() bool { return !sim.Bot().Online() })
	sim.Bot().EndSessions()
	before := len(sim.History(bob.DM()))
	bob.Send("How long should green tea brew?")
	eve.Send("How long should black tea brew?")
	w.start()
	defer w.stop()
	w.until("both are read back", func() bool {
		return w.count("SELECT count(*) FROM inbox WHERE bot = 'discord' AND state = 'held'") == 2 // Eve's two
	})
	discordHears(w, sim, bob.DM(), "Public/tea.md")
	w.quiet()
	if said := sim.History(bob.DM())[before:]; len(said) != 2 {
		t.Errorf("answered %d times: %+v", len(said)-1, said)
	}
	for _, m := range sim.History(eve.DM()) {
		if strings.Contains(m.Text, "Public/") {
			t.Errorf("a stranger was told %q", m.Text)
		}
	}
	if _, err := w.app.pairing.Approve(t.Context(), discordRequest(w, eve).ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	discordHears(w, sim, eve.DM(), "Public/tea.md")
}
