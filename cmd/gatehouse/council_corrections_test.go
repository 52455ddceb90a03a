package main

import (
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
)

// corrected asks a council of two members, and corrects its answer twice.
func corrected(t *testing.T, memory bool) (s *seats, boss *telegramtest.User) {
	t.Helper()
	s = newSeats(t, func(c *configs.Config) { c.Memory = values.Switch(memory) }, opinion("It fell in 1432."), opinion("The empire fell in 1432."))
	boss = s.boss()
	s.replies(boss, "/accuracy high")
	for _, text := range []string{"When did the empire fall after the siege?", "No, the empire fell in 1453 after the siege.", "No, the empire fell in 1461 after the siege."} {
		s.quiet()
		s.replies(boss, text)
	}
	s.quiet()
	return s, boss
}

func TestCorrectionOfACouncilsAnswerLowersTheScoreOfItsModels(t *testing.T) {
	t.Parallel()
	s, boss := corrected(t, true)
	if n := s.count(`SELECT count(*) FROM model_runs WHERE round = 'answer' AND verdict = 'incorrect' AND verdict_by = 'correction'`); n != 4 {
		t.Errorf("%d answers are found incorrect, want those of 2 members to 2 questions", n)
	}
	if n := s.count(`SELECT count(*) FROM model_counters WHERE score = 69`); n != 2 {
		t.Errorf("the scores of %d models fell after two wrong answers, want 2", n)
	}
	if n := s.count(`SELECT count(*) FROM corrections WHERE score_delta = -1`); n != 1 {
		t.Errorf("%d corrections are recorded as changing the score, want the second", n)
	}
	if n := s.count(`SELECT count(*) FROM corrections WHERE domain = 'history'`); n != 2 {
		t.Errorf("%d corrections are of the domain that the council's classifier finds, want 2", n)
	}
	s.replies(boss, "Thank you.")
	s.quiet()
	if n := s.count(`SELECT count(*) FROM model_runs WHERE verdict = 'correct' AND verdict_by = 'silence'`); n != 2 {
		t.Errorf("%d answers without a correction are found correct, want 2", n)
	}
}

func TestCouncilLearnsFromCorrectionsWithoutTheMemory(t *testing.T) {
	t.Parallel()
	s, _ := corrected(t, false)
	if n := s.count(`SELECT count(*) FROM corrections`); n != 0 {
		t.Errorf("%d corrections are stored", n)
	}
	if n := s.count(`SELECT count(*) FROM model_counters WHERE score = 69`); n != 2 {
		t.Errorf("the scores of %d models fell, want 2", n)
	}
}

// Another member was answered in between: who corrects that judges no earlier answer to
// themselves.
func TestCorrectionInAGroupIsOfTheAnswerBeforeItAlone(t *testing.T) {
	t.Parallel()
	s := newSeats(t, func(c *configs.Config) { c.Model, c.GuestModel = "council/high", "council/high" }, opinion("It fell in 1432."), opinion("The empire fell in 1432."))
	boss, ada := s.boss(), s.guest("Ada")
	g := s.group(telegramtest.Supergroup, boss, ada)
	const wrong = `SELECT count(*) FROM model_runs WHERE verdict = 'incorrect' AND verdict_by = 'correction'`
	s.groupAsks(g, boss, s.mention("When did the empire fall after the siege?"))
	s.groupAsks(g, ada, s.mention("When did the other empire fall?"))
	s.groupAsks(g, boss, "No, the empire fell in 1453 after the siege. "+s.mention(""))
	if n := s.count(wrong); n != 0 {
		t.Errorf("%d answers are found incorrect after the answer to another member", n)
	}
	s.groupAsks(g, boss, "No, the empire fell in 1461 after the siege. "+s.mention(""))
	if n := s.count(wrong); n != 2 {
		t.Errorf("%d answers are found incorrect, want those of both members to the last question", n)
	}
}

func TestRunsOfACouncilNameTheCorrectionsInTheirPrompt(t *testing.T) {
	t.Parallel()
	s := newSeats(t, nil, opinion("It is 5 kilometres long."), opinion("The bridge is 5 kilometres long."))
	boss := s.boss()
	s.replies(boss, "/remember always use metric units")
	s.replies(boss, "/accuracy high")
	s.quiet()
	s.replies(boss, "How long is the bridge?")
	s.quiet()
	if n := s.count(`SELECT count(*) FROM model_runs r, corrections c WHERE r.round = 'answer' AND r.corrections_applied = '["' || c.correction_id || '"]'`); n != 2 {
		t.Errorf("%d answers name the correction, want 2", n)
	}
	if n := s.count(`SELECT count(*) FROM model_runs WHERE round <> 'answer' AND corrections_applied <> '[]'`); n != 0 {
		t.Errorf("%d reviews name a correction that was not in their prompt", n)
	}
}

func TestWhatIsSaidForAProjectAppliesInItsConversationsOnly(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	boss := w.boss()
	w.replies(boss, "/project Garden")
	w.quiet()
	w.replies(boss, "How far is the market?")
	w.quiet()
	w.replies(boss, "In this project, always use metric units.")
	w.quiet()
	if n := w.count(`SELECT count(*) FROM corrections c JOIN projects p ON p.project_id = c.scope_ref WHERE c.scope = 'project' AND p.name = 'Garden'`); n != 1 {
		t.Fatalf("%d corrections are of the project, want 1", n)
	}
	for _, c := range []struct {
		project string
		applies bool
	}{{"Roof", false}, {"off", false}, {"Garden", true}} {
		w.replies(boss, "/new")
		w.quiet()
		w.replies(boss, "/project "+c.project)
		w.quiet()
		w.replies(boss, "How far is the sea?")
		w.quiet()
		if got := strings.Contains(wire(t, model), "always use metric units."); got != c.applies {
			t.Errorf("in a conversation of %q: in the prompt %v, want %v", c.project, got, c.applies)
		}
	}
}
