package openai

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/sashabaranov/go-openai"

	"gatehouse/core"
	"gatehouse/core/bus"
	"gatehouse/core/coretest"
	"gatehouse/core/store/storetest"
	"gatehouse/web"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
)

func TestMain(m *testing.M) { storetest.Main(m) }

const (
	patience  = 5 * time.Minute
	openAfter = answer.OpenAfter
)

// A harness is the API with runs that the test plays.
type harness struct {
	t     *testing.T
	clock *coretest.Clock
	bus   *bus.Bus
	keys  *auth.Keys
	url   string
	key   string
	row   auth.KeyRow
	turns chan core.Inbound // those that were put

	mu      sync.Mutex
	aborted []string
}

func (h *harness) Put(_ context.Context, page []core.Inbound, _ *core.Cursor) error {
	h.turns <- page[0]
	return nil
}

func (h *harness) Abort(session string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.aborted = append(h.aborted, session)
	return true
}

func (h *harness) Models(auth.Principal) []answer.Model {
	return []answer.Model{{ID: "m", Owner: "local", Model: "m"}, {ID: "cook/one", Owner: "agent", Agent: "cook/one"}}
}

func open(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, clock: coretest.NewClock(time.Time{}), bus: bus.New(nil, nil), turns: make(chan core.Inbound, 64)}
	db := storetest.Open(t, h.clock)
	h.keys = auth.NewKeys(db, h.clock, nil)
	var err error
	h.key, h.row, err = h.keys.Create(t.Context(), auth.NewKey{Label: "test", User: 7, Trust: core.Vault, Scopes: []string{auth.ScopeChat}}, core.Actor{Via: "cli"})
	if err != nil {
		t.Fatal(err)
	}
	site, err := web.NewSite(web.SiteOptions{Clock: h.clock})
	if err != nil {
		t.Fatal(err)
	}
	door := auth.NewAuthenticator(h.keys, auth.NewAdmins(db, auth.AdminOptions{Clock: h.clock}), auth.AuthenticatorOptions{Clock: h.clock})
	mux := http.NewServeMux()
	New(answer.New(answer.Options{Authenticator: door, Inbox: h, Follower: h.bus, Runs: h, Models: h, Clock: h.clock, Open: 2})).Register(mux)
	srv := httptest.NewServer(site.Wrap(mux))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	h.url = srv.URL
	return h
}

// do makes a request; the caller closes the answer's body.
func (h *harness) do(ctx context.Context, method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// ask posts a completion beside the test and hands over its answer.
func (h *harness) ask(body string) <-chan *http.Response {
	out := make(chan *http.Response, 1)
	go func() {
		resp, err := h.do(context.Background(), "POST", "/v1/chat/completions", body)
		if err != nil {
			h.t.Error(err)
		}
		out <- resp
	}()
	return out
}

// turn is the next one that was put, with its run's stream begun.
func (h *harness) turn() (core.Inbound, *bus.Stream) {
	h.t.Helper()
	select {
	case in := <-h.turns:
		return in, h.bus.Begin(bus.Info{Run: in.Turn.Run, Session: in.Chat, Attempt: 1})
	case <-time.After(patience):
		h.t.Fatal("nothing was put")
	}
	panic("unreachable")
}

func publish(s *bus.Stream, events ...core.Event) {
	for _, e := range events {
		s.Publish(e)
	}
}

// finish ends a run as the dispatcher does.
func finish(s *bus.Stream, end core.Event) {
	publish(s, end, core.MessageStop{})
	s.End()
}

// data are the lines of a stream.
func data(t *testing.T, r io.Reader) (lines []string) {
	t.Helper()
	for s := bufio.NewScanner(r); s.Scan(); {
		if line, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			lines = append(lines, line)
		}
	}
	return lines
}

// failure reads OpenAI's error object, with its four members and no other.
func failure(t *testing.T, resp *http.Response) map[string]any {
	t.Helper()
	defer resp.Body.Close()
	var body map[string]map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || len(body) != 1 || len(body["error"]) != 4 {
		t.Fatalf("%d %v: %v", resp.StatusCode, body, err)
	}
	return body["error"]
}

