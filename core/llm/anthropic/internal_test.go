package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/llm"
	fake "gatehouse/core/llm/anthropictest"
)

// still is a clock that does not move and on which every wait is over at once.
type still struct{}

func (still) Now() time.Time { return time.Unix(1767323045, 0) }

func (s still) After(time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- s.Now()
	return c
}

func newClient(t testing.TB, o Options) *Client {
	t.Helper()
	o.Clock = still{}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestWindowsOfKnownModels(t *testing.T) {
	for model, want := range map[string]int{
		"claude-sonnet-5-5": 1_000_000, "claude-opus-5": 1_000_000, "claude-opus-4-6": 1_000_000, "claude-sonnet-4-6-20260217": 1_000_000,
		"claude-haiku-4-5": 200_000, "claude-haiku-4-5-20251001": 200_000, "claude-opus-4-20250514": 200_000,
		"claude-3-5-haiku-20241022": 200_000, "claude-opus-4-5@20251101": 200_000, "some/other-model": 200_000,
	} {
		c := newClient(t, Options{Model: model})
		if got := c.About().Window; got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
	if got := newClient(t, Options{Model: "claude-sonnet-5", Window: 50_000}).About().Window; got != 50_000 {
		t.Errorf("a given window is not used: %d", got)
	}
}

func TestRetryAfterIsReadAsSecondsDateAndLimits(t *testing.T) {
	c := newClient(t, Options{})
	now := still{}.Now()
	for _, x := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After", now.Add(90 * time.Second).UTC().Format(http.TimeFormat), 90 * time.Second},
		{"Retry-After", now.Add(-90 * time.Second).UTC().Format(http.TimeFormat), 0},
		{"Retry-After", "-3", 0},
		{"Retry-After", "1e300", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "soon", 0},
		{"Anthropic-Ratelimit-Requests-Reset", now.Add(9 * time.Second).UTC().Format(time.RFC3339), 9 * time.Second},
		{"Anthropic-Ratelimit-Requests-Reset", now.Add(-9 * time.Second).UTC().Format(time.RFC3339), 0},
		{"Anthropic-Ratelimit-Requests-Reset", "soon", 0},
	} {
		h := http.Header{"Anthropic-Ratelimit-Requests-Remaining": {"0"}}
		h.Set(x.header, x.value)
		if got := c.retryAfter(h); got != x.want {
			t.Errorf("%s: %s = %v, want %v", x.header, x.value, got, x.want)
		}
	}
}

// chunked gives its bytes in random pieces.
type chunked struct {
	data []byte
	rand *rand.Rand
}

func (c *chunked) Close() error { return nil }

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.data[:1+c.rand.IntN(min(len(c.data), len(p)))])
	c.data = c.data[n:]
	return n, nil
}

// play is a transport that answers with one body, cut in random pieces.
type play struct {
	body []byte
	seed uint64
}

func (p play) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: &chunked{bytes.Clone(p.body), rand.New(rand.NewPCG(p.seed, 0))}}, nil
}

// heard is a reply put together, for comparing.
func heard(t *testing.T, body []byte, seed uint64, search *llm.Search) string {
	c := newClient(t, Options{Model: "claude-x", HTTP: &http.Client{Transport: play{body, seed}}})
	var out strings.Builder
	for d, err := range c.Reply(context.Background(), &llm.Request{Search: search}) {
		if err != nil {
			out.WriteString("!" + err.Error())
			continue
		}
		if d.Call != nil && (!json.Valid(d.Call.Input) || d.Call.ID == "" || d.Call.Name == "") {
			t.Errorf("call %+v", d.Call)
		}
		if u := d.Usage; u != nil && (u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0) {
			t.Errorf("usage %+v", u)
		}
		call := ""
		if d.Call != nil {
			call = d.Call.Name + string(d.Call.Input) // an id may be made anew each time
		}
		out.WriteString(d.Text + "|" + d.Thinking + "|" + d.Signature + "|" + call + "|" + d.Stop + "\n")
	}
	return out.String()
}

// FuzzStream: no stream, however wrong, panics or yields a call or figure that
// makes no sense, and how the network cuts it makes no difference.
func FuzzStream(f *testing.F) {
	const start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n"
	const end = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	for _, s := range []string{
		start + end,
		start + "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\"}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n" + end,
		start + "event: content_block_delta\r\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\r\n\r\n" + end,
		start + "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"},\"usage\":{\"output_tokens\":-1}}\n\n" + end,
		"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}\n\n",
		start + "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":null}}\n\n" +
			"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\"}}\n\n" + end,
		start + "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"content_block\":null}\n\n" + end,
		"event: error\ndata: 3\n\n", "event: x\ndata: []\n\n", ": c\n\ndata\n\n", "event: message_start\ndata: null\n\n",
		"event: a\ndata: {\"type\":\"content_block_stop\",\"index\":1e400,\"delta\":null}\n\n",
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		if len(body) > 64<<10 {
			return
		}
		for _, search := range []*llm.Search{nil, {Most: 1}} {
			if one, two := heard(t, body, seed, search), heard(t, body, seed+1, search); one != two {
				t.Errorf("cut in two ways:\n%s\n%s", one, two)
			}
		}
	})
}

// FuzzHistory: whatever the blocks of a conversation are, the API's rules hold
// for what is sent.
func FuzzHistory(f *testing.F) {
	f.Add([]byte("aTuRarUtSt"), "call 1", " ", `{"x":1}`)
	f.Add([]byte("aCaCuRuRcC"), "", "words", `"no object"`)
	f.Fuzz(func(t *testing.T, plan []byte, id, text, input string) {
		if len(plan) > 200 || len(id)+len(text)+len(input) > 10_000 {
			return
		}
		req := &llm.Request{System: text}
		for i, b := range plan {
			role := []string{"user", "assistant"}[i%3%2]
			if b&1 == 0 || len(req.Messages) == 0 {
				req.Messages = append(req.Messages, llm.Message{Role: role})
			}
			m := &req.Messages[len(req.Messages)-1]
			ids := id
			if b&2 == 0 {
				ids += string(b)
			}
			kinds := []core.Block{{Type: "text", Text: text}, {Type: "tool_use", ID: ids, Name: id, Input: json.RawMessage(input)},
				{Type: "tool_result", ToolUseID: ids, Text: text}, {Type: "thinking", Text: text, Signature: fake.Signed}, {Type: "thinking", Text: id}, {Type: "image"}}
			m.Blocks = append(m.Blocks, kinds[int(b>>2)%len(kinds)])
		}
		r := &reply{c: newClient(t, Options{}), req: req}
		p := r.params("claude-fake-5")
		body, err := r.c.body(&p, req.Tools)
		if err != nil {
			t.Fatal(err)
		}
		if bad := fake.Check(body); bad != "" {
			t.Errorf("%s\n%s", bad, body)
		}
	})
}

func TestTotalsThatAreNotThereReplaceNone(t *testing.T) {
	// Totals that message_delta leaves out must not wipe those of message_start.
	var e event
	if err := json.Unmarshal([]byte(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9,"cache_read_input_tokens":null}}`), &e); err != nil {
		t.Fatal(err)
	}
	a := answer{usage: &core.Tokens{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}}
	a.count(&e.Usage)
	if want := (core.Tokens{Input: 1, Output: 9, CacheRead: 3, CacheWrite: 4}); *a.usage != want {
		t.Errorf("%+v", *a.usage)
	}
}
