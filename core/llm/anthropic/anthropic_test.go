package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/anthropic"
	fake "gatehouse/core/llm/anthropictest"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/wiretest"
)

func TestAnswerStreamsPieceByPieceHoweverTheBytesAreCut(t *testing.T) {
	for _, split := range []int{0, 1, 2, 7, 100, 1 << 20} {
		s := fake.New(t, fake.Options{Key: key})
		s.Script(fake.Reply{Thinking: []string{"h", "m"}, Signature: fake.Signed + "1", Ping: true,
			Text: []string{"Grüße", ", ", "世界", "\n\ndata: x"}, Split: split,
			Usage: &fake.Tokens{Input: 20, Output: 5, CacheRead: 10, CacheWrite: 7}})
		c, _ := client(t, s.URL(), anthropic.Options{Key: key, Model: newer})
		g := wiretest.Ask(c, "hello")
		want := &wiretest.Got{Text: "Grüße, 世界\n\ndata: x", Thinking: "hm", Signature: fake.Signed + "1", Model: "anthropic/" + newer,
			Stop: "end_turn", Pieces: 4, Usage: &core.Tokens{Input: 20, Output: 5, CacheRead: 10, CacheWrite: 7}}
		if d := cmp.Diff(want, g); d != "" {
			t.Errorf("split %d: %s", split, d)
		}
		r := s.Requests()[0]
		if r.Header.Get("X-Api-Key") != key || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Authorization") != "" {
			t.Errorf("header %v", r.Header)
		}
		m := r.Message
		if !m.Stream || m.System[0].Text != "Be brief." || *m.MaxTokens != 100 || len(m.Tools) != 1 || len(m.Messages) != 1 {
			t.Errorf("request %s", r.Body)
		}
	}
}

func TestToolCallsAreJoinedFromFragments(t *testing.T) {
	s := fake.New(t, fake.Options{})
	s.Script(fake.Reply{Text: []string{"Let me look."}, Split: 3, Calls: []fake.Call{
		{ID: "toolu_a", Name: "Read", Fragments: []string{`{"pa`, `th":"a`, `.md"}`}},
		{ID: "toolu_b", Name: "List"},
	}})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	g := wiretest.Ask(c, "look")
	want := []core.Block{
		{Type: "tool_use", ID: "toolu_a", Name: "Read", Input: json.RawMessage(`{"path":"a.md"}`)},
		{Type: "tool_use", ID: "toolu_b", Name: "List", Input: json.RawMessage(`{}`)},
	}
	if d := cmp.Diff(want, g.Calls); d != "" || g.Stop != "tool_use" || g.Err != nil {
		t.Errorf("stop %q, err %v: %s", g.Stop, g.Err, d)
	}
}

func TestBrokenArgumentsReachTheToolAsAStringAndCutOnesDoNot(t *testing.T) {
	s := fake.New(t, fake.Options{})
	broken := fake.CallTool("toolu_a", "Read", `{"path":`)
	cut := broken
	cut.Stop = "max_tokens"
	s.Script(broken, cut)
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g := wiretest.Ask(c, "x"); len(g.Calls) != 1 || string(g.Calls[0].Input) != `"{\"path\":"` {
		t.Errorf("calls %+v", g.Calls)
	}
	if g := wiretest.Ask(c, "x"); len(g.Calls) != 0 || g.Stop != "max_tokens" {
		t.Errorf("calls %+v, stop %q", g.Calls, g.Stop)
	}
}

