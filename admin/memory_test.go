package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gatehouse/admin"
	adminmemory "gatehouse/admin/memory"
	"gatehouse/core"
	"gatehouse/core/memory"
	"gatehouse/core/memory/detect"
	"gatehouse/core/store"
)

// openMemory fills the options with a real memory.
func (w *world) openMemory(db *store.DB, o *admin.Options) {
	w.memory = memory.New(memory.Options{DB: db, Clock: w.clock})
	w.blame = func(id string, delta int) {
		must(db.Tx(context.Background(), func(tx *store.Tx) error {
			return w.memory.Blamed(context.Background(), tx, core.Operator, id, delta)
		}))
	}
	w.answered = func(c memory.Correction, u memory.Use) {
		must(db.Tx(context.Background(), func(tx *store.Tx) error {
			return w.memory.Used(context.Background(), tx, []memory.Correction{c}, u)
		}))
	}
	o.Memory = adminmemory.Options{Store: w.memory}
}

// remembers has the operator have corrections, an open question, and another person some.
func (w *world) remembers() {
	ctx := context.Background()
	for i, m := range []memory.Message{
		{User: core.Operator, Text: "correction: Always use metric units."},
		{User: core.Operator, Text: "correction: Our allotment is plot 14 by the gate."},
		{User: core.Operator, Text: "No, it is Canberra.", Question: "What is the capital of Australia?", Answer: "Sydney."},
		{User: 99, Text: "correction: The secret of another."},
	} {
		m.Source = string(rune('a' + i))
		_, err := w.memory.Hear(ctx, m)
		must(err)
	}
}

func (w *world) inForce(user int64) []memory.Correction {
	all, _, err := w.memory.List(context.Background(), user, memory.Filter{})
	must(err)
	return all
}

func TestMemoryPage_ShowsTheAccountsOwnWithOpenQuestions(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.remembers()
	a := s.get("/admin/memory")
	a.has(t, "Always use metric units.", "plot 14 by the gate", "Should this be remembered?", "No, it is Canberra.", "2 in force")
	if strings.Contains(a.body, "secret of another") {
		t.Error("the memory of another person is shown")
	}
	found := s.get("/admin/memory?q=ALLOTMENT")
	found.has(t, "plot 14")
	if strings.Contains(found.body, "Always use metric units.") {
		t.Error("the search shows what has not the word")
	}
	s.get("/admin/memory?q=xyz").has(t, "Nothing found")
}

func TestMemoryPage_AQuestionShowsWhatItContradictsHoweverOldThatIs(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	hear := func(text string) {
		_, err := s.world.memory.Hear(t.Context(), memory.Message{User: core.Operator, Source: text, Session: "s", Text: text, Question: "What is the capital of Australia?", Answer: "Sydney."})
		must(err)
	}
	hear("From now on always answer in German.")
	hear("From now on always answer in English.")
	for i := range 40 {
		hear(fmt.Sprintf("correction: The plant number %d stands in pot %d.", i, 100+i))
	}
	a := s.get("/admin/memory")
	a.has(t, "Which one applies?", "It contradicts #1: From now on always answer in German.", ">Replace #1</button>", ">Cancel</button>")
	if strings.Contains(a.body, "<h3>#1 ·") {
		t.Error("the older one is on the first page of the list: the test shows nothing")
	}
}

