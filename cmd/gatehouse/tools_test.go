package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/tool"
)

// wantsToWrite is a message whose model asks to change a file of the owner's.
const wantsToWrite = "Please note it down.\nuse Write {\"file_path\":\"Notes/plan.md\",\"content\":\"Buy tea.\\n\"}"

// hasty cuts at a stop what waits for a person.
func hasty(c *configs.Config) { c.DrainTimeout = time.Millisecond }

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
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	mark := olga.Send(wantsToWrite)
	ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
	if !strings.Contains(ask.Text, "Write wants to change Notes/plan.md") || w.note() != "" {
		t.Fatalf("asked: %q; the file: %q", ask.Text, w.note())
	}
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow this call only")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered")
	})
	if w.note() != "Buy tea.\n" {
		t.Errorf("the file: %q", w.note())
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID == ask.ID && strings.Contains(m.Text, "Approved") && len(m.Buttons) == 0
	})
}

// A grant for the session is asked for once.
func TestAGrantCoversTheNextCallAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	olga := w.boss()
	mark := olga.Send(wantsToWrite)
	ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "This file in this conversation")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered")
	})
	if m := w.replies(olga, strings.Replace(wantsToWrite, "Buy tea.", "Buy milk.", 1)); asks(m) || !strings.Contains(m.Text, "The tool") {
		t.Errorf("the second time: %q", m.Text)
	}
	mark = olga.Send(strings.Replace(wantsToWrite, "Notes/plan.md", "Other/plan.md", 1))
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "Other/plan.md") && asks(m)
	})
}

// Who is approved again after a revocation begins without the grants of before: the
// call that was allowed for the conversation is asked for again.
func TestAGrantEndsWithTheAccessOfItsPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	olga, vera := w.boss(), w.guest("Vera")
	w.sql(`UPDATE access SET trust_level = 'vault' WHERE user_id = $1`, w.person(vera))
	w.replies(vera, "/new")
	w.quiet()
	asked := func(after int) telegramtest.Message {
		return w.hears(olga.DM(), func(m telegramtest.Message) bool {
			return m.ID > after && asks(m) && strings.Contains(m.Text, "Notes/plan.md")
		})
	}
	mark := vera.Send(wantsToWrite)
	ask := asked(0)
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "This file in this conversation")); err != nil {
		t.Fatal(err)
	}
	w.hears(vera.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered")
	})
	again := strings.Replace(wantsToWrite, "Buy tea.", "Buy milk.", 1)
	if m := w.replies(vera, again); !strings.Contains(m.Text, "The tool") {
		t.Fatalf("the grant covers nothing, so this shows nothing: %q", m.Text)
	}
	w.quiet()
	session := w.sessionIn(vera)
	if _, err := w.app.pairing.People.Revoke(t.Context(), "telegram", fmt.Sprint(vera.ID()), core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	if err := w.app.pairing.People.GiveAccess(t.Context(), w.person(vera), "telegram", "", core.Approval{Trust: core.Vault}, core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	vera.Send(strings.Replace(wantsToWrite, "Buy tea.", "Buy cake.", 1))
	asked(ask.ID)
	if w.sessionIn(vera) != session {
		t.Error("it is another conversation, so this shows nothing")
	}
	if strings.Contains(w.note(), "cake") {
		t.Errorf("an old grant was used: %q", w.note())
	}
}

// Once it is decided, the chat still says what it was that was allowed.
func TestADecidedAskReportsWhatWasDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	mark := olga.Send(wantsToWrite)
	ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow this call only")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID == ask.ID && len(m.Buttons) == 0 && m.Text == "Write: Notes/plan.md\nApproved by operator via chat."
	})
}

// A guest who asks for the same is refused, and told why; nobody is bothered.
func TestAGuestIsRefusedAFileOfTheOwnersOnTelegram(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	ada := w.guest("Ada")
	before := len(w.sim.History(olga.DM()))
	m := w.replies(ada, fromGuests(wantsToWrite))
	if !strings.Contains(m.Text, "The tool failed") || !strings.Contains(m.Text, "Guests/") || w.note() != "" {
		t.Errorf("the guest reads %q, the file: %q", m.Text, w.note())
	}
	w.quiet()
	if n := len(w.sim.History(olga.DM())); n != before {
		t.Errorf("the owner was asked about what no grant could open")
	}
}

