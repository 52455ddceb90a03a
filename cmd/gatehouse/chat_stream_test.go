package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
)

type lockedChanges struct {
	mu  sync.Mutex
	got []telegramtest.Change
}

func (l *lockedChanges) add(c telegramtest.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, c)
}

func (l *lockedChanges) all() []telegramtest.Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.got)
}

// changes collects what becomes visible in a chat.
func (w *world) changes(in telegramtest.Conversation) (all func() []telegramtest.Change) {
	var seen lockedChanges
	w.t.Cleanup(w.sim.Watch(func(c telegramtest.Change) {
		if c.Conversation == in {
			seen.add(c)
		}
	}))
	return seen.all
}

// slowly is an answer that takes about three seconds.
func slowly(n int) llmtest.Reply {
	var pieces []string
	for i := range n {
		pieces = append(pieces, strings.Repeat("word ", 9)+string(rune('a'+i%26))+". ")
	}
	return llmtest.Reply{Text: pieces, Pause: 3 * time.Second / time.Duration(n)}
}

// In a direct message the answer grows as a draft, with typing, and the final
// message is whole and alone.
func TestADirectMessageShowsTypingAndAGrowingDraftAndThenTheWholeAnswer(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	ada := w.guest("Ada")
	seen := w.changes(ada.DM())
	model.Script(slowly(40))
	asked := ada.Send("a long question")
	whole := strings.TrimSpace(strings.Join(slowly(40).Text, ""))
	got := w.answers(ada.DM(), asked.ID)
	w.quiet()
	if strings.TrimSpace(got.Text) != whole || len(w.said(ada.DM(), asked.ID)) != 1 {
		t.Errorf("the answer: %q", w.said(ada.DM(), asked.ID))
	}
	var drafts []string
	typing := false
	for _, c := range seen() {
		switch {
		case c.Kind == telegramtest.ChangeDraft && c.Draft != nil:
			drafts = append(drafts, c.Draft.Text)
		case c.Kind == telegramtest.ChangeTyping && c.Typing.Action == "typing":
			typing = true
		}
	}
	if len(drafts) < 2 || !typing {
		t.Fatalf("%d drafts, typing %v", len(drafts), typing)
	}
	for _, d := range drafts {
		if !strings.HasPrefix(whole, strings.TrimSpace(d)) {
			t.Errorf("a draft that is no beginning of the answer: %q", d)
		}
	}
	if s := w.sim.Screen(ada.DM()); len(s.Drafts) != 0 || len(s.Typing) != 0 {
		t.Errorf("left over: %+v %+v", s.Drafts, s.Typing)
	}
}

// In a group the preview is one message, and the final is that message edited, or another
// one after ten seconds, as on a slow machine.
func TestAGroupsPreviewBecomesTheFinalByAnEdit(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	g := w.group(telegramtest.Supergroup, boss)
	model.Script(slowly(40))
	asked := w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("a long question")})
	preview := w.answers(g.Conversation(), asked.ID)
	whole := strings.TrimSpace(strings.Join(slowly(40).Text, ""))
	if strings.TrimSpace(preview.Text) == whole {
		t.Error("the whole answer came without a preview")
	}
	final := w.hears(g.Conversation(), func(m telegramtest.Message) bool { return strings.TrimSpace(m.Text) == whole })
	w.quiet()
	if final.ID != preview.ID && final.At.Sub(asked.At) < 10*time.Second || final.ReplyTo != asked.ID || len(w.said(g.Conversation(), asked.ID)) != 1 {
		t.Errorf("preview %d, final %d, quoting %d: %q", preview.ID, final.ID, final.ReplyTo, w.said(g.Conversation(), asked.ID))
	}
}

// A preview has a button that stops its run: for whoever asked, and for the
// owner; with the answer it goes, and one that is pressed late stops nothing.
func TestThePreviewsButtonStopsItsOwnRunAlone(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	eve := w.sim.NewUser("Eve")
	g := w.group(telegramtest.Supergroup, boss, eve)
	model.Script(llmtest.Reply{Text: []string{"As far as I got"}, Hang: true})
	asked := w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("a long question")})
	preview := w.answers(g.Conversation(), asked.ID)
	if len(preview.Buttons) != 1 || preview.Buttons[0][0].Text != "Stop" {
		t.Fatalf("the preview's buttons: %+v", preview.Buttons)
	}
	data := preview.Buttons[0][0].CallbackData
	if _, err := eve.Press(g.Conversation(), preview.ID, data); err != nil {
		t.Fatal(err)
	}
	w.until("her press is handled", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE kind = 'callback' AND state <> 'ready'`) == 1
	})
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'running'`); n != 1 {
		t.Fatal("somebody else has stopped the answer")
	}
	if _, err := boss.Press(g.Conversation(), preview.ID, data); err != nil {
		t.Fatal(err)
	}
	final := w.hears(g.Conversation(), func(m telegramtest.Message) bool { return strings.Contains(m.Text, "Stopped.") })
	if final.ID != preview.ID || asks(final) || !strings.Contains(final.Text, "As far as I got") {
		t.Errorf("the end: %+v", final)
	}
	model.Script(slowly(30))
	next := w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("another")})
	w.answers(g.Conversation(), next.ID)
	w.forge(boss, data)
	w.quiet()
	if n := w.count(`SELECT count(*) FROM runs WHERE state = 'aborted'`); n != 1 {
		t.Errorf("%d runs were stopped", n)
	}
}

