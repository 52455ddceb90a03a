package anthropictest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	fake "gatehouse/core/llm/anthropictest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do sends one request on a connection of its own; header lines are "Name: value".
func do(t *testing.T, method, url, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
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

// msgs is a request with these messages.
func msgs(messages ...string) string {
	return `{"model":"claude-fake-5","max_tokens":10,"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[` + strings.Join(messages, ",") + `]}`
}

func TestMalformedRequestsGetTheRealErrors(t *testing.T) {
	s := fake.New(t, fake.Options{Key: "k"})
	const (
		user   = `{"role":"user","content":"hi"}`
		call   = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]}`
		result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]}`
	)
	with := func(fields string) string {
		return `{"model":"claude-fake-5","max_tokens":2000,"messages":[` + user + `],` + fields + `}`
	}
	said := func(block string) string { return msgs(user, `{"role":"assistant","content":[`+block+`]}`) }
	point := `"cache_control":{"type":"ephemeral"}`
	for name, c := range map[string]struct{ body, message string }{
		"no JSON":            {`{"model":`, "not valid JSON"},
		"unknown parameter":  {with(`"colour":1`), "colour: Extra inputs are not permitted"},
		"no model":           {`{"max_tokens":1,"messages":[` + user + `]}`, "model: Field required"},
		"no max_tokens":      {`{"model":"claude-fake-5","messages":[` + user + `]}`, "max_tokens: Field required"},
		"negative tokens":    {`{"model":"claude-fake-5","max_tokens":-1,"messages":[` + user + `]}`, "greater than or equal to 0"},
		"too many tokens":    {`{"model":"claude-fake-5","max_tokens":999999,"messages":[` + user + `]}`, "max_tokens: 999999 > 128000, which is the maximum"},
		"no messages":        {`{"model":"claude-fake-5","max_tokens":1}`, "messages: Field required"},
		"empty messages":     {msgs(), "at least one message is required"},
		"a system role":      {msgs(`{"role":"system","content":"x"}`), `Unexpected role "system"`},
		"a strange role":     {msgs(`{"role":"bot","content":"x"}`), "Input should be 'user' or 'assistant'"},
		"assistant first":    {msgs(`{"role":"assistant","content":"x"}`, user), "first message must use the"},
		"assistant last":     {msgs(user, `{"role":"assistant","content":"x"}`), "does not support assistant message prefill"},
		"no content":         {msgs(`{"role":"user","content":[]}`), "must have non-empty content"},
		"empty text":         {msgs(`{"role":"user","content":""}`), "must be non-empty"},
		"blank text":         {msgs(`{"role":"user","content":" \n"}`), "must contain non-whitespace text"},
		"empty system":       {with(`"system":""`), "must be non-empty"},
		"unknown block":      {msgs(`{"role":"user","content":[{"type":"song"}]}`), "Input tag 'song'"},
		"a person's call":    {msgs(`{"role":"user","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`), "Input tag 'tool_use'"},
		"unanswered call":    {msgs(user, call, user), "`tool_use` ids were found without `tool_result` blocks immediately after: c1"},
		"unanswered at end":  {msgs(user, call), "immediately after: c1"},
		"unasked result":     {msgs(result), "unexpected `tool_use_id` found in `tool_result` blocks: c1"},
		"result too late":    {msgs(user, call, result, user, result), "unexpected `tool_use_id`"},
		"text before result": {msgs(user, call, `{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c1"}]}`), "must come before any other content"},
		"the same id twice":  {msgs(user, call, result, call, result), "`tool_use` ids must be unique"},
		"a strange id":       {said(`{"type":"tool_use","id":"a b","name":"f","input":{}}`), "tool_use.id: String should match pattern"},
		"a strange name":     {said(`{"type":"tool_use","id":"a","name":"f g","input":{}}`), "tool_use.name: String should match pattern"},
		"input no object":    {said(`{"type":"tool_use","id":"a","name":"f","input":"x"}`), "Input should be a valid dictionary"},
		"unsigned thinking":  {said(`{"type":"thinking","thinking":"x"},{"type":"text","text":"y"}`), "thinking.signature: Field required"},
		"a false signature":  {said(`{"type":"thinking","thinking":"x","signature":"mine"},{"type":"text","text":"y"}`), "Invalid `signature` in `thinking` block"},
		"thinking last":      {said(`{"type":"thinking","thinking":"x","signature":"` + fake.Signed + `"}`), "cannot be `thinking`"},
		"thinking cached":    {msgs(user, `{"role":"assistant","content":[{"type":"thinking","signature":"`+fake.Signed+`",`+point+`},{"type":"text","text":"y"}]}`, user), "thinking.cache_control: Extra inputs"},
		"calls, no tools":    {`{"model":"claude-fake-5","max_tokens":1,"messages":[` + user + `,` + call + `,` + result + `]}`, "must define tools"},
		"five cache points":  {with(`"system":[` + strings.Repeat(`{"type":"text","text":"x",`+point+`},`, 4) + `{"type":"text","text":"x",` + point + `}]`), "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		"cached for ever":    {with(`"system":[{"type":"text","text":"x","cache_control":{"type":"ever"}}]`), "should be 'ephemeral'"},
		"tool name":          {with(`"tools":[{"name":"a b","input_schema":{"type":"object"}}]`), "tools.0.custom.name"},
		"tool twice":         {with(`"tools":[{"name":"a","input_schema":{"type":"object"}},{"name":"a","input_schema":{"type":"object"}}]`), "must be unique"},
		"tool schema":        {with(`"tools":[{"name":"a"}]`), "input_schema: Field required"},
		"schema type":        {with(`"tools":[{"name":"a","input_schema":{"type":"array"}}]`), "should be 'object'"},
		"choice, no tools":   {with(`"tool_choice":{"type":"none"}`), "only be specified while providing tools"},
		"thinking type":      {with(`"thinking":{"type":"deep"}`), "'adaptive', 'disabled', 'enabled'"},
		"thinking budget":    {with(`"thinking":{"type":"enabled","budget_tokens":10}`), "greater than or equal to 1024"},
		"budget too large":   {with(`"thinking":{"type":"enabled","budget_tokens":2000}`), "must be greater than `thinking.budget_tokens`"},
		"budget, adaptive":   {with(`"thinking":{"type":"adaptive","budget_tokens":2000}`), "Extra inputs are not permitted"},
		"thinking display":   {with(`"thinking":{"type":"adaptive","display":"loud"}`), "'summarized' or 'omitted'"},
		"a number as text":   {`{"model":3}`, "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.message, 400, "invalid_request_error", func() (*http.Response, string) {
				return do(t, "POST", s.URL()+"/v1/messages", c.body, "X-Api-Key: k")
			})
		})
	}
}