func TestAnyHistoryMakesARequestThatTheAPITakes(t *testing.T) {
	text := func(s string) core.Block { return core.Block{Type: "text", Text: s} }
	call := func(id, input string) core.Block {
		return core.Block{Type: "tool_use", ID: id, Name: "Read", Input: json.RawMessage(input)}
	}
	result := func(id, s string) core.Block { return core.Block{Type: "tool_result", ToolUseID: id, Text: s} }
	signed := core.Block{Type: "thinking", Text: "own thought", Signature: fake.Signed + "x"}
	foreign := core.Block{Type: "thinking", Text: "foreign thought"}
	s := fake.New(t, fake.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: []llm.Message{
		{Role: "assistant", Blocks: []core.Block{text("from the middle")}},
		{Role: "user", Blocks: []core.Block{text("look"), text(" \n"), result("gone", "orphan")}},
		{Role: "user", Blocks: []core.Block{text("again")}},
		{Role: "assistant", Blocks: []core.Block{foreign, signed, call("a", `{"path": "x"}`), call("functions.Read:0", `"broken"`), call("", "")}},
		{Role: "user", Blocks: []core.Block{text("and also"), result("functions.Read:0", ""), result("functions.Read:0", "twice"), {Type: "tool_result", ToolUseID: "a", Text: "no such file", IsError: true}}},
		{Role: "assistant", Blocks: []core.Block{signed}},
		{Role: "assistant", Blocks: []core.Block{call("a", `{}`), text("after"), signed}},
		{Role: "assistant", Blocks: []core.Block{text("the end")}},
	}}))
	if g.Err != nil {
		t.Fatal(g.Err)
	}
	want := []string{
		"user: (earlier messages are left out)",
		"assistant: from the middle",
		"user: look | Result of an earlier tool call: orphan | again",
		`assistant: <own thought> a={"path":"x"} | functions_Read_0={} | call2_={}`,
		"user: a!no such file | functions_Read_0:(no output) | call2_!interrupted, outcome unknown | and also | Result of an earlier tool call: twice",
		"assistant: call2_a={} | after",
		"user: call2_a!interrupted, outcome unknown",
		"assistant: the end",
		"user: (go on)",
	}
	m := s.Requests()[0].Message
	if d := cmp.Diff(want, lines(&m)); d != "" {
		t.Error(d)
	}
	if len(m.Tools) != 1 || m.Tools[0].Name != "Read" || m.Choice.Type != "none" {
		t.Errorf("tools %+v, choice %+v", m.Tools, m.Choice)
	}
}

// lines are a request's messages in short.
func lines(m *fake.Message) []string {
	var out []string
	for _, turn := range m.Messages {
		var parts []string
		thought := ""
		for _, b := range turn.Content {
			switch b.Type {
			case "text":
				parts = append(parts, b.Text)
			case "thinking":
				thought += "<" + b.Thinking + "> "
			case "tool_use":
				parts = append(parts, b.ID+"="+string(b.Input))
			case "tool_result":
				mark := ":"
				if b.IsError {
					mark = "!"
				}
				parts = append(parts, b.ToolUseID+mark+b.Content[0].Text)
			}
		}
		out = append(out, turn.Role+": "+thought+strings.Join(parts, " | "))
	}
	return out
}

func TestAnEmptyConversationIsStillARequest(t *testing.T) {
	s := fake.New(t, fake.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{})); g.Err != nil || g.Text == "" {
		t.Errorf("%+v", g)
	}
	if m := s.Requests()[0].Message; *m.MaxTokens != 16000 {
		t.Errorf("max_tokens %d", *m.MaxTokens)
	}
}

func TestThePromptIsCachedBehindTheSystemPromptAndTheHistory(t *testing.T) {
	s := fake.New(t, fake.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	turn := func(system string) fake.Message {
		t.Helper()
		g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{System: system, Tools: []llm.Tool{{Name: "A"}, {Name: "B"}}, Messages: []llm.Message{
			{Role: "user", Blocks: []core.Block{{Type: "text", Text: "one"}}},
			{Role: "assistant", Blocks: []core.Block{{Type: "text", Text: "two"}}},
			{Role: "user", Blocks: []core.Block{{Type: "text", Text: "three"}, {Type: "text", Text: "four"}}},
		}}))
		if g.Err != nil {
			t.Fatal(g.Err)
		}
		r := s.Requests()
		return r[len(r)-1].Message
	}
	points := func(m fake.Message) (out []string) {
		for _, b := range m.System {
			if b.CacheControl != nil {
				out = append(out, "system")
			}
		}
		for _, tool := range m.Tools {
			if tool.CacheControl != nil {
				out = append(out, tool.Name)
			}
		}
		for _, turn := range m.Messages {
			for _, b := range turn.Content {
				if b.CacheControl != nil {
					out = append(out, b.Text)
				}
			}
		}
		return out
	}
	if d := cmp.Diff([]string{"system", "four"}, points(turn("Be brief."))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"B", "four"}, points(turn(""))); d != "" {
		t.Error(d)
	}
}