func TestMemoryPage_AQuestionAfterAChangeNamesWhatIsReplaced(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	ctx, by := t.Context(), core.Actor{User: core.Operator}
	add := func(text string) memory.Correction {
		l, err := s.world.memory.Add(ctx, core.Operator, memory.Draft{Text: text}, by)
		must(err)
		return l.Correction
	}
	german := add("always answer in German")
	_, err := s.world.memory.Delete(ctx, core.Operator, german.ID, by)
	must(err)
	french := add("always answer in French")
	s.post("/admin/memory/act", url.Values{"id": {german.ID}, "do": {"undo"}})
	s.get("/admin/memory").has(t, "It contradicts #2: always answer in French", ">Replace #2</button>", ">Cancel</button>")
	text := "always answer in English"
	_, err = s.world.memory.Decide(ctx, core.Operator, german.ID, memory.ChoiceBoth, by)
	must(err)
	units := add("always use metric units")
	_, err = s.world.memory.Update(ctx, core.Operator, units.ID, memory.Change{Text: &text}, by)
	must(err)
	a := s.get("/admin/memory")
	a.has(t, "Which one applies?", ">Replace #2</button>", ">Keep both</button>")
	if strings.Contains(a.body, ">Cancel</button>") {
		t.Error("what was in force before it was edited can be cancelled")
	}
	_, err = s.world.memory.Delete(ctx, core.Operator, french.ID, by)
	must(err)
	a = s.get("/admin/memory")
	a.has(t, "Which one applies?", ">Save</button>")
	if strings.Contains(a.body, ">Replace #") || strings.Contains(a.body, "It contradicts") {
		t.Error("what is not in force is to be replaced")
	}
}

func TestMemoryPage_AnOpenQuestionIsEditedAndSaved(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.remembers()
	open := func() []memory.Correction {
		list, _, err := s.world.memory.List(t.Context(), core.Operator, memory.Filter{Cards: true})
		must(err)
		return list
	}
	id := open()[0].ID
	s.get("/admin/memory").has(t, `href="/admin/memory?edit=`+id+`"`)
	s.get("/admin/memory?edit="+id).has(t, "<textarea", "No, it is Canberra.</textarea>", `value="edit-save"`)
	a := s.postForm("/admin/memory/act", url.Values{"id": {id}, "text": {"My password is hunter2 for ever"}, "do": {"edit-save"}})
	a.has(t, `role="alert"`, "hunter2 for ever</textarea>")
	if len(open()) != 1 || open()[0].Text != "No, it is Canberra." {
		t.Errorf("a text that is refused was stored: %+v", open())
	}
	s.post("/admin/memory/act", url.Values{"id": {id}, "text": {"The capital of Australia is Canberra."}, "do": {"edit-save"}}).has(t, "Remembered as you wrote it.")
	if all := s.world.inForce(core.Operator); len(open()) != 0 || len(all) != 3 || all[0].Text != "The capital of Australia is Canberra." {
		t.Errorf("%+v", all)
	}
}

func TestMemoryPage_NamesTheTypeAndThePlaceOfEach(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	w := s.world
	w.full()
	ctx := context.Background()
	hear := func(source, text, project string) {
		_, err := w.memory.Hear(ctx, memory.Message{User: core.Operator, Source: source, Text: text, Project: project, Session: w.mine, Question: "What is the capital of Australia?", Answer: "Sydney."})
		must(err)
	}
	hear("a", "correction: In this project, always use metric units.", w.taxes.ID)
	hear("b", "correction: In this conversation, answer in German.", w.taxes.ID)
	must(w.projects.db.Tx(ctx, func(tx *store.Tx) error {
		m := memory.Message{User: core.Operator, Source: "c", Project: w.taxes.ID, Session: w.mine, Text: "The capital is Canberra, not Sydney.", Question: "What is the capital of Australia?", Answer: "Sydney."}
		_, err := w.memory.Propose(ctx, tx, &m, memory.Finding{Sentence: m.Text, Type: detect.Factual, Scope: detect.Project})
		return err
	}))
	a := s.get("/admin/memory")
	place := `for the project <a href="/admin/chats?project=` + w.taxes.ID + `&amp;state=all"><bdi>Tax return 2026</bdi></a>`
	a.has(t, place, `for <a href="/admin/chats/`+w.mine+`">one conversation</a>`)
	_, open, _ := strings.Cut(a.body, "Open questions")
	open, _, _ = strings.Cut(open, "In force")
	if !strings.Contains(open, `<p class="hint">Correction · `+place) {
		t.Errorf("the open question has no type and place: %s", open)
	}
	only := s.get("/admin/memory?project=" + w.taxes.ID)
	only.has(t, "always use metric units", `<option value="`+w.taxes.ID+`" selected>Tax return 2026</option>`)
	if strings.Contains(only.body, "answer in German") || strings.Contains(only.body, "Allotment") {
		t.Error("what is for another place, or another user's project, is listed")
	}
	must(w.projects.Delete(ctx, core.Operator, w.taxes.ID))
	s.get("/admin/memory").has(t, "for a project that was deleted: it applies nowhere")
}