// What was thought before a call comes back with its result, complete and in its order
// (https://platform.claude.com/docs/en/build-with-claude/thinking-tool-workflows).
func TestThinkingThatDoesNotComeBackAsItWasGivenIsRefused(t *testing.T) {
	const (
		one, two = `{"type":"thinking","thinking":"one","signature":"` + fake.Signed + `1"}`, `{"type":"thinking","thinking":"two","signature":"` + fake.Signed + `2"}`
		redacted = `{"type":"redacted_thinking","data":"opaque"}`
		a, b     = `{"type":"tool_use","id":"a","name":"f","input":{}}`, `{"type":"tool_use","id":"b","name":"f","input":{}}`
		modified = "blocks in the latest assistant message cannot be modified"
	)
	whole := fake.Reply{Thinking: []string{"one"}, Signature: fake.Signed + "1", Redacted: "opaque", Calls: []fake.Call{{ID: "a", Name: "f"}},
		Then: &fake.Reply{Thinking: []string{"two"}, Signature: fake.Signed + "2", Calls: []fake.Call{{ID: "b", Name: "f"}}}}
	open := whole
	open.Redacted = ""
	for name, c := range map[string]struct {
		reply          fake.Reply
		thinking, said string
		message        string // "" is accepted
	}{
		"as it was given":              {whole, "adaptive", one + "," + redacted + "," + a + "," + two + "," + b, ""},
		"calls at the end":             {whole, "adaptive", one + "," + redacted + "," + two + "," + a + "," + b, modified},
		"without the redacted":         {whole, "adaptive", one + "," + a + "," + two + "," + b, modified},
		"without any, redacted":        {whole, "adaptive", a + "," + b, modified},
		"another text":                 {open, "adaptive", strings.Replace(one, "one", "1", 1) + "," + a + "," + two + "," + b, modified},
		"without any":                  {open, "adaptive", a + "," + b, ""},
		"without any, always thinking": {open, `enabled","budget_tokens":1024,"display":"summarized`, a + "," + b, "Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		"without any, not thinking":    {whole, "disabled", a + "," + b, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake.New(t, fake.Options{})
			s.Script(c.reply)
			const user = `{"role":"user","content":"hi"}`
			body := func(messages ...string) string {
				return strings.Replace(msgs(messages...), `"max_tokens":10`, `"max_tokens":2000,"thinking":{"type":"`+c.thinking+`"}`, 1)
			}
			if resp, text := do(t, "POST", s.URL()+"/v1/messages", body(user)); resp == nil || resp.StatusCode != 200 {
				t.Fatal(text)
			}
			again := func() (*http.Response, string) {
				return do(t, "POST", s.URL()+"/v1/messages", body(user, `{"role":"assistant","content":[`+c.said+`]}`,
					`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b"}]}`))
			}
			if c.message != "" {
				refused(t, c.message, 400, "invalid_request_error", again)
			} else if resp, text := again(); resp == nil || resp.StatusCode != 200 {
				t.Error(text)
			}
		})
	}
}

