package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/llm"
	"gatehouse/core/llm/llmtest"
	"gatehouse/core/llm/openai"
	"gatehouse/core/llm/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-test-0123456789-secret"

// client is a client of the fake; o is completed.
func client(t *testing.T, url string, o openai.Options) (*openai.Client, *wiretest.Jump) {
	t.Helper()
	clock := wiretest.NewJump()
	o.BaseURL, o.Clock, o.Rand = url, clock, func() float64 { return 0 }
	c, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, clock
}

func TestAnswerStreamsPieceByPieceHoweverTheBytesAreCut(t *testing.T) {
	for _, split := range []int{0, 1, 2, 7, 100, 1 << 20} {
		s := llmtest.New(t, llmtest.Options{Key: key})
		s.Script(llmtest.Reply{Thinking: []string{"hm"}, Text: []string{"Grüße", ", ", "世界", "\n\ndata: x"}, Split: split,
			Usage: &llmtest.Tokens{Prompt: 30, Completion: 5, Cached: 10}})
		c, _ := client(t, s.URL(), openai.Options{Key: key, Model: "fake-1"})
		g := wiretest.Ask(c, "hello")
		want := &wiretest.Got{Text: "Grüße, 世界\n\ndata: x", Thinking: "hm", Model: "openai/fake-1", Stop: "end_turn", Pieces: 4,
			Usage: &core.Tokens{Input: 20, Output: 5, CacheRead: 10}}
		if d := cmp.Diff(want, g); d != "" {
			t.Errorf("split %d: %s", split, d)
		}
		r := s.Requests()[0]
		if r.Auth != "Bearer "+key || !r.Usage || len(r.Messages) != 2 || r.Messages[0].Role != "system" || len(r.Tools) != 1 {
			t.Errorf("request %+v", r)
		}
	}
}

func TestToolCallsAreJoinedFromFragments(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	s.Script(llmtest.Reply{Text: []string{"Let me look."}, Split: 3, Calls: []llmtest.Call{
		{ID: "call_a", Name: "Read", Fragments: []string{`{"pa`, `th":"a`, `.md"}`}},
		{ID: "call_b", Name: "List"},
	}})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	g := wiretest.Ask(c, "look")
	want := []core.Block{
		{Type: "tool_use", ID: "call_a", Name: "Read", Input: json.RawMessage(`{"path":"a.md"}`)},
		{Type: "tool_use", ID: "call_b", Name: "List", Input: json.RawMessage(`{}`)},
	}
	if d := cmp.Diff(want, g.Calls); d != "" || g.Stop != "tool_use" || g.Err != nil {
		t.Errorf("stop %q, err %v: %s", g.Stop, g.Err, d)
	}
}

func TestBrokenArgumentsReachTheToolAsAStringAndCutOnesDoNot(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	broken := llmtest.CallTool("call_a", "Read", `{"path":`)
	cut := broken
	cut.Finish = "length"
	s.Script(broken, cut)
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	if g := wiretest.Ask(c, "x"); len(g.Calls) != 1 || string(g.Calls[0].Input) != `"{\"path\":"` {
		t.Errorf("calls %+v", g.Calls)
	}
	if g := wiretest.Ask(c, "x"); len(g.Calls) != 0 || g.Stop != "max_tokens" {
		t.Errorf("calls %+v, stop %q", g.Calls, g.Stop)
	}
}

// Ollama and Gemini's compatible endpoint do so.
func TestServersThatNumberAllCallsZeroAreUnderstood(t *testing.T) {
	c, _ := client(t, raw(t, "text/event-stream", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"x\""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":":1}"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"Write","arguments":""}},{"index":0,"function":{"arguments":"{\"y\":2}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

`), openai.Options{Model: "m"})
	g := wiretest.Ask(c, "x")
	if len(g.Calls) != 2 || g.Calls[0].Name != "Read" || string(g.Calls[0].Input) != `{"x":1}` || g.Calls[1].ID != "b" || g.Calls[1].Name != "Write" || string(g.Calls[1].Input) != `{"y":2}` {
		t.Errorf("%+v", g.Calls)
	}
}

// Without its arguments a call might do more than was meant.
func TestACallThatIsCutBeforeItsArgumentsIsNotMade(t *testing.T) {
	for reason, calls := range map[string]int{"length": 0, "tool_calls": 1} {
		c, _ := client(t, raw(t, "text/event-stream", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"delete_events","arguments":""}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"`+reason+`"}]}

data: [DONE]

`), openai.Options{Model: "m"})
		if g := wiretest.Ask(c, "x"); len(g.Calls) != calls {
			t.Errorf("%s: %+v", reason, g.Calls)
		}
	}
}

