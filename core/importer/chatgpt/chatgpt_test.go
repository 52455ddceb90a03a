package chatgpt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/core"
	"gatehouse/core/importer/chatgpt"
	"gatehouse/core/importer/importertest"
)

func example(t testing.TB) []byte {
	small := importertest.New(1)
	small.Turns = 3
	raw, err := json.Marshal(small.ChatGPTConversation(0))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestEveryKindOfContentIsRead(t *testing.T) {
	node := func(id, parent, role, more, content string) string {
		return `"` + id + `":{"id":"` + id + `","parent":"` + parent + `","message":{"author":{"role":"` + role + `","name":"web"},"recipient":"all"` + more + `,"content":` + content + `}}`
	}
	raw := `{"id":"x","current_node":"end","mapping":{` + strings.Join([]string{
		`"root":{"id":"root","parent":null,"message":null}`,
		node("ctx", "root", "user", "", `{"content_type":"user_editable_context","user_profile":"p"}`),
		node("q", "ctx", "user", "", `{"content_type":"multimodal_text","parts":["look",{"content_type":"audio_transcription","text":"spoken"},{"content_type":"real_time_user_audio_video_asset_pointer","audio_asset_pointer":{"asset_pointer":"sediment://file_a"}}]}`),
		node("hid", "q", "assistant", `,"metadata":{"is_visually_hidden_from_conversation":true}`, `{"content_type":"text","parts":["hidden"]}`),
		node("call", "hid", "assistant", `,"recipient":"web.run"`, `{"content_type":"code","text":"{\"q\":1}"}`),
		node("spin", "call", "tool", "", `{"content_type":"tether_browsing_display","result":"","summary":""}`),
		node("res", "spin", "tool", "", `{"content_type":"sonic_webpage","url":"https://e.example","title":"T","text":"page"}`),
		node("res2", "res", "tool", "", `{"content_type":"tether_quote","url":"https://f.example","title":"U","text":"quote"}`),
		node("recap", "res2", "assistant", "", `{"content_type":"reasoning_recap","content":"Thought for 5s"}`),
		node("code", "recap", "assistant", "", `{"content_type":"code","language":"python","text":"x = 1"}`),
		node("err", "code", "tool", "", `{"content_type":"system_error","name":"E","text":"denied"}`),
		node("end", "err", "system", "", `{"content_type":"text","parts":["nothing"]}`)}, ",") + `}}`
	c, err := chatgpt.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	list, dropped := c.Ordered()
	var got []string
	for _, m := range list {
		if m.Side {
			t.Errorf("%s is of another branch", m.ID)
		}
		for _, b := range m.Blocks {
			got = append(got, m.Role+" "+b.Type+" "+b.Name+" "+string(b.Input)+b.Text)
		}
	}
	want := []string{"user text  look\nspoken", `assistant tool_use web.run {"q":1}`, "user tool_result  T https://e.example\npage", "assistant tool_use web ",
		"user tool_result  U https://f.example\nquote", "assistant text  ```python\nx = 1\n```", "assistant tool_use web ", "user tool_result  denied"}
	if strings.Join(got, "\n--\n") != strings.Join(want, "\n--\n") || dropped != 0 {
		t.Errorf("got\n%s", strings.Join(got, "\n--\n"))
	}
	if f := list[0].Files; len(f) != 1 || f[0].Ref != "file_a" {
		t.Errorf("files %+v", f)
	}
}

func TestNoValueOfAnotherTypeIsAFault(t *testing.T) {
	read := 0
	for _, other := range importertest.Others {
		for _, raw := range importertest.Replaced(example(t), other) {
			c, err := chatgpt.Parse([]byte(raw))
			if err != nil && core.KindOf(err) != core.Invalid {
				t.Errorf("%v of %s", err, raw)
			}
			if err == nil {
				read++
				c.Ordered()
			}
		}
	}
	if read < 500 {
		t.Errorf("%d were read", read)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example(f))
	f.Add([]byte(`{"id":"x","mapping":{"a":{"parent":"b","message":{"author":{"role":"user"},"content":{"parts":["t"]}}},"b":{"parent":"a"}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := chatgpt.Parse(raw)
		if err != nil {
			if core.KindOf(err) != core.Invalid {
				t.Error(err)
			}
			return
		}
		list, dropped := c.Ordered()
		if len(list)+dropped != len(c.Messages) || dropped > 0 {
			t.Errorf("%d messages, %d in order, %d dropped", len(c.Messages), len(list), dropped)
		}
		seen := map[string]bool{"": true}
		for _, p := range list {
			if !seen[p.Parent] {
				t.Errorf("%q is in front of its parent %q", p.ID, p.Parent)
			}
			seen[p.ID] = true
		}
	})
}
