package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"gatehouse/cmd/gatehouse/claude"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/claudecli/claudetest"
	"gatehouse/core/vault"
)

const standIn = "claudecli/standin"

// withClaude is a gateway whose Claude Code is the stand-in.
func withClaude(t *testing.T, change func(*configs.Config)) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(t, func(c *configs.Config) {
		c.ClaudeCLI = self
		if change != nil {
			change(c)
		}
	})
}

// owners reads the stream of a message of the owner's, at full trust.
func (w *world) owners(session, model, text string) *reading {
	w.t.Helper()
	body := map[string]any{"message": text, "model": model}
	if session != "" {
		body["session_id"] = session
	}
	return w.read(w.open("POST", "/api/chat", body, w.as(core.Full)))
}

// response reads to the end of an answer.
func (r *reading) response() string {
	r.t.Helper()
	text, _ := r.until("done").Data["response"].(string)
	r.until("message_stop")
	if head := []string{"session", "user_message", "prompt_metadata", "init", "model"}; !slices.Equal(types(r.all)[:5], head) {
		r.t.Errorf("the stream begins with %v", types(r.all)[:5])
	}
	return text
}

func TestTheOwnerIsAnsweredByClaudeCodeAndTheSessionContinuesWithEither(t *testing.T) {
	t.Parallel()
	w := withClaude(t, nil)
	first := w.owners("", standIn, "count")
	if got := first.response(); got != "turn 1 of this process, 1 messages" {
		t.Fatalf("%q: %v", got, first.all)
	}
	session := first.all[0].Data["id"].(string)
	if init := first.all[3].Data; init["runtime"] != "Claude Code "+claudetest.Version || first.all[4].Data["model"] != standIn {
		t.Errorf("%v", first.all[3:5])
	}
	if got := w.owners(session, standIn, "count").response(); got != "turn 2 of this process, 3 messages" {
		t.Errorf("%q", got)
	}
	if got := w.owners(session, "local/quote", "and you?").response(); got == "" {
		t.Error("the loop says nothing")
	}
	if got := w.owners(session, standIn, "count").response(); got != "turn 1 of this process, 7 messages" {
		t.Errorf("after the loop: %q", got)
	}
	if n := w.count(`SELECT message_count FROM sessions WHERE id = $1`, session); n != 8 {
		t.Errorf("%d messages are counted", n)
	}
	if n := w.count(`SELECT count(*) FROM usage WHERE model = $1 AND input = 10 AND micro_usd = 250000`, standIn); n != 3 {
		t.Errorf("%d rows of usage", n)
	}
}

// Not by a request, not by an agent, in no chat.
func TestClaudeCodeWorksForNoOneBelowFullTrust(t *testing.T) {
	t.Parallel()
	w := withClaude(t, func(c *configs.Config) { c.DefaultAgent = "coder" })
	w.puts(map[string]string{".parachute/agents/coder.md": "---\nname: coder\nmodel: " + standIn + "\n---\nYou write programs."})
	for _, trust := range []core.Trust{core.Vault, core.Sandboxed} {
		status, body, _ := w.asked("POST", "/api/chat", map[string]any{"message": "say I am in", "model": standIn}, w.as(trust))
		if want := "Claude Code runs only at trust full, and this turn has " + trust.String() + "."; status != 403 || body["detail"] != want {
			t.Error(status, body)
		}
	}
	if got := w.lend().says("say I am in", "").response(); got == "I am in" {
		t.Error("a guest is answered by Claude Code because an agent wants it")
	}
	const instead = "The model of this agent does not answer here: Claude Code runs only at trust full, and this turn has vault."
	if m := w.replies(w.boss(), "say I am in"); strings.TrimSpace(m.Text) == "I am in" || !strings.Contains(m.Text, instead) {
		t.Errorf("another answers in a chat, and does not say so: %q", m.Text)
	}
	if got := w.owners("", "", "say I am in").response(); got != "I am in" {
		t.Errorf("the owner is not answered by the agent's model: %q", got)
	}
}

