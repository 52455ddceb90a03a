package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
	"gatehouse/core/memory/score"
)

// in returns what belongs into a prompt in a place.
func (r *rig) in(at memory.Place) string {
	r.t.Helper()
	got, err := r.Recall(r.t.Context(), ann, at, "hello", 0)
	if err != nil {
		r.t.Fatal(err)
	}
	standing, relevant := got.Blocks()
	return standing + relevant
}

func TestTextForThisPlaceIsForThePlaceWhereItIsAdded(t *testing.T) {
	here, beside := memory.Place{Session: "s1", Project: "p1"}, memory.Place{Session: "s2", Project: "p1"}
	elsewhere := memory.Place{Session: "s3", Project: "p2"}
	for text, want := range map[string]map[memory.Place]bool{
		"in this conversation always answer in French":   {here: true, beside: false, elsewhere: false},
		"for this project always answer in French":       {here: true, beside: true, elsewhere: false},
		"always answer in French":                        {here: true, beside: true, elsewhere: true},
		"in diesem Gespräch immer auf Deutsch antworten": {here: true, beside: false, elsewhere: false},
	} {
		r := open(t)
		if _, err := r.Add(t.Context(), ann, memory.Draft{Text: text, Session: here.Session, Project: here.Project}, me); err != nil {
			t.Fatal(err)
		}
		for at, is := range want {
			if got := r.in(at); (got != "") != is {
				t.Errorf("%q in %+v: %q", text, at, got)
			}
		}
	}
}

