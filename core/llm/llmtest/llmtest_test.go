package llmtest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatehouse/core/coretest"
	"gatehouse/core/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do sends one request on a connection of its own.
func do(t *testing.T, method, url, auth, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return nil, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp, string(b) + "!" + err.Error()
	}
	return resp, string(b)
}

const ok = `{"model":"fake-1","stream":true,"messages":[{"role":"user","content":"hi"}]}`

func TestMalformedRequestsGetTheRealErrors(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for name, c := range map[string]struct {
		body                 string
		status               int
		message, param, code string
	}{
		"no JSON":           {`{"model":`, 400, "We could not parse the JSON body", "", ""},
		"no model":          {`{"messages":[{"role":"user","content":"x"}]}`, 400, "you must provide a model parameter", "", ""},
		"unknown model":     {`{"model":"nope","messages":[]}`, 404, "The model `nope` does not exist", "", "model_not_found"},
		"unknown parameter": {`{"model":"fake-1","colour":1}`, 400, "Unknown parameter: 'colour'.", "colour", "unknown_parameter"},
		"no messages":       {`{"model":"fake-1"}`, 400, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"},
		"empty messages":    {`{"model":"fake-1","messages":[]}`, 400, "Invalid 'messages': empty array.", "messages", "empty_array"},
		"bad role":          {msgs(`{"role":"bot","content":"x"}`), 400, "Invalid value: 'bot'.", "messages[0].role", "invalid_value"},
		"null content":      {msgs(`{"role":"user","content":null}`), 400, "expected a string, got null", "messages.[0].content", ""},
		"empty parts":       {msgs(`{"role":"user","content":[]}`), 400, "expected a string", "messages.[0].content", ""},
		"orphan tool":       {msgs(`{"role":"tool","tool_call_id":"c1","content":"x"}`), 400, "must be a response to a preceeding message", "messages.[0].role", ""},
		"tool without id":   {msgs(call, `{"role":"tool","content":"x"}`), 400, "tool_call_id", "messages[1].tool_call_id", "missing_required_parameter"},
		"wrong tool":        {msgs(call, `{"role":"tool","tool_call_id":"c2","content":"x"}`), 400, "must be a response", "messages.[1].role", ""},
		"twice answered": {msgs(call, `{"role":"tool","tool_call_id":"c1","content":"x"}`, `{"role":"tool","tool_call_id":"c1","content":"x"}`), 400,
			"must be a response", "messages.[2].role", ""},
		"unanswered call":     {msgs(call, `{"role":"user","content":"x"}`), 400, "did not have response messages: c1", "messages.[1].role", ""},
		"unanswered at end":   {msgs(call), 400, "did not have response messages: c1", "messages.[1].role", ""},
		"call without id":     {msgs(strings.Replace(call, `"id":"c1",`, "", 1)), 400, "tool_calls[0].id", "messages[0].tool_calls[0].id", "missing_required_parameter"},
		"no arguments":        {msgs(strings.Replace(call, `,"arguments":"{}"`, "", 1)), 400, "function.arguments", "messages[0].tool_calls[0].function.arguments", "missing_required_parameter"},
		"stream options":      {`{"model":"fake-1","stream_options":{"include_usage":true}}`, 400, "only allowed when 'stream' is enabled", "stream_options", ""},
		"no tokens":           {`{"model":"fake-1","max_tokens":0}`, 400, "integer below minimum value", "max_tokens", "integer_below_min_value"},
		"both limits":         {`{"model":"fake-1","max_tokens":1,"max_completion_tokens":1}`, 400, "at the same time", "max_tokens", "invalid_parameter_combination"},
		"tool name":           {`{"model":"fake-1","tools":[{"type":"function","function":{"name":"a b"}}]}`, 400, "does not match pattern", "tools[0].function.name", "invalid_value"},
		"tool type":           {`{"model":"fake-1","tools":[{"type":"fun"}]}`, 400, "Invalid value: 'fun'", "tools[0].type", "invalid_value"},
		"tool schema":         {`{"model":"fake-1","tools":[{"type":"function","function":{"name":"a","parameters":{"type":"array"}}}]}`, 400, "Invalid schema for function 'a'", "tools[0].function.parameters", "invalid_function_parameters"},
		"a number for a text": {`{"model":3}`, 400, "Invalid type", "", "invalid_type"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := do(t, "POST", s.URL()+"/chat/completions", "", c.body)
			var got struct {
				Error struct{ Message, Type, Param, Code string }
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatal(err, body)
			}
			e := got.Error
			if resp.StatusCode != c.status || !strings.Contains(e.Message, c.message) || e.Type != "invalid_request_error" || e.Param != c.param || e.Code != c.code {
				t.Errorf("%d %+v", resp.StatusCode, e)
			}
			if !strings.Contains(body, `"param":`) || !strings.Contains(body, `"code":`) {
				t.Errorf("param and code are always there, null when empty: %s", body)
			}
		})
	}
}