func TestAnAnswerHasExactlyTheDocumentedForm(t *testing.T) {
	h := open(t)
	answer := h.ask(with(`,"temperature":0.5,"max_tokens":9,"stop":"END"`))
	in, run := h.turn()
	o := in.Turn
	if !o.Alone || o.Model != "m" || o.Agent != "" || o.User != 7 || o.Key != h.row.ID || *o.Temperature != 0.5 || o.MaxTokens != 9 || !slices.Equal(o.Stop, []string{"END"}) || in.Text != "Hello" {
		t.Errorf("%+v %+v", in, o)
	}
	publish(run, core.TextDelta{Content: "Let me see."}, core.ToolUseStart{ID: "1", Name: "Read", Input: json.RawMessage(`{}`)}, core.TextDelta{Content: "\n\nTea."})
	finish(run, core.Done{Response: "Tea.", Usage: core.Usage{InputTokens: 5, OutputTokens: 3, CacheReadTokens: 2, CacheWriteTokens: 4}})
	resp := <-answer
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body)
	want := `{"id":"` + "chatcmpl-" + strings.ReplaceAll(o.Run, "-", "") + `","object":"chat.completion","created":` + itoa(h.clock.Now().Unix()) + `,"model":"m",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"Let me see.\n\nTea.","refusal":null},"logprobs":null,"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":2}}}` + "\n"
	if string(got) != want || resp.Header.Get("X-Run-Id") != o.Run {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }

func TestChunksComeInOrderWithUsageOnlyWhereItWasAskedFor(t *testing.T) {
	for _, usage := range []bool{false, true} {
		h := open(t)
		options := ""
		if usage {
			options = `,"stream_options":{"include_usage":true}`
		}
		answer := h.ask(with(`,"stream":true` + options))
		in, run := h.turn()
		publish(run, core.TextDelta{Content: "Te"}, core.TextDelta{Content: "a."})
		finish(run, core.Done{Response: "Tea.", StopReason: "max_tokens", Usage: core.Usage{InputTokens: 5, OutputTokens: 3}})
		resp := <-answer
		lines := data(t, resp.Body)
		resp.Body.Close()
		head := `{"id":"` + "chatcmpl-" + strings.ReplaceAll(in.Turn.Run, "-", "") + `","object":"chat.completion.chunk","created":` + itoa(h.clock.Now().Unix()) + `,"model":"m","choices":[`
		var want []string
		for _, delta := range []string{`"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null`, `"delta":{"content":"Te"},"logprobs":null,"finish_reason":null`,
			`"delta":{"content":"a."},"logprobs":null,"finish_reason":null`, `"delta":{},"logprobs":null,"finish_reason":"length"`} {
			line := head + `{"index":0,` + delta + `}]`
			if usage {
				line += `,"usage":null`
			}
			want = append(want, line+"}")
		}
		if usage {
			want = append(want, head+`],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":0}}}`)
		}
		want = append(want, "[DONE]")
		if !slices.Equal(lines, want) {
			t.Errorf("%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
}

// A failure has a status while nothing was sent; a stream that is silent for
// five seconds is opened, and from then on its failure is in the stream.
func TestASilentStreamIsOpenedAndThenFailsInTheStream(t *testing.T) {
	h := open(t)
	answer := h.ask(with(`,"stream":true`))
	_, run := h.turn()
	finish(run, core.Failed{Code: "overloaded", Message: "busy", CanRetry: true, RetryAfterMS: 1500})
	resp := <-answer
	e := failure(t, resp)
	if resp.StatusCode != 503 || e["type"] != "server_error" || e["code"] != "overloaded" || resp.Header.Get("Retry-After") != "2" || resp.Header.Get("X-Should-Retry") != "" {
		t.Errorf("%d %v %v", resp.StatusCode, e, resp.Header)
	}
	h = open(t) // with a clock of its own: what the first answer waited for may still be counted on the other
	answer = h.ask(with(`,"stream":true`))
	_, run = h.turn()
	h.clock.AwaitWaiters(2) // the opening and the guard
	h.clock.Advance(openAfter)
	resp = <-answer
	defer resp.Body.Close()
	finish(run, core.Failed{Code: "timeout", Message: "too long"})
	lines := data(t, resp.Body)
	if resp.StatusCode != 200 || len(lines) != 2 || lines[1] != `{"error":{"message":"too long","type":"server_error","param":null,"code":"timeout"}}` {
		t.Errorf("%d %q", resp.StatusCode, lines)
	}
}

// go-openai takes each line that is no data for a part of the error.
func TestAnErrorInMidStreamIsReadByGoOpenAI(t *testing.T) {
	h := open(t)
	config := client.DefaultConfig(h.key)
	config.BaseURL = h.url + "/v1"
	type result struct {
		text string
		err  error
	}
	ended := make(chan result, 1)
	go func() {
		s, err := client.NewClientWithConfig(config).CreateChatCompletionStream(t.Context(), client.ChatCompletionRequest{Model: "m",
			Messages: []client.ChatCompletionMessage{{Role: "user", Content: "hello"}}, Stream: true})
		if err != nil {
			ended <- result{err: err}
			return
		}
		defer s.Close()
		var got result
		for got.err == nil {
			var chunk client.ChatCompletionStreamResponse
			if chunk, got.err = s.Recv(); got.err == nil && len(chunk.Choices) > 0 {
				got.text += chunk.Choices[0].Delta.Content
			}
		}
		ended <- got
	}()
	_, run := h.turn()
	publish(run, core.TextDelta{Content: "Half of"})
	finish(run, core.Failed{Code: "timeout", Message: "too long"})
	got := <-ended
	var failed *client.APIError
	if got.text != "Half of" || !errors.As(got.err, &failed) || failed.Message != "too long" {
		t.Errorf("%q, then %v", got.text, got.err)
	}
}

func TestFailureAfterToolsIsNotRetryable(t *testing.T) {
	h := open(t)
	for end, want := range map[core.Event]int{core.Failed{Code: "overloaded", Message: "busy", CanRetry: true}: 503, core.Aborted{Message: "Stopped."}: 409} {
		answer := h.ask(with(``))
		_, run := h.turn()
		publish(run, core.ToolUseStart{ID: "1", Name: "Write", Input: json.RawMessage(`{}`)})
		finish(run, end)
		resp := <-answer
		if e := failure(t, resp); resp.StatusCode != want || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%d %v %v", resp.StatusCode, e, resp.Header)
		}
	}
}

// A client that goes away before its run has begun has it stopped when it begins.
func TestRunIsStoppedWhenItsClientDisconnectedBefore(t *testing.T) {
	h := open(t)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := h.do(ctx, "POST", "/v1/chat/completions", with(``)); err == nil {
			resp.Body.Close()
		}
	}()
	in := <-h.turns
	leave()
	<-left
	aborts := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.aborted)
	}
	await(t, "the client's end is seen", func() bool { return aborts() == 1 })
	run := h.bus.Begin(bus.Info{Run: in.Turn.Run, Session: in.Chat, Attempt: 1})
	publish(run, core.Session{ID: in.Chat, RunID: in.Turn.Run})
	await(t, "the run is stopped", func() bool { return aborts() == 2 })
	if !slices.Equal(h.aborted, []string{in.Chat, in.Chat}) {
		t.Errorf("aborted %q, want %s", h.aborted, in.Chat)
	}
	finish(run, core.Aborted{Message: "Stopped."})
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !f(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("never: ", what)
		}
	}
}

