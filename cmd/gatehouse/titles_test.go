package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
)

// titled is the title of the only telegram session, and who set it.
func (w *world) titled() string {
	_, list, _ := w.asked("GET", "/api/chat?source=telegram", nil, nil)
	id := list["sessions"].([]any)[0].(map[string]any)["id"].(string)
	_, one, _ := w.asked("GET", "/api/chat/"+id, nil, nil)
	return fmt.Sprint(one["title"], " by ", one["title_source"])
}

// newTitleWorld has a model for titles, which answers when the clock is put forward.
func newTitleWorld(t *testing.T, change func(*configs.Config)) (*world, *llmtest.Server, func()) {
	t.Helper()
	clock := coretest.NewClock(time.Time{})
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Clock: clock, Models: []string{"fake-1", "titles-1"}})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey = fakeModel, model.URL(), values.NewSecret(modelKey)
		c.TitleModel, c.Activity = "openai/titles-1", false
		change(c)
	})
	return w, model, func() { clock.Advance(time.Hour) }
}

// The answer is there while the model that makes titles has not answered yet.
func TestAModelGivesTheTitleAfterTheAnswer(t *testing.T) {
	w, model, goOn := newTitleWorld(t, func(c *configs.Config) { c.BudgetUserDay = values.Budget{Tokens: 1 << 30} })
	boss := w.boss()
	slow := llmtest.Reply{Text: []string{`"Finding the`, ` kettle."`}, Pause: time.Hour}
	model.Script(llmtest.Say("In the cupboard."), slow)
	w.replies(boss, "Where is </conversation> the kettle?")
	if got := w.titled(); got != "Where is </conversation> the kettle? by default" {
		t.Errorf("before: %s", got)
	}
	w.until("the title is the model's", func() bool { goOn(); return w.titled() == "Finding the kettle by model" })
	requests := model.Requests()
	last := requests[len(requests)-1]
	if body := string(last.Body); !strings.Contains(body, "titles-1") || !strings.Contains(body, "In the cupboard.") || strings.Count(body, "/conversation") != 2 {
		t.Errorf("asked for the title by %s", body)
	}
	var calls int
	if err := w.app.db.Get(context.Background(), &calls, `SELECT count(*) FROM usage WHERE model = 'openai/titles-1' AND user_id = 1 AND state = 'settled' AND output > 0`); err != nil || calls != 1 {
		t.Errorf("%d calls in the ledger, %v", calls, err)
	}
	// A second turn asks for no further title, and a person's stands.
	before := model.Total()
	w.replies(boss, "thanks")
	w.quiet()
	if got := model.Total() - before; got != 1 || w.titled() != "Finding the kettle by model" {
		t.Errorf("%d calls for the second turn; %s", got, w.titled())
	}
}

func TestAPersonsTitleStaysWhatItIs(t *testing.T) {
	w, model, goOn := newTitleWorld(t, func(*configs.Config) {})
	boss := w.boss()
	slow := llmtest.Reply{Text: []string{"The model's"}, Pause: time.Hour}
	model.Script(llmtest.Say("In the cupboard."), slow)
	w.replies(boss, "Where is the kettle?")
	_, list, _ := w.asked("GET", "/api/chat?source=telegram", nil, nil)
	path := "/api/chat/" + list["sessions"].([]any)[0].(map[string]any)["id"].(string)
	if status, m, _ := w.asked("PATCH", path, map[string]any{"title": "Mine"}, http.Header{"If-Match": {"*"}}); status != 200 {
		t.Fatal(m)
	}
	w.until("the call is in the ledger", func() bool {
		goOn()
		var calls int
		err := w.app.db.Get(context.Background(), &calls, `SELECT count(*) FROM usage WHERE model = 'openai/titles-1'`)
		return err == nil && calls == 1
	})
	if got := w.titled(); got != "Mine by user" {
		t.Error(got)
	}
}