// /stop ends the answer at once; what was said so far stays, marked, and stands
// in the conversation.
func TestStopEndsTheAnswerAtOnceAndKeepsWhatWasSaid(t *testing.T) {
	w, model := newModelWorld(t, nil)
	ada := w.guest("Ada")
	calls, tokens := model.Total(), w.metric("gatehouse_first_token_seconds")
	model.Script(llmtest.Reply{Text: []string{"As far as I got"}, Hang: true})
	asked := ada.Send("a question")
	if err := model.Await(t.Context(), calls+1); err != nil {
		t.Fatal(err)
	}
	w.until("some of it was said", func() bool {
		return w.metric("gatehouse_first_token_seconds") == tokens+1
	})
	ada.Send("/stop")
	got := w.answers(ada.DM(), asked.ID) // the model would never have ended
	if !strings.Contains(got.Text, "As far as I got") || !strings.Contains(got.Text, "Stopped.") {
		t.Errorf("the end: %q", got.Text)
	}
	w.quiet()
	if all := w.said(ada.DM(), asked.ID); len(all) != 1 {
		t.Errorf("the bot said %q", all)
	}
	w.replies(ada, "go on")
	rs := model.Requests()
	var told []string
	for _, m := range rs[len(rs)-1].Messages {
		told = append(told, m.Role+": "+m.Content)
	}
	if !slices.Contains(told, "assistant: As far as I got") {
		t.Errorf("the model was told %q", told)
	}
	if n := w.metric("gatehouse_runs_total", "outcome", "aborted"); n != 1 {
		t.Errorf("%v runs counted as aborted", n)
	}
}

// Who is revoked is not answered any more: not the run in progress, not what
// waits, not the next message.
func TestARevokeEndsTheRunInProgressAndRefusesTheNextMessage(t *testing.T) {
	w, model := newModelWorld(t, func(c *configs.Config) { c.BusyMode = "queue" })
	ada := w.guest("Ada")
	calls := model.Total()
	model.Script(llmtest.Reply{HangHead: true})
	asked := ada.Send("a question")
	if err := model.Await(t.Context(), calls+1); err != nil {
		t.Fatal(err)
	}
	ada.Send("what waits")
	w.until("it waits", func() bool { return w.count(`SELECT count(*) FROM inbox WHERE state = 'ready' AND attempts = 0`) == 1 })
	if _, err := w.app.pairing.People.Revoke(t.Context(), "telegram", fmt.Sprint(ada.ID()), core.Actor{User: 1, Via: "panel"}); err != nil {
		t.Fatal(err)
	}
	w.until("the run is over", func() bool { return w.count(`SELECT count(*) FROM runs WHERE state = 'running'`) == 0 })
	ada.Send("and now?")
	w.until("it is refused", func() bool { return w.metric("gatehouse_denied_total", "rule", "cool_off") >= 1 })
	w.quiet()
	if n := model.Total() - calls; n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	for _, text := range w.said(ada.DM(), asked.ID) {
		if strings.Contains(text, fakeSays) {
			t.Errorf("somebody revoked was answered: %q", text)
		}
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE state = 'refused'`); n != 1 {
		t.Errorf("%d rows refused, want the one that waited", n)
	}
}

// A long answer is split within the platform's limit; code blocks are closed
// and opened again, and nothing is lost at the seams.
func TestALongAnswerIsSplitWithoutLoss(t *testing.T) {
	w, model := newModelWorld(t, nil)
	ada := w.guest("Ada")
	var lines []string
	for i := range 800 {
		lines = append(lines, "line of code number "+strings.Repeat("x", i%7))
	}
	model.Script(llmtest.Say("Before.\n\n```go\n" + strings.Join(lines, "\n") + "\n```\n\nAfter."))
	asked := ada.Send("code, please")
	w.hearsText(ada, "After.")
	w.quiet()
	code := 0
	for _, m := range w.sim.History(ada.DM()) {
		if !m.FromBot() || m.ID < asked.ID {
			continue
		}
		if n := len([]rune(m.Text)); n > 4096 {
			t.Errorf("a message of %d characters", n)
		}
		lines := strings.Count(m.Text, "line of code number")
		code += lines
		pre := slices.ContainsFunc(m.Entities, func(e telegramtest.Entity) bool { return e.Type == "pre" && e.Language == "go" })
		if lines > 0 && !pre {
			t.Errorf("a part whose code is no code: %q", m.Text[:40])
		}
	}
	if code != 800 {
		t.Errorf("%d of 800 lines arrived", code)
	}
}

// Over the rate limit a direct message waits and is answered later; what is
// too much, and everything over the limit in a group, is refused with one word.
func TestTheRateLimitDelaysInADirectMessageAndRefusesInAGroup(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, func(c *configs.Config) { c.RateLimit = values.Rate{N: 3, Per: 2 * time.Second}; c.BusyMode = "queue" })
	boss := w.boss()
	ada := w.guest("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	first := ada.Send("1")
	for range 5 {
		ada.Send("n")
	}
	w.until("some wait", func() bool { return w.metric("gatehouse_updates_total", "outcome", "limited") >= 1 })
	w.until("all are answered in the end", func() bool { return len(w.said(ada.DM(), first.ID)) == 6 })
	w.quiet()
	for _, text := range w.said(ada.DM(), first.ID) {
		if text != fakeSays {
			t.Errorf("the bot said %q", text)
		}
	}
	var last telegramtest.Message
	for range 8 {
		m := w.post(boss, g.Conversation(), telegramtest.Outgoing{Text: w.mention("hello")})
		if last.ID == 0 {
			last = m
		}
	}
	w.until("some are refused", func() bool { return w.metric("gatehouse_updates_total", "outcome", "refused") >= 3 })
	w.quiet()
	notices := 0
	for _, text := range w.said(g.Conversation(), last.ID-1) {
		if strings.Contains(text, "reached your message limit") {
			notices++
		}
	}
	if notices < 1 || notices > 2 { // the platform's seconds may turn over in between
		t.Errorf("%d notices: %q", notices, w.said(g.Conversation(), last.ID))
	}
}