func TestOnlyModelsThatThinkAsTheySeeFitAreAskedTo(t *testing.T) {
	s := fake.New(t, fake.Options{})
	for model, want := range map[string]bool{newer: true, older: false} {
		c, _ := client(t, s.URL(), anthropic.Options{Model: model})
		if g := wiretest.Ask(c, "x"); g.Err != nil {
			t.Fatal(g.Err)
		}
		r := s.Requests()
		th := r[len(r)-1].Message.Thinking
		if (th != nil) != want || c.About().Thinking != want || want && (th.Type != "adaptive" || th.Display != "summarized") {
			t.Errorf("%s: thinking %+v, about %+v", model, th, c.About())
		}
	}
}

func TestThinkingThatIsNotShownKeepsItsSignature(t *testing.T) {
	s := fake.New(t, fake.Options{})
	s.Script(fake.Reply{Signature: fake.Signed + "omitted", Redacted: "opaque", Text: []string{"yes"}})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g := wiretest.Ask(c, "x"); g.Signature != fake.Signed+"omitted" || g.Thinking != "" || g.Text != "yes" || g.Err != nil {
		t.Errorf("%+v", g)
	}
}

// Calls are yielded in their places, as soon as they are whole: what a model thinks between
// two calls belongs between them.
func TestThinkingTextAndCallsAreYieldedInTheirOrder(t *testing.T) {
	s := fake.New(t, fake.Options{})
	call := func(id string, fragments ...string) []fake.Call {
		return []fake.Call{{ID: id, Name: "Read", Fragments: fragments}}
	}
	s.Script(fake.Reply{Thinking: []string{"one"}, Signature: fake.Signed + "1", Calls: call("a", `{"x":`, `1}`),
		Then: &fake.Reply{Redacted: "opaque", Text: []string{"text"}, Calls: call("b", `{"broken`),
			Then: &fake.Reply{Thinking: []string{"two"}, Signature: fake.Signed + "2", Calls: call("c")}}})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	var got []string
	for d, err := range c.Reply(context.Background(), &llm.Request{Messages: wiretest.Said("x"), Tools: []llm.Tool{{Name: "Read"}}}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Call != nil {
			got = append(got, d.Call.ID+string(d.Call.Input))
		}
		for _, piece := range []string{d.Thinking, d.Signature, d.Redacted, d.Text, d.Stop} {
			if piece != "" {
				got = append(got, piece)
			}
		}
	}
	want := []string{"one", fake.Signed + "1", `a{"x":1}`, "opaque", "text", `b"{\"broken"`, "two", fake.Signed + "2", "c{}", "tool_use"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestWhatAServerRefusesIsLeftOutFromThenOn(t *testing.T) {
	s := fake.New(t, fake.Options{MaxTokens: 50, NoThought: true})
	c, clock := client(t, s.URL(), anthropic.Options{Model: newer})
	for n, want := range []int{3, 4} {
		if g := wiretest.Ask(c, "x"); g.Err != nil || g.Text == "" || s.Total() != want {
			t.Errorf("reply %d: %+v after %d requests", n+1, g, s.Total())
		}
	}
	r := s.Requests()
	if m := r[len(r)-1].Message; *m.MaxTokens != 50 || m.Thinking != nil || len(clock.Waits()) > 0 || c.About().Thinking {
		t.Errorf("%+v, waits %v, about %+v", m, clock.Waits(), c.About())
	}
}

func TestARefusedSignatureIsSentNoMoreInThisReply(t *testing.T) {
	s := fake.New(t, fake.Options{})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: []llm.Message{
		{Role: "user", Blocks: []core.Block{{Type: "text", Text: "one"}}},
		{Role: "assistant", Blocks: []core.Block{{Type: "thinking", Text: "hm", Signature: "of somebody else"}, {Type: "text", Text: "two"}}},
		{Role: "user", Blocks: []core.Block{{Type: "text", Text: "three"}}},
	}}))
	if g.Err != nil || s.Total() != 2 || !c.About().Thinking {
		t.Errorf("%+v after %d requests", g, s.Total())
	}
	if g := wiretest.Ask(c, "x"); g.Err != nil || s.Requests()[2].Message.Thinking == nil {
		t.Errorf("%+v: the next reply does without thinking", g)
	}
}

