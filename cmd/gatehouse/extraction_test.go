package main

import (
	"context"
	"iter"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/registry"
)

// newReadingWorld has a model that reads messages for corrections and returns these replies.
func newReadingWorld(t *testing.T, read func(text string) llmtest.Reply) (*world, *llmtest.Server) {
	t.Helper()
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"fake-1", "titles-1"}, Choose: func(r llmtest.Request) llmtest.Reply {
		switch {
		case r.Model != "titles-1":
			return llmtest.Say("There are five tables.")
		case r.Format == "corrections":
			return read(r.Messages[len(r.Messages)-1].Content)
		}
		return llmtest.Say("Tables")
	}})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.OpenaiBaseURL, c.OpenaiAPIKey = fakeModel, model.URL(), values.NewSecret(modelKey)
		c.TitleModel, c.Activity = "openai/titles-1", false
	})
	return w, model
}

// asked returns the newest request for an answer.
func askedFor(t *testing.T, model *llmtest.Server) string {
	t.Helper()
	all := model.Requests()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Model == "fake-1" {
			return string(all[i].Body)
		}
	}
	t.Fatal("no request")
	return ""
}

const hardToRead = "Tables with more than three columns are hard to read on my phone."

func TestAModelReadsWhatTheRulesMissAndThePersonDecides(t *testing.T) {
	t.Parallel()
	w, model := newReadingWorld(t, func(text string) llmtest.Reply {
		if strings.Contains(text, "1: "+hardToRead) {
			return llmtest.Say(`{"corrections":[{"sentence":1,"type":"preference","scope":"global"}]}`)
		}
		return llmtest.Say(`{"corrections":[]}`)
	})
	boss, ada := w.boss(), w.guest("Ada")
	w.replies(boss, "Which tables are there?")
	w.quiet()
	w.replies(boss, hardToRead)
	card := w.hearsText(boss, "Should I remember this as a preference? “"+hardToRead+"”")
	if got := askedFor(t, model); strings.Contains(got, "preference of 20") {
		t.Errorf("in force before it was accepted: %s", got)
	}
	tap(t, boss, card, "Save")
	w.hearsText(boss, "Remembered as #1, a preference: “")
	w.quiet()
	w.replies(boss, "/new")
	w.quiet()
	w.replies(boss, "Show me the newest figures.")
	w.quiet()
	if got := askedFor(t, model); !strings.Contains(got, "preference of 20") || !strings.Contains(got, hardToRead) {
		t.Errorf("not in force: %s", got)
	}
	w.replies(ada, "Show me the newest figures.")
	if got := askedFor(t, model); strings.Contains(got, "hard to read") {
		t.Errorf("in the prompt of another: %s", got)
	}
	if n := w.count(`SELECT count(*) FROM corrections WHERE extracted_via = 'semantic' AND status = 'active'`); n != 1 {
		t.Errorf("%d corrections are a model's", n)
	}
	w.until("the calls are billed", func() bool {
		return w.count(`SELECT count(*) FROM usage WHERE model = 'openai/titles-1' AND state = 'settled' AND user_id = 1`) >= 2
	})
}

// The model that reads does not answer: the answers come, and what the rules find is stored.
func TestAnswersDoNotWaitForTheModelThatReads(t *testing.T) {
	t.Parallel()
	w, _ := newReadingWorld(t, func(string) llmtest.Reply { return llmtest.Reply{HangHead: true} })
	boss := w.boss()
	w.replies(boss, "Which tables are there?")
	w.replies(boss, hardToRead)
	if got := w.replies(boss, "From now on, always use metric units."); got.Text != "There are five tables." {
		t.Errorf("%q", got.Text)
	}
	w.hearsText(boss, "Remembered as #1: “From now on, always use metric units.”")
}

// In a group the model reads the sentences of the one who wrote, asks only that member, and
// stores what they wrote for them alone.
func TestWhatAModelReadsInAGroupIsOfItsAuthorAlone(t *testing.T) {
	t.Parallel()
	w, _ := newReadingWorld(t, func(text string) llmtest.Reply {
		if strings.Contains(text, "hard to read") {
			return llmtest.Say(`{"corrections":[{"sentence":1,"type":"preference","scope":"global"}]}`)
		}
		return llmtest.Say(`{"corrections":[]}`)
	})
	boss, ada := w.boss(), w.guest("Ada")
	g := w.group(telegramtest.Supergroup, boss, ada)
	w.groupAsks(g, boss, w.mention("which tables are there?"))
	w.groupAsks(g, ada, w.mention(hardToRead))
	w.until("the card is stored", func() bool { return w.count(`SELECT count(*) FROM corrections WHERE card = 'review'`) == 1 })
	if n := w.count(`SELECT count(*) FROM corrections WHERE user_id = $1 AND status = 'pending'`, w.user(ada)); n != 1 {
		t.Errorf("%d cards are its author's", n)
	}
	w.until("the card is in the group", func() bool {
		return strings.Contains(strings.Join(w.said(g.Conversation(), 0), "\n"), "Should I remember this as ")
	})
	presses := 0
	for _, m := range w.sim.Screen(g.Conversation()).Messages {
		if strings.Contains(m.Text, "Should I remember this as ") {
			if _, err := boss.Press(g.Conversation(), m.ID, m.Buttons[0][0].CallbackData); err != nil {
				t.Fatal(err)
			}
			presses++
		}
	}
	w.quiet()
	if presses != 1 {
		t.Errorf("%d cards were pressed", presses)
	}
	if n := w.count(`SELECT count(*) FROM corrections WHERE status = 'active'`); n != 0 {
		t.Errorf("another member accepted it")
	}
}

// A titled model has a name and nothing else.
type titled string

func (t titled) About() llm.About { return llm.About{Name: string(t)} }

func (titled) Reply(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] { return nil }

func TestNoModelThatCannotReadReadsMessages(t *testing.T) {
	t.Parallel()
	title := titled("openai/titles-1")
	for name, want := range map[string]llm.Model{"local/quote": nil, "council/high": nil, "council": nil, "openai/guests": titled("openai/guests"), "": title} {
		m := registry.Models{Title: title}
		if name != "" {
			m.Guest = titled(name)
		}
		if cheap, guest := readers(&m); cheap != llm.Model(title) || guest != want {
			t.Errorf("%q for guests: %v and %v read", name, cheap, guest)
		}
		if m.Title = m.Guest; name != "" {
			if cheap, _ := readers(&m); cheap != want {
				t.Errorf("%q for titles: %v reads", name, cheap)
			}
		}
	}
}
