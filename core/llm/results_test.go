package llm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/llm"
)

func TestWithResultsReplacesSomeAndAppendsTheOthers(t *testing.T) {
	t.Parallel()
	call := func(id string) core.Block { return core.Block{Type: "tool_use", ID: id} }
	result := func(id, text string) core.Block {
		return core.Block{Type: "tool_result", ToolUseID: id, Text: text}
	}
	messages := []llm.Message{
		{Role: "assistant", Blocks: []core.Block{call("a"), call("b")}},
		{Role: "user", Blocks: []core.Block{result("a", "unknown")}},
	}
	want := []llm.Message{
		messages[0],
		{Role: "user", Blocks: []core.Block{result("a", "done")}},
		{Role: "user", Blocks: []core.Block{result("b", "failed")}},
	}
	if diff := cmp.Diff(want, llm.WithResults(messages, []core.Block{result("a", "done"), result("b", "failed")})); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if got := llm.WithResults(want, nil); len(got) != 3 {
		t.Errorf("without results there are %d messages, want 3", len(got))
	}
}
