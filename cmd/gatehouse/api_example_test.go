package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
)

// within reports whether got has all that want has; "*" stands for any value.
func within(want, got any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return want == "*" && got != nil || reflect.DeepEqual(want, got)
	}
	g, ok := got.(map[string]any)
	for k, v := range w {
		ok = ok && within(v, g[k])
	}
	return ok
}

// Every line of the documented example occurs in a real stream, in its order,
// with at least its fields: clients are written by that example.
func TestAStreamHoldsEveryLineOfTheDocumentedExample(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.puts(map[string]string{"CLAUDE.md": "Be brief.", "Plans/AGENTS.md": "Plans are plans.", "Plans/garden.md": "roses, beans, peas"})
	call := func(id, name, input string) []llmtest.Call {
		return []llmtest.Call{{ID: id, Name: name, Fragments: []string{input}}}
	}
	model.Script(
		llmtest.Reply{Text: []string{"Let me read ", "the plan first. "}, Calls: call("read_1", "Read", `{"file_path":"Plans/garden.md"}`)},
		llmtest.Reply{Text: []string{"The plan names three beds. "}, Calls: call("glob_1", "Glob", `{"pattern":"Plans/*"}`)},
		llmtest.Reply{Thinking: []string{"Which of them lies in the sun?"}, Text: []string{"The roses lie in the sun."}},
	)
	_, events := w.chatEvents(map[string]any{"message": "Which bed is best?", "contexts": []string{"Plans/AGENTS.md"}}, w.as(core.Full))
	example, err := os.ReadFile("testdata/stream-example.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for line := range bytes.Lines(bytes.TrimSpace(example)) {
		var want map[string]any
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatal(err)
		}
		for at < len(events) && !within(want, events[at].Data) {
			at++
		}
		if at++; at > len(events) {
			t.Fatalf("nowhere after what stands before it: %s\n%v", line, events)
		}
	}
}

// The first generation's clients talk to a real gateway: begin, go on, see the
// agent and the sub-turn, look, archive.
func TestAClientOfTheFirstGenerationTalksToTheGateway(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.puts(map[string]string{".parachute/agents/cook.md": "---\nname: cook\ndescription: Cooks.\n---\nYou cook."})
	model.Script(llmtest.Reply{Text: []string{"Wait."}, Calls: []llmtest.Call{{ID: "sub_1", Name: "Task", Fragments: []string{`{"description":"look it up","prompt":"soup?"}`}}}}, llmtest.Say("Found."), llmtest.Say("Leek soup."))
	resp := w.open("POST", "/api/chat/stream", map[string]any{"message": "Soup?", "sessionId": "kitchen", "agentPath": ".parachute/agents/cook.md"}, w.as(core.Vault))
	events := readEvents(t, resp.Body, -1)
	resp.Body.Close()
	last := events[len(events)-1].Data
	if last["type"] != "done" || last["response"] != "Wait.\n\nLeek soup." || !reflect.DeepEqual(last["spawned"], []any{"sub_1"}) || len(last["toolCalls"].([]any)) != 1 {
		t.Errorf("%v", last)
	}
	resume, _ := last["sessionResume"].(map[string]any)
	if len(resume) != 9 || resume["method"] != "new" {
		t.Errorf("%v", resume)
	}
	id := events[0].Data["sessionId"]
	if id != sessionOf(t, w, "kitchen") {
		t.Errorf("%v", events[0].Data)
	}
	status, body := w.call("GET", "/api/chat/session/kitchen", nil)
	var read map[string]any
	if err := json.Unmarshal([]byte(body), &read); err != nil || status != 200 || read["agentPath"] != ".parachute/agents/cook.md" || len(read["messages"].([]any)) != 3 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := w.call("DELETE", "/api/chat/session?agentPath=.parachute/agents/cook.md", nil); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if n := w.count(`SELECT count(*) FROM sessions WHERE id = $1 AND archived = 1`, id); n != 1 {
		t.Error("it is not archived")
	}
	status, body = w.call("GET", "/api/stats", nil)
	var stats struct {
		Sessions map[string]int
		Memory   struct {
			RSS int64 `json:"rss_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(body), &stats); err != nil || status != 200 || stats.Sessions["archived"] != 1 || stats.Memory.RSS < 1<<20 {
		t.Errorf("%d %s", status, body)
	}
}