func TestConcurrentAnswersPerKeyAreLimited(t *testing.T) {
	h := open(t)
	one, two := h.ask(with(``)), h.ask(with(``))
	_, a := h.turn()
	_, b := h.turn()
	resp := <-h.ask(with(``))
	if e := failure(t, resp); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || e["code"] != "rate_limit_exceeded" {
		t.Errorf("%d %v", resp.StatusCode, e)
	}
	h.clock.AwaitWaiters(1) // the look at all keys
	if err := h.keys.Revoke(t.Context(), h.row.ID, core.Actor{Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	for _, answer := range []<-chan *http.Response{one, two} {
		await(t, "the answer ends with its key", func() bool {
			select {
			case resp = <-answer:
				return true
			default:
				h.clock.Advance(web.Heartbeat) // the next look: a request may have come to be looked at after the last
				return false
			}
		})
		if e := failure(t, resp); resp.StatusCode != 401 || e["code"] != "invalid_api_key" {
			t.Errorf("%d %v", resp.StatusCode, e)
		}
	}
	finish(a, core.Aborted{})
	finish(b, core.Aborted{})
}

func TestEveryOtherAddressUnderV1AnswersInOpenAIsForm(t *testing.T) {
	h := open(t)
	for _, c := range []struct {
		method, path, body, code string
		status                   int
	}{
		{"GET", "/v1/models/cook%2Fone", "", "", 200},
		{"GET", "/v1/models/none", "", "model_not_found", 404},
		{"GET", "/v1/engines", "", "unknown_url", 404},
		{"DELETE", "/v1/models", "", "method_not_supported", 405},
		{"GET", "/v1/chat/completions", "", "method_not_supported", 405},
		{"POST", "/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, "model_not_found", 404},
		{"POST", "/v1/chat/completions", `{`, "", 400},
		{"POST", "/v1/chat/completions", `"` + strings.Repeat("x", answer.MaxBody) + `"`, "request_too_large", 413},
	} {
		resp, err := h.do(t.Context(), c.method, c.path, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.status || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %v", c.method, c.path, resp.StatusCode, resp.Header)
		}
		if c.status == 200 {
			resp.Body.Close()
			continue
		}
		if e := failure(t, resp); c.code != "" && e["code"] != c.code || e["message"] == "" {
			t.Errorf("%s %s: %v", c.method, c.path, e)
		}
	}
	select {
	case in := <-h.turns:
		t.Errorf("a turn was put: %+v", in)
	default:
	}
}
