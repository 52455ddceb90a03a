package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/core/llm/llmtest"
)

// sent is all that the model was sent last, in words.
func sent(t *testing.T, model *llmtest.Server) string {
	t.Helper()
	last, _ := asked(t, model)
	var b strings.Builder
	for _, m := range last.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.Content)
	}
	return b.String()
}

// Every field of the request body does what it says: in what the model is sent,
// in the session's row, or in the turn's limits.
func TestEveryFieldOfAChatRequestDoesWhatItSays(t *testing.T) {
	t.Parallel()
	model := llmtest.New(t, llmtest.Options{Key: modelKey, Models: []string{"fake-1", "fake-2"}})
	w := newWorld(t, func(c *configs.Config) {
		c.Model, c.ModelFallbacks = "openai/fake-1", values.List{"openai/fake-2"}
		c.OpenaiBaseURL, c.OpenaiAPIKey = model.URL(), values.NewSecret(modelKey)
	})
	w.puts(map[string]string{
		"Boats/AGENTS.md": "Boats are called Henrietta.", "Tea/AGENTS.md": "Tea is drunk at four.", "Kitchen/AGENTS.md": "Wear an apron.",
		".parachute/agents/cook.md":                 "---\nname: The Cook\n---\nYou are a cook.",
		".parachute/workspaces/kitchen/config.yaml": "trust_level: sandboxed\nworking_directory: Kitchen\n",
		".parachute/workspaces/roomy/config.yaml":   "trust_level: vault\nworking_directory: Kitchen\n",
	})
	w.chatEvents(map[string]any{"message": "My boat sinks.", "session_id": "before"}, nil)
	w.chatEvents(map[string]any{"message": "Guests only.", "session_id": "low", "trust_level": "sandboxed"}, nil)
	for i, c := range []struct {
		body  map[string]any
		sent  string // the model is sent this
		row   string // condition on the session's row
		event string // in the first event
		check func(es []sseEvent) bool
	}{
		{map[string]any{"agent_path": "the cook"}, "You are a cook.", `agent_type = 'The Cook'`, "", nil},
		{map[string]any{"agentPath": ".parachute/agents/cook.md"}, "You are a cook.", `agent_type = 'The Cook'`, "", nil},
		{map[string]any{"module": "daily"}, "", `module = 'daily'`, "", nil},
		{map[string]any{"workspace": "roomy"}, "Wear an apron.", `workspace = 'roomy'`, "trust_level:vault", nil},
		{map[string]any{"workspace": "kitchen"}, "", `workspace = 'kitchen'`, "trust_level:sandboxed", nil},
		{map[string]any{"working_directory": "Boats"}, "Henrietta", `working_directory = 'Boats'`, "working_directory:Boats", nil},
		{map[string]any{"system_prompt": "Speak like a gardener."}, "system: Speak like a gardener.", ``, "", nil},
		{map[string]any{"contexts": []string{"Tea/"}}, "Tea is drunk at four.", `EXISTS (SELECT 1 FROM session_contexts WHERE session_id = id AND folder_path = 'Tea')`, "", nil},
		{map[string]any{"model": "openai/fake-2"}, "", `model = 'openai/fake-2'`, "", nil},
		{map[string]any{"trust_level": "sandboxed"}, "", `trust_level = 'sandboxed'`, "trust_level:sandboxed", nil},
		{map[string]any{"initial_context": "We spoke of ```tulips``` on the phone."}, "Given with this conversation, to begin with:\n````\nWe spoke of ```tulips``` on the phone.\n````", ``, "", func(es []sseEvent) bool {
			return es[1].Data["content"] == "hello"
		}},
		{map[string]any{"continuedFrom": "before"}, "user: My boat sinks.", `continued_from = '` + sessionOf(t, w, "before") + `'`, "method:context_injection", nil},
		{map[string]any{"continued_from": "low"}, "user: Guests only.", `trust_level = 'sandboxed'`, "trust_level:sandboxed", nil},
	} {
		name := fmt.Sprintf("s%d", i)
		c.body["message"], c.body["session_id"] = "hello", name
		resp, es := w.chatEvents(c.body, nil)
		if resp.StatusCode != 200 || len(es) == 0 {
			t.Errorf("%v: %d", c.body, resp.StatusCode)
			continue
		}
		if got := sent(t, model); !strings.Contains(got, c.sent) {
			t.Errorf("%v: the model was sent %s", c.body, got)
		}
		if c.row != "" && w.count(`SELECT count(*) FROM sessions WHERE id = $1 AND `+c.row, sessionOf(t, w, name)) != 1 {
			t.Errorf("%v: the row is not %s", c.body, c.row)
		}
		if got := fmt.Sprint(es[0].Data); !strings.Contains(got, c.event) {
			t.Errorf("%v: %s", c.body, got)
		}
		if c.check != nil && !c.check(es) {
			t.Errorf("%v: %v", c.body, es)
		}
		if types(es)[len(es)-2] != "done" {
			t.Errorf("%v: %v", c.body, es[len(es)-2].Data)
		}
	}
}