// fromGuests returns wantsToWrite as a guest's turn names the owner's file: it works in
// the guest's own folder.
func fromGuests(text string) string { return strings.Replace(text, "Notes/", "../../Notes/", 1) }

// asks reports whether the message wants a decision: it has other buttons than
// those under an answer.
func asks(m telegramtest.Message) bool {
	for _, row := range m.Buttons {
		for _, b := range row {
			again := strings.HasPrefix(b.CallbackData, "again:")
			file := strings.HasPrefix(b.CallbackData, "file:")
			if !again && !file {
				return true
			}
		}
	}
	return false
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
	t.Parallel()
	w, sim := onDiscord(t)
	olga := sim.NewUser("Olga")
	code, _, err := w.app.pairing.Codes.NewClaim(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	olga.Send("/claim " + code)
	discordHears(w, sim, olga.DM(), "own")
	olga.Send(wantsToWrite)
	ask := discordHears(w, sim, olga.DM(), "Write wants to change `Notes/plan.md`")
	if w.note() != "" || !strings.Contains(ask.Text, "```diff\n+ Buy tea.\n```") {
		t.Fatalf("asked: %q; the file: %q", ask.Text, w.note())
	}
	if _, err := olga.Press(olga.DM(), ask.ID, discordButton(t, ask, "Allow this call only")); err != nil {
		t.Fatal(err)
	}
	discordHears(w, sim, olga.DM(), "The tool answered")
	if w.note() != "Buy tea.\n" {
		t.Errorf("the file: %q", w.note())
	}
	ada := sim.NewUser("Ada")
	ada.Send(fromGuests(strings.Replace(wantsToWrite, "Buy tea.", "Buy gin.", 1)))
	discordHears(w, sim, ada.DM(), "code")
	rs, err := w.app.pairing.Requests(context.Background(), "pending", 10)
	if err != nil || len(rs) != 1 {
		t.Fatal(rs, err)
	}
	if _, err := w.app.pairing.Approve(t.Context(), rs[0].ID, core.Approval{}, cli); err != nil {
		t.Fatal(err)
	}
	if m := discordHears(w, sim, ada.DM(), "The tool failed"); !strings.Contains(m.Text, "Guests/") || w.note() != "Buy tea.\n" {
		t.Errorf("the guest reads %q, the file: %q", m.Text, w.note())
	}
}

// Tools ask in chats until the owner says otherwise, and again after that is
// undone; nobody else can say so.
func TestTrustAutoLetsToolsContinueUntilItIsUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	olga, ada := w.boss(), w.guest("Ada")
	if m := w.replies(ada, "/trust auto"); !strings.Contains(m.Text, "Only the owner") {
		t.Errorf("a guest: %q", m.Text)
	}
	w.replies(olga, "/trust auto") // before the first message: it holds for the conversation that begins
	if m := w.replies(olga, wantsToWrite); !strings.Contains(m.Text, "The tool answered") || asks(m) || w.note() == "" {
		t.Errorf("with trust auto: %q", m.Text)
	}
	w.quiet()
	if m := w.replies(olga, "use Read {\"file_path\":\".env\"}"); !strings.Contains(m.Text, "The tool failed") {
		t.Errorf("the deny list: %q", m.Text)
	}
	w.quiet()
	w.replies(olga, "/trust ask")
	mark := olga.Send(strings.Replace(wantsToWrite, "plan.md", "other.md", 1))
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
}

// A question of the model's is answered by a button or in one's own words, by
// the person who was asked.
func TestAQuestionIsAnsweredInTheChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	const ask = `use AskUserQuestion {"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black","description":"stronger"}]}]}`
	mark := olga.Send(ask)
	q := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "Which tea?") })
	if _, err := olga.Press(olga.DM(), q.ID, telegramButton(t, q, "Black")); err != nil {
		t.Fatal(err)
	}
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered") && strings.Contains(m.Text, "Black")
	})
	w.quiet()
	mark = olga.Send(ask)
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "Which tea?") })
	olga.Send("Neither, coffee please")
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered") && strings.Contains(m.Text, "coffee")
	})
}

