package quote_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/coretest"
	"gatehouse/core/llm"
	"gatehouse/core/llm/quote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// found is a search that finds p, and remembers what it was asked.
type found struct {
	p      []quote.Passage
	err    error
	sender llm.Sender
	words  []string
	calls  int
}

func (f *found) search(_ context.Context, s llm.Sender, words []string, limit int) ([]quote.Passage, error) {
	f.sender, f.words = s, words
	f.calls++
	return f.p, f.err
}

func model(t testing.TB, name string, s quote.Search, clock core.Clock) *quote.Model {
	t.Helper()
	m, err := quote.New(name, s, clock)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type reply struct {
	text   string
	pieces []string
	calls  []core.Block
	usage  *core.Tokens
	stop   string
	models []string
	err    error
}

func ask(ctx context.Context, m llm.Model, req *llm.Request) (r reply) {
	for d, err := range m.Reply(ctx, req) {
		if err != nil {
			r.err = err
			continue
		}
		r.text += d.Text
		if d.Text != "" {
			r.pieces = append(r.pieces, d.Text)
		}
		if d.Call != nil {
			r.calls = append(r.calls, *d.Call)
		}
		if d.Model != "" {
			r.models = append(r.models, d.Model)
		}
		if d.Usage != nil {
			r.usage = d.Usage
		}
		if d.Stop != "" {
			r.stop = d.Stop
		}
	}
	return r
}

func user(text string) llm.Message {
	return llm.Message{Role: "user", Blocks: []core.Block{{Type: "text", Text: text}}}
}

func assistant(text string) llm.Message {
	return llm.Message{Role: "assistant", Blocks: []core.Block{{Type: "text", Text: text}}}
}

func TestAnswerQuotesPassagesWithTheirPaths(t *testing.T) {
	f := &found{p: []quote.Passage{
		{Path: "Public/tea.md", Line: 7, Text: "## Green tea\n\nTwo minutes.\x1b[2J", Score: 2},
		{Path: "a`b.md", Line: 1, Text: "Tea.", Score: 1},
	}}
	m := model(t, quote.Name, f.search, core.System{})
	sender := llm.Sender{User: 7, Trust: core.Sandboxed}
	r := ask(t.Context(), m, &llm.Request{Sender: sender, Messages: []llm.Message{user("How long do I brew the tea? And TEA leaves?")}})
	want := "Here is what I found in the notes, the best 2 passages:\n\n" +
		"> **Green tea**\n>\n> Two minutes.[2J\n\n`Public/tea.md`, line 7\n\n> Tea.\n\n`a'b.md`, line 1\n\n" +
		"No language model is configured, so I can only quote."
	if d := cmp.Diff(want, r.text); d != "" || r.err != nil || r.stop != "end_turn" {
		t.Errorf("%v %q %s", r.err, r.stop, d)
	}
	if d := cmp.Diff([]string{"long", "brew", "tea", "leaves"}, f.words); d != "" || f.sender != sender {
		t.Errorf("searched as %+v: %s", f.sender, d)
	}
	for _, p := range r.pieces {
		if len(strings.Fields(p)) != 1 {
			t.Errorf("piece %q is not one word", p)
		}
	}
	if d := cmp.Diff([]string{"local/quote"}, r.models); d != "" {
		t.Error(d)
	}
	again := ask(t.Context(), m, &llm.Request{Sender: sender, Messages: []llm.Message{user("How long do I brew the tea? And TEA leaves?")}})
	if again.text != r.text || *again.usage != *r.usage {
		t.Error("the same question has another answer")
	}
}

func TestNothingFoundIsSaidHonestlyAndTheHintOnlyOnce(t *testing.T) {
	f := &found{}
	m := model(t, quote.Name, f.search, core.System{})
	first := ask(t.Context(), m, &llm.Request{Messages: []llm.Message{user("quarks?")}})
	if !strings.HasPrefix(first.text, "I found nothing about that") || !strings.Contains(first.text, "No language model is configured") {
		t.Errorf("%q", first.text)
	}
	next := ask(t.Context(), m, &llm.Request{Messages: []llm.Message{user("quarks?"), assistant(first.text), user("and leptons?")}})
	if !strings.HasPrefix(next.text, "I found nothing about that") || strings.Contains(next.text, "No language model") {
		t.Errorf("%q", next.text)
	}
	if r := ask(t.Context(), m.WithoutHint(), &llm.Request{Messages: []llm.Message{user("quarks?")}}); strings.Contains(r.text, "No language model") {
		t.Errorf("a fallback says: %q", r.text)
	}
	if r := ask(t.Context(), m, &llm.Request{Messages: []llm.Message{user("and what of it?")}}); f.calls != 3 || r.err != nil {
		t.Errorf("searched %d times, %v: a question of stop words is no search", f.calls, r.err)
	}
	if r := ask(t.Context(), m, &llm.Request{}); r.err != nil || r.stop != "end_turn" {
		t.Errorf("no message at all: %+v", r)
	}
}

func TestUsageIsFourTokensForThreeWordsAndTheLimitHolds(t *testing.T) {
	m := model(t, quote.Name, nil, core.System{})
	r := ask(t.Context(), m, &llm.Request{System: "one two three", Messages: []llm.Message{user("four five six")}, MaxTokens: 8})
	if *r.usage != (core.Tokens{Input: 8, Output: 8}) || r.stop != "max_tokens" || r.text != "I found nothing about that in " {
		t.Errorf("%+v %+v", r, r.usage)
	}
}

func TestUseLineCallsAnOfferedTool(t *testing.T) {
	m := model(t, quote.Name, (&found{}).search, core.System{})
	tools := []llm.Tool{{Name: "Read"}, {Name: "Bash"}}
	req := &llm.Request{Tools: tools, Messages: []llm.Message{user("please\nuse Read {\"path\":\n \"a.md\"} and then\n use Bash {}\nuse Delete {}\nuse Read {broken\nuse Read nothing\nI use Read {}")}}
	r := ask(t.Context(), m, req)
	if len(r.calls) != 2 || r.stop != "tool_use" || r.text != "" || r.usage == nil {
		t.Fatalf("%+v", r)
	}
	var in struct{ Path string }
	if err := json.Unmarshal(r.calls[0].Input, &in); err != nil || in.Path != "a.md" || r.calls[0].Name != "Read" || r.calls[1].Name != "Bash" {
		t.Errorf("%+v %v", r.calls, err)
	}
	if r.calls[0].ID == r.calls[1].ID || r.calls[0].ID == "" || r.calls[0].Type != "tool_use" {
		t.Errorf("ids %q, %q", r.calls[0].ID, r.calls[1].ID)
	}
	if again := ask(t.Context(), m, req); again.calls[0].ID != r.calls[0].ID {
		t.Error("another id for the same conversation")
	}
	req.Messages = append(req.Messages, llm.Message{Role: "assistant", Blocks: r.calls}, llm.Message{Role: "user", Blocks: []core.Block{
		{Type: "tool_result", ToolUseID: r.calls[0].ID, Text: "use Read {}\ncontents"},
		{Type: "tool_result", ToolUseID: r.calls[1].ID, Text: "denied", IsError: true}}})
	after := ask(t.Context(), m, req)
	if after.text != "The tool answered:\n\n> use Read {}\n> contents\n\nThe tool failed:\n\n> denied" || len(after.calls) != 0 {
		t.Errorf("%q, calls %+v", after.text, after.calls)
	}
	req = &llm.Request{Messages: []llm.Message{user("use Read {}")}}
	if r := ask(t.Context(), m, req); len(r.calls) != 0 || r.text == "" {
		t.Errorf("a tool that was not offered: %+v", r)
	}
}

func TestDelayPerWordIsOnTheClockAndEndsWithTheContext(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	m := model(t, "local/quote:30ms", nil, clock)
	silence := errors.New("stopped by the user")
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan reply)
	go func() { done <- ask(ctx, m, &llm.Request{Messages: []llm.Message{user("x")}}) }()
	for range 3 {
		clock.AwaitWaiters(1)
		clock.Advance(30 * time.Millisecond)
	}
	clock.AwaitWaiters(1)
	clock.Advance(29 * time.Millisecond)
	cancel(silence)
	r := <-done
	if r.text != "I found nothing " || !errors.Is(r.err, silence) || r.stop != "" {
		t.Errorf("%+v", r)
	}
	if m.About().Name != "local/quote:30ms" {
		t.Error(m.About().Name)
	}
}