func TestServersThatNumberNoCallsAreUnderstood(t *testing.T) {
	c, _ := client(t, raw(t, "text/event-stream", `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{\"x\""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":":1}"}}],"reasoning":"because"},"finish_reason":"stop"}]}

data: {"choices":null,"usage":{"prompt_tokens":3,"completion_tokens":4}}

data: [DONE]

`), openai.Options{Model: "m"})
	g := wiretest.Ask(c, "x")
	if len(g.Calls) != 2 || g.Calls[1].ID != "b" || string(g.Calls[1].Input) != `{"x":1}` || g.Stop != "tool_use" {
		t.Errorf("%+v", g)
	}
	if g.Thinking != "because" || g.Usage == nil || g.Usage.Output != 4 {
		t.Errorf("%+v", g)
	}
}

func TestAnyHistoryMakesAWellFormedRequest(t *testing.T) {
	text := func(s string) core.Block { return core.Block{Type: "text", Text: s} }
	call := func(id, input string) core.Block {
		return core.Block{Type: "tool_use", ID: id, Name: "Read", Input: json.RawMessage(input)}
	}
	result := func(id, s string) core.Block { return core.Block{Type: "tool_result", ToolUseID: id, Text: s} }
	s := llmtest.New(t, llmtest.Options{})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	g := wiretest.Collect(c.Reply(context.Background(), &llm.Request{Messages: []llm.Message{
		{Role: "user", Blocks: []core.Block{text("look"), result("gone", "orphan")}},
		{Role: "assistant", Blocks: []core.Block{{Type: "thinking", Text: "secret thought"}, call("a", `{"path": "x"}`), call("b", `"broken"`), call("c", "")}},
		{Role: "user", Blocks: []core.Block{text("and also"), result("b", ""), result("b", "again"), {Type: "tool_result", ToolUseID: "a", Text: "no such file", IsError: true}}},
		{Role: "assistant", Blocks: []core.Block{{Type: "thinking", Text: "only thought"}}},
		{Role: "assistant", Blocks: []core.Block{call("d", `{}`)}},
	}}))
	if g.Err != nil {
		t.Fatal(g.Err)
	}
	var lines []string
	for _, m := range s.Requests()[0].Messages {
		line := m.Role + " " + m.ToolCallID + " " + m.Content
		for _, c := range m.ToolCalls {
			line += " " + c.ID + *c.Function.Arguments
		}
		lines = append(lines, line)
	}
	want := []string{
		"user  look\n\nResult of an earlier tool call: orphan",
		`assistant   a{"path":"x"} b{} c{}`,
		"tool a Error: no such file",
		"tool b (no output)",
		"tool c interrupted, outcome unknown",
		"user  and also\n\nResult of an earlier tool call: again",
		"assistant   d{}",
		"tool d interrupted, outcome unknown",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

func TestBusyProviderIsAskedAgainAndThePersonIsNotified(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	s.Script(llmtest.Limited("3"), llmtest.HTML(502), llmtest.Reply{Reset: true}, llmtest.Say("here"))
	c, clock := client(t, s.URL(), openai.Options{Model: "fake-1"})
	g := wiretest.Ask(c, "x")
	if g.Text != "here" || g.Err != nil {
		t.Fatalf("text %q, err %v", g.Text, g.Err)
	}
	if d := cmp.Diff([]string{"openai is busy, trying again in 3 s", "openai does not answer, trying again in 2 s"}, g.Notices); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]time.Duration{3 * time.Second, time.Second, 2 * time.Second}, clock.Waits()); d != "" {
		t.Error(d)
	}
}

