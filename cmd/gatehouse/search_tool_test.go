package main

import (
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core/llm/llmtest"
)

// indexes puts files into the vault and into the search. Those in Public are open to guests.
func (w *world) indexes(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		w.document(name, text)
	}
}

// toolResult is what the model read of the call id.
func toolResult(t *testing.T, model *llmtest.Server, id string) string {
	t.Helper()
	last, _ := asked(t, model)
	for _, m := range last.Messages {
		if m.ToolCallID == id {
			return m.Content
		}
	}
	t.Fatalf("no result of %s", id)
	return ""
}

// The model finds what the sender may read: a guest neither text nor count of more, and no
// one's conversations in a group, where others read the answer.
func TestTheSearchToolFindsWhatTheSenderMayReadAndNoConversationsInAGroup(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.GuestRead, c.RateLimit = values.List{"Public/**"}, values.Rate{} })
	olga, ada := w.boss(), w.guest("Ada")
	w.replies(olga, "The kestrel nests on my balcony.")
	w.replies(ada, "The kestrel flew past my window.")
	w.quiet()
	w.indexes(map[string]string{"Notes/birds.md": "The kestrel has a secret.", "Notes/more.md": "A kestrel again.", "Public/birds.md": "A kestrel hovers."})
	g := w.group(telegramtest.Supergroup, olga, ada)
	w.sql(`UPDATE places SET level = 'vault'`)
	w.answers(g.Conversation(), w.post(olga, g.Conversation(), telegramtest.Outgoing{Text: w.mention("hello")}).ID)
	w.quiet()
	w.sql(`UPDATE sessions SET metadata = '{"permissions":{"read":["**"]}}' WHERE user_id = 1`) // nothing asks

	for _, c := range []struct {
		name       string
		who        *telegramtest.User
		group      bool
		has, hasNo []string
	}{
		{"the owner", olga, false, []string{"Notes/birds.md:1\n   The kestrel has a secret.", "Notes/more.md:1", "Public/birds.md:1", "conversation \"", "on my balcony"}, []string{"past my window"}},
		{"a guest", ada, false, []string{"Public/birds.md:1\n   A kestrel hovers.", "past my window"}, []string{"secret", "Notes/", "on my balcony", "more hits"}},
		{"the owner in a group", olga, true, []string{"Notes/birds.md:1", "Public/birds.md:1"}, []string{"conversation \"", "on my balcony"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			model.Script(llmtest.CallTool("find", "Search", `{"query":"kestrel","limit":3}`), llmtest.CallTool("all", "Search", `{"query":"kestrel"}`), llmtest.Say("Found."))
			if c.group {
				w.answers(g.Conversation(), w.post(c.who, g.Conversation(), telegramtest.Outgoing{Text: w.mention("Look it up.")}).ID)
			} else {
				w.replies(c.who, "Look it up.")
			}
			w.quiet()
			got := toolResult(t, model, "all")
			for _, want := range c.has {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in %s", want, got)
				}
			}
			for _, not := range c.hasNo {
				if strings.Contains(got+toolResult(t, model, "find"), not) {
					t.Errorf("%q in %s", not, got)
				}
			}
			t.Log(got)
		})
	}
	t.Run("the owner continues the group's conversation over the API", func(t *testing.T) {
		var id string
		if err := w.app.db.Get(t.Context(), &id, `SELECT s.id FROM sessions s JOIN chats c ON c.session_id = s.id WHERE c.place <> ''`); err != nil {
			t.Fatal(err)
		}
		model.Script(llmtest.CallTool("over", "Search", `{"query":"kestrel"}`), llmtest.CallTool("again", "Search", `{"query":"kestrel"}`), llmtest.Say("Found."))
		if code, m, _ := w.asked("POST", "/api/chat", map[string]any{"message": "Look it up.", "session_id": id}, wantJSON); code != 200 {
			t.Fatalf("%d %v", code, m)
		}
		if got := toolResult(t, model, "over"); !strings.Contains(got, "Notes/birds.md") || strings.Contains(got, "on my balcony") {
			t.Error(got)
		}
	})
	if n := w.metric("gatehouse_tool_calls_total", "tool", "Search", "outcome", "ok"); n != 8 {
		t.Errorf("%v searches are counted", n)
	}
}

// A conversation at a higher trust than the turn's is not found.
func TestTheSearchToolFindsNoConversationOfAHigherTrust(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	olga := w.boss()
	w.chatEvents(map[string]any{"message": "The kestrel's key is under the mat."}, nil)
	w.replies(olga, "hello")
	w.quiet()
	w.sql(`UPDATE sessions SET metadata = '{"permissions":{"read":["**"]}}'`) // nothing asks
	search := func(id string) string {
		model.Script(llmtest.CallTool(id, "Search", `{"query":"kestrel under the mat"}`), llmtest.Say("Found."))
		w.replies(olga, "Look it up.")
		w.quiet()
		return toolResult(t, model, id)
	}
	if got := search("before"); !strings.Contains(got, "under the mat") {
		t.Errorf("at the same trust: %s", got)
	}
	for range 25 { // more than a page of newer ones
		w.chatEvents(map[string]any{"message": "The kestrelwing's key is under the mat."}, nil)
	}
	w.quiet()
	w.sql(`UPDATE sessions SET trust_level = 'full' WHERE source = 'api' AND id <> (SELECT min(id) FROM sessions WHERE source = 'api' AND title LIKE '%kestrel''s%')`)
	if got := search("hidden"); !strings.Contains(got, "under the mat") || strings.Contains(got, "kestrelwing") || strings.Contains(got, "more hits") {
		t.Errorf("behind those of a higher trust: %s", got)
	}
	w.sql(`UPDATE sessions SET trust_level = 'full' WHERE source = 'api'`)
	if got := search("after"); !strings.HasPrefix(got, "No results.") {
		t.Errorf("at a lower trust: %s", got)
	}
}