// Without a conversation it would apply everywhere.
func TestTextForThisPlaceIsRefusedWhereThereIsNone(t *testing.T) {
	r := open(t)
	if l, err := r.Add(t.Context(), ann, memory.Draft{Text: "in this conversation answer in French"}, me); core.KindOf(err) != core.Invalid {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := r.Add(t.Context(), ann, memory.Draft{Text: "in this conversation answer in French", Scope: detect.Conversation, Ref: "s1"}, me); err != nil {
		t.Errorf("with a scope: %v", err)
	}
	if n := r.count(`SELECT count(*) FROM corrections WHERE scope = 'global'`); n != 0 {
		t.Errorf("%d apply everywhere", n)
	}
}

func TestNarrowerScopesPrecedeWiderOnes(t *testing.T) {
	r := open(t)
	at := memory.Place{Session: "s1", Project: "p1"}
	for scope, language := range map[detect.Scope]string{detect.Global: "German", detect.Project: "French", detect.Conversation: "English"} {
		d := memory.Draft{Text: "always answer in " + language, Scope: scope, Ref: map[detect.Scope]string{detect.Project: "p1", detect.Conversation: "s1"}[scope]}
		if l, err := r.Add(t.Context(), ann, d, me); err != nil || l.Old != nil {
			t.Fatal(l, err)
		}
	}
	for _, c := range []struct {
		at   memory.Place
		want string
	}{{at, "English"}, {memory.Place{Session: "s2", Project: "p1"}, "French"}, {memory.Place{Session: "s2"}, "German"}} {
		got := r.in(c.at)
		for _, language := range []string{"German", "French", "English"} {
			if strings.Contains(got, language) != (language == c.want) {
				t.Errorf("in %+v: %q, want %s alone", c.at, got, c.want)
			}
		}
	}
}

// Two wishes that contradict each other are not in a prompt without a question about them.
func TestEditingOrRestoringAContradictionOpensAQuestion(t *testing.T) {
	r := open(t)
	add := func(text string) memory.Correction {
		t.Helper()
		l, err := r.Add(t.Context(), ann, memory.Draft{Text: text}, me)
		if err != nil {
			t.Fatal(err)
		}
		return l.Correction
	}
	german, other := add("always answer in German"), add("always use metric units")
	text := "always answer in English"
	c, err := r.Update(t.Context(), ann, other.ID, memory.Change{Text: &text}, me)
	if err != nil || c.Card != memory.CardEdited || c.Conflicts != german.ID || c.Status != memory.Active {
		t.Fatalf("edited: %+v, %v", c, err)
	}
	if _, cards, err := r.Count(t.Context(), ann); cards != 1 || err != nil {
		t.Errorf("%d questions are open, %v", cards, err)
	}
	if l, err := r.Decide(t.Context(), ann, c.ID, memory.ChoiceBoth, me); err != nil || l.Correction.Card != memory.NoCard {
		t.Fatal(l, err)
	}
	pin := true
	if c, err = r.Update(t.Context(), ann, c.ID, memory.Change{Pinned: &pin, Text: &text}, me); err != nil || c.Card != memory.NoCard {
		t.Errorf("it is asked again though nothing else is said: %+v, %v", c, err)
	}
	text = "always use metric units"
	if c, err = r.Update(t.Context(), ann, c.ID, memory.Change{Text: &text}, me); err != nil || c.Card != memory.NoCard {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := r.Delete(t.Context(), ann, german.ID, me); err != nil {
		t.Fatal(err)
	}
	french := add("always answer in French")
	if c, err = r.Restore(t.Context(), ann, german.ID, me); err != nil || c.Status != memory.Active || c.Conflicts != french.ID {
		t.Fatalf("restored: %+v, %v", c, err)
	}
	if l, err := r.Decide(t.Context(), ann, german.ID, memory.ChoiceReplace, me); err != nil || l.Correction.Status != memory.Active {
		t.Error(l, err)
	}
	if got := r.in(memory.Place{Session: "s"}); !strings.Contains(got, "German") || strings.Contains(got, "French") {
		t.Errorf("%q", got)
	}
}

// An edit that no longer contradicts answers the question.
func TestAnEditThatEndsAContradictionClosesItsQuestion(t *testing.T) {
	r := open(t)
	r.hear(ann, "From now on always answer in German.")
	l := r.hear(ann, "From now on always answer in English.")
	if l.Old == nil {
		t.Fatal("no conflict")
	}
	text := "always use metric units"
	if c, err := r.Update(t.Context(), ann, l.Correction.ID, memory.Change{Text: &text}, me); err != nil || c.Card != memory.NoCard || c.Conflicts != "" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, cards, err := r.Count(t.Context(), ann); cards != 0 || err != nil {
		t.Errorf("%d questions are open, %v", cards, err)
	}
}

// The budget is that of all that is added to the prompt.
func TestTheBlocksOfAPromptAreWithinTheBudget(t *testing.T) {
	r := open(t)
	for i := range 60 {
		text := fmt.Sprintf("always mention the lighthouse number %d", i)
		if i < 2 {
			text = fmt.Sprintf("the lighthouse number %d stands on the %dth rock", i, i)
		}
		if _, err := r.Add(t.Context(), ann, memory.Draft{Text: text, Type: map[bool]detect.Type{true: detect.Factual, false: detect.Instruction}[i < 2]}, me); err != nil {
			t.Fatal(err)
		}
	}
	for _, window := range []int{0, 200_000, 8_000, 4_000, 1_000} {
		got, err := r.Recall(t.Context(), ann, memory.Place{Session: "s1"}, "Which lighthouse number stands on a rock?", window)
		if err != nil {
			t.Fatal(err)
		}
		standing, relevant := got.Blocks()
		if n, most := score.Tokens(standing+relevant), score.Budget(window); n > most || window >= 4_000 && n < most/2 || (window == 0 || window >= 8_000) && (standing == "" || relevant == "") {
			t.Errorf("in a window of %d tokens: %d of %d, %q", window, n, most, standing)
		}
	}
}

// asked returns two corrections of which the second, which was in force, is asked about.
func (r *rig) asked(change func(old, c memory.Correction) memory.Correction) (old, c memory.Correction) {
	r.t.Helper()
	old, c = r.hear(ann, "From now on always answer in German.").Correction, r.hear(ann, "From now on always use metric units.").Correction
	if c = change(old, c); c.Conflicts != old.ID || c.Status != memory.Active {
		r.t.Fatalf("%+v", c)
	}
	return old, c
}

func (r *rig) edit(id, text string) memory.Correction {
	r.t.Helper()
	c, err := r.Update(r.t.Context(), ann, id, memory.Change{Text: &text}, me)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func TestACancelledQuestionAboutAnEditDeletesNothing(t *testing.T) {
	r := open(t)
	_, c := r.asked(func(_, c memory.Correction) memory.Correction { return r.edit(c.ID, "always answer in English") })
	l, err := r.Decide(t.Context(), ann, c.ID, memory.ChoiceSkip, me)
	if err != nil || l.Correction.Status != memory.Active || l.Correction.Card != memory.NoCard || l.Correction.Text != "always answer in English" {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestACancelledQuestionAboutOneThatWasBroughtBackTakesItBack(t *testing.T) {
	r := open(t)
	french := r.hear(ann, "From now on always answer in French.").Correction
	german := r.hear(ann, "From now on always answer in German.").Correction
	l, err := r.Decide(t.Context(), ann, german.ID, memory.ChoiceReplace, me)
	if err != nil || l.Old == nil || l.Old.ID != french.ID {
		t.Fatalf("%+v, %v", l, err)
	}
	back := func(id, conflicts string, want memory.Status) {
		t.Helper()
		if c, err := r.Restore(t.Context(), ann, id, me); err != nil || c.Conflicts != conflicts {
			t.Fatal(c, err)
		}
		if l, err := r.Decide(t.Context(), ann, id, memory.ChoiceSkip, me); err != nil || l.Correction.Status != want {
			t.Errorf("%+v, %v", l, err)
		}
	}
	back(french.ID, german.ID, memory.Superseded)
	if c, err := r.Get(t.Context(), ann, french.ID); err != nil || c.Superseded != german.ID || !c.ExpiresAt.IsZero() {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := r.Delete(t.Context(), ann, french.ID, me); err != nil {
		t.Fatal(err)
	}
	back(french.ID, german.ID, memory.Deleted)
}

func TestWhatIsKeptThoughItContradictsIsNotAskedAboutAgain(t *testing.T) {
	r := open(t)
	_, c := r.asked(func(_, c memory.Correction) memory.Correction { return r.edit(c.ID, "alwasy answer in English") })
	if c = r.edit(c.ID, "always answer in Englisch"); c.Card == memory.NoCard {
		t.Error("an edit answers the open question")
	}
	if _, err := r.Decide(t.Context(), ann, c.ID, memory.ChoiceBoth, me); err != nil {
		t.Fatal(err)
	}
	if c = r.edit(c.ID, "always answer in English"); c.Card != memory.NoCard {
		t.Errorf("after a small edit: %+v", c)
	}
	if l := r.hear(ann, "From now on answer in at most five sentences."); l.Old != nil {
		t.Fatal(l)
	}
	if c = r.edit(c.ID, "always answer in English, in at most two sentences"); c.Card != memory.CardEdited {
		t.Errorf("a new contradiction: %+v", c)
	}
}

// An edit has no conversation that its text could be for.
func TestAnEditForAPlaceIsRefusedAndNotRememberedForEverything(t *testing.T) {
	r := open(t)
	c := r.hear(ann, "From now on always answer in German.").Correction
	text := "in this conversation answer in French"
	if _, err := r.Update(t.Context(), ann, c.ID, memory.Change{Text: &text}, me); core.KindOf(err) != core.Invalid {
		t.Errorf("%v", err)
	}
	if now, err := r.Get(t.Context(), ann, c.ID); err != nil || now.Text != c.Text {
		t.Errorf("%+v, %v", now, err)
	}
}

func TestEditsAndRestoresOpenNoQuestionAboveTheLimit(t *testing.T) {
	r := open(t)
	r.hear(ann, "From now on always answer in German.")
	c := r.hear(ann, "From now on always use metric units.").Correction
	gone := r.hear(ann, "From now on always answer in French.").Correction
	if _, err := r.Delete(t.Context(), ann, gone.ID, me); err != nil {
		t.Fatal(err)
	}
	var last memory.Learnt
	for i := range memory.MaxCards {
		last = r.hear(ann, fmt.Sprintf("No, the answer to riddle %d is %d.", i, i*7), func(m *memory.Message) { m.Question = fmt.Sprintf("riddle %d please, number %d", i, i*31) })
	}
	if l := r.hear(ann, "From now on never answer in German."); l.Outcome != memory.Stored || l.Correction.Card != memory.NoCard || l.Correction.Status != memory.Active {
		t.Errorf("what is asked for: %+v", l)
	} else if _, err := r.Delete(t.Context(), ann, l.Correction.ID, me); err != nil {
		t.Fatal(err)
	}
	if c = r.edit(c.ID, "always answer in English"); c.Card != memory.NoCard || c.Text != "always answer in English" {
		t.Errorf("edited: %+v", c)
	}
	if c, err := r.Restore(t.Context(), ann, gone.ID, me); err != nil || c.Card != memory.NoCard || c.Status != memory.Active {
		t.Errorf("restored: %+v, %v", c, err)
	}
	if _, err := r.Decide(t.Context(), ann, last.Correction.ID, memory.ChoiceSkip, me); err != nil {
		t.Fatal(err)
	}
	if c = r.edit(c.ID, "always reply in Spanish"); c.Card != memory.NoCard {
		t.Errorf("kept: %+v", c)
	}
	if _, cards, err := r.Count(t.Context(), ann); err != nil || cards != memory.MaxCards-1 {
		t.Errorf("%d questions, %v", cards, err)
	}
}

// A model with a small window follows a pinned correction, too.
func TestAPinnedCorrectionReachesAWindowOf4096Tokens(t *testing.T) {
	for _, kind := range []detect.Type{detect.Factual, detect.Instruction} {
		r := open(t)
		l, err := r.Add(t.Context(), ann, memory.Draft{Text: strings.Repeat("The plot is by the gate. ", 6), Type: kind}, me)
		if err != nil {
			t.Fatal(err)
		}
		yes := true
		if _, err := r.Update(t.Context(), ann, l.Correction.ID, memory.Change{Pinned: &yes}, me); err != nil {
			t.Fatal(err)
		}
		got, err := r.Recall(t.Context(), ann, memory.Place{Session: "s1"}, "Where is the plot?", 4096)
		if standing, _ := got.Blocks(); err != nil || !strings.Contains(standing, "The plot is by the gate.") || score.Tokens(standing) > score.Budget(4096) {
			t.Errorf("%s: %q, %v", kind, standing, err)
		}
	}
}