func TestTheOwnerDecidesWhatClaudeCodeDoes(t *testing.T) {
	t.Parallel()
	w := withClaude(t, nil)
	r := w.owners("", standIn, "use Read {\"file_path\":\".env\"}\nuse Bash {\"command\":\"cat .env; echo tea > bought\"}\nsay It is bought.")
	if got := r.until("tool_result").Data; got["is_error"] != true || !strings.Contains(got["result"].(string), "deny list") {
		t.Errorf("a secret is read: %v", got)
	}
	ask := r.until("permission_request").Data
	if _, err := os.Stat(filepath.Join(w.cfg.VaultPath, "bought")); err == nil || ask["command"] != "cat .env; echo tea > bought" {
		t.Fatalf("asked: %v, %v", ask, err)
	}
	w.grant(ask["id"].(string))
	if got := r.response(); got != "It is bought." {
		t.Errorf("%q", got)
	}
	if b, err := os.ReadFile(filepath.Join(w.cfg.VaultPath, "bought")); err != nil || string(b) != "tea\n" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestAStopEndsClaudeCodeWithAllItStarted(t *testing.T) {
	t.Parallel()
	w := withClaude(t, nil)
	const mark = "361001" // among the arguments: behind the veil the command has another process number
	r := w.owners("", standIn, "say I begin\nuse Bash {\"command\":\"touch begun; exec sleep "+mark+"\"}")
	session := r.until("session").Data["id"].(string)
	w.allow(r)
	w.until("the command runs", func() bool { return runsWith(mark) })
	if status, body := w.call("POST", "/api/chat/"+session+"/abort", nil); status != 200 {
		t.Fatal(status, body)
	}
	if last := r.until("aborted").Data; last["partial_response"] != "I begin" {
		t.Errorf("%v", last)
	}
	if runsWith(mark) {
		t.Error("the command runs on")
	}
}

// runsWith reports whether a process has mark as its last argument.
func runsWith(mark string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(files, func(f string) bool {
		b, _ := os.ReadFile(f)
		return strings.HasSuffix(string(b), "\x00"+mark+"\x00")
	})
}

func TestAProgramThatIsNoneIsReportedAtTheStart(t *testing.T) {
	cfg := configs.Default()
	cfg.ClaudeCLI = filepath.Join(t.TempDir(), "claude")
	if _, err := claude.New(claude.Options{Config: cfg}); err == nil || !strings.Contains(err.Error(), "GATEHOUSE_CLAUDE_CLI") {
		t.Error(err)
	}
}

// grant allows the call of an ask this once, as the owner over the API.
func (w *world) grant(ask string) {
	w.t.Helper()
	yes := w.open("POST", "/api/permissions/"+ask+"/grant", nil, http.Header{"Authorization": {"Bearer " + w.newKey(core.Full, "chat", "admin")}})
	if _ = yes.Body.Close(); yes.StatusCode != 200 {
		w.t.Fatal(yes.Status)
	}
}

// allow waits until a run asks, and allows the call this once.
func (w *world) allow(r *reading) {
	w.t.Helper()
	w.grant(r.until("permission_request").Data["id"].(string))
}

func TestSessionsOfTheCommandLineAreListedAndContinuedWithoutReindex(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := uuid.NewString()
	w.put(".claude/projects/"+vault.ProjectFolder(w.cfg.VaultPath)+"/"+id+".jsonl", fmt.Sprintf(`{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":%q,"sessionId":%q,`+
		`"version":"2.1.197","type":"user","message":{"role":"user","content":"Plan the garden"},"uuid":%q,"timestamp":"2026-01-02T03:04:05.000Z"}`+"\n", w.cfg.VaultPath, id, uuid.NewString()))
	w.until("the session is listed", func() bool {
		_, body := w.call("GET", "/api/chat", nil)
		return strings.Contains(fmt.Sprint(body), id)
	})
	if code, body := w.call("GET", "/api/chat/"+id, nil); code != 200 || !strings.Contains(fmt.Sprint(body), "Plan the garden") || !strings.Contains(fmt.Sprint(body), "claude-code") {
		t.Errorf("%d %v", code, body)
	}
	_, es := w.chatEvents(map[string]any{"message": "And the pond?", "session_id": id}, w.as(core.Full))
	if got := es[0].Data; got["id"] != id || got["trust_level"] != "full" {
		t.Errorf("the turn is another's: %v", got)
	}
}
