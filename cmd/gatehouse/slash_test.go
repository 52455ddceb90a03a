package main

import (
	"slices"
	"strings"
	"testing"

	"gatehouse/connectors/discord/discordtest"
)

// On a platform with slash commands they are there with all their options, the
// answer takes the place of "thinking…", and models are completed for the owner
// and for nobody else.
func TestSlashCommandsAreAnsweredInTheirPlace(t *testing.T) {
	t.Parallel()
	w, sim := onDiscord(t)
	w.until("the commands are registered", func() bool { return slices.Contains(sim.Bot().Commands(0), "usage") })
	olga, eve := sim.NewUser("Olga"), sim.NewUser("Eve")
	code, _, err := w.app.pairing.Codes.NewClaim(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	use := func(u *discordtest.User, name string, options map[string]any) discordtest.Message {
		t.Helper()
		id, err := u.Slash(u.DM(), name, options)
		if err != nil {
			t.Fatal(err)
		}
		w.until("/"+name+" is answered", func() bool { i, _ := sim.Interaction(id); return i.State == discordtest.StateAnswered })
		i, _ := sim.Interaction(id)
		m, ok := sim.Message(u.DM(), i.Message)
		if !ok {
			t.Fatalf("/%s: the answer is gone", name)
		}
		return m
	}
	if m := use(olga, "claim", map[string]any{"words": code}); !strings.Contains(m.Text, "own") {
		t.Errorf("/claim: %q", m.Text)
	}
	if m := use(olga, "help", nil); !strings.Contains(m.Text, "/usage") {
		t.Errorf("/help: %q", m.Text)
	}
	if m := use(olga, "ask", map[string]any{"question": "How long should green tea brew?"}); !strings.Contains(m.Text, "Public/tea.md") {
		t.Errorf("/ask: %q", m.Text)
	}
	if m := use(eve, "ask", map[string]any{"question": "Let me in"}); !strings.Contains(m.Text, "code") {
		t.Errorf("/ask of a stranger: %q", m.Text)
	}
	for u, want := range map[*discordtest.User]int{olga: 1, eve: 0} {
		id, err := u.HalfType(u.DM(), "model", "words", "QUOTE")
		if err != nil {
			t.Fatal(err)
		}
		w.until("choices come", func() bool { i, _ := sim.Interaction(id); return i.State == discordtest.StateAnswered })
		if i, _ := sim.Interaction(id); len(i.Choices) != want {
			t.Errorf("offered %v", i.Choices)
		}
	}
	if n := w.count(`SELECT count(*) FROM inbox WHERE bot = 'discord' AND state = 'dead'`); n != 0 {
		t.Errorf("%d dead rows", n)
	}
}

// That an answer is for one person's eyes alone stands with it in the outbox:
// nothing that a restart forgets.
func TestAPrivateAnswerIsStoredAsOne(t *testing.T) {
	t.Parallel()
	s := newScript(t, "discord", nil)
	for _, step := range []string{
		"olga owns", "ada joins", "group Garden: olga ada", "olga in Garden: /enable", "bot in Garden: This group is enabled",
		"ada in Garden uses /whoami", "bot in Garden: sandboxed", "quiet",
	} {
		s.step(step)
	}
	if !s.last.private {
		t.Errorf("everybody reads %q", s.last.text)
	}
	if n := s.w.count(`SELECT count(*) FROM outbox WHERE body LIKE '%"aside":"slot:%'`); n != 1 {
		t.Errorf("%d answers are stored as private", n)
	}
}
