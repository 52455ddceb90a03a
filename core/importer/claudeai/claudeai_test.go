package claudeai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/core"
	"gatehouse/core/importer/claudeai"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/importertest"
)

func example(t testing.TB) []byte {
	raw, err := json.Marshal(importertest.New(1).ClaudeConversation(0))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestMessagesHangBehindTheirParentsAndTheLeafIsShown(t *testing.T) {
	const raw = `{"uuid":"x","current_leaf_message_uuid":"a2","chat_messages":[
		{"uuid":"q","sender":"human","text":"q","parent_message_uuid":"00000000-0000-4000-8000-000000000000"},
		{"uuid":"gone","sender":"system","text":"s","parent_message_uuid":"q"},
		{"uuid":"a1","sender":"assistant","content":[{"type":"text","text":"a1"},{"type":"tool_use","name":"t","input":{}},{"type":"tool_result","content":"r"},{"type":"text","text":"a1 end"}],"parent_message_uuid":"gone"},
		{"uuid":"a2","sender":"assistant","text":"a2","parent_message_uuid":"q"},
		{"uuid":"q2","sender":"human","text":"q2","parent_message_uuid":"a1"}]}`
	c, err := claudeai.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := c.Ordered()
	var got []string
	for _, m := range list {
		side := ""
		if m.Side {
			side = " side"
		}
		got = append(got, m.ID+"<"+m.Parent+side)
	}
	if want := "q< a1<q side a1#1<a1 side a1#2<a1#1 side q2<a1#2 side a2<q"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

func TestNoValueOfAnotherTypeIsAFault(t *testing.T) {
	read := 0
	for _, other := range importertest.Others {
		for _, raw := range importertest.Replaced(example(t), other) {
			c, err := claudeai.Parse([]byte(raw))
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
	f.Add([]byte(`{"uuid":"x","chat_messages":[{"uuid":"a","sender":"human","text":"t","parent_message_uuid":"b"},{"uuid":"b","sender":"assistant","text":"t","parent_message_uuid":"a"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, err := claudeai.Parse(raw)
		if err != nil {
			if core.KindOf(err) != core.Invalid {
				t.Error(err)
			}
			return
		}
		list, dropped := c.Ordered()
		if len(list)+dropped != len(c.Messages) {
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

// TestALongChainOfEmptyMessagesIsGoneOnce has as many messages behind it, and another in a cycle.
func TestALongChainOfEmptyMessagesIsGoneOnce(t *testing.T) {
	const n = 40_000
	for name, end := range map[string]string{"a chain": "first", "a cycle": fmt.Sprint("e", n-1)} {
		t.Run(name, func(t *testing.T) {
			list := []string{`{"uuid":"first","sender":"human","text":"hello"}`}
			for i := range n {
				parent := fmt.Sprint("e", i-1)
				if i == 0 {
					parent = end
				}
				list = append(list, fmt.Sprintf(`{"uuid":"e%d","sender":"human","parent_message_uuid":%q}`, i, parent),
					fmt.Sprintf(`{"uuid":"m%d","sender":"human","text":"x","parent_message_uuid":"e%d"}`, i, n-1))
			}
			raw := []byte(`{"uuid":"c","chat_messages":[` + strings.Join(list, ",") + `]}`)
			done := make(chan *foreign.Conversation, 1)
			go func() { c, _ := claudeai.Parse(raw); done <- c }()
			select {
			case c := <-done:
				if last := c.Messages[n]; name == "a chain" && last.Parent != "first" {
					t.Errorf("the last one hangs behind %q", last.Parent)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it takes longer than 30 s")
			}
		})
	}
}