// A voice message or a photo would be an empty answer, and be lost: it waits its turn, and
// its sender learns once that the question still does.
func TestWhatHasNoTextAnswersNoQuestionAndIsAnsweredAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	olga := w.boss()
	const ask = `use AskUserQuestion {"questions":[{"question":"Which tea?","header":"Tea","options":[{"label":"Green"},{"label":"Black"}]}]}`
	mark := olga.Send(ask)
	w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "Which tea?") })
	for _, m := range []telegramtest.Outgoing{
		{File: &telegramtest.File{Kind: "voice", Data: []byte("OggS")}},
		{File: &telegramtest.File{Kind: "photo", Name: "p.jpg", Data: []byte("\xff\xd8\xff")}, Text: "this one?"},
	} {
		if _, err := olga.Post(olga.DM(), m); err != nil {
			t.Fatal(err)
		}
	}
	reminds := func(m telegramtest.Message) bool { return m.ID > mark.ID && strings.Contains(m.Text, "still waits") }
	w.hears(olga.DM(), reminds)
	w.until("both are stored", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND state IN ('ready', 'limited')`) >= 2
	})
	if n := w.count(`SELECT count(*) FROM inbox WHERE kind = 'answer'`); n != 0 {
		t.Errorf("%d were taken for answers", n)
	}
	olga.Send("Black")
	w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "The tool answered") && strings.Contains(m.Text, "Black")
	})
	w.until("what waited is done", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE state IN ('ready', 'limited', 'held')`) == 0
	})
	w.quiet()
	if n := w.count(`SELECT count(*) FROM inbox WHERE kind = 'message' AND state = 'done'`); n != 3 {
		t.Errorf("%d messages were answered, want the one that led to the question, the voice message and the photo", n)
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE key LIKE 'notice:asked:%'`); n != 1 {
		t.Errorf("reminded %d times", n)
	}
}

// After a crash in a tool's work the person reads what was interrupted, and
// a button goes on with it.
func TestAnInterruptedToolIsReportedAndAButtonContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	olga := w.boss()
	began := make(chan struct{}, 1)
	tools := slices.Clone(w.app.tools.Tools)
	tools[slices.IndexFunc(tools, func(x tool.Tool) bool { return x.Name == "Write" })].Run = func(ctx context.Context, _ *tool.Call) (tool.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	}
	w.app.tools.Tools = tools
	mark := olga.Send(wantsToWrite)
	ask := w.hears(olga.DM(), func(m telegramtest.Message) bool { return m.ID > mark.ID && asks(m) })
	if _, err := olga.Press(olga.DM(), ask.ID, telegramButton(t, ask, "Allow this call only")); err != nil {
		t.Fatal(err)
	}
	<-began
	w.stop()
	w.start()
	defer w.stop()
	m := w.hears(olga.DM(), func(m telegramtest.Message) bool {
		return m.ID > mark.ID && strings.Contains(m.Text, "interrupted during Write Notes/plan.md")
	})
	if w.note() != "" {
		t.Errorf("it was written: %q", w.note())
	}
	w.quiet()
	if _, err := olga.Press(olga.DM(), m.ID, telegramButton(t, m, "Go on")); err != nil {
		t.Fatal(err)
	}
	w.until("the message to go on is answered", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE update_id LIKE 'choice:%' AND state = 'done'`) == 1
	})
}

// What .parachuteignore names is in no answer, by a tool or without one.
func TestWhatParachuteignoreNamesIsShownToNoOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *configs.Config) {
		hasty(c)
		for name, text := range map[string]string{".parachuteignore": "Diary/\n", "Diary/day.md": "The zebra is my secret.\n"} {
			path := filepath.Join(c.VaultPath, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	olga := w.boss()
	if m := w.replies(olga, "What about the zebra?"); strings.Contains(m.Text, "secret") {
		t.Errorf("quoted: %q", m.Text)
	}
	w.quiet()
	if m := w.replies(olga, `use Read {"file_path":"Diary/day.md"}`); !strings.Contains(m.Text, "The tool failed") || strings.Contains(m.Text, "zebra") {
		t.Errorf("read: %q", m.Text)
	}
}