// refused checks status and error object of an answer.
func refused(t *testing.T, message string, status int, kind string, send func() (*http.Response, string)) {
	t.Helper()
	resp, body := send()
	var got struct {
		Type      string `json:"type"`
		RequestID string `json:"request_id"`
		Error     struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err, body)
	}
	if resp.StatusCode != status || got.Type != "error" || got.Error.Type != kind || !strings.Contains(got.Error.Message, message) ||
		got.RequestID == "" || got.RequestID != resp.Header.Get("Request-Id") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestHeadersAndPathsAreWatched(t *testing.T) {
	s := fake.New(t, fake.Options{Key: "k"})
	url := s.URL() + "/v1/messages"
	ok := msgs(`{"role":"user","content":"hi"}`)
	for name, c := range map[string]struct {
		method, url, body string
		header            []string
		status            int
		kind, message     string
	}{
		"no key":         {"POST", url, ok, nil, 401, "authentication_error", "x-api-key header is required"},
		"another key":    {"POST", url, ok, []string{"X-Api-Key: x"}, 401, "authentication_error", "invalid x-api-key"},
		"a bearer token": {"POST", url, ok, []string{"Authorization: Bearer k"}, 401, "authentication_error", "x-api-key header is required"},
		"no version":     {"POST", url, ok, []string{"X-Api-Key: k", "Anthropic-Version: "}, 400, "invalid_request_error", "anthropic-version: header is required"},
		"a version":      {"POST", url, ok, []string{"X-Api-Key: k", "Anthropic-Version: 1"}, 400, "invalid_request_error", `"1" is not a valid version`},
		"another type":   {"POST", url, ok, []string{"X-Api-Key: k", "Content-Type: text/plain"}, 415, "invalid_request_error", "application/json"},
		"another path":   {"POST", s.URL() + "/messages", ok, []string{"X-Api-Key: k"}, 404, "not_found_error", "Not found"},
		"another method": {"GET", url, ok, []string{"X-Api-Key: k"}, 405, "invalid_request_error", "Not Allowed"},
		"unknown model":  {"POST", url, strings.Replace(ok, "claude-fake-5", "gone", 1), []string{"X-Api-Key: k"}, 404, "not_found_error", "model: gone"},
		"too large":      {"POST", url, strings.Repeat(" ", 32<<20+1), []string{"X-Api-Key: k"}, 413, "request_too_large", "maximum size"},
		"too many":       {"GET", s.URL() + "/v1/models?limit=2000", "", []string{"X-Api-Key: k"}, 400, "invalid_request_error", "between 1 and 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.message, c.status, c.kind, func() (*http.Response, string) { return do(t, c.method, c.url, c.body, c.header...) })
		})
	}
	if resp, body := do(t, "GET", s.URL()+"/v1/models?limit=1", "", "X-Api-Key: k"); resp.StatusCode != 200 ||
		!strings.Contains(body, `"has_more":true`) || !strings.Contains(body, `"last_id":"claude-fake-5"`) {
		t.Error(body)
	}
}

