package responses

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gatehouse/web"
	"gatehouse/web/openai/conversation"
	"gatehouse/web/openai/refusal"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// with is a good body with further members.
func with(members string) string { return `{"model":"m","input":"Hello"` + members + `}` }

// having is a good body with these items.
func having(items string) string { return `{"model":"m","input":[` + items + `]}` }

// read reads a body and its conversation, as far as nothing is stored.
func read(body []byte) (q request, ignored []string, err error) {
	if q, ignored, err = parse(body); err != nil {
		return q, ignored, err
	}
	c := conversation.Conversation{Param: "input"}
	if err := add(&c, q.Input, inputAt); err != nil {
		return q, ignored, err
	}
	if _, err := c.System(); err != nil {
		return q, ignored, err
	}
	_, _, err = c.Said()
	return q, ignored, err
}

func TestUnsupportedFieldIsRefusedByName(t *testing.T) {
	hello, long := `{"role":"user","content":"Hello"}`, strings.Repeat("x", conversation.MaxText+1)
	pairs := []string{}
	for i := range maxMetadata + 1 {
		pairs = append(pairs, fmt.Sprintf(`"k%d":"v"`, i))
	}
	for body, want := range map[string]string{
		`[]`:                       "",
		`{"input":"Hello"}`:        "model",
		`{"model":7,"input":"x"}`:  "model",
		`{"model":"m"}`:            "input",
		`{"model":"m","input":7}`:  "input",
		`{"model":"m","input":""}`: "input",
		having(``):                 "input",
		having(`{"role":"assistant","content":"Hello"}`):                                                                        "input",
		having(`{"role":"king","content":"Hello"}`):                                                                             "input[0].role",
		having(hello + `,{"type":"function_call_output","call_id":"c"}`):                                                        "input[1].type",
		having(`{"type":"reasoning","id":"rs_1","summary":[]},` + hello):                                                        "input[0].type",
		having(`{"role":"user"}`):                                                                                               "input[0].content",
		having(`{"role":"user","content":null}`):                                                                                "input[0].content",
		having(`{"role":"user","content":"` + long + `"}`):                                                                      "input[0].content",
		having(`{"role":"user","content":[{"type":"input_file"}]}`):                                                             "input[0].content[0].type",
		having(`{"role":"user","content":[{"type":"input_image","file_id":"f"}]}`):                                              "input[0].content[0].file_id",
		having(`{"role":"user","content":[{"type":"input_image","image_url":"https://example.org/x.png"}]}`):                    "input[0].content[0].image_url",
		having(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}`):                   "input[0].content[0].image_url",
		having(`{"role":"system","content":[{"type":"input_image","image_url":"data:image/png;base64,` + png + `"}]},` + hello): "input[0].content",
		with(`,"tools":[{"type":"function","name":"x"}]`):                                                                       "tools",
		with(`,"tools":[{"type":"web_search"}]`):                                                                                "tools",
		with(`,"tool_choice":"required"`):                                                                                       "tool_choice",
		with(`,"top_p":0.1`):                                                                                                    "top_p",
		with(`,"conversation":"conv_1"`):                                                                                        "conversation",
		with(`,"prompt":{"id":"p"}`):                                                                                            "prompt",
		with(`,"max_tool_calls":1`):                                                                                             "max_tool_calls",
		with(`,"text":{"format":{"type":"json_object"}}`):                                                                       "text.format",
		with(`,"text":{"verbosity":"low"}`):                                                                                     "text.verbosity",
		with(`,"text":7`):                                                                                                       "text",
		with(`,"reasoning":{"effort":"high"}`):                                                                                  "reasoning.effort",
		with(`,"reasoning":{"summary":"auto"}`):                                                                                 "reasoning.summary",
		with(`,"include":["message.output_text.logprobs"]`):                                                                     "include[0]",
		with(`,"include":7`):                                                                                                    "include",
		with(`,"stream":"yes"`):                                                                                                 "stream",
		with(`,"stream_options":{}`):                                                                                            "stream_options",
		with(`,"stream":true,"stream_options":{"include_obfuscation":true}`):                                                    "stream_options.include_obfuscation",
		with(`,"background":true,"store":false`):                                                                                "background",
		with(`,"store":"no"`):                                                                                                   "store",
		with(`,"previous_response_id":7`):                                                                                       "previous_response_id",
		with(`,"instructions":7`):                                                                                               "instructions",
		with(`,"instructions":"` + long + `"`):                                                                                  "instructions",
		with(`,"temperature":2.1`):                                                                                              "temperature",
		with(`,"max_output_tokens":0`):                                                                                          "max_output_tokens",
		with(`,"truncation":"middle"`):                                                                                          "truncation",
		with(`,"metadata":{"a":1}`):                                                                                             "metadata",
		with(`,"metadata":{"a":"` + strings.Repeat("x", 513) + `"}`):                                                            "metadata",
		with(`,"metadata":{` + strings.Join(pairs, ",") + `}`):                                                                  "metadata",
	} {
		_, _, err := read([]byte(body))
		p, ok := errors.AsType[*web.Problem](err)
		if !ok || p.Fault.Status != 400 {
			t.Errorf("%.120s: %v", body, err)
			continue
		}
		e, got := refusal.Of(p), ""
		if e.Param != nil {
			got = *e.Param
		}
		if got != want || e.Type != "invalid_request_error" || e.Message == "" {
			t.Errorf("%.120s: param %q, type %q, %q; want %q", body, got, e.Type, e.Message, want)
		}
	}
}

func TestDefaultValuesAreAcceptedAndUnknownFieldsReported(t *testing.T) {
	body := with(`,"tools":[],"tool_choice":"auto","top_p":1.0,"top_logprobs":0,"service_tier":"auto","parallel_tool_calls":true,"user":"ada",
		"safety_identifier":"a","prompt_cache_key":"k","include":["reasoning.encrypted_content"],"text":{"format":{"type":"text"}},"reasoning":{"effort":null},
		"truncation":"auto","conversation":null,"metadata":{"a":"b"},"instructions":null,"temperature":null,"stream":null,"store":null,"chat_id":"x"`)
	q, ignored, err := read([]byte(body))
	if err != nil || len(ignored) != 1 || ignored[0] != "chat_id" || !q.Store || q.Truncation != "auto" {
		t.Errorf("%+v, %q, %v", q, ignored, err)
	}
}

func TestIDsOfItemsNameTheirResponse(t *testing.T) {
	run := responseID("0f1e2d3c-0000-4000-8000-00000000abcd")
	for id, want := range map[string]int{outputID(run): -1, inputID(run, 0): 0, inputID(run, 12): 12} {
		if of, i := ofItem(id); of != run || i != want {
			t.Errorf("%s is %d of %s", id, i, of)
		}
	}
}

// Whatever a body holds, it is refused in OpenAI's form or makes a turn within the
// bounds, and what is stored of it is read again as it was.
func FuzzBody(f *testing.F) {
	for _, body := range []string{with(``), with(`,"stream":true,"background":true,"metadata":{"a":"b"},"instructions":"x"`),
		having(`{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,` + png + `"},{"type":"input_text","text":"x"}]}`),
		having(`{"type":"item_reference","id":"msg_1"},{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`),
		`{"model":null,"input":{}}`, having(strings.Repeat(`{"role":"assistant","content":""},`, 20) + `{"role":"user","content":"x"}`)} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, ignored, err := parse(body)
		if err == nil {
			_, ignored, err = read(body)
		}
		if err != nil {
			p, ok := errors.AsType[*web.Problem](err)
			if !ok || p.Fault.Status != 400 || refusal.Of(p).Message == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if q.Model == "" || len(q.Input) == 0 || len(q.Input) > conversation.MaxMessages || len(q.Metadata) > maxMetadata {
			t.Fatalf("%+v", q)
		}
		if w := web.IgnoredFields(ignored); strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r > '~' && r != '…' }) {
			t.Fatalf("%q", w)
		}
		stored, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var again request
		if err := json.Unmarshal(stored, &again); err != nil {
			t.Fatal(err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(stored) {
			t.Fatalf("%s\n%s: %v", stored, twice, err)
		}
	})
}