func TestBreakingOffEndsTheReply(t *testing.T) {
	m := model(t, quote.Name, nil, core.System{})
	for range m.Reply(t.Context(), &llm.Request{Messages: []llm.Message{user("x")}}) {
		break // the iterator would panic if it went on
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{"local/quote": true, "local/quote:30ms": true, "local/quote:0s": true,
		"local/quote:": false, "local/quote:-1s": false, "local/quote:11s": false, "local/quote30ms": false, "openai/x": false} {
		if _, err := quote.New(name, nil, core.System{}); (err == nil) != ok || (err != nil && core.KindOf(err) != core.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFailedSearchIsAFault(t *testing.T) {
	m := model(t, quote.Name, (&found{err: errors.New("disk on fire")}).search, core.System{})
	r := ask(t.Context(), m, &llm.Request{Messages: []llm.Message{user("tea")}})
	var f *llm.Fault
	if !errors.As(r.err, &f) || !f.CanRetry || strings.Contains(f.Text, "fire") {
		t.Errorf("%v", r.err)
	}
}

// TestSampleVault asks the questions that a newcomer asks of the demo.
func TestSampleVault(t *testing.T) {
	root, err := os.OpenRoot("../../../configs/sample-vault")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	guestRead := func(s llm.Sender, path string) bool {
		return s.Trust == core.Full || strings.HasPrefix(path, "Public/")
	}
	m := model(t, quote.Name, quote.Grep(root, nil, guestRead, core.System{}), core.System{})
	at := func(trust core.Trust, q string) string {
		r := ask(t.Context(), m, &llm.Request{Sender: llm.Sender{Trust: trust}, Messages: []llm.Message{user(q)}})
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.text
	}
	for q, want := range map[string]string{
		"How long should green tea brew?":                 "Green tea wants water of about 75",
		"When is the library open on Saturday?":           "Saturday from 9:00",
		"What is pairing?":                                "gets a pairing code",
		"What are the trust levels?":                      "There are three.",
		"How do I plug in a model?":                       "GATEHOUSE_OPENAI_BASE_URL",
		"what are the rules of the reading circle":        "Nobody has to finish a book",
		"My bike has a flat tyre":                         "Take the wheel out",
		"How do I find the North Star?":                   "five times their distance",
		"how hot must the oven be to bake bread":          "240 °C",
		"Which commands does the bot know?":               "`/help` lists them",
		"What can I do against snails on my tomatoes?":    "Tomatoes",
		"I have lost an umbrella, where is the green box": "Ask for the green box",
	} {
		if got := at(core.Sandboxed, q); !strings.Contains(got, want) {
			t.Errorf("%s\nwant %q in:\n%s", q, want, got)
		}
	}
	secret := "Where is the spare key of the cellar, and the fuse?"
	if got := at(core.Sandboxed, secret); strings.Contains(got, "plums") || strings.Contains(got, "Private/") {
		t.Errorf("a guest reads Private:\n%s", got)
	}
	if got := at(core.Full, secret); !strings.Contains(got, "plums") || !strings.Contains(got, "`Private/cellar.md`") {
		t.Errorf("the owner reads:\n%s", got)
	}
	if got := at(core.Sandboxed, "quantum chromodynamics"); !strings.Contains(got, "I found nothing") {
		t.Errorf("%s", got)
	}
}

func BenchmarkNothingFound(b *testing.B) {
	m := model(b, quote.Name, (&found{}).search, core.System{})
	req := &llm.Request{System: strings.Repeat("word ", 200), Messages: []llm.Message{user("What about quarks?")}}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Reply(context.Background(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkSampleVault(b *testing.B) {
	root, err := os.OpenRoot("../../../configs/sample-vault")
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	m := model(b, quote.Name, quote.Grep(root, nil, func(llm.Sender, string) bool { return true }, core.System{}), core.System{})
	req := &llm.Request{Messages: []llm.Message{user("How long should green tea brew?")}}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Reply(context.Background(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