func TestRetriesEndAfterFourAttempts(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{Default: llmtest.HTML(503)})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	f := wiretest.Ask(c, "x").Fault(t)
	if f.Code != llm.CodeOverloaded || !f.CanRetry || f.Status != 503 || s.Total() != 4 {
		t.Errorf("%+v after %d requests", f, s.Total())
	}
	if strings.Contains(f.Error(), "<html>") {
		t.Errorf("HTML in %q", f.Error())
	}
}

func TestALongRetryAfterIsLeftToTheCaller(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	s.Script(llmtest.Limited("20"), llmtest.Limited("20"))
	c, clock := client(t, s.URL(), openai.Options{Model: "fake-1"})
	f := wiretest.Ask(c, "x").Fault(t)
	if f.Code != llm.CodeRateLimited || f.After != 20*time.Second || !f.CanRetry || s.Total() != 2 || len(clock.Waits()) != 1 {
		t.Errorf("%+v after %d requests, waits %v", f, s.Total(), clock.Waits())
	}
}

func TestNothingIsAskedTwiceAfterTheFirstPiece(t *testing.T) {
	overloaded := &llmtest.Error{Message: "The server is overloaded", Type: "server_error"}
	for name, r := range map[string]llmtest.Reply{
		"cut":               {Text: []string{"half an"}, Cut: true},
		"ended early":       {Text: []string{"half an"}, NoEnd: true},
		"error event":       {Text: []string{"half an"}, Error: overloaded},
		"garbage":           {Text: []string{"half an"}, Raw: "data: <html>\n\n"},
		"an endless line":   {Text: []string{"half an"}, Raw: "data: " + strings.Repeat("x", 5<<20)},
		"a bare error":      {Text: []string{"half an"}, Raw: "{\"error\":{\"message\":\"CUDA out of memory\"}}\n\n"},
		"an error as field": {Text: []string{"half an"}, Raw: "error: {\"code\":503,\"message\":\"busy\"}\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{})
			s.Script(r)
			c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
			g := wiretest.Ask(c, "x")
			if f := g.Fault(t); f.Code != llm.CodeCutOff || !f.CanRetry || s.Total() != 1 || g.Text != "half an" || g.Stop != "" {
				t.Errorf("%+v (%v) after %d requests, text %q", f, f.Err, s.Total(), g.Text)
			}
		})
	}
}

func TestABreakBeforeTheFirstPieceIsAskedAgain(t *testing.T) {
	for name, r := range map[string]llmtest.Reply{
		"cut":         {Cut: true},
		"no DONE":     {NoDone: true, Finish: "stop"},
		"error event": {Error: &llmtest.Error{Message: "The server had an error", Type: "server_error"}},
		"rate limit":  {Error: &llmtest.Error{Message: "slow down", Type: "tokens", Code: "rate_limit_exceeded"}},
		"cut in a tool call": {Calls: []llmtest.Call{{ID: "a", Name: "Read", Fragments: []string{`{"pa`}}},
			Cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{})
			s.Script(r, llmtest.Say("whole"))
			c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
			if g := wiretest.Ask(c, "x"); g.Text != "whole" || g.Err != nil || s.Total() != 2 {
				t.Errorf("%+v after %d requests", g, s.Total())
			}
		})
	}
}

