package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	"gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/openai"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
)

var (
	picture  = core.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n0000IHDR")}
	document = core.Media{Type: "application/pdf", Name: "book.pdf", Data: []byte("%PDF-1.7\n")}
)

func call(ids ...string) transcript.Message {
	m := transcript.Message{Role: "assistant", Model: "anthropic/claude-fake-5", Stop: "tool_use", Blocks: []core.Block{
		{Type: "thinking", Text: "hm", Signature: anthropictest.Signed + "1"}}}
	for _, id := range ids {
		m.Blocks = append(m.Blocks, core.Block{Type: "tool_use", ID: id, Name: "Read", Input: json.RawMessage(`{"p":1}`)})
	}
	return m
}

func result(id, text string, media ...core.Media) core.Block {
	return core.Block{Type: "tool_result", ToolUseID: id, Text: text, Media: media}
}

func said(blocks ...core.Block) transcript.Message {
	return transcript.Message{Role: "user", Blocks: blocks}
}

// accepted is a judge of histories: both providers' strict fakes must take them.
func accepted(t testing.TB) func(messages []transcript.Message) error {
	a, o := anthropictest.New(t, anthropictest.Options{}), llmtest.New(t, llmtest.Options{})
	claude, err := anthropic.New(anthropic.Options{Model: "claude-fake-5", BaseURL: a.URL(), Clock: core.System{}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := openai.New(openai.Options{Model: "fake-1", BaseURL: o.URL(), Clock: core.System{}, Documents: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { claude.Close(); other.Close() })
	return func(messages []transcript.Message) error {
		req := &llm.Request{Tools: []llm.Tool{{Name: "Read"}}}
		for _, m := range append(messages, user("and now?")) {
			msg := llm.Message{Role: m.Role}
			msg.Blocks = append(msg.Blocks, m.Blocks...)
			req.Messages = append(req.Messages, msg)
		}
		before := a.Total() + o.Total()
		for _, m := range []llm.Model{claude, other} {
			for _, err := range m.Reply(context.Background(), req) {
				if err != nil {
					return err
				}
			}
		}
		if n := a.Total() + o.Total() - before; n != 2 {
			return fmt.Errorf("%d requests: one was refused", n)
		}
		return paired(messages)
	}
}

// paired holds calls and results together without any provider's own repair.
func paired(messages []transcript.Message) error {
	for i, m := range messages {
		var calls, results []string
		for _, b := range m.Blocks {
			if b.Type == "tool_use" {
				calls = append(calls, b.ID)
			}
			if b.Type == "tool_result" && (i == 0 || messages[i-1].Role != "assistant") {
				return fmt.Errorf("message %d: a result behind no call", i)
			}
		}
		if len(calls) == 0 {
			continue
		}
		if i+1 == len(messages) {
			return errors.New("calls at the end without results")
		}
		for _, b := range messages[i+1].Blocks {
			results = append(results, b.ToolUseID)
		}
		if d := cmp.Diff(calls, results); d != "" {
			return fmt.Errorf("message %d: calls and results: %s", i, d)
		}
	}
	return nil
}

func TestAnyCutOfATranscriptIsAHistoryThatBothProvidersTake(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	for n := range 3 {
		run := fmt.Sprint("run-", n)
		failed := result("d", "half", picture)
		failed.IsError = true
		err := c.Append(run, 0, said(core.Block{Type: "media", Media: []core.Media{picture, document}}, core.Block{Type: "text", Text: "look"}),
			call("a", "b"), said(result("b", "B")), said(result("a", "", picture), result("a", "twice")), call("c", "d"),
			said(failed, result("c", "C", document)), answer("done"))
		if err := errors.Join(err, c.Sync()); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			if err := c.Compact("so far so good", 3); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(c.Path())
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	judge := accepted(t)
	for from := range lines {
		for to := from; to <= len(lines); to++ {
			if from > 0 && to < len(lines) && (from+to)%7 > 0 { // all heads, all tails, a part of the middles
				continue
			}
			if err := os.WriteFile(c.Path(), bytes.Join(lines[from:to], nil), 0o600); err != nil {
				t.Fatal(err)
			}
			history, _, err := h.open(h.another(), sess).History(100_000)
			if err == nil {
				err = judge(history)
			}
			if err != nil {
				t.Fatalf("lines %d to %d: %v\n%v", from, to, err, texts(history))
			}
		}
	}
}

func TestAnyOrderOfLinesIsAHistoryThatBothProvidersTake(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	judge := accepted(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		one := rapid.SampledFrom([]transcript.Message{user("hi"), answer("ho"), call("a", "b"), call("a"), call("c", "c"), said(result("a", "A")),
			said(result("b", "B"), result("a", "A")), said(result("x", "lost", picture)), said(result("c", "C", document), core.Block{Type: "text", Text: "and"})})
		n++
		c := h.open(h.Store, sess)
		if err := c.Append(fmt.Sprint("run-", n), 0, rapid.SliceOfN(one, 1, 12).Draw(rt, "messages")...); err != nil {
			rt.Fatal(err)
		}
		budget := rapid.SampledFrom([]int{20, 300, 5000, 50_000}).Draw(rt, "budget")
		history, _, err := c.History(budget)
		if err == nil {
			err = judge(history)
		}
		if err := errors.Join(err, c.Close()); err != nil {
			rt.Fatalf("%v\n%v", err, texts(history))
		}
	})
}

func TestWhatARunLeftOpenIsKnownToItsNextAttempt(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Append("old", 0, user("old"), call("z")), c.Append("run", 0, user("do it"), call("a", "b", "c"), said(result("b", "B"))), c.Close()); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*session.Store{"from memory": h.Store, "after a restart": h.another()} {
		c := h.open(s, sess)
		if n, err := c.HasRun("run"); n != 3 || err != nil {
			t.Fatal(name, n, err)
		}
		var ids []string
		for _, b := range c.Open("run") {
			ids = append(ids, b.ID+" "+b.Name)
		}
		if d := cmp.Diff([]string{"a Read", "c Read"}, ids); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		history, _, err := c.History(1000)
		last := history[len(history)-1]
		if err != nil || len(last.Blocks) != 3 || !last.Blocks[0].IsError || last.Blocks[0].Text != "interrupted, outcome unknown" || last.Blocks[1].Text != "B" {
			t.Errorf("%s: %+v, %v", name, last, err)
		}
		_ = c.Close()
	}
	c = h.open(h.Store, sess)
	if err := errors.Join(c.Append("run", 3, said(result("a", "interrupted, outcome unknown"), result("c", "C"))), c.Close()); err != nil {
		t.Fatal(err)
	}
	c = h.open(h.another(), sess)
	if n, err := c.HasRun("run"); n != 4 || err != nil || len(c.Open("run")) != 0 {
		t.Errorf("%d lines, %v, open %v", n, err, c.Open("run"))
	}
}

func TestARunOfManyRoundsIsOpenedWhole(t *testing.T) {
	h := open(t)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	if err := c.Append("run", 0, user("go")); err != nil {
		t.Fatal(err)
	}
	for n := range 40 { // far more than the first read of a file
		id := fmt.Sprint("call", n)
		m := said(result(id, strings.Repeat("r", 10_000)))
		if n == 0 {
			id, m = "first", said(result("none", "x"))
		}
		if err := c.Append("run", 1+2*n, call(id), m); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	c = h.open(h.another(), sess)
	if n, err := c.HasRun("run"); n != 81 || err != nil || len(c.Open("run")) != 1 || c.Open("run")[0].ID != "first" {
		t.Errorf("%d lines, %v, open: %v", n, err, c.Open("run"))
	}
	got, r, err := c.History(10_000)
	if err != nil || len(got) < 5 || got[0].Blocks[0].Text != "go" || got[1].Role != "assistant" || r.Info.Method != "context_injection" {
		t.Errorf("a turn larger than the budget: %d messages, %+v, %v", len(got), r.Info, err)
	}
	if err := accepted(t)(got); err != nil {
		t.Error(err)
	}
}
