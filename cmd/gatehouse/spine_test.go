package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/store"
)

// The main job: a stranger writes, is shown a code, is approved with a trust
// level, and what they wrote first is answered, from the part of the vault
// that guests may read.
func TestAStrangersFirstMessageIsAnsweredAfterApproval(t *testing.T) {
	w := newWorld(t, nil)
	ada := w.sim.NewUser("Ada")
	ada.Send("How long should green tea brew?")
	r := w.request(ada)
	code := w.hearsText(ada, r.Code)
	if strings.Contains(code.Text, "tea") {
		t.Errorf("a stranger was answered: %q", code.Text)
	}
	if status, body := w.call("POST", "/api/bots/pairing/"+r.ID+"/approve", map[string]string{"trust_level": "sandboxed"}); status != 200 {
		t.Fatalf("approve: %d %s", status, body)
	}
	m := w.hearsText(ada, "Public/")
	if !strings.Contains(m.Text, "tea") || strings.Contains(m.Text, "Private/") {
		t.Errorf("the answer: %q", m.Text)
	}
}

// A stranger may correct what they wrote while they wait: the owner is shown the
// message as it is in the chat, and after the approval it is what is answered.
func TestAStrangersEditedMessageIsShownAndAnsweredAfterApproval(t *testing.T) {
	w := newWorld(t, nil)
	ada := w.sim.NewUser("Ada")
	m := ada.Send("How long should black coffee brew?")
	ada.Send("Thank you!")
	r := w.request(ada)
	if _, err := ada.Edit(ada.DM(), m.ID, "How long should green tea brew?"); err != nil {
		t.Fatal(err)
	}
	w.until("the request shows the edited text", func() bool {
		now, err := w.app.pairing.Request(t.Context(), r.ID)
		return err == nil && now.FirstMessage == "How long should green tea brew?"
	})
	if page := w.browser().page("/admin/pairing"); !strings.Contains(page, "green tea") || strings.Contains(page, "coffee") {
		t.Error("the panel shows the text from before the edit")
	}
	if status, body := w.call("POST", "/api/bots/pairing/"+r.ID+"/approve", map[string]string{"trust_level": "sandboxed"}); status != 200 {
		t.Fatalf("approve: %d %s", status, body)
	}
	if got := w.hearsText(ada, "Public/"); !strings.Contains(got.Text, "tea") || strings.Contains(got.Text, "coffee") {
		t.Errorf("the answer: %q", got.Text)
	}
}