func TestBusyProviderIsAskedAgainAndThePersonIsNotified(t *testing.T) {
	s := fake.New(t, fake.Options{})
	s.Script(fake.Limited("3"), fake.Overloaded(), fake.Reply{Reset: true}, fake.Say("here"))
	c, clock := client(t, s.URL(), anthropic.Options{Model: newer})
	g := wiretest.Ask(c, "x")
	if g.Text != "here" || g.Err != nil {
		t.Fatalf("text %q, err %v", g.Text, g.Err)
	}
	if d := cmp.Diff([]string{"anthropic is busy, trying again in 3 s", "anthropic does not answer, trying again in 2 s"}, g.Notices); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}, clock.Waits()); d != "" {
		t.Error(d)
	}
}

func TestTheRateLimitHeadersSayWhenToComeBack(t *testing.T) {
	s := fake.New(t, fake.Options{})
	limited := fake.Limited("")
	for k, v := range map[string]string{"Requests-Remaining": "7", "Requests-Reset": "2026-01-02T03:05:05Z",
		"Input-Tokens-Remaining": "0", "Input-Tokens-Reset": "2026-01-02T03:04:11Z", "Output-Tokens-Remaining": "0", "Output-Tokens-Reset": "2026-01-02T03:04:09Z"} {
		limited.Header["Anthropic-Ratelimit-"+k] = v
	}
	s.Script(limited)
	c, clock := client(t, s.URL(), anthropic.Options{Model: newer})
	if g := wiretest.Ask(c, "x"); g.Err != nil || len(clock.Waits()) != 1 || clock.Waits()[0] != 6*time.Second {
		t.Errorf("%+v, waits %v", g, clock.Waits())
	}
}

func TestRetriesEndAfterFourAttempts(t *testing.T) {
	s := fake.New(t, fake.Options{Default: fake.HTML(503)})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	f := wiretest.Ask(c, "x").Fault(t)
	if f.Code != llm.CodeOverloaded || !f.CanRetry || f.Status != 503 || s.Total() != 4 {
		t.Errorf("%+v after %d requests", f, s.Total())
	}
	if strings.Contains(f.Error(), "<html>") {
		t.Errorf("HTML in %q", f.Error())
	}
}

func TestALongRetryAfterIsLeftToTheCaller(t *testing.T) {
	s := fake.New(t, fake.Options{})
	s.Script(fake.Limited("20"), fake.Limited("20"))
	c, clock := client(t, s.URL(), anthropic.Options{Model: newer})
	f := wiretest.Ask(c, "x").Fault(t)
	if f.Code != llm.CodeRateLimited || f.After != 20*time.Second || !f.CanRetry || s.Total() != 2 || len(clock.Waits()) != 1 {
		t.Errorf("%+v after %d requests, waits %v", f, s.Total(), clock.Waits())
	}
}

func TestAServerThatSaysNotToRetryIsNotAskedAgain(t *testing.T) {
	s := fake.New(t, fake.Options{})
	no := fake.Overloaded()
	no.Header["X-Should-Retry"] = "false"
	s.Script(no)
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeOverloaded || s.Total() != 1 {
		t.Errorf("%+v after %d requests", f, s.Total())
	}
}

func TestNothingIsAskedTwiceAfterTheFirstPiece(t *testing.T) {
	overloaded := &fake.Error{Type: "overloaded_error", Message: "Overloaded"}
	for name, r := range map[string]fake.Reply{
		"cut":               {Text: []string{"half an"}, Cut: true},
		"no message_stop":   {Text: []string{"half an"}, NoStop: true},
		"ended early":       {Text: []string{"half an"}, NoEnd: true},
		"error event":       {Text: []string{"half an"}, Error: overloaded},
		"error no object":   {Text: []string{"half an"}, Raw: "event: error\ndata: [1]\n\n"},
		"error of nonsense": {Text: []string{"half an"}, Raw: "event: error\ndata: <html>\n\n"},
		"garbage":           {Text: []string{"half an"}, Raw: "event: content_block_delta\ndata: <html>\n\n"},
		"an endless line":   {Text: []string{"half an"}, Raw: "data: " + strings.Repeat("x", 5<<20)},
		"an endless event":  {Text: []string{"half an"}, Raw: strings.Repeat("data: xxxxxxxxxxxxxxx\n", 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(t, fake.Options{})
			s.Script(r)
			c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
			g := wiretest.Ask(c, "x")
			if f := g.Fault(t); f.Code != llm.CodeCutOff || !f.CanRetry || s.Total() != 1 || g.Text != "half an" || g.Stop != "" {
				t.Errorf("%+v (%v) after %d requests, text %q", f, f.Err, s.Total(), g.Text)
			}
		})
	}
}

