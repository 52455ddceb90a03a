package main

import (
	"strings"
	"testing"
	"time"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

func TestAReminderIsDeliveredWhereItWasAskedForOnceOverARestart(t *testing.T) {
	w, model, clock := newScheduleWorld(t)
	boss := w.boss()
	w.replies(boss, "/timezone UTC")
	if m := w.replies(boss, "/remind"); !strings.Contains(m.Text, "/remind 20m tea") {
		t.Errorf("without a time: %q", m.Text)
	}
	if m := w.replies(boss, "/remind 20m *tea* <b>"); !strings.Contains(m.Text, "I will remind you:") || !strings.Contains(m.Text, "12:5") {
		t.Errorf("set: %q", m.Text)
	}
	if m := w.replies(boss, "/remind 18:30 call home"); !strings.Contains(m.Text, "18:30") {
		t.Errorf("set: %q", m.Text)
	}
	model.Script(llmtest.CallTool("a", "Remind", `{"in":"2h","text":"post the letter"}`), llmtest.Say("I will."))
	if m := w.replies(boss, "remind me of the letter in two hours"); m.Text != "I will." {
		t.Errorf("by the model: %q", m.Text)
	}
	w.quiet()
	before := len(w.said(boss.DM(), 0))
	clock.leap(21 * time.Minute)
	m := w.hearsText(boss, "⏰ *tea* <b>")
	if strings.Contains(m.Text, "late") {
		t.Errorf("in time: %q", m.Text)
	}
	w.stop()
	clock.leap(2 * time.Hour) // the letter was due while the gateway was down
	w.start()
	if m := w.hearsText(boss, "⏰ post the letter"); !strings.Contains(m.Text, "This is late, because the gateway was not running. It was due:") {
		t.Errorf("late: %q", m.Text)
	}
	w.quiet()
	if got := w.said(boss.DM(), 0)[before:]; len(got) != 2 {
		t.Errorf("delivered: %q", got)
	}
	list := w.replies(boss, "/reminders")
	if !strings.Contains(list.Text, "18:30: call home") || strings.Contains(list.Text, "tea") || len(list.Buttons) != 1 {
		t.Errorf("listed: %q %v", list.Text, list.Buttons)
	}
	if _, err := boss.Press(boss.DM(), list.ID, list.Buttons[0][0].CallbackData); err != nil {
		t.Fatal(err)
	}
	w.hearsText(boss, "The reminder is cancelled.")
	if m := w.replies(boss, "/reminders"); !strings.Contains(m.Text, "You have no reminders") {
		t.Errorf("after the last: %q", m.Text)
	}
}

// A guest has reminders as the owner does; who is shut out or forgotten gets none.
func TestAReminderOfAGuestEndsWithTheirAccess(t *testing.T) {
	w, _, clock := newScheduleWorld(t)
	boss := w.boss()
	ada, bob := w.guest("Ada"), w.guest("Bob")
	for _, u := range []*telegramtest.User{ada, bob} {
		if m := w.replies(u, "/remind 20m tea of "+u.Account().FirstName); !strings.Contains(m.Text, "I will remind you") {
			t.Errorf("set: %q", m.Text)
		}
	}
	stranger := w.sim.NewUser("Eve")
	stranger.Send("/remind 20m tea of Eve")
	w.request(stranger)
	w.quiet()
	if n := w.count(`SELECT count(*) FROM reminders`); n != 2 {
		t.Errorf("%d reminders", n)
	}
	rows := w.count(`SELECT user_id FROM reminders WHERE text = 'tea of Bob'`)
	w.sql(`DELETE FROM access WHERE user_id = $1`, rows)
	clock.leap(21 * time.Minute)
	w.hearsText(ada, "⏰ tea of Ada")
	w.quiet()
	if got := w.said(bob.DM(), 0); strings.Contains(strings.Join(got, "|"), "⏰") || w.count(`SELECT count(*) FROM reminders`) != 0 {
		t.Errorf("without access: %q", got)
	}
	_ = boss
}

// What a user is reminded of in private is not listed where others read along, and a reminder that is set when
// the one before has ended is delivered like that.
func TestRemindersOfADirectChatAreNotListedInAGroup(t *testing.T) {
	w, _, clock := newScheduleWorld(t)
	boss := w.boss()
	g := w.group(telegramtest.Supergroup, boss, w.guest("Ada"))
	w.replies(boss, "/remind 20m see the doctor")
	m := w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: "/remind 2h water the garden"})
	w.answers(g.Conversation(), m.ID)
	m = w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: "/reminders"})
	if list := w.answers(g.Conversation(), m.ID); strings.Contains(list.Text, "doctor") || !strings.Contains(list.Text, "water the garden") || len(list.Buttons) != 1 {
		t.Errorf("in the group: %q %v", list.Text, list.Buttons)
	}
	if list := w.replies(boss, "/reminders"); !strings.Contains(list.Text, "see the doctor") || !strings.Contains(list.Text, "water the garden") {
		t.Errorf("alone: %q", list.Text)
	}
	w.sql(`DELETE FROM reminders WHERE text = 'water the garden'`)
	clock.leap(21 * time.Minute)
	w.hearsText(boss, "⏰ see the doctor")
	w.quiet()
	w.replies(boss, "/remind 20m call home")
	clock.leap(21 * time.Minute)
	w.hearsText(boss, "⏰ call home")
}
