package claudecli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/core/claudecli"
	"gatehouse/core/llm/anthropictest"
)

// calls is a reply that uses a tool.
func calls(name string, input map[string]string) anthropictest.Reply {
	b, _ := json.Marshal(input)
	return anthropictest.Reply{Text: []string{"I use ", name}, Calls: []anthropictest.Call{{ID: "toolu_" + uuid.NewString()[:8], Name: name, Fragments: []string{string(b)}}}}
}

// TestRealClaudeCodeIsDriven runs where GATEHOUSE_TEST_CLAUDE names the program
// (make test-claude), against a fake Messages API.
func TestRealClaudeCodeIsDriven(t *testing.T) {
	program := os.Getenv("GATEHOUSE_TEST_CLAUDE")
	if program == "" {
		t.Skip("SKIPPED: no Claude Code CLI; run make test-claude")
	}
	api := anthropictest.New(t, anthropictest.Options{Models: []string{"claude-sonnet-4-5"}})
	h := open(t, func(o *claudecli.Options) {
		o.Program, o.Path, o.Key, o.BaseURL = program, filepath.Dir(program)+":/usr/bin:/bin", "test", api.URL()
	})
	h.deny = "Read"
	id := uuid.NewString()
	turn := func(text string) *claudecli.Turn {
		c := h.turn(id, text)
		c.Model, c.System = "claude-sonnet-4-5", "The word is ZEBRA."
		return c
	}
	at := func(name string) string { return filepath.Join(h.vault.Path(), name) }
	if err := os.WriteFile(at(".env"), []byte("SECRET=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	api.Script(calls("Read", map[string]string{"file_path": at(".env")}), calls("Bash", map[string]string{"command": "echo tea > bought", "description": "d"}),
		anthropictest.Say("All done."), anthropictest.Say("Again."))
	first := turn("please")
	a, err := h.Answer(t.Context(), first)
	if err != nil || a.Fault != nil || a.Text != "All done." || a.Calls != 2 || !a.Counted || a.MicroUSD == nil || *a.MicroUSD <= 0 {
		t.Fatalf("%+v, %+v, %v\n%q", a, a.Fault, err, h.events)
	}
	t.Log(h.events)
	if want := []string{"read Read [.env][]", "bash Bash [][]echo tea > bought"}; !slices.Equal(h.allowed, want) {
		t.Errorf("the guard decided on %q", h.allowed)
	}
	if !slices.Contains(h.events, "result true no, says the guard") || !slices.Contains(h.events, "text All done.") && !strings.Contains(strings.Join(h.events, ""), "done.") {
		t.Errorf("%q", h.events)
	}
	if b, err := os.ReadFile(at("bought")); err != nil || string(b) != "tea\n" {
		t.Errorf("%q, %v", b, err)
	}
	if !strings.Contains(h.transcript(id), first.Line) {
		t.Error("the message's line has another id")
	}
	if !slices.ContainsFunc(api.Requests(), func(r anthropictest.Request) bool { return strings.Contains(string(r.Body), "ZEBRA") }) {
		t.Error("the system prompt is not told")
	}
	b, err := h.Answer(t.Context(), turn("again"))
	if err != nil || b.Text != "Again." || b.MicroUSD == nil || *b.MicroUSD >= *a.MicroUSD {
		t.Errorf("the second turn: %+v, %v", b, err)
	}
	h.Leave(id)
	api.Script(calls("Bash", map[string]string{"command": "echo $$ > pid; sleep 1000", "description": "d"}), anthropictest.Say("Resumed."))
	if c, err := h.stopped(turn("work"), "pid"); err != nil || c.Fault != nil || h.alive("pid") {
		t.Errorf("%+v, %v", c, err)
	}
	if d, err := h.Answer(t.Context(), turn("go on")); err != nil || d.Fault != nil || d.Text != "Resumed." {
		t.Errorf("%+v, %+v, %v", d, d.Fault, err)
	}
	h.Leave(id)
	began := time.Now()
	api.Script(anthropictest.Reply{Status: 401}, anthropictest.Reply{Status: 401}, anthropictest.Reply{Status: 401})
	if e, err := h.Answer(t.Context(), turn("and?")); err != nil || e.Fault == nil || e.Fault.Code != claudecli.CodeAuth {
		t.Errorf("%+v, %v", e, err)
	}
	t.Log(fmt.Sprint("a refused key is told after ", time.Since(began)))
}

// stopped ends a turn once the file is there.
func (h *house) stopped(turn *claudecli.Turn, name string) (claudecli.Answer, error) {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	defer stop()
	go func() {
		h.runs(name)
		stop()
	}()
	return h.Answer(ctx, turn)
}
