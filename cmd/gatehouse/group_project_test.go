package main

import (
	"strings"
	"testing"

	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// groupAsks has a member of a group write to the bot, and returns the answer.
func (w *world) groupAsks(g *telegramtest.Group, u *telegramtest.User, text string) string {
	w.t.Helper()
	m := w.post(u, g.Conversation(), telegramtest.Outgoing{Text: text})
	got := w.answers(g.Conversation(), m.ID)
	w.quiet()
	return got.Text
}

func TestProjectOfAGroupIsChosenByItsManagersAlone(t *testing.T) {
	t.Parallel()
	w, _ := newModelWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	w.replies(boss, "/project Hidden")
	w.groupAsks(g, boss, w.mention("hello everyone"))
	if got := w.groupAsks(g, boss, "/project"); !strings.Contains(got, "no project") || strings.Contains(got, "Hidden") {
		t.Errorf("%q", got)
	}
	if got := w.groupAsks(g, ada, "/project Garden"); !strings.Contains(got, "owner") || w.count(`SELECT count(*) FROM projects WHERE name = 'Garden'`) != 0 {
		t.Errorf("a member chose a project: %q", got)
	}
	if got := w.groupAsks(g, boss, "/project Garden"); !strings.Contains(got, "Garden") {
		t.Errorf("%q", got)
	}
	inGarden := func() int {
		return w.count(`SELECT count(*) FROM sessions s JOIN projects p ON p.project_id = s.project_id WHERE p.name = 'Garden' AND p.user_id = 1 AND s.scope = 'group'`)
	}
	if n := inGarden(); n != 1 {
		t.Errorf("%d conversations of the group are in the project", n)
	}
	w.groupAsks(g, boss, "/new")
	w.groupAsks(g, ada, w.mention("what shall we plant?"))
	if n := inGarden(); n != 2 {
		t.Errorf("%d conversations of the group are in the project after /new", n)
	}
	if got := w.groupAsks(g, ada, "/project"); strings.Contains(got, "Garden") {
		t.Errorf("a member was shown %q", got)
	}
	w.groupAsks(g, boss, "/project off")
	if n := inGarden(); n != 1 {
		t.Errorf("%d conversations of the group are in the project after it was left", n)
	}
}

// Two members say what they want in the group's project: it reaches the prompts for each of
// them in its conversations, and no prompt for the other.
func TestWhatAMemberSaysForAGroupsProjectStaysTheirs(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss, ada := w.boss(), w.guest("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	w.groupAsks(g, boss, "/project Garden")
	for _, u := range []*telegramtest.User{boss, ada} {
		w.groupAsks(g, u, w.mention("how far is the market?"))
		w.groupAsks(g, u, w.mention("In this project, always mention the marker of "+u.Account().FirstName+"."))
	}
	if n := w.count(`SELECT count(*) FROM corrections c JOIN projects p ON p.project_id = c.scope_ref WHERE c.scope = 'project' AND p.name = 'Garden'`); n != 2 {
		t.Fatalf("%d corrections are of the project, want 2", n)
	}
	block := func() string { // what is remembered, apart from the conversation, which all members read
		got := wire(t, model)
		var all []string
		for _, part := range strings.Split(got, "for this project")[1:] {
			line, _, _ := strings.Cut(part, "\\n")
			all = append(all, line)
		}
		return strings.Join(all, "|")
	}
	w.groupAsks(g, boss, "/new")
	for _, c := range []struct {
		user       *telegramtest.User
		own, other string
	}{{boss, "the marker of Olga", "the marker of Ada"}, {ada, "the marker of Ada", "the marker of Olga"}} {
		w.groupAsks(g, c.user, w.mention("how far is the sea?"))
		if got := block(); !strings.Contains(got, c.own) || strings.Contains(got, c.other) {
			t.Errorf("of %s: %q", c.user.Account().FirstName, got)
		}
		model.Script(llmtest.Say("Near."))
		w.replies(c.user, "How far is the sea?")
		w.quiet()
		if got := block(); got != "" {
			t.Errorf("outside of the project, of %s: %q", c.user.Account().FirstName, got)
		}
	}
}