func TestFaultsSayPlainlyWhatIsWrong(t *testing.T) {
	for name, x := range map[string]struct {
		reply  llmtest.Reply
		code   string
		retry  bool
		text   string
		status int
	}{
		"forbidden": {llmtest.Refuse(403, "Country not supported", "request_forbidden", "unsupported_country"), llm.CodeAuth, false, "does not let us", 403},
		"no credit": {llmtest.Refuse(429, "You exceeded your current quota", "insufficient_quota", "insufficient_quota"), llm.CodeCredit, false, "no credit", 429},
		"too long": {llmtest.Refuse(400, "This model's maximum context length is 8192 tokens.", "invalid_request_error", "context_length_exceeded"),
			llm.CodeTooLong, false, "too long", 400},
		"too long for llama.cpp": {llmtest.Refuse(400, "request (4390 tokens) exceeds the available context size", "exceed_context_size_error", ""),
			llm.CodeTooLong, false, "too long", 400},
		"no model":    {llmtest.Refuse(404, "The model `x` does not exist", "invalid_request_error", "model_not_found"), llm.CodeUnavailable, false, "must choose another one", 404},
		"bad request": {llmtest.Refuse(400, "Invalid value", "invalid_request_error", "invalid_value"), llm.CodeBadRequest, false, "could not handle", 400},
		"filter":      {llmtest.Reply{Finish: "content_filter"}, llm.CodeFiltered, false, "content filter", 0},
		"filter behind text": {llmtest.Reply{Text: []string{"well"}, Finish: "content_filter"}, llm.CodeFiltered, false,
			"content filter", 0},
		"garbage":      {llmtest.Reply{Status: 200, Header: map[string]string{"Content-Type": "text/html"}, Raw: "<html>\n\n", NoEnd: true}, llm.CodeCutOff, true, "broke off", 0},
		"error as 200": {llmtest.Reply{Error: &llmtest.Error{Message: "bad tool", Type: "invalid_request_error"}}, llm.CodeBadRequest, false, "could not", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{Default: x.reply})
			c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
			f := wiretest.Ask(c, "x").Fault(t)
			if f.Code != x.code || f.CanRetry != x.retry || !strings.Contains(f.Text, x.text) || f.Status != x.status {
				t.Errorf("%+v: %v", f, f.Err)
			}
			if !x.retry && s.Total() != 1 {
				t.Errorf("asked %d times", s.Total())
			}
		})
	}
}

func TestGarbageIsAFault(t *testing.T) {
	for name, x := range map[string]struct{ kind, body string }{
		"html":           {"text/html", "<html>hello</html>\n\n"},
		"no JSON":        {"text/event-stream", "data: {{{\n\n"},
		"only DONE":      {"text/event-stream", "data: [DONE]\n\n"},
		"json list":      {"application/json", "[1,2]"},
		"no choices":     {"application/json", `{"choices":[]}`},
		"broken json":    {"application/json", `{"choices":[`},
		"binary":         {"text/event-stream", strings.Repeat("\x00\xff\n", 1000)},
		"a line for mad": {"text/event-stream", strings.Repeat("x", 3<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := client(t, raw(t, x.kind, x.body), openai.Options{Model: "m"})
			if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeGarbage || !f.CanRetry {
				t.Errorf("%+v: %v", f, f.Err)
			}
		})
	}
}

func TestLengthIsAStopNotAFault(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{Default: llmtest.Reply{Text: []string{"as far as"}, Finish: "length"}})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
	if g := wiretest.Ask(c, "x"); g.Stop != "max_tokens" || g.Err != nil || g.Usage == nil {
		t.Errorf("%+v", g)
	}
}

func TestARefusedKeyIsSaidWithoutTheKey(t *testing.T) {
	var log bytes.Buffer
	s := llmtest.New(t, llmtest.Options{Key: "sk-another-key-entirely"})
	c, _ := client(t, s.URL(), openai.Options{Key: key, Model: "fake-1", Log: slog.New(slog.NewTextHandler(&log, nil))})
	f := wiretest.Ask(c, "x").Fault(t)
	if f.Code != llm.CodeAuth || f.CanRetry || f.Status != 401 || s.Total() != 1 {
		t.Errorf("%+v", f)
	}
	if f.Text != "The model provider rejects the API key. The operator must replace it." || f.Setting != "GATEHOUSE_OPENAI_API_KEY" {
		t.Errorf("text %q", f.Text)
	}
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the operator was not told: %s", log.String())
	}
	for _, text := range []string{f.Error(), log.String(), fmt.Sprintf("%+v %v", c, f)} {
		if strings.Contains(text, key) || strings.Contains(text, key[:4]) || strings.Contains(text, "cret") {
			t.Errorf("part of the key in %q", text)
		}
	}
}