// What a session begins with stays: a request that says otherwise is a
// conflict, one that says the same goes on, and contexts are added.
func TestWhatASessionBeginsWithStays(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	w.puts(map[string]string{
		".parachute/agents/cook.md": "---\nname: cook\n---\nYou cook.", ".parachute/workspaces/low/config.yaml": "trust_level: sandboxed\n", ".parachute/workspaces/high/config.yaml": "trust_level: vault\n",
		"Tea/AGENTS.md": "Tea at four.", "Boats/AGENTS.md": "Henrietta.",
	})
	w.chatEvents(map[string]any{"message": "other", "session_id": "other"}, nil)
	first := map[string]any{"message": "hello", "session_id": "s", "agent_path": "cook", "workspace": "low", "module": "daily", "contexts": []string{"Tea"}, "initial_context": "Tulips."}
	w.chatEvents(first, nil)
	for field, value := range map[string]string{"agent_path": "vault-agent", "workspace": "high", "module": "chat", "continued_from": "other"} {
		status, body := w.call("POST", "/api/chat", map[string]any{"message": "hello", "session_id": "s", field: value})
		if status != http.StatusConflict || !strings.Contains(body, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", field, status, body)
		}
	}
	first["contexts"] = []string{"Boats"}
	_, es := w.chatEvents(first, nil)
	if got := fmt.Sprint(es); !strings.Contains(got, "trust_level:sandboxed") || !strings.Contains(got, "initial_context was left out") {
		t.Errorf("%v", got)
	}
	if got := sent(t, model); strings.Count(got, "Tulips.") != 1 {
		t.Errorf("the model was sent %s", got)
	}
	if n := w.count(`SELECT count(*) FROM session_contexts WHERE session_id = $1`, sessionOf(t, w, "s")); n != 2 {
		t.Errorf("%d contexts", n)
	}
}