// The owner's message about a stranger shows what the stranger's message has become, with
// its buttons; edits shortly after each other are shown together.
func TestAStrangersEditedMessageIsShownWhereTheOwnerDecidesInChat(t *testing.T) {
	w := newWorld(t, nil)
	boss := w.boss()
	ada := w.sim.NewUser("Ada")
	m := ada.Send("How long should black coffee brew?")
	card := w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "black coffee") })
	edit := func(text string) {
		t.Helper()
		if _, err := ada.Edit(ada.DM(), m.ID, text); err != nil {
			t.Fatal(err)
		}
		w.until("the edit is stored", func() bool {
			return w.count(`SELECT count(*) FROM pairing_requests WHERE first_message = $1`, text) == 1
		})
	}
	shows := func(text string) telegramtest.Message {
		t.Helper()
		return w.hears(boss.DM(), func(m telegramtest.Message) bool { return m.ID == card.ID && strings.Contains(m.Text, text) })
	}
	edit("How long should green tea brew?")
	shows("green tea brew?")
	edit("How long should white tea brew?")
	edit("How long does green tea brew?")
	w.quiet()
	shows("green tea brew?")
	if err := w.app.db.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE pairing_requests SET card_at = $1`, core.Stamp(time.Now().Add(-time.Minute)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.app.upkeep.Once(t.Context(), 1)
	last := shows("How long does green tea brew?")
	if n := len(w.sim.Requests(0, "editMessageText")); n != 2 {
		t.Errorf("the message was edited %d times, want 2", n)
	}
	if _, err := boss.Press(boss.DM(), card.ID, telegramButton(t, last, "Approve (sandboxed)")); err != nil {
		t.Fatal(err)
	}
	w.hearsText(ada, "Public/")
}

// One function stands behind the panel, the chat, the command line and the
// API: whoever comes second learns who was first.
func TestFourWaysToDecideAndOneWinner(t *testing.T) {
	t.Parallel()
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	w := newWorld(t, nil)
	boss := w.owner("Olga")
	panel := w.browser()
	page := panel.page("/admin/pairing") // for its token
	for i := range rounds {
		ada := w.sim.NewUser(fmt.Sprint("Ada ", i))
		ada.Send("hello there")
		r := w.request(ada)
		ask := w.hears(boss.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, r.Code) && len(m.Buttons) > 0 })
		var mu sync.Mutex
		var wins, losses int
		count := func(won bool) {
			mu.Lock()
			defer mu.Unlock()
			if won {
				wins++
			} else {
				losses++
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { // the panel
			_, said := panel.submit("/admin/pairing/"+r.ID+"/approve", page, url.Values{"trust": {"sandboxed"}})
			said = flash.FindString(said)
			won := strings.Contains(said, "may talk to")
			if !won && !strings.Contains(strings.ToLower(said), "already approved by") {
				t.Errorf("the panel lost without a word who won: %q", said)
			}
			count(won)
		})
		wg.Go(func() { // the command line
			err := w.overSocket("POST", "/api/bots/pairing/"+r.Code+"/approve", nil, nil)
			if err != nil && !strings.Contains(core.TextOf(err), "already approved by") {
				t.Errorf("the command line lost without a word who won: %v", err)
			}
			count(err == nil)
		})
		wg.Go(func() { // the API
			status, body := w.call("POST", "/api/bots/pairing/"+r.ID+"/approve", map[string]string{})
			if status != 200 && (status != 409 || !strings.Contains(body, "already approved by")) {
				t.Errorf("the API lost with %d %s", status, body)
			}
			count(status == 200)
		})
		wg.Go(func() { // the owner's button
			if _, err := boss.Press(boss.DM(), ask.ID, ask.Buttons[0][0].CallbackData); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		w.hears(ada.DM(), func(m telegramtest.Message) bool {
			return strings.Contains(m.Text, "Public/") || strings.Contains(m.Text, "nothing")
		})
		if wins > 1 || wins+losses != 3 {
			t.Fatalf("round %d: %d winners of the three, %d losers", i, wins, losses)
		}
		if n := w.count(`SELECT count(*) FROM audit_events WHERE action = 'pairing.approve' AND subject = $1`, r.ID); n != 1 {
			t.Errorf("round %d: %d audit rows", i, n)
		}
		if n := w.count(`SELECT count(*) FROM outbox WHERE chat = $1 AND key LIKE 'run:%'`, fmt.Sprint(ada.ID())); n != 1 {
			t.Errorf("round %d: %d answers", i, n)
		}
	}
}

// A group that becomes a supergroup gets another id; what was decided and said
// in it goes along.
func TestAGroupThatBecomesASupergroupStaysEnabled(t *testing.T) {
	w := newWorld(t, nil)
	boss := w.owner("Olga")
	g := w.sim.NewGroup(telegramtest.Basic, "Reading circle", boss)
	if _, err := boss.Post(g.Conversation(), telegramtest.Outgoing{Text: "/enable@gatehouse_bot"}); err != nil {
		t.Fatal(err)
	}
	w.hears(g.Conversation(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "This group is enabled") })
	super := g.Migrate(boss)
	if _, err := boss.Post(super.Conversation(), telegramtest.Outgoing{Text: "@gatehouse_bot how long does green tea brew?"}); err != nil {
		t.Fatal(err)
	}
	w.hears(super.Conversation(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Public/") })
	if n := w.count(`SELECT count(*) FROM places WHERE enabled = 1 AND place = $1`, fmt.Sprint(g.ID())); n != 0 {
		t.Errorf("the old id is still enabled: %d rows", n)
	}
}

// A stop in the middle of an answer gives the message back; after the start it
// is answered once, and the conversation holds the question once.
func TestAnAnswerCutByAStopIsGivenAfterTheStartOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *configs.Config) {
		c.DrainTimeout = 0
		c.Model = "local/quote:30ms"
	})
	ada := w.friend("Ada")
	w.hearsText(ada, "No language model") // the answer to her hello
	before := len(w.sim.Requests(0, "sendMessageDraft"))
	ada.Send("And how long does green tea brew?")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := w.sim.AwaitRequest(ctx, 0, "sendMessageDraft", func(r telegramtest.Request) bool {
		return len(w.sim.Requests(0, "sendMessageDraft")) > before
	}); err != nil {
		t.Fatal("the answer never began to show: ", err)
	}
	w.stop()
	w.start()
	defer w.stop()
	w.hears(ada.DM(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Public/tea.md") })
	if n := w.count(`SELECT count(*) FROM runs WHERE attempt = 2 AND state = 'done'`); n != 1 {
		t.Errorf("%d runs were done at the second attempt", n)
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE attempts > 1`); n != 0 {
		t.Errorf("a stop counted against %d messages", n)
	}
	files, err := filepath.Glob(filepath.Join(w.cfg.VaultPath, ".claude", "projects", "*", "*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("transcripts %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "And how long does green tea brew?"); n != 1 {
		t.Errorf("the question stands %d times in the transcript", n)
	}
}

// flash is what the panel says to a decision.
var flash = regexp.MustCompile(`(?s)id="flash".*?</p>`)