func TestABreakBeforeTheFirstPieceIsAskedAgain(t *testing.T) {
	for name, r := range map[string]fake.Reply{
		"cut":                {Cut: true},
		"no message_stop":    {NoStop: true},
		"overloaded":         {Error: &fake.Error{Type: "overloaded_error", Message: "Overloaded"}},
		"internal":           {Error: &fake.Error{Type: "api_error", Message: "Internal server error"}},
		"rate limit":         {Error: &fake.Error{Type: "rate_limit_error", Message: "slow down"}},
		"cut in a tool call": {Calls: []fake.Call{{ID: "a", Name: "Read", Fragments: []string{`{"pa`}}}, Cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(t, fake.Options{})
			s.Script(r, fake.Say("whole"))
			c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
			if g := wiretest.Ask(c, "x"); g.Text != "whole" || g.Err != nil || s.Total() != 2 {
				t.Errorf("%+v after %d requests", g, s.Total())
			}
		})
	}
}

func TestFaultsSayPlainlyWhatIsWrong(t *testing.T) {
	const bad = "invalid_request_error"
	for name, x := range map[string]struct {
		reply  fake.Reply
		code   string
		retry  bool
		text   string
		status int
	}{
		"forbidden":    {fake.Refuse(403, "permission_error", "no access"), llm.CodeAuth, false, "does not let us", 403},
		"no credit":    {fake.Refuse(400, bad, "Your credit balance is too low to access the Anthropic API."), llm.CodeCredit, false, "no credit", 400},
		"billing":      {fake.Refuse(402, "billing_error", "pay"), llm.CodeCredit, false, "no credit", 402},
		"too long":     {fake.Refuse(400, bad, "prompt is too long: 208310 tokens > 200000 maximum"), llm.CodeTooLong, false, "too long", 400},
		"no room":      {fake.Refuse(400, bad, "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000"), llm.CodeTooLong, false, "too long", 400},
		"too large":    {fake.Refuse(413, "request_too_large", "Request exceeds the maximum size"), llm.CodeTooLong, false, "too long", 413},
		"bad request":  {fake.Refuse(400, bad, "tools.0: nonsense"), llm.CodeBadRequest, false, "could not handle", 400},
		"no model":     {fake.Refuse(404, "not_found_error", "model: gone"), llm.CodeUnavailable, false, "must choose another one", 404},
		"filtered":     {fake.Refuse(400, bad, "Output blocked by content filtering policy"), llm.CodeFiltered, false, "declined", 400},
		"refusal":      {fake.Reply{Stop: "refusal"}, llm.CodeFiltered, false, "declined", 0},
		"late refusal": {fake.Reply{Text: []string{"Well"}, Stop: "refusal"}, llm.CodeFiltered, false, "declined", 0},
		"server error": {fake.Refuse(500, "api_error", "oops"), llm.CodeUnavailable, true, "out of reach", 500},
		"gateway":      {fake.HTML(504), llm.CodeUnavailable, true, "out of reach", 504},
		"an HTML page": {fake.Reply{Header: map[string]string{"Content-Type": "text/html"}, Raw: "<html>"}, llm.CodeGarbage, true, "an invalid answer", 0},
		"no answer":    {fake.Reply{NoStop: true, Stop: "end_turn", Header: map[string]string{"Content-Type": "text/plain"}}, llm.CodeGarbage, true, "an invalid answer", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(t, fake.Options{Default: x.reply})
			c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
			f := wiretest.Ask(c, "x").Fault(t)
			if f.Code != x.code || f.CanRetry != x.retry || f.Status != x.status || !strings.Contains(f.Text, x.text) {
				t.Errorf("%+v (%v)", f, f.Err)
			}
		})
	}
	t.Run("an error with status 200", func(t *testing.T) {
		c, _ := client(t, raw(t, "application/json", `{"type":"error","error":{"type":"permission_error","message":"no"}}`), anthropic.Options{Model: newer})
		if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeAuth {
			t.Errorf("%+v", f)
		}
	})
	t.Run("an empty stream", func(t *testing.T) {
		c, _ := client(t, raw(t, "text/event-stream", "data: hello\n\n"), anthropic.Options{Model: newer})
		if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeGarbage {
			t.Errorf("%+v", f)
		}
	})
}

