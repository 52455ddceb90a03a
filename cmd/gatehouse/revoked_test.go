package main

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// On both platforms a user whose access was revoked learns of it once, and is let in again in
// the panel and by a command.
func TestWhoWasRevokedLearnsOfItAndIsApprovedAgainOnBothPlatforms(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	boss := w.boss()
	ada, bob := w.guest("Ada"), sim.NewUser("Bob")
	bob.Send("Hello")
	discordHears(w, sim, bob.DM(), "code")
	if _, err := w.app.pairing.Approve(t.Context(), discordRequest(w, bob).ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	for platform, id := range map[string]string{"telegram": fmt.Sprint(ada.ID()), "discord": bob.ID().String()} {
		if _, err := w.app.pairing.People.Revoke(t.Context(), platform, id, cli); err != nil {
			t.Fatal(err)
		}
	}
	w.quiet()
	ada.Send("Am I still in?")
	w.hearsText(ada, "Your access to me has ended")
	if got := w.said(ada.DM(), 0); !regexp.MustCompile(`^Your access to me has ended, .* After \w+day, \d+ \w+( \d{4})?, \d\d:\d\d \S+ you can ask for access again`).MatchString(got[len(got)-1]) {
		t.Errorf("on Telegram: %q", got[len(got)-1])
	}
	bob.Send("Am I still in?")
	discordHears(w, sim, bob.DM(), "Your access to me has ended")
	said := len(sim.History(bob.DM()))
	bob.Send("And now?")
	ada.Send("And now?")
	w.until("it is refused", func() bool { return w.metric("gatehouse_denied_total", "rule", "cool_off") >= 4 })
	w.quiet()
	if got := len(sim.History(bob.DM())); got != said+1 {
		t.Errorf("%d messages of the bot for one notice", got-said)
	}

	list := w.replies(boss, "/pairing").Text
	ref := regexp.MustCompile(`Bob, id \d+ on discord, .* To approve again: /approve ([a-z0-9]{16})`).FindStringSubmatch(list)
	if ref == nil {
		t.Fatalf("/pairing: %q", list)
	}
	if got := w.replies(boss, "/approve "+ref[1]+" vault").Text; !strings.Contains(got, "Approved Bob at trust vault") {
		t.Errorf("/approve: %q", got)
	}
	discordHears(w, sim, bob.DM(), "You have access to me again")

	b := w.browser()
	page := b.page("/admin/pairing")
	id := requestOn(w, "telegram", fmt.Sprint(ada.ID())).ID
	for _, want := range []string{`<span class="pill bad">Revoked</span>`, "Approve Ada again", "/admin/pairing/" + id + "/approve"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page Pairing has no %q", want)
		}
	}
	if status, body := b.submit("/admin/pairing/"+id+"/approve", page, url.Values{"trust": {"sandboxed"}, "end": {""}}); status != 200 {
		t.Fatal(status, body)
	}
	w.hearsText(ada, "You have access to me again")
	if page := b.page("/admin/pairing"); strings.Contains(page, "pill bad\">Revoked") {
		t.Error("the page still shows somebody as revoked")
	}
	next := ada.Send("How long should green tea brew?")
	if m := w.answers(ada.DM(), next.ID); !strings.Contains(m.Text, "tea") {
		t.Errorf("approved again, they read %q", m.Text)
	}
}

func TestACodeInAGroupIsAnsweredOnceOnBothPlatforms(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	boss, ada := w.boss(), w.guest("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	m := w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: "/pair K7M2-Q9XT-ABCD-EFGH"})
	if got := w.answers(g.Conversation(), m.ID); !strings.Contains(got.Text, "Send codes to me in a direct message") {
		t.Errorf("on Telegram: %q", got.Text)
	}
	last := w.post(ada, g.Conversation(), telegramtest.Outgoing{Text: "/link K7M2-Q9XT-ABCD"})
	w.until("it is refused", func() bool { return w.metric("gatehouse_denied_total", "rule", "claim") == 2 })
	w.quiet()
	if got := w.said(g.Conversation(), last.ID); len(got) != 0 {
		t.Errorf("told again: %q", got)
	}

	olga, bob := sim.NewUser("Olga"), sim.NewUser("Bob")
	guild := sim.NewGuild("Reading circle", olga, bob)
	channel := guild.NewChannel("general")
	if err := w.app.pairing.Places.Enable(t.Context(), "discord", channel.String(), "general", core.Sandboxed, cli); err != nil {
		t.Fatal(err)
	}
	says(w, bob, channel, sim.Bot().Mention()+" /pair K7M2-Q9XT-ABCD-EFGH")
	discordHears(w, sim, channel, "Send codes to me in a direct message")
}

// TestHelpIsOneMessageOnBothPlatforms has the owner's, which is the longest.
func TestHelpIsOneMessageOnBothPlatforms(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	olga := discordOwner(w, sim)
	olga.Send("/help")
	m := discordHears(w, sim, olga.DM(), "/help remind")
	if !strings.Contains(m.Text, "Conversations") || !strings.Contains(m.Text, "/disable") {
		t.Errorf("on Discord: %s", m.Text)
	}
	ada := w.guest("Ada")
	got := w.replies(ada, "/help").Text
	if !strings.Contains(got, "Conversations") || !strings.Contains(got, "/help remind") || strings.Contains(got, "Who may use me") {
		t.Errorf("on Telegram: %s", got)
	}
	t.Logf("on Discord, %d characters:\n%s\n\non Telegram:\n%s", len(utf16.Encode([]rune(m.Text))), m.Text, got)
}
