package openai

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/openai/conversation"
	"gatehouse/web/openai/refusal"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// with is a good body with further members.
func with(members string) string {
	return `{"model":"m","messages":[{"role":"user","content":"Hello"}]` + members + `}`
}

// speaking is a good body with these messages.
func speaking(messages string) string { return `{"model":"m","messages":[` + messages + `]}` }

func TestUnsupportedFieldIsRefusedByName(t *testing.T) {
	hello, long := `{"role":"user","content":"Hello"}`, strings.Repeat("x", conversation.MaxText+1)
	picture := func(url string) string {
		return speaking(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}`)
	}
	for body, want := range map[string]string{
		`[]`:                           "",
		`{"messages":[` + hello + `]}`: "model",
		`{"model":7}`:                  "model",
		`{"model":"m"}`:                "messages",
		speaking(``):                   "messages",
		speaking(`{"role":"assistant","content":"Hello"}`):                    "messages",
		speaking(`{"role":"user","content":" "}`):                             "messages",
		speaking(`{"role":"king","content":"Hello"}`):                         "messages[0].role",
		speaking(hello + `,{"role":"tool","content":"4","tool_call_id":"c"}`): "messages[1].role",
		speaking(`{"role":"assistant","tool_calls":[{"id":"c"}]},` + hello):   "messages[0].tool_calls",
		speaking(`{"role":"user"}`):                                           "messages[0].content",
		speaking(`{"role":"user","content":"` + long + `"}`):                  "messages[0].content",
		speaking(`{"role":"user","content":[{"type":"input_audio"}]}`):        "messages[0].content[0].type",
		speaking(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}]},` + hello): "messages[0].content",
		picture("https://example.org/x.png"):                           "messages[0].content[0].image_url.url",
		picture("data:image/png;base64,AAAA"):                          "messages[0].content[0].image_url.url",
		picture("data:image/png;base64,%"):                             "messages[0].content[0].image_url.url",
		picture("data:image/png;base64," + strings.Repeat("A", 8<<20)): "messages[0].content[0].image_url.url",
		with(`,"tools":[{"type":"function","function":{"name":"x"}}]`): "tools",
		with(`,"tool_choice":"required"`):                              "tool_choice",
		with(`,"n":2`):                                                 "n",
		with(`,"logprobs":true`):                                       "logprobs",
		with(`,"top_p":0.1`):                                           "top_p",
		with(`,"response_format":{"type":"json_object"}`):              "response_format",
		with(`,"seed":1`):                                              "seed",
		with(`,"audio":{}`):                                            "audio",
		with(`,"stream":"yes"`):                                        "stream",
		with(`,"stream_options":{"include_usage":true}`):               "stream_options",
		with(`,"stream":true,"stream_options":7`):                      "stream_options",
		with(`,"temperature":2.1`):                                     "temperature",
		with(`,"temperature":"hot"`):                                   "temperature",
		with(`,"max_tokens":0`):                                        "max_tokens",
		with(`,"max_completion_tokens":1.5`):                           "max_completion_tokens",
		with(`,"max_tokens":1,"max_completion_tokens":1`):              "max_tokens",
		with(`,"stop":["a","b","c","d","e"]`):                          "stop",
		with(`,"stop":""`):                                             "stop",
		with(`,"stop":7`):                                              "stop",
	} {
		_, _, err := parse([]byte(body))
		p, ok := errors.AsType[*web.Problem](err)
		if !ok || p.Fault.Status != 400 {
			t.Errorf("%.120s: %v", body, err)
			continue
		}
		e := refusal.Of(p)
		got := ""
		if e.Param != nil {
			got = *e.Param
		}
		if got != want || e.Type != "invalid_request_error" || !strings.Contains(e.Message, strings.TrimSuffix(want, ".role")) {
			t.Errorf("%.120s: param %q, type %q, %q; want %q", body, got, e.Type, e.Message, want)
		}
	}
}

func TestDefaultValuesAreAcceptedAndUnknownFieldsReported(t *testing.T) {
	body := with(`,"n":1,"top_p":1.0,"presence_penalty":0,"frequency_penalty":0,"logprobs":false,"logit_bias":{},"tools":[],"tool_choice":"auto",
		"response_format":{"type":"text"},"modalities":["text"],"user":"ada","metadata":{"a":"b"},"store":true,"service_tier":"auto",
		"seed":null,"audio":null,"temperature":null,"chat_id":"x","b\r\n":1`)
	_, ignored, err := parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if got := web.IgnoredFields(ignored); got != `299 - "unknown fields were ignored: b??, chat_id"` {
		t.Errorf("%s", got)
	}
}

func TestMessagesBecomeTheConversation(t *testing.T) {
	q, _, err := parse([]byte(speaking(`{"role":"system","content":"Be kind."},{"role":"assistant","content":"Good morning."},
		{"role":"user","name":"Ada\n","content":[{"type":"text","text":"Look"},{"type":"text","text":"here"}]},{"role":"assistant","content":null,"refusal":"No."},
		{"role":"assistant","content":""},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,` + png + `"}}]},{"role":"developer","content":"Be brief."}`)))
	if err != nil {
		t.Fatal(err)
	}
	data, _ := base64.StdEncoding.DecodeString(png)
	want := request{Model: "m", System: "Be kind.\n\nBe brief.",
		Before: []core.Said{{Role: "user", Text: conversation.Begins}, {Role: "assistant", Text: "Good morning."}, {Role: "user", Text: "Ada: Look\nhere"}, {Role: "assistant", Text: "No."}},
		Last:   core.Said{Role: "user", Media: []core.Media{{Type: "image/png", Data: data}}}}
	if diff := cmp.Diff(want, q); diff != "" {
		t.Error(diff)
	}
}

// Whatever a body holds, it is refused in OpenAI's form or makes a turn within
// the bounds.
func FuzzBody(f *testing.F) {
	for _, body := range []string{with(``), with(`,"stop":["a"],"temperature":1,"stream":true,"stream_options":{"include_usage":true}`),
		speaking(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}]}`),
		`{"model":null,"messages":{}}`, `{"tools":[1e999]}`, fmt.Sprintf(`{"model":"m","messages":[%s]}`, strings.Repeat(`{"role":"assistant"},`, 20))} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, ignored, err := parse(body)
		if err != nil {
			p, ok := errors.AsType[*web.Problem](err)
			if !ok || p.Fault.Status != 400 || refusal.Of(p).Message == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if q.Model == "" || q.Last.Role != "user" || conversation.Empty(&q.Last) || len(q.Stop) > maxStops || len(q.System) > conversation.MaxText || len(q.Before) > conversation.MaxMessages+1 {
			t.Fatalf("%+v", q)
		}
		if len(q.Before) > 0 && q.Before[0].Role != "user" {
			t.Fatalf("the conversation begins with %+v", q.Before[0])
		}
		if w := web.IgnoredFields(ignored); strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r > '~' && r != '…' }) {
			t.Fatalf("%q", w)
		}
		if _, err := json.Marshal(q); err != nil {
			t.Fatal(err)
		}
	})
}