func TestMemoryPage_ShowsWhatACorrectionDidToTheScoreOfItsModel(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	_, err := s.world.memory.Hear(t.Context(), memory.Message{User: core.Operator, Source: "a", Text: "correction: No, it is Canberra.", Question: "What is the capital?", Answer: "Sydney.", Model: "lab/small"})
	must(err)
	s.world.blame(s.world.inForce(core.Operator)[0].ID, -1)
	s.get("/admin/memory").has(t, "changed the score of <bdi>lab/small</bdi> by -1")
}

func TestMemoryPage_ShowsWhatAnswersDidNotFollowAndWhatWasWrittenAgain(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.remembers()
	c := s.world.inForce(core.Operator)[1]
	s.world.answered(c, memory.Use{Run: "r1", Followed: map[string]bool{c.ID: false}})
	s.world.answered(c, memory.Use{Run: "r2", Followed: map[string]bool{c.ID: false}, Rewritten: []string{c.ID}})
	s.get("/admin/memory").has(t, "not followed 2 times in a row")
	s.get("/admin/memory?used="+c.ID).has(t, "Used; the answer did not follow it", "An answer that did not follow it was written again")
}

func TestMemoryPage_EditsPinsDeletesAndUndoes(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.remembers()
	at := func() memory.Correction { return s.world.inForce(core.Operator)[1] }
	id := at().ID
	s.get("/admin/memory?edit="+id).has(t, "Always use metric units.</textarea>")
	s.post("/admin/memory/act", url.Values{"id": {id}, "do": {"edit"}, "text": {"Use SI units."}})
	s.post("/admin/memory/act", url.Values{"id": {id}, "do": {"pin"}})
	if c := at(); c.Text != "Use SI units." || !c.Pinned {
		t.Errorf("%+v", c)
	}
	s.get("/admin/memory?used="+id).has(t, "Remembered", "Edited", "Pinned")
	s.post("/admin/memory/act", url.Values{"id": {id}, "do": {"delete"}})
	if n := len(s.world.inForce(core.Operator)); n != 1 {
		t.Errorf("%d are in force after the deletion", n)
	}
	s.get("/admin/memory").has(t, "can be undone", "the deletion of #1")
	s.post("/admin/memory/act", url.Values{"id": {id}, "do": {"undo"}})
	if n := len(s.world.inForce(core.Operator)); n != 2 {
		t.Errorf("%d are in force after the undo", n)
	}
}

func TestMemoryPage_AnswersQuestionsAndRefusesSecrets(t *testing.T) {
	s := newSite(t, nil, nil).enter()
	s.world.remembers()
	open, _, err := s.world.memory.List(t.Context(), core.Operator, memory.Filter{Cards: true})
	if err != nil || len(open) != 1 {
		t.Fatalf("%v, %v", open, err)
	}
	s.post("/admin/memory/act", url.Values{"id": {open[0].ID}, "do": {"save"}})
	if all := s.world.inForce(core.Operator); len(all) != 3 || all[0].ID != open[0].ID {
		t.Errorf("%+v", all)
	}
	if a := s.postForm("/admin/memory", url.Values{"text": {"the password is hunter2"}}); a.status != http.StatusBadRequest || !strings.Contains(a.body, "contains a password") {
		t.Errorf("%d", a.status)
	}
	others, _, err := s.world.memory.List(t.Context(), 99, memory.Filter{})
	must(err)
	if a := s.postForm("/admin/memory/act", url.Values{"id": {others[0].ID}, "do": {"delete"}}); a.status != http.StatusNotFound {
		t.Errorf("another person's: %d", a.status)
	}
}