func TestNoErrorHoldsKeyOrCredentials(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{"message": "you sent " + r.Header.Get("Authorization") + "\x00 with hunter2-password"}})
		w.WriteHeader(400)
		w.Write(b)
	}
	s := httptest.NewServer(http.HandlerFunc(echo))
	url := strings.Replace(s.URL, "http://", "http://user:hunter2-password@", 1)
	for _, open := range []bool{true, false} {
		if !open {
			s.Close() // now: connection refused
		}
		c, _ := client(t, url, openai.Options{Key: key, Model: "m"})
		f := wiretest.Ask(c, "x").Fault(t)
		_, err := c.Models(context.Background())
		for _, text := range []string{f.Error(), f.Text, err.Error()} {
			if strings.Contains(text, key) || strings.Contains(text, "hunter2") || strings.Contains(text, "\x00") ||
				strings.Contains(text, "http://") || strings.Contains(text, "user") {
				t.Errorf("secret in %q", text)
			}
		}
		if !open && (f.Code != llm.CodeUnavailable || !f.CanRetry) {
			t.Errorf("%+v", f)
		}
	}
	for _, bad := range []string{"://user:hunter2@x", "ftp://user:hunter2@x", "http://user:hunter2@/v1", "hunter2"} {
		_, err := openai.New(openai.Options{BaseURL: bad, Clock: &wiretest.Jump{}})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := openai.New(openai.Options{Key: "sk-bad\nkey", Clock: &wiretest.Jump{}}); err == nil || strings.Contains(err.Error(), "bad") {
		t.Errorf("key with newline: %v", err)
	}
}

func TestAmbientKeysAreNotRead(t *testing.T) {
	trap := llmtest.New(t, llmtest.Options{})
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_ORGANIZATION"} {
		t.Setenv(name, "sk-ambient")
	}
	for _, name := range []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "HTTP_PROXY", "http_proxy"} {
		t.Setenv(name, trap.URL())
	}
	s := llmtest.New(t, llmtest.Options{})
	c, _ := client(t, s.URL(), openai.Options{})
	if g := wiretest.Ask(c, "x"); g.Err != nil {
		t.Fatal(g.Err)
	}
	for _, r := range s.Requests() {
		if r.Auth != "" {
			t.Errorf("%s sent %q", r.Path, r.Auth)
		}
	}
	if trap.Total() != 0 {
		t.Error("the ambient base URL was asked")
	}
}

func TestTheFirstListedModelIsUsedWhereNoneIsConfigured(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{Models: []string{"llama3.2", "gpt-5-mini"}})
	c, _ := client(t, strings.TrimSuffix(s.URL(), "/v1"), openai.Options{})
	if got := c.About().Name; got != "openai" {
		t.Errorf("before: %q", got)
	}
	for range 2 {
		if g := wiretest.Ask(c, "x"); g.Model != "openai/llama3.2" || g.Err != nil {
			t.Errorf("%+v", g)
		}
	}
	if got := c.About().Name; got != "openai/llama3.2" || s.Total() != 3 {
		t.Errorf("after: %q, %d requests", got, s.Total())
	}
	ids, err := c.Models(context.Background())
	if d := cmp.Diff([]string{"llama3.2", "gpt-5-mini"}, ids); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
}

func TestAServerWithoutModelsIsSaid(t *testing.T) {
	c, _ := client(t, raw(t, "application/json", `{"object":"list","data":[]}`), openai.Options{})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeUnavailable || !strings.Contains(f.Text, "offers no model") {
		t.Errorf("%+v", f)
	}
}

// picky is a server that refuses what a test names, and counts.
func picky(t *testing.T, refuse func(body string) string) (url string, asked *int) {
	fake, err := llmtest.Start(llmtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	asked = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked++
		if message := refuse(string(body)); message != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}})
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.Close(); fake.Close() })
	return s.URL, asked
}

