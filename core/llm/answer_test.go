package llm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/llm"
)

func TestAnswerJoinsDeltasIntoBlocks(t *testing.T) {
	t.Parallel()
	call := core.Block{Type: "tool_use", ID: "c1", Name: "Read"}
	var a llm.Answer
	for _, d := range []llm.Delta{
		{Thinking: "first "}, {Thinking: "thought"}, {Signature: "s1"}, {Thinking: "second"}, {Signature: "s2"}, {Redacted: "hidden"},
		{Text: "Hel"}, {Text: "lo"}, {Call: &call}, {Text: "after"}, {Stop: "end_turn"},
	} {
		a.Add(d)
	}
	want := []core.Block{
		{Type: "thinking", Text: "first thought", Signature: "s1"}, {Type: "thinking", Text: "second", Signature: "s2"},
		{Type: core.Redacted, Signature: "hidden"}, {Type: "text", Text: "Hello"}, call, {Type: "text", Text: "after"},
	}
	if diff := cmp.Diff(want, a.Blocks()); diff != "" || a.Stop != "end_turn" {
		t.Errorf("the answer stopped with %q; blocks (-want +got):\n%s", a.Stop, diff)
	}
}

func TestAnswerIsCompleteAtAnyTime(t *testing.T) {
	t.Parallel()
	var a llm.Answer
	if got := a.Blocks(); len(got) != 0 {
		t.Errorf("without deltas there are blocks: %v", got)
	}
	a.Add(llm.Delta{Text: "one"})
	_ = a.Blocks()
	a.Add(llm.Delta{Text: " two"})
	a.Add(llm.Delta{Call: &core.Block{Type: "tool_use", ID: "c"}})
	if got := a.Blocks(); len(got) != 2 || got[0].Text != "one two" || got[1].ID != "c" {
		t.Errorf("blocks = %v, want the text and the call", got)
	}
}