func msgs(m ...string) string {
	return `{"model":"fake-1","messages":[` + strings.Join(m, ",") + `]}`
}

func TestKeysMethodsAndPathsAreChecked(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{Key: "sk-right-key-0001", Models: []string{"a", "b"}})
	const chat, list = "/chat/completions", "/models"
	for _, c := range []struct {
		method, path, auth string
		status             int
		want               string
	}{
		{"POST", chat, "", 401, "You didn't provide an API key."},
		{"POST", chat, "Basic x", 401, "You didn't provide an API key."},
		{"POST", chat, "Bearer sk-wrong-key-0002", 401, "Incorrect API key provided: sk-w*********0002."},
		{"GET", list, "Bearer sk-wrong-key-0002", 401, `"code":"invalid_api_key"`},
		{"GET", chat, "Bearer sk-right-key-0001", 405, "Not allowed to GET on /v1/chat/completions."},
		{"POST", "/images", "Bearer sk-right-key-0001", 404, "Invalid URL (POST /v1/images)"},
		{"GET", list, "Bearer sk-right-key-0001", 200, `{"id":"a","object":"model"`},
	} {
		resp, body := do(t, c.method, s.URL()+c.path, c.auth, ok)
		if resp.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%+v: %d %s", c, resp.StatusCode, body)
		}
	}
}

func TestTheStreamHasTheRealShape(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{Default: llmtest.Say("two ", "words")})
	body := strings.Replace(ok, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	resp, got := do(t, "POST", s.URL()+"/chat/completions", "", body)
	if kind := resp.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		t.Error(kind)
	}
	events := strings.Split(strings.TrimSuffix(got, "\n\n"), "\n\n")
	if len(events) != 6 || events[5] != "data: [DONE]" {
		t.Fatalf("%q", events)
	}
	for i, want := range []string{`"role":"assistant"`, `"content":"two "`, `"content":"words"`, `"finish_reason":"stop"`,
		`"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3`} {
		if !strings.HasPrefix(events[i], `data: {"id":"chatcmpl-`) || !strings.Contains(events[i], want) {
			t.Errorf("event %d: %s", i, events[i])
		}
		if i < 4 && !strings.Contains(events[i], `"usage":null`) {
			t.Errorf("event %d has no null usage: %s", i, events[i])
		}
	}
	if _, got := do(t, "POST", s.URL()+"/chat/completions", "", ok); strings.Contains(got, "usage") {
		t.Errorf("usage unasked: %s", got)
	}
	if _, got := do(t, "POST", s.URL()+"/chat/completions", "", strings.Replace(ok, "true", "false", 1)); !strings.Contains(got, `"object":"chat.completion"`) || !strings.Contains(got, `two words`) {
		t.Errorf("without stream: %s", got)
	}
}