func TestWhatAServerRefusesIsLeftOutFromThenOn(t *testing.T) {
	url, asked := picky(t, func(body string) string {
		switch {
		case strings.Contains(body, "stream_options"):
			return "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options')}]"
		case strings.Contains(body, `"max_tokens"`):
			return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
		case strings.Contains(body, `"tools"`):
			return "registry.ollama.ai/library/llama2:13b does not support tools"
		}
		return ""
	})
	c, clock := client(t, url, openai.Options{Model: "fake-1"})
	for n, want := range []int{4, 5} {
		if g := wiretest.Ask(c, "x"); g.Err != nil || g.Text == "" || g.Usage != nil {
			t.Errorf("%+v", g)
		}
		if *asked != want || len(clock.Waits()) > 0 {
			t.Errorf("reply %d: asked %d times, waits %v", n+1, *asked, clock.Waits())
		}
	}
	if c.About().Tools {
		t.Error("About still says tools")
	}
}

func TestAnEndlessRefusalEnds(t *testing.T) {
	url, asked := picky(t, func(string) string { return "stream_options max_tokens max_completion_tokens does not support tools" })
	c, _ := client(t, url, openai.Options{Model: "fake-1"})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeBadRequest || *asked > 5 {
		t.Errorf("%+v after %d", f, *asked)
	}
}

func TestAServerThatIgnoresStreamIsUnderstood(t *testing.T) {
	c, _ := client(t, raw(t, "application/json; charset=utf-8", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"whole","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`), openai.Options{Model: "m"})
	if g := wiretest.Ask(c, "x"); g.Text != "whole" || len(g.Calls) != 1 || g.Usage == nil || g.Err != nil {
		t.Errorf("%+v", g)
	}
}

// What a server that ignores "stream" used is not known where it does not report it: that is
// not nothing.
func TestAWholeAnswerWithoutUsageReportsNone(t *testing.T) {
	for _, usage := range []string{"", `,"usage":null`, `,"usage":{"prompt_tokens":0,"completion_tokens":0}`} {
		c, _ := client(t, raw(t, "application/json", `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}]`+usage+`}`), openai.Options{Model: "m"})
		if g := wiretest.Ask(c, "x"); g.Text != "whole" || g.Usage != nil || g.Err != nil {
			t.Errorf("%q: %+v, usage %+v", usage, g, g.Usage)
		}
	}
}

func TestAnEndedContextClosesTheConnectionAndIsNoFault(t *testing.T) {
	for name, reply := range map[string]llmtest.Reply{
		"before the header": {HangHead: true},
		"in mid-answer":     {Text: []string{"one"}, Hang: true},
		"while waiting":     llmtest.HTML(503),
	} {
		t.Run(name, func(t *testing.T) {
			s := llmtest.New(t, llmtest.Options{Default: reply})
			c, err := openai.New(openai.Options{BaseURL: s.URL(), Model: "fake-1", Clock: wiretest.Never{}})
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
	s := llmtest.New(t, llmtest.Options{Default: llmtest.Reply{Text: []string{"one", "two"}, Hang: true}})
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1"})
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
	s := llmtest.New(t, llmtest.Options{Default: llmtest.Reply{HangHead: true}})
	tr := &http.Transport{ResponseHeaderTimeout: time.Second}
	defer tr.CloseIdleConnections()
	c, _ := client(t, s.URL(), openai.Options{Model: "fake-1", HTTP: &http.Client{Transport: tr}})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeSilence || !f.CanRetry || s.Total() != 1 {
		t.Errorf("%+v (%v) after %d requests", f, f.Err, s.Total())
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := llmtest.New(t, llmtest.Options{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL()+"/chat/completions", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	c, _ := client(t, s.URL, openai.Options{Model: "fake-1", Key: key})
	if f := wiretest.Ask(c, "x").Fault(t); f.Code != llm.CodeUnavailable || other.Total() != 0 {
		t.Errorf("%+v; the other host was asked %d times", f, other.Total())
	}
}

// raw is a server that answers everything with one body.
func raw(t *testing.T, kind, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// BenchmarkReply is a whole answer over loopback, for judging what the client costs.
func BenchmarkReply(b *testing.B) {
	s := llmtest.New(b, llmtest.Options{Default: llmtest.Reply{Text: strings.SplitAfter(strings.Repeat("word ", 50), " "), Burst: true}})
	c, err := openai.New(openai.Options{BaseURL: s.URL(), Model: "fake-1", Clock: &wiretest.Jump{}})
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
