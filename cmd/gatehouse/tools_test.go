package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
)

// wantsToWrite is a message whose model asks to change a file of the owner's.
const wantsToWrite = "Please note it down.\nuse Write {\"file_path\":\"Notes/plan.md\",\"content\":\"Buy tea.\\n\"}"

// note is the owner's file, "" while there is none.
func (w *world) note() string {
	b, err := os.ReadFile(filepath.Join(w.cfg.VaultPath, "Notes", "plan.md"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

// The owner asks for a file change in a chat, sees what the tool wants and the
// buttons, approves, and the file is changed. The buttons are gone afterwards.
func TestTheOwnerApprovesAFileChangeInTheChatOnTelegram(t *testing.T) {
	w := newWorld(t, nil)
	olga := w.boss()
	mark := olga.Send(wantsToWrite)
	ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && len(m.Buttons) > 0 })
	if !strings.Contains(ask.Text, "Write wants to change Notes/plan.md") || w.note() != "" {
		t.Fatalf("asked: %q; the file: %q", ask.Text, w.note())
	}
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow once")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered") })
	if w.note() != "Buy tea.\n" {
		t.Errorf("the file: %q", w.note())
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID == ask.ID && strings.Contains(m.Text, "Approved") && len(m.Buttons) == 0
	})
}

// A grant for the session is asked for once.
func TestAGrantCoversTheNextCallAndNothingElse(t *testing.T) {
	w := newWorld(t, nil)
	olga := w.boss()
	mark := olga.Send(wantsToWrite)
	ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && len(m.Buttons) > 0 })
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow in this session")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered") })
	if m := w.replies(olga, strings.Replace(wantsToWrite, "Buy tea.", "Buy milk.", 1)); len(m.Buttons) > 0 || !strings.Contains(m.Text, "The tool") {
		t.Errorf("the second time: %q", m.Text)
	}
	mark = olga.Send(strings.Replace(wantsToWrite, "Notes/plan.md", "Other/plan.md", 1))
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "Other/plan.md") && len(m.Buttons) > 0 })
}

// A guest who asks for the same is refused, and told why; nobody is bothered.
func TestAGuestIsRefusedAFileOfTheOwnersOnTelegram(t *testing.T) {
	w := newWorld(t, nil)
	olga := w.boss()
	ada := w.guest("Ada")
	before := len(w.sim.History(olga.DM()))
	m := w.replies(ada, wantsToWrite)
	if !strings.Contains(m.Text, "The tool failed") || !strings.Contains(m.Text, "Guests/") || w.note() != "" {
		t.Errorf("the guest reads %q, the file: %q", m.Text, w.note())
	}
	w.quiet()
	if n := len(w.sim.History(olga.DM())); n != before {
		t.Errorf("the owner was asked about what no grant could open")
	}
}

func telegramButton(t *testing.T, m telegramtest.Message, label string) string {
	t.Helper()
	for _, row := range m.Buttons {
		for _, b := range row {
			if strings.HasPrefix(b.Text, label) {
				return b.CallbackData
			}
		}
	}
	t.Fatalf("no button %q under %q: %+v", label, m.Text, m.Buttons)
	return ""
}

func discordButton(t *testing.T, m discordtest.Message, label string) string {
	t.Helper()
	for _, row := range m.Buttons {
		for _, b := range row {
			if strings.HasPrefix(b.Label, label) {
				return b.CustomID
			}
		}
	}
	t.Fatalf("no button %q under %q: %+v", label, m.Text, m.Buttons)
	return ""
}

// The same on the second platform: the owner approves, a guest is refused.
func TestTheOwnerApprovesAFileChangeAndAGuestIsRefusedOnDiscord(t *testing.T) {
	w, sim := onDiscord(t)
	olga := sim.NewUser("Olga")
	code, _, err := w.app.book.NewClaim(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	olga.Send("/claim " + code)
	discordHears(w, sim, olga.DM(), "own")
	olga.Send(wantsToWrite)
	ask := discordHears(w, sim, olga.DM(), "Write wants to change Notes/plan.md")
	if w.note() != "" {
		t.Fatalf("written before it was allowed: %q", w.note())
	}
	if _, err := olga.Press(olga.DM(), ask.ID, discordButton(t, ask, "Allow once")); err != nil {
		t.Fatal(err)
	}
	discordHears(w, sim, olga.DM(), "The tool answered")
	if w.note() != "Buy tea.\n" {
		t.Errorf("the file: %q", w.note())
	}
	ada := sim.NewUser("Ada")
	ada.Send(strings.Replace(wantsToWrite, "Buy tea.", "Buy gin.", 1))
	discordHears(w, sim, ada.DM(), "code")
	rs, err := w.app.book.Requests(context.Background(), "pending", 10)
	if err != nil || len(rs) != 1 {
		t.Fatal(rs, err)
	}
	if _, err := w.app.book.Approve(t.Context(), rs[0].ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	if m := discordHears(w, sim, ada.DM(), "The tool failed"); !strings.Contains(m.Text, "Guests/") || w.note() != "Buy tea.\n" {
		t.Errorf("the guest reads %q, the file: %q", m.Text, w.note())
	}
}
