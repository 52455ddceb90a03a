package main

import "testing"

// The model of /status is the one that answers the sender's next message, whatever decides it.
func TestStatusNamesTheModelThatAnswersNext(t *testing.T) {
	t.Parallel()
	s := newScript(t, "telegram", map[string]string{
		"settings":                        "ModelFallbacks=openai/fake-2\nGuestModel=openai/fake-3",
		"vault/.parachute/agents/cook.md": "---\ndescription: Knows the kitchen.\nmodel: openai/fake-2\n---\nYou are a cook.\n",
	})
	for _, step := range []string{
		"olga owns", "ada joins",
		"ada: /status", "bot to ada: model: openai/fake-3", "ada: Who answers?", "bot to ada: " + fakeSays, "model read: Model:fake-3",
		"olga: /status", "bot to olga: model: openai/fake-1", "olga: Who answers?", "bot to olga: " + fakeSays, "model read: Model:fake-1",
		"olga: /agent cook", "bot to olga: cook answers in this conversation now",
		"olga: /status", "bot to olga: model: openai/fake-2", "olga: Who answers?", "bot to olga: " + fakeSays, "model read: Model:fake-2",
		"olga: /model fake-1", "bot to olga: openai/fake-1 answers in this chat now",
		"olga: /status", "bot to olga: model: openai/fake-1", "olga: Who answers?", "bot to olga: " + fakeSays, "model read: Model:fake-1",
		// A group: its agent, before it has a conversation, and for guests their own model.
		"group Garden: olga ada", "olga in Garden: /enable", "bot in Garden: This group is enabled",
		"olga in Garden: /agent cook", "bot in Garden: cook answers in this group now",
		"olga in Garden: /status", "bot in Garden: model: openai/fake-2", "olga in Garden: {bot} Who answers?", "bot in Garden: " + fakeSays, "model read: Model:fake-2",
		"ada in Garden: /status", "bot in Garden: model: openai/fake-3", "ada in Garden: {bot} Who answers?", "bot in Garden: " + fakeSays, "model read: Model:fake-3",
	} {
		s.where = step
		s.step(s.fill(step))
	}
}

// Messages that are answered together do not wait while they are being answered.
func TestStatusCountsACollectedTurnOnce(t *testing.T) {
	t.Parallel()
	s := newScript(t, "telegram", nil)
	for _, step := range []string{
		"ada joins", "model waits", "ada: one", "model busy 2", "ada: two", "ada: three", "ada: four",
		"ada: /status", "bot to ada: waiting: 3",
		"model waits", "ada: /stop", "bot to ada: Stopped.", "model busy 3", "model read: three",
		"ada: /status", "bot to ada: waiting: 0",
		"ada: five", "ada: /status", "bot to ada: waiting: 1",
		"ada: /stop", "bot to ada: Stopped.", "bot to ada: " + fakeSays, "quiet",
		"ada: /status", "bot to ada: Nothing is running here", "bot not last: waiting: 1",
	} {
		s.where = step
		s.step(s.fill(step))
	}
}
