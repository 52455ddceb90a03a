package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/llm/anthropictest"
)

// claude is the real Claude Code CLI in front of a fake Messages API.
type claude struct {
	t       *testing.T
	program string
	vault   string // its HOME and working directory
	api     *anthropictest.Server
}

// newClaude skips the test unless GATEHOUSE_TEST_CLAUDE names the program
// (make test-claude).
func newClaude(t *testing.T, h *house) *claude {
	program := os.Getenv("GATEHOUSE_TEST_CLAUDE")
	if program == "" {
		t.Skip("SKIPPED: no Claude Code CLI; run make test-claude")
	}
	c := &claude{t: t, program: program, vault: h.vault.Path(),
		api: anthropictest.New(t, anthropictest.Options{Models: []string{"claude-sonnet-4-5"}})}
	t.Logf("Claude Code %s", c.run("--version"))
	return c
}

// run starts the CLI with an environment of its own, in which nothing but the
// fake can be reached by name.
func (c *claude) run(args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Dir = c.vault
	cmd.Env = []string{"PATH=" + filepath.Dir(c.program) + ":/usr/bin:/bin", "HOME=" + c.vault, "ANTHROPIC_API_KEY=test", "ANTHROPIC_BASE_URL=" + c.api.URL(),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("claude %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (c *claude) say(session, text string) string {
	c.t.Helper()
	return c.run("-p", "--model", "claude-sonnet-4-5", "--resume", session, text)
}

// asked is the conversation of the newest request.
func (c *claude) asked() []anthropictest.Turn {
	c.t.Helper()
	all := c.api.Requests()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Path == "/v1/messages" {
			if all[i].Status != 200 {
				c.t.Fatalf("the API refuses what the CLI sends: %s", anthropictest.Check(all[i].Body))
			}
			return all[i].Message.Messages
		}
	}
	c.t.Fatal("the CLI asked nothing")
	return nil
}

// flat is a conversation in short, without the CLI's own reminders.
func flat(turns []anthropictest.Turn) string {
	var out []string
	for _, t := range turns {
		for _, b := range t.Content {
			switch {
			case b.Type == "text" && strings.HasPrefix(b.Text, "<"):
			case b.Type == "text":
				out = append(out, t.Role[:1]+":"+b.Text)
			case b.Type == "thinking":
				out = append(out, "thinking:"+b.Thinking+"/"+b.Signature)
			case b.Type == "tool_use":
				out = append(out, "call:"+b.ID)
			case b.Type == "tool_result":
				what := "result:" + b.ToolUseID
				for _, c := range b.Content {
					what += "(" + c.Type + c.Text + ")"
				}
				out = append(out, what)
			default:
				out = append(out, b.Type)
			}
		}
	}
	return strings.Join(out, " ")
}

func TestClaudeCodeResumesWhatWasSaidHere(t *testing.T) {
	h := open(t)
	cli := newClaude(t, h)
	sess := h.resolve(chat(5, "c1")).Session
	c := h.open(h.Store, sess)
	thought := call("toolu_a", "toolu_b")
	thought.Model = "anthropic/claude-sonnet-4-5"
	err := c.Append(uuid.NewString(), 0, said(core.Block{Type: "media", Media: []core.Media{picture, document}}, core.Block{Type: "text", Text: "look"}),
		thought, said(result("toolu_a", "A", picture)), said(result("toolu_b", "B")), // a line each, as the loop writes them
		answer("done"))
	if err := errors.Join(err, c.Sync()); err != nil {
		t.Fatal(err)
	}
	if got := cli.say(sess.ID, "and now?"); got != "Hello from the fake model." {
		t.Errorf("it answers %q", got)
	}
	got := flat(cli.asked())
	t.Log(got)
	want := "image document u:look thinking:hm/fake-signature-1 call:toolu_a call:toolu_b result:toolu_a(textA)(image) result:toolu_b(textB) a:done u:and now?"
	if got != want {
		t.Errorf("the CLI asks with\n%s, want\n%s", got, want)
	}
	_ = c.Close()
	history, r, err := h.open(h.Store, sess).History(100_000)
	last := texts(history)
	if err != nil || r.Info.Method != "sdk_resume" || strings.Join(last[len(last)-2:], " ") != "u:and now? a:Hello from the fake model." {
		t.Errorf("%v, %+v, %v", last, r.Info, err)
	}
	if err := accepted(t)(history); err != nil {
		t.Error(err)
	}
}

func TestClaudeCodeResumesWhatWasSummedUpHere(t *testing.T) {
	h := open(t)
	cli := newClaude(t, h)
	sess := h.resolve(chat(5, "c1")).Session
	for n := range 6 {
		h.turn(h.Store, sess, uuid.NewString(), fmt.Sprint("q", n), fmt.Sprint("a", n))
	}
	c := h.open(h.Store, sess)
	if err := errors.Join(c.Compact("much was said", 4), c.Append(uuid.NewString(), 0, user("q6"), answer("a6")), c.Sync(), c.Close()); err != nil {
		t.Fatal(err)
	}
	cli.say(sess.ID, "and now?")
	got := flat(cli.asked())
	t.Log(got)
	if !strings.Contains(got, "much was said") || strings.Contains(got, "q3") || !strings.HasSuffix(got, "u:q4 a:a4 u:q5 a:a5 u:q6 a:a6 u:and now?") {
		t.Errorf("the CLI asks with %s", got)
	}
}

func TestWhatClaudeCodeSaidIsResumedHere(t *testing.T) {
	h := open(t)
	cli := newClaude(t, h)
	sess := h.resolve(chat(5, "c1")).Session
	if err := os.WriteFile(filepath.Join(cli.vault, "a.txt"), []byte("words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(id, path string) anthropictest.Call {
		input, _ := json.Marshal(map[string]string{"file_path": filepath.Join(cli.vault, path)})
		return anthropictest.Call{ID: id, Name: "Read", Fragments: []string{string(input[:5]), string(input[5:])}}
	}
	cli.api.Script(anthropictest.Reply{Thinking: []string{"let me see"}, Signature: anthropictest.Signed + "x", Text: []string{"reading"},
		Calls: []anthropictest.Call{read("toolu_1", "a.txt"), read("toolu_2", "none.txt"), read("toolu_3", "a.txt")}})
	cli.run("-p", "--model", "claude-sonnet-4-5", "--session-id", sess.ID, "read them")
	history, r, err := h.open(h.Store, sess).History(100_000)
	if err == nil {
		err = accepted(t)(history)
	}
	if err != nil || r.Info.Method != "sdk_resume" || len(history) != 4 {
		t.Fatalf("%d messages, %+v, %v: %v", len(history), r.Info, err, texts(history))
	}
	if b := history[1].Blocks; len(b) != 5 || b[0].Signature != anthropictest.Signed+"x" || b[4].ID != "toolu_3" {
		t.Errorf("%+v", b)
	}
	if b := history[2].Blocks; len(b) != 3 || b[0].IsError || !b[1].IsError || b[2].IsError {
		t.Errorf("%+v", b)
	}
	h.turn(h.Store, sess, uuid.NewString(), "said here", "answered here")
	cli.say(sess.ID, "and now?")
	if got := flat(cli.asked()); !strings.HasSuffix(got, "u:said here a:answered here u:and now?") {
		t.Errorf("the CLI asks with %s", got)
	}
}

func TestWhatClaudeCodeSummedUpIsResumedHere(t *testing.T) {
	h := open(t)
	cli := newClaude(t, h)
	sess := h.resolve(chat(5, "c1")).Session
	for n := range 6 {
		h.turn(h.Store, sess, uuid.NewString(), fmt.Sprint("q", n), fmt.Sprint("a", n))
	}
	cli.api.Script(anthropictest.Say("All of it in short."))
	cli.say(sess.ID, "/compact")
	cli.say(sess.ID, "and now?")
	asked := flat(cli.asked())
	h.turn(h.Store, sess, uuid.NewString(), "said here", "answered here")
	history, _, err := h.open(h.another(), sess).History(100_000)
	got := strings.Join(texts(history), " ")
	t.Log(got)
	if err != nil || len(history) == 0 || !history[0].Summary || !strings.Contains(history[0].Blocks[0].Text, "All of it in short.") || strings.Contains(got, "u:q2") ||
		!strings.HasSuffix(got, "u:and now? a:Hello from the fake model. u:said here a:answered here") {
		t.Errorf("%s, %v\nthe CLI itself asks with %s", got, err, asked)
	}
}
