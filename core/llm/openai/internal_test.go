package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"gatehouse/core/llm"
	"gatehouse/core/llm/provider"
)

// still is a clock for tests that never wait.
type still struct{}

func (still) Now() time.Time                       { return time.Unix(1767323045, 0) }
func (still) After(time.Duration) <-chan time.Time { return nil }

// newTestReply is a reply whose deltas are checked and dropped.
func newTestReply(t *testing.T, c *Client) *reply {
	return &reply{c: c, req: &llm.Request{}, Reply: provider.Reply{Ctx: context.Background(), Model: "openai/x",
		Yield: func(d llm.Delta, err error) bool {
			if d.Call != nil && (!json.Valid(d.Call.Input) || d.Call.ID == "" || d.Call.Name == "") {
				t.Errorf("call %+v", d.Call)
			}
			if d.Usage != nil && (d.Usage.Input < 0 || d.Usage.Output < 0 || d.Usage.CacheRead < 0) {
				t.Errorf("usage %+v", d.Usage)
			}
			return true
		}}}
}

func TestRetryAfterIsReadAsSecondsDateAndMilliseconds(t *testing.T) {
	c, err := New(Options{Clock: still{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.5", 500 * time.Millisecond},
		{"Retry-After-Ms", "120", 120 * time.Millisecond},
		{"Retry-After", still{}.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat), 90 * time.Second},
		{"Retry-After", still{}.Now().Add(-90 * time.Second).UTC().Format(http.TimeFormat), 0},
		{"Retry-After", "-3", 0},
		{"Retry-After", "1e300", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "soon", 0},
	} {
		h := http.Header{}
		h.Set(x.header, x.value)
		if got := c.retryAfter(h); got != x.want {
			t.Errorf("%s: %s = %v, want %v", x.header, x.value, got, x.want)
		}
	}
}

func TestOpenAIItselfIsAskedForAModelThatCanChat(t *testing.T) {
	c, err := New(Options{Clock: still{}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.pick([]string{"dall-e-3", "gpt-4o-mini", "gpt-5-mini"}); got != "gpt-5-mini" {
		t.Errorf("picked %q", got)
	}
	if got := c.pick([]string{"whisper-1"}); got != "whisper-1" {
		t.Errorf("picked %q", got)
	}
}

func TestErrorsAreReadInEverySpelling(t *testing.T) {
	for body, want := range map[string]apiError{
		`{"error":{"message":"m","type":"t","param":null,"code":"c"}}`:            {Message: "m", Type: "t", Code: "c"},
		`{"error":{"message":"m","type":"t","code":429}}`:                         {Message: "m", Type: "t", Code: "429"},
		`{"object":"error","message":"m","type":"BadRequestError","code":400}`:    {Message: "m", Type: "BadRequestError", Code: "400"},
		`{"error":"model not loaded"}`:                                            {Message: "model not loaded"},
		`{"detail":"Not Found"}`:                                                  {Message: "Not Found"},
		`<html>502</html>`:                                                        {},
		`{"error":{"message":"m","type":"exceed_context_size_error","n_ctx":10}}`: {Message: "m", Type: "exceed_context_size_error", Window: 10},
	} {
		if got := parseError([]byte(body)); got != want {
			t.Errorf("%s: %+v", body, got)
		}
	}
}