// A guest's fields reach nothing that the guest does not: no file of the
// owner's by contexts, no folder, no conversation of others, no ceiling lifted.
func TestAGuestsFieldsReachNoFurtherThanTheGuest(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, func(c *configs.Config) { c.DefaultAgent = "nosy" })
	w.puts(map[string]string{
		"Secret/AGENTS.md": "zebra rules", "Secret/plan.md": "zebra plan", "Public/AGENTS.md": "Be kind.",
		".parachute/agents/nosy.md":              "---\nname: nosy\ncontext: {include: ['Secret/*']}\npermissions: {read: ['**'], bash: true}\n---\nYou are nosy.",
		".parachute/workspaces/deep/config.yaml": "trust_level: full\nworking_directory: Secret\nagent: nosy\n",
	})
	ada := w.guest("Ada")
	key := w.keyOf(ada, core.Sandboxed, "chat", "read")
	w.chatEvents(map[string]any{"message": "the zebra sleeps", "session_id": "mine"}, nil)
	for _, extra := range []map[string]any{
		{"contexts": []string{"Secret", "Secret/plan.md", "Public"}}, {},
	} {
		extra["message"] = "hello"
		_, es := w.chatEvents(extra, key)
		told := fmt.Sprint(es)
		if len(es) == 0 || !strings.Contains(told, "trust_level:sandboxed") || strings.Contains(told, "zebra") || strings.Contains(told, "Secret/") {
			t.Errorf("%v: %s", extra, told)
		}
		if got := sent(t, model); strings.Contains(got, "zebra") {
			t.Errorf("%v: the model was sent %s", extra, got)
		}
	}
	if got := sent(t, model); !strings.Contains(got, "You are nosy.") {
		t.Errorf("the agent did not answer, so this shows nothing: %s", got)
	}
	mine := sessionOf(t, w, "mine")
	for _, c := range []struct {
		body   map[string]any
		status int
	}{
		{map[string]any{"agent_path": "nosy"}, 403}, {map[string]any{"agentPath": "vault-agent"}, 403}, {map[string]any{"workspace": "deep"}, 403}, {map[string]any{"session_id": "hers", "workspace": "deep"}, 403},
		{map[string]any{"working_directory": "Secret"}, 403}, {map[string]any{"working_directory": "Nowhere"}, 403}, {map[string]any{"working_directory": "/etc"}, 403},
		{map[string]any{"continued_from": mine}, 404}, {map[string]any{"continued_from": "mine"}, 404}, {map[string]any{"continued_from": w.sessionIn(ada)}, 200},
		{map[string]any{"session_id": mine}, 404}, {map[string]any{"trust_level": "vault"}, 403}, {map[string]any{"contexts": []string{"../x"}}, 400},
	} {
		c.body["message"] = "hello"
		if got := w.status(key, "POST", "/api/chat", c.body); got != c.status {
			t.Errorf("%v: %d, want %d", c.body, got, c.status)
		}
	}
	// Nor do admins go on from what others said.
	if got := w.status(nil, "POST", "/api/chat", map[string]any{"message": "hello", "continued_from": w.sessionIn(ada)}); got != 404 {
		t.Errorf("the operator goes on from a guest's words: %d", got)
	}
}

// What is attached reaches the model as what it is, and lies in the vault; what
// the model does not get to see is said in the stream.
func TestAttachmentsOfTheAPIReachTheModel(t *testing.T) {
	t.Parallel()
	w, model := newModelWorld(t, nil)
	dot, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, data string) map[string]string {
		return map[string]string{"name": name, "data": base64.StdEncoding.EncodeToString([]byte(data))}
	}
	printed, err := os.ReadFile(filepath.Join(repository, "core/attach/pdftext/testdata/browser.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	_, es := w.chatEvents(map[string]any{"message": "What is this?", "attachments": []any{
		file("report.pdf", string(printed)), file("dot.png", string(dot)), file("list.csv", "tea;milk"), file("paper.pdf", "%PDF-1.7 nothing"), file("blob.bin", "\x00\x01\x02\x03"),
	}}, nil)
	last, _ := asked(t, model)
	for _, want := range []string{"data:image/png;base64,iVBORw0KGgo", "Attached file list.csv", "tea;milk", "Attached file report.pdf (the text of the PDF", "the kettle sang three times", "paper.pdf", "blob.bin was attached"} {
		if !strings.Contains(string(last.Body), want) {
			t.Errorf("the model was not sent %q: %.2000s", want, last.Body)
		}
	}
	told := fmt.Sprint(es)
	for _, want := range []string{"report.pdf was attached, and the model " + fakeModel + " takes no PDFs: it is given the text alone, of 2 of 2 pages",
		"paper.pdf was attached, the model " + fakeModel + " takes no PDFs, and the text cannot be taken out of it: it is damaged", "blob.bin was attached (application/octet-stream, 4 bytes)"} {
		if !strings.Contains(told, want) {
			t.Errorf("the stream does not say %q: %s", want, told)
		}
	}
	if types(es)[len(es)-2] != "done" {
		t.Errorf("%v", types(es))
	}
	found, err := filepath.Glob(filepath.Join(w.cfg.VaultPath, "Chat/assets/*/*"))
	if err != nil || len(found) != 5 {
		t.Errorf("kept: %v, %v", found, err)
	}
}
