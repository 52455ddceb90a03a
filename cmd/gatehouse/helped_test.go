package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/core"
)

// What the helper of a Task does is in the stream of events, in the session's messages and
// in the audit log, each with the call that it works on.
func TestWhatAHelperDoesAppearsInEventsMessagesAndAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	w.put("Notes/plan.md", "Buy tea.\n")
	key := w.as(core.Vault)
	_, es := w.chatEvents(map[string]any{"message": task(`use Read {"file_path":"Notes/plan.md"}`), "session_id": "helped"}, key)
	var calls, results []map[string]any
	for _, e := range es {
		switch e.Type {
		case "tool_use_start":
			calls = append(calls, e.Data)
		case "tool_result":
			results = append(results, e.Data)
		}
	}
	if len(calls) != 2 || len(results) != 2 || calls[0]["name"] != "Task" || calls[0]["parent_tool_use_id"] != nil || calls[1]["name"] != "Read" ||
		calls[1]["parent_tool_use_id"] != calls[0]["id"] || results[0]["parent_tool_use_id"] != calls[0]["id"] || !strings.Contains(fmt.Sprint(results[0]["result"]), "Buy tea.") || results[1]["parent_tool_use_id"] != nil {
		t.Fatalf("calls %v, results %v", calls, results)
	}
	id := sessionOf(t, w, "helped")
	_, body := w.call("GET", "/api/chat/"+id+"/messages", nil)
	var page struct {
		Messages []struct {
			Content []struct {
				ID     string
				Helper []struct {
					Content []struct{ Type, Name, Text string }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil {
		t.Fatal(err)
	}
	seen := ""
	for _, m := range page.Messages {
		for _, b := range m.Content {
			for _, did := range b.Helper {
				if b.ID != calls[0]["id"] {
					t.Errorf("the helper is at the call %s", b.ID)
				}
				for _, part := range did.Content {
					seen += part.Type + " " + part.Name + " "
				}
			}
		}
	}
	if !strings.HasPrefix(seen, "text  tool_use Read tool_result  text ") {
		t.Errorf("the helper's messages are %q: %s", seen, body)
	}
	var detail string
	if err := w.app.db.Get(t.Context(), &detail, `SELECT detail FROM audit_events WHERE action = 'tool.use' AND subject = $1 AND user_id = $2 AND via = 'api'`, id, core.Operator); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(detail, fmt.Sprintf(`"parent":%q`, calls[0]["id"])) || !strings.Contains(detail, `"tool":"Read"`) {
		t.Errorf("audit: %s", detail)
	}
}

// The first generation's stream and its answers know no helpers.
func TestTheFirstGenerationsStreamHasOnlyTheAgentsOwnCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hasty)
	resp := w.open("POST", "/api/chat/stream", map[string]any{"message": task(`use Glob {"pattern":"*.md"}`)}, w.as(core.Vault))
	defer resp.Body.Close()
	es := readEvents(t, resp.Body, -1)
	names := ""
	for _, e := range es {
		if e.Type == "tool_use" {
			names += fmt.Sprint(e.Data["name"], " ")
		}
	}
	if names != "Task " {
		t.Errorf("calls %q of %v", names, types(es))
	}
}