func TestAFullWindowEndsTheAnswerAsTooManyTokensDo(t *testing.T) {
	s := fake.New(t, fake.Options{})
	s.Script(fake.Reply{Text: []string{"so far"}, Stop: "model_context_window_exceeded"})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	if g := wiretest.Ask(c, "x"); g.Stop != "max_tokens" || g.Err != nil {
		t.Errorf("%+v", g)
	}
}

func TestARefusedKeyIsNamedButNotShown(t *testing.T) {
	s := fake.New(t, fake.Options{Key: "another"})
	var log bytes.Buffer
	c, _ := client(t, s.URL(), anthropic.Options{Key: key, Model: newer, Log: slog.New(slog.NewTextHandler(&log, nil))})
	f := wiretest.Ask(c, "x").Fault(t)
	if f.Code != llm.CodeAuth || f.CanRetry || f.Setting != "GATEHOUSE_ANTHROPIC_API_KEY" || s.Total() != 1 || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("%+v after %d requests; log %s", f, s.Total(), log.String())
	}
	for _, text := range []string{f.Error(), log.String(), fmt.Sprintf("%+v %v", c, f)} {
		if strings.Contains(text, key) {
			t.Errorf("the key is in %q", text)
		}
	}
}

func TestNoErrorHoldsKeyOrAddress(t *testing.T) {
	for name, kind := range map[string]string{"status": "application/json", "stream": "text/event-stream"} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body := `{"type":"error","error":{"type":"invalid_request_error","message":"you sent ` + r.Header.Get("X-Api-Key") + `\u0000"}}`
				w.Header().Set("Content-Type", kind)
				if kind == "text/event-stream" {
					fmt.Fprintf(w, "event: error\ndata: %s\n\n", body)
					return
				}
				w.WriteHeader(400)
				w.Write([]byte(body))
			})
			c, _ := client(t, url, anthropic.Options{Key: key, Model: newer})
			f := wiretest.Ask(c, "x").Fault(t)
			_, err := c.Models(context.Background())
			for _, text := range []string{f.Error(), f.Text, err.Error(), fmt.Sprintf("%+v %#v", f, f)} {
				if strings.Contains(text, key) || strings.Contains(text, url) || strings.Contains(text, "\x00") {
					t.Errorf("secret in %q", text)
				}
			}
			if f.Code != llm.CodeBadRequest || !strings.Contains(f.Error(), "you sent [hidden]") {
				t.Errorf("%+v", f)
			}
		})
	}
	gone := serve(t, nil)
	c, _ := client(t, gone, anthropic.Options{Key: key, Model: newer, HTTP: &http.Client{Transport: refusing{}}})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeUnavailable || !f.CanRetry || strings.Contains(f.Error(), gone) {
		t.Errorf("%v", f)
	}
	for _, bad := range []string{"://user:hunter2@x", "ftp://hunter2", "http://user:hunter2@x/", "http://user:hunter2@/v1", "hunter2"} {
		_, err := anthropic.New(anthropic.Options{BaseURL: bad, Clock: &wiretest.Jump{}})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := anthropic.New(anthropic.Options{Key: "sk-bad\nkey", Clock: &wiretest.Jump{}}); err == nil || strings.Contains(err.Error(), "bad") {
		t.Errorf("key with newline: %v", err)
	}
}