func TestScriptedFaults(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	for name, c := range map[string]struct {
		reply  llmtest.Reply
		status int
		want   string
		not    string
	}{
		"limited":   {llmtest.Limited("7"), 429, `"code":"rate_limit_exceeded"`, ""},
		"html":      {llmtest.HTML(503), 503, "<h1>503 Service Unavailable</h1>", ""},
		"cut":       {llmtest.Reply{Text: []string{"half"}, Cut: true}, 200, "!unexpected EOF", "finish_reason\":\"stop"},
		"no DONE":   {llmtest.Reply{Text: []string{"x"}, NoDone: true}, 200, `"finish_reason":"stop"`, "[DONE]"},
		"no end":    {llmtest.Reply{Text: []string{"x"}, NoEnd: true}, 200, `"content":"x"`, `"finish_reason":"stop"`},
		"error":     {llmtest.Reply{Text: []string{"x"}, Error: &llmtest.Error{Message: "boom"}}, 200, `data: {"error":{"message":"boom"`, "[DONE]"},
		"garbage":   {llmtest.Reply{Raw: "%%%\n\n"}, 200, "%%%\n\n", ""},
		"burst":     {llmtest.Reply{Text: []string{"x"}, Burst: true}, 200, "[DONE]", ""},
		"split":     {llmtest.Reply{Text: []string{"x"}, Split: 1}, 200, "[DONE]", ""},
		"tool call": {llmtest.CallTool("c1", "f", `{"a"`, `:1}`), 200, `"finish_reason":"tool_calls"`, ""},
	} {
		s.Script(c.reply)
		resp, body := do(t, "POST", s.URL()+"/chat/completions", "", ok)
		if resp.StatusCode != c.status || !strings.Contains(body, c.want) || (c.not != "" && strings.Contains(body, c.not)) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
		if name == "limited" && resp.Header.Get("Retry-After") != "7" {
			t.Errorf("%v", resp.Header)
		}
	}
	s.Script(llmtest.Reply{Reset: true})
	if resp, err := do(t, "POST", s.URL()+"/chat/completions", "", ok); resp != nil {
		t.Errorf("reset: %v %s", resp.Status, err)
	}
	if log := s.Requests(); len(log) != s.Total() || log[len(log)-1].Status != 0 || log[0].Messages[0].Content != "hi" {
		t.Errorf("%+v", log)
	}
}

func TestATrickleWaitsOnTheClock(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	s := llmtest.New(t, llmtest.Options{Clock: clock, Default: llmtest.Reply{Text: []string{"x"}, Pause: time.Minute}})
	done := make(chan string)
	go func() {
		_, body := do(t, "POST", s.URL()+"/chat/completions", "", ok)
		done <- body
	}()
	for range 4 { // role, text, reason, DONE
		clock.AwaitWaiters(1)
		clock.Advance(time.Minute)
	}
	if body := <-done; !strings.HasSuffix(body, "[DONE]\n\n") {
		t.Error(body)
	}
}

func TestAHangEndsWithTheClientAndWithTheServer(t *testing.T) {
	s, err := llmtest.Start(llmtest.Options{Default: llmtest.Reply{Text: []string{"x"}, Hang: true}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", s.URL()+"/chat/completions", strings.NewReader(ok))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	tr := &http.Transport{}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); !strings.HasPrefix(line, "data: ") {
		t.Errorf("%q %v", line, err)
	}
	cancel()
	resp.Body.Close()
	var gone sync.WaitGroup
	gone.Go(func() { do(t, "POST", s.URL()+"/chat/completions", "", ok) })
	if err := s.Await(t.Context(), 2); err != nil {
		t.Error(err)
	}
	s.Close() // the second client hangs
	gone.Wait()
	short, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if err := s.Await(short, 3); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestTheLogIsBounded(t *testing.T) {
	s := llmtest.New(t, llmtest.Options{})
	for i := range 1005 {
		s.ServeHTTP(discard{}, request(t, i))
	}
	if log := s.Requests(); len(log) != 1000 || s.Total() != 1005 || log[0].Path != "/5" {
		t.Errorf("%d kept of %d, first %s", len(log), s.Total(), log[0].Path)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}

func request(t *testing.T, i int) *http.Request {
	r, err := http.NewRequest("GET", fmt.Sprintf("/%d", i), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