// The stream is the documented one, event by event.
func TestTheStreamIsTheDocumentedOne(t *testing.T) {
	s := fake.New(t, fake.Options{})
	s.Script(fake.Reply{Thinking: []string{"hm"}, Signature: fake.Signed, Text: []string{"hi"},
		Calls: []fake.Call{{ID: "c1", Name: "f", Fragments: []string{"{}"}}}, Usage: &fake.Tokens{Input: 3, Output: 4, CacheRead: 5, CacheWrite: 6}})
	resp, body := do(t, "POST", s.URL()+"/v1/messages", msgs(`{"role":"user","content":"hi"}`, `{"role":"user","content":"consecutive turns are one"}`))
	if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") || resp.Header.Get("Request-Id") == "" {
		t.Fatal(resp.StatusCode, resp.Header, body)
	}
	const want = `message_start ping
content_block_start content_block_delta content_block_delta content_block_stop
content_block_start content_block_delta content_block_stop
content_block_start content_block_delta content_block_delta content_block_stop
message_delta message_stop`
	var names []string
	for event := range strings.SplitSeq(strings.TrimSpace(body), "\n\n") {
		name, data, _ := strings.Cut(event, "\ndata: ")
		name = strings.TrimPrefix(name, "event: ")
		var inner struct{ Type string }
		if json.Unmarshal([]byte(data), &inner) != nil || inner.Type != name {
			t.Errorf("event %q", event)
		}
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != strings.Join(strings.Fields(want), " ") {
		t.Error(got)
	}
	for _, part := range []string{`"cache_creation_input_tokens":6`, `"cache_read_input_tokens":5`, `"input_tokens":3`, `"output_tokens":4`,
		`"stop_reason":"tool_use"`, `"type":"signature_delta"`, `"type":"input_json_delta"`, `"type":"thinking_delta"`} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in\n%s", part, body)
		}
	}
}

func TestFaultsAreAsScripted(t *testing.T) {
	s := fake.New(t, fake.Options{})
	s.Script(fake.Reply{Reset: true}, fake.Reply{Text: []string{"half"}, Cut: true}, fake.Overloaded(), fake.Limited("9"),
		fake.Reply{Error: &fake.Error{Type: "overloaded_error", Message: "Overloaded"}}, fake.Reply{})
	send := func() (*http.Response, string) {
		return do(t, "POST", s.URL()+"/v1/messages", msgs(`{"role":"user","content":"hi"}`))
	}
	if resp, _ := send(); resp != nil {
		t.Error("a reset connection answered")
	}
	if _, body := send(); !strings.Contains(body, "half") || !strings.Contains(body, "!unexpected EOF") {
		t.Error(body)
	}
	if resp, _ := send(); resp.StatusCode != 529 {
		t.Error(resp.StatusCode)
	}
	if resp, _ := send(); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "9" {
		t.Error(resp.StatusCode, resp.Header)
	}
	if _, body := send(); !strings.HasSuffix(body, "event: error\ndata: "+`{"error":{"message":"Overloaded","type":"overloaded_error"},"type":"error"}`+"\n\n") {
		t.Error(body)
	}
	if _, body := send(); !strings.Contains(body, "fake model") || s.Total() != 6 {
		t.Error(body)
	}
}