// refusing is a network on which nothing answers.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// The SDK knows many variables and a configuration folder. All of them are set
// to lead into a trap.
func TestAmbientKeysAddressesAndHeadersAreNotRead(t *testing.T) {
	trap := fake.New(t, fake.Options{})
	dir := t.TempDir()
	for _, name := range []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_WEBHOOK_SIGNING_KEY", "ANTHROPIC_IDENTITY_TOKEN",
		"ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_WORKSPACE_ID", "ANTHROPIC_SERVICE_ACCOUNT_ID", "ANTHROPIC_PROFILE"} {
		t.Setenv(name, "ambient-value")
	}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, trap.URL())
	}
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Ambient: ambient-value\nX-Api-Key: ambient-value")
	t.Setenv("ANTHROPIC_OPEN_TELEMETRY", "true")
	t.Setenv("ANTHROPIC_CONFIG_DIR", dir)
	t.Setenv("ANTHROPIC_IDENTITY_TOKEN_FILE", filepath.Join(dir, "token"))
	if err := os.WriteFile(filepath.Join(dir, "active_config"), []byte("ambient-value"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := fake.New(t, fake.Options{})
	for _, given := range []string{"", key} {
		c, _ := client(t, s.URL(), anthropic.Options{Key: given})
		if g := wiretest.Ask(c, "x"); g.Err != nil {
			t.Fatal(g.Err)
		}
	}
	for i, r := range s.Requests() {
		want := ""
		if i >= 2 { // a list of models and a message without key, then both with it
			want = key
		}
		if got := r.Header.Get("X-Api-Key"); got != want || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %d sent key %q, want %q", r.Path, i, got, want)
		}
		for name, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), "ambient") || strings.EqualFold(name, "Traceparent") {
				t.Errorf("%s sent %s: %s", r.Path, name, values)
			}
		}
	}
	if trap.Total() != 0 || s.Total() != 4 {
		t.Errorf("the ambient address was asked %d times, the given one %d", trap.Total(), s.Total())
	}
}

func TestTheNewestModelOfTheMiddleSizeIsUsedWhereNoneIsConfigured(t *testing.T) {
	s := fake.New(t, fake.Options{Models: []string{"claude-opus-5", "claude-sonnet-5", "claude-sonnet-4-5"}})
	c, _ := client(t, s.URL()+"/v1/", anthropic.Options{})
	if a := c.About(); a.Name != "anthropic" || a.Window != 0 {
		t.Errorf("before: %+v", a)
	}
	for range 2 {
		if g := wiretest.Ask(c, "x"); g.Model != "anthropic/claude-sonnet-5" || g.Err != nil {
			t.Errorf("%+v", g)
		}
	}
	if a := c.About(); a.Name != "anthropic/claude-sonnet-5" || a.Window != 1_000_000 || !a.Tools || s.Total() != 3 {
		t.Errorf("after: %+v, %d requests", a, s.Total())
	}
	ids, err := c.Models(context.Background())
	if d := cmp.Diff([]string{"claude-opus-5", "claude-sonnet-5", "claude-sonnet-4-5"}, ids); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

func TestAModelThatIsGoneIsChosenAgain(t *testing.T) {
	s := fake.New(t, fake.Options{Models: []string{"claude-sonnet-5"}})
	c, _ := client(t, s.URL(), anthropic.Options{})
	wiretest.Ask(c, "x")
	s.Script(fake.Refuse(404, "not_found_error", "model: claude-sonnet-5"))
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeUnavailable {
		t.Errorf("%+v", f)
	}
	if g := wiretest.Ask(c, "x"); g.Err != nil || s.Requests()[3].Path != "/v1/models" {
		t.Errorf("%+v", g)
	}
}

func TestAServerWithoutModelsIsSaid(t *testing.T) {
	c, _ := client(t, raw(t, "application/json", `{"data":[],"has_more":false}`), anthropic.Options{})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeUnavailable || !strings.Contains(f.Text, "offers no model") {
		t.Errorf("%+v", f)
	}
	c, _ = client(t, raw(t, "text/html", `<html>`), anthropic.Options{})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeGarbage {
		t.Errorf("%+v", f)
	}
}

func TestAnEndedContextClosesTheConnectionAndIsNoFault(t *testing.T) {
	for name, reply := range map[string]fake.Reply{
		"before the header": {HangHead: true},
		"in mid-answer":     {Text: []string{"one"}, Hang: true},
		"while waiting":     fake.Overloaded(),
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(t, fake.Options{Default: reply})
			c, err := anthropic.New(anthropic.Options{BaseURL: s.URL(), Model: newer, Clock: wiretest.Never{}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			silence := errors.New("silence")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			go func() {
				if s.Await(ctx, 1) == nil {
					cancel(silence)
				}
			}()
			g := wiretest.Collect(c.Reply(ctx, &llm.Request{Messages: wiretest.Said("x")}))
			var f *llm.Fault
			if !errors.Is(g.Err, silence) || errors.As(g.Err, &f) {
				t.Errorf("%v", g.Err)
			}
		})
	}
}

func TestBreakingOffClosesTheConnection(t *testing.T) {
	s := fake.New(t, fake.Options{Default: fake.Reply{Text: []string{"one", "two"}, Hang: true}})
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer})
	n := 0
	for d, err := range c.Reply(context.Background(), &llm.Request{Messages: wiretest.Said("x")}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Text != "" {
			n++
			break
		}
	}
	if n != 1 {
		t.Errorf("%d pieces", n)
	}
	// goleak in TestMain sees a connection that stays.
}

