package openai_test

import (
	"strings"
	"testing"

	"gatehouse/core/llm"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/wiretest"
)

// letters cuts text into pieces of n bytes.
func letters(text string, n int) (pieces []string) {
	for len(text) > n {
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return append(pieces, text)
}

func TestThinkBlocksOfOpenModelsAreThinking(t *testing.T) {
	for name, x := range map[string]struct{ said, thinking, text string }{
		"think":          {"<think>\nhm, <b> & </thin\n</think>\n\nYes, <think> is a mark.", "\nhm, <b> & </thin\n", "Yes, <think> is a mark."},
		"blanks before":  {"\n <think>a</think>b", "a", "b"},
		"empty":          {"<think>\n\n</think>\n\nYes.", "\n\n", "Yes."},
		"none":           {"Yes </think> no", "", "Yes </think> no"},
		"a beginning":    {"<thin", "", "<thin"},
		"never ended":    {"<think>on and on </thi", "on and on </thi", ""},
		"another mark":   {"<thinker>x</thinker>", "", "<thinker>x</thinker>"},
		"only blanks":    {"  \n", "", "  \n"},
		"later in text":  {"Use <think>x</think>.", "", "Use <think>x</think>."},
		"text then mark": {"a<think>b</think>", "", "a<think>b</think>"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 3, 1000} {
				s := llmtest.New(t, llmtest.Options{})
				s.Script(llmtest.Say(letters(x.said, n)...))
				c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
				if g := wiretest.Ask(c, "x"); g.Err != nil || g.Thinking != x.thinking || g.Text != x.text {
					t.Errorf("pieces of %d: thinking %q, text %q, %v", n, g.Thinking, g.Text, g.Err)
				}
			}
		})
	}
}

func TestAStreamWithAReasonAndWithoutDoneIsWhole(t *testing.T) {
	for name, r := range map[string]llmtest.Reply{
		"text":  {Text: []string{"whole"}, NoDone: true},
		"calls": {Calls: []llmtest.Call{{ID: "a", Name: "Read", Fragments: []string{"{}"}}}, NoDone: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{})
			s.Script(r)
			c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
			if g := wiretest.Ask(c, "x"); g.Err != nil || g.Stop == "" || g.Text+strings.Repeat("whole", len(g.Calls)) != "whole" || s.Total() != 1 {
				t.Errorf("%+v after %d requests", g, s.Total())
			}
		})
	}
}

func TestALineOfFourMebibytesIsRead(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	long := strings.Repeat("x", 4<<20-1000)
	s.Script(llmtest.Say(long))
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	if g := wiretest.Ask(c, "x"); g.Err != nil || g.Text != long {
		t.Errorf("%d bytes, %v", len(g.Text), g.Err)
	}
}

func TestARefusedPictureIsNamed(t *testing.T) {
	for name, words := range map[string]string{"for good": "image input is not supported", "this one": "Image is corrupt"} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{})
			s.Script(llmtest.Refuse(400, words, "invalid_request_error", ""))
			c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
			var told []string
			for d, err := range c.Reply(t.Context(), &llm.Request{Messages: shown(picture)}) {
				if err != nil {
					t.Fatal(err)
				}
				if d.Unread != "" {
					told = append(told, d.Unread)
				}
			}
			if len(told) != 1 || !strings.Contains(told[0], "cat.png") || !strings.Contains(told[0], "openai/fake-1") {
				t.Errorf("told %q", told)
			}
		})
	}
}
