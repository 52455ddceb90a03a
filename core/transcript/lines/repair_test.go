package lines_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
)

func said(role, kind, text string) lines.Message {
	b := core.Block{Type: kind, Text: text}
	switch kind {
	case "tool_use":
		b = core.Block{Type: kind, ID: text, Name: "Read"}
	case "tool_result":
		b.ToolUseID = text
	}
	return lines.Message{Role: role, Blocks: []core.Block{b}, Model: "openai/load"}
}

// A conversation is read for every message, so most of it is not copied.
func TestRepairedAndForModel_CopyOnlyWhatTheyChange(t *testing.T) {
	plain := []lines.Message{said("user", "text", "a"), said("assistant", "text", "b"), said("user", "text", "c")}
	tools := append(plain[:2:2], said("user", "text", "c"), said("assistant", "tool_use", "t1"), said("user", "text", "d"), said("user", "tool_result", "t1"))
	thinks := append(plain[:2:2], said("assistant", "thinking", "hm"))
	other := func(all []lines.Message) []lines.Message { return lines.ForModel(all, "anthropic/claude") }
	for name, c := range map[string]struct {
		f     func([]lines.Message) []lines.Message
		of    []lines.Message
		whole bool
		want  int
	}{
		"text is repaired":           {lines.Repaired, plain, true, 3},
		"calls are repaired":         {lines.Repaired, tools, false, 6},
		"text for another model":     {other, plain, true, 3},
		"thinking for another model": {other, thinks, false, 2},
		"thinking for the same":      {func(all []lines.Message) []lines.Message { return lines.ForModel(all, "openai/load") }, thinks, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(c.of)
			got := c.f(c.of)
			if same := &got[0] == &c.of[0]; same != c.whole {
				t.Errorf("the messages themselves: %v", same)
			}
			if len(got) != c.want {
				t.Errorf("%d messages, want %d: %v", len(got), c.want, got)
			}
			if _ = append(got, said("user", "text", "next")); fmt.Sprint(c.of) != before {
				t.Error("the messages were changed")
			}
			if c.whole && !cmp.Equal(got, c.of) {
				t.Error(cmp.Diff(c.of, got))
			}
		})
	}
}

func TestNewest_CopiesNothingWhereAllFits(t *testing.T) {
	all := []lines.Message{said("user", "text", "summary"), said("user", "text", "a"), said("assistant", "text", "b")}
	all[0].Summary = true
	if got, size := lines.Newest(all, 1000); len(got) != 3 || &got[0] != &all[0] || size != lines.SizeOf(all) {
		t.Errorf("%d bytes of %v", size, got)
	}
	room := all[0].Size() + all[2].Size()
	all = append(all, said("user", "text", "c"))
	if got, _ := lines.Newest(all, room); len(got) != 2 || !got[0].Summary || got[1].Blocks[0].Text != "c" || all[1].Blocks[0].Text != "a" {
		t.Errorf("%v of %v", got, all)
	}
}