func TestASilentHeaderIsAFaultOfItsOwn(t *testing.T) {
	s := fake.New(t, fake.Options{Default: fake.Reply{HangHead: true}})
	tr := &http.Transport{ResponseHeaderTimeout: time.Second}
	defer tr.CloseIdleConnections()
	c, _ := client(t, s.URL(), anthropic.Options{Model: newer, HTTP: &http.Client{Transport: tr}})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeSilence || !f.CanRetry || s.Total() != 1 {
		t.Errorf("%+v (%v) after %d requests", f, f.Err, s.Total())
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := fake.New(t, fake.Options{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL()+"/v1/messages", http.StatusTemporaryRedirect)
	})
	c, _ := client(t, url, anthropic.Options{Model: newer, Key: key})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeUnavailable || other.Total() != 0 {
		t.Errorf("%+v; the other host was asked %d times", f, other.Total())
	}
}

func TestOneProviderStandsInForTheOther(t *testing.T) {
	open := llmtest.New(t, llmtest.Options{Default: llmtest.Refuse(401, "Incorrect API key provided", "invalid_request_error", "invalid_api_key")})
	claude := fake.New(t, fake.Options{})
	first, err := openai.New(openai.Options{BaseURL: open.URL(), Model: "fake-1", Clock: &wiretest.Jump{}})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, _ := client(t, claude.URL(), anthropic.Options{Model: newer})
	g := wiretest.Ask(llm.Fallback(first, second), "x")
	if g.Err != nil || g.Model != "anthropic/"+newer || g.Text != "Hello from the fake model." || len(g.Notices) != 1 || open.Total() != 1 {
		t.Errorf("%+v", g)
	}
	claude.Script(fake.Refuse(401, "authentication_error", "invalid x-api-key"))
	if f := wiretest.Ask(llm.Fallback(second, first), "x").Fault(t); f.Code != llm.CodeAuth || open.Total() != 2 {
		t.Errorf("the other way round: %+v", f)
	}
	// After the first word nobody else takes over.
	claude.Script(fake.Reply{Signature: fake.Signed, Cut: true})
	if f := wiretest.Ask(llm.Fallback(second, first), "x").Fault(t); f.Code != llm.CodeCutOff || open.Total() != 2 {
		t.Errorf("%+v after %d", f, open.Total())
	}
}

// BenchmarkReply is a whole answer over loopback, for judging what the client costs.
func BenchmarkReply(b *testing.B) {
	s := fake.New(b, fake.Options{Default: fake.Reply{Text: strings.SplitAfter(strings.Repeat("word ", 50), " "), Burst: true}})
	c, err := anthropic.New(anthropic.Options{BaseURL: s.URL(), Model: newer, Clock: &wiretest.Jump{}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		if g := wiretest.Ask(c, "x"); g.Err != nil {
			b.Fatal(g.Err)
		}
	}
}
