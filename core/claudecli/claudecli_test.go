package claudecli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"gatehouse/core"
	"gatehouse/core/claudecli"
	"gatehouse/core/claudecli/claudetest"
	"gatehouse/core/coretest"
	"gatehouse/core/permission"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files"
	"gatehouse/core/vault"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	claudetest.Main()
	goleak.VerifyTestMain(m)
}

const patience = 5 * time.Minute

// A house is a vault, a runner of the stand-in, and a guard played by the test.
type house struct {
	t     *testing.T
	vault *vault.Vault
	*claudecli.Runner

	mu      sync.Mutex
	events  []string
	shown   []string // what calls would write
	allowed []string // what the guard was asked, as kind and what is touched
	deny    string   // the name of a tool that is refused
	block   string   // the name of a tool that nobody decides about
	busy    int
	changed chan struct{}
}

func open(t *testing.T, change func(*claudecli.Options)) *house {
	t.Helper()
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, vault: v, changed: make(chan struct{}, 1)}
	o := claudecli.Options{Program: self, Stage: self, Home: v.Path(), Key: "sk-secret", BaseURL: "http://127.0.0.1:9", Guard: h, Grace: 5 * time.Second}
	if change != nil {
		change(&o)
	}
	h.Runner = claudecli.New(o)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) Allow(ctx context.Context, _ permission.Profile, t tool.Tool, c *tool.Call, _ func(core.Event), waiting func(bool)) (permission.Decision, error) {
	a := c.Access
	h.note(&h.allowed, fmt.Sprintf("%s %s %v%v%s%s", t.Kind, t.Name, a.Read, a.Write, a.Command, a.URL))
	if t.Change != nil {
		made, err := t.Change(ctx, c)
		h.note(&h.shown, fmt.Sprint(t.Name, " ", made.After, " ", err))
	}
	switch t.Name {
	case h.block:
		waiting(true)
		defer waiting(false)
		<-ctx.Done()
		h.note(&h.events, "given up")
		return permission.Decision{}, ctx.Err()
	case h.deny:
		return permission.Decision{Verdict: permission.Deny, Text: "no, says the guard"}, nil
	}
	return permission.Decision{Verdict: permission.Allow}, nil
}

func (h *house) Ask(_ context.Context, _ permission.Profile, questions json.RawMessage, _ func(core.Event), _ func(bool)) (json.RawMessage, error) {
	h.note(&h.allowed, "question "+string(questions))
	return json.RawMessage(`{"Which tea?":["Green","Black"]}`), nil
}

func (h *house) note(list *[]string, s string) {
	h.mu.Lock()
	*list = append(*list, s)
	h.mu.Unlock()
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// until waits for what the runner tells.
func (h *house) until(what string, ok func(events []string) bool) {
	h.t.Helper()
	end := time.After(patience)
	for {
		h.mu.Lock()
		yes := ok(h.events)
		h.mu.Unlock()
		if yes {
			return
		}
		select {
		case <-h.changed:
		case <-end:
			h.t.Fatalf("never: %s; %v", what, h.events)
		}
	}
}

func (h *house) show(e core.Event) {
	switch e := e.(type) {
	case core.Init:
		h.note(&h.events, fmt.Sprintf("init %s %v %v %s", e.Runtime, e.Tools, e.MCPServers, e.PermissionMode))
	case core.ModelChosen:
		h.note(&h.events, "model "+e.Model)
	case core.TextDelta:
		h.note(&h.events, "text "+e.Content)
	case core.Thinking:
		h.note(&h.events, "thinking "+e.Content)
	case core.ToolUseStart:
		h.note(&h.events, "start "+e.Name+" "+string(e.Input))
	case core.ToolResult:
		h.note(&h.events, fmt.Sprintf("result %v %s", e.IsError, e.Result))
	}
}

// turn is the owner's, in a session.
func (h *house) turn(id, text string) *claudecli.Turn {
	yes := func(string) bool { return true }
	return &claudecli.Turn{
		Session: id, Resume: h.transcript(id) != "", Dir: h.vault.Path(), Model: "standin", System: "Be kind.", Line: uuid.NewString(),
		Said:    []core.Block{{Type: "text", Text: text}},
		Profile: permission.Profile{User: 1, Trust: core.Full, Owner: true, Run: "r"},
		Tools:   &tool.Turn{Vault: h.vault, Dir: vault.Dir{Path: h.vault.Path(), Inside: true}, Trust: core.Full, MayRead: yes, MayWrite: yes},
		Offers:  func(name string) bool { return name != "Grep" },
		Emit:    h.show, Waiting: func(bool) {}, Heard: func() {},
		Busy: func(n int) {
			h.mu.Lock()
			h.busy += n
			h.mu.Unlock()
		},
	}
}

func (h *house) transcript(id string) string {
	b, err := os.ReadFile(filepath.Join(h.vault.Path(), ".claude", "projects", vault.ProjectFolder(h.vault.Path()), id+".jsonl"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return string(b)
}

func (h *house) says(id, text string) claudecli.Answer {
	h.t.Helper()
	a, err := h.Answer(h.t.Context(), h.turn(id, text))
	if err != nil {
		h.t.Fatal(err)
	}
	if h.busy != 0 {
		h.t.Errorf("%d tools are still said to be at work", h.busy)
	}
	return a
}

// well is says that must end well.
func (h *house) well(id, text string) string {
	h.t.Helper()
	a := h.says(id, text)
	if a.Fault != nil {
		h.t.Fatalf("%+v: %v", a.Fault, a.Fault.Err)
	}
	return a.Text
}

func TestWordsComeAsTheyAreSaid(t *testing.T) {
	h := open(t, nil)
	a := h.says(uuid.NewString(), "think hm\nsay One two")
	want := []string{"init Claude Code " + claudetest.Version + " [Bash Read Write] [notes] default", "model claudecli/standin", "thinking hm", "text One ", "text two"}
	if !slices.Equal(h.events, want) {
		t.Errorf("%q, want %q", h.events, want)
	}
	if a.Fault != nil || a.Text != "One two" || a.Said != 1 || a.Calls != 0 || !a.Counted || a.Usage != (core.Tokens{Input: 10, Output: 5, CacheRead: 3, CacheWrite: 2}) || a.MicroUSD == nil || *a.MicroUSD != 250_000 {
		t.Errorf("%+v", a)
	}
}

// The CLI sums its cost up over the turns of a process; ours is the turn's.
func TestTwoTurnsUseOneProcessAndEachHasItsOwnCost(t *testing.T) {
	h := open(t, nil)
	id := uuid.NewString()
	if got := h.well(id, "count"); got != "turn 1 of this process, 1 messages" {
		t.Error(got)
	}
	a := h.says(id, "count")
	if a.Text != "turn 2 of this process, 3 messages" || *a.MicroUSD != 250_000 {
		t.Errorf("%q, %d", a.Text, *a.MicroUSD)
	}
}

func TestAProcessThatWasEvictedIsResumed(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	h := open(t, func(o *claudecli.Options) { o.Clock, o.Idle = clock, time.Minute })
	id := uuid.NewString()
	h.well(id, "count")
	clock.Advance(59 * time.Second)
	if n := h.Evict(); n != 0 {
		t.Errorf("%d evicted too early", n)
	}
	clock.Advance(time.Second)
	if n := h.Evict(); n != 1 {
		t.Errorf("%d evicted", n)
	}
	if got := h.well(id, "count"); got != "turn 1 of this process, 3 messages" {
		t.Error(got)
	}
}

// A process that waits does not know what others have written since.
func TestAProcessIsLeftWhenOthersContinueWithItsSession(t *testing.T) {
	h := open(t, nil)
	id := uuid.NewString()
	h.well(id, "count")
	h.Leave(id)
	h.Leave(uuid.NewString())
	if got := h.well(id, "count"); got != "turn 1 of this process, 3 messages" {
		t.Error(got)
	}
}

func TestAnotherModelOrPromptNeedsAnotherProcess(t *testing.T) {
	h := open(t, nil)
	id := uuid.NewString()
	h.well(id, "count")
	turn := h.turn(id, "arguments")
	turn.Model = "opus"
	a, err := h.Answer(t.Context(), turn)
	if err != nil || !strings.HasPrefix(a.Text, "--resume "+id) || !strings.HasSuffix(a.Text, "--model opus") {
		t.Errorf("%+v, %v", a, err)
	}
	turn = h.turn(id, "count")
	turn.Model, turn.System = "opus", "Be brief."
	if a, err = h.Answer(t.Context(), turn); err != nil || a.Text != "turn 1 of this process, 5 messages" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestProcessesAreBoundedTheOneThatWaitedLongestGoes(t *testing.T) {
	clock := coretest.NewClock(time.Time{})
	h := open(t, func(o *claudecli.Options) { o.Processes, o.Clock = 2, clock })
	a, b, c := uuid.NewString(), uuid.NewString(), uuid.NewString()
	for _, id := range []string{a, b, c} {
		h.well(id, "count")
		clock.Advance(time.Second)
	}
	if got := h.well(c, "count"); !strings.HasPrefix(got, "turn 2") {
		t.Error(got)
	}
	if got := h.well(b, "count"); !strings.HasPrefix(got, "turn 2") {
		t.Error(got)
	}
	if got := h.well(a, "count"); got != "turn 1 of this process, 3 messages" {
		t.Error(got)
	}
}

func TestMoreTurnsThanProcessesWaitForTheirTurn(t *testing.T) {
	h := open(t, func(o *claudecli.Options) { o.Processes = 1 })
	h.block = "Bash"
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = h.Answer(ctx, h.turn(uuid.NewString(), `use Bash {"command":"true"}`))
	}()
	h.until("the first is at work", func(events []string) bool { return len(h.allowed) == 1 })
	answers := make(chan claudecli.Answer, 6)
	waits := make(chan int, 16)
	for range 5 {
		turn := h.turn(uuid.NewString(), "say x")
		turn.Busy = func(n int) { waits <- n }
		go func() {
			a, _ := h.Answer(t.Context(), turn)
			answers <- a
		}()
		if n := <-waits; n != 1 { // its silence is no fault
			t.Errorf("busy %d", n)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	turn := h.turn(uuid.NewString(), "say x")
	turn.Busy = func(n int) {
		if n == 1 {
			leave()
		}
	}
	if a, err := h.Answer(gone, turn); err != nil || a.Fault != nil || a.Text != "" {
		t.Errorf("one that gives up waits on: %+v %v", a, err)
	}
	select {
	case a := <-answers:
		t.Errorf("answered next to the first: %+v", a)
	default:
	}
	stop()
	<-done
	for range 5 {
		if a := <-answers; a.Fault != nil || a.Text != "x" {
			t.Errorf("%+v", a)
		}
	}
}

func TestTheEnvironmentIsBuiltFromNothing(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "ambient")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "ambient")
	t.Setenv("HTTPS_PROXY", "http://ambient")
	h := open(t, nil)
	want := "ANTHROPIC_API_KEY=sk-secret | ANTHROPIC_BASE_URL=http://127.0.0.1:9 | CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 | HOME=" + h.vault.Path() + " | PATH=/usr/local/bin:/usr/bin:/bin"
	if got := h.well(uuid.NewString(), "environment"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	h = open(t, func(o *claudecli.Options) { o.Key, o.BaseURL = "", "" })
	if got := h.well(uuid.NewString(), "environment"); strings.Contains(got, "ANTHROPIC") {
		t.Error(got)
	}
}

// Every call is decided by the guard, also a Read that the CLI would not ask about.
func TestEveryToolCallIsDecidedByTheGuard(t *testing.T) {
	h := open(t, nil)
	h.deny = "Read"
	h.well(uuid.NewString(), strings.Join([]string{
		`use Read {"file_path":".env"}`, `use Write {"file_path":"a.txt","content":"x"}`, `use Edit {"file_path":"/etc/hosts"}`, `use NotebookEdit {"notebook_path":"n.ipynb"}`,
		`use Glob {"pattern":"*"}`, `use Bash {"command":"echo hello"}`, `use WebFetch {"url":"https://example.org"}`, `use WebSearch {"query":"q"}`,
		`use mcp__notes__find {"q":1}`, `use Task {"prompt":"p"}`, `use CronCreate {}`, `use Read {}`, `use Grep {"path":"."}`, "say done"}, "\n"))
	want := []string{"read Read [.env][]", "write Write [][a.txt]", "write Edit [][/etc/hosts]", "write NotebookEdit [][n.ipynb]", "read Glob [.][]", "bash Bash [][]echo hello",
		"network WebFetch [][]https://example.org", "network WebSearch [][]", "mcp mcp__notes__find [][]", "inner Task [][]", " CronCreate [][]"}
	if !slices.Equal(h.allowed, want) {
		t.Errorf("the guard decided on %q, want %q", h.allowed, want)
	}
	for _, e := range []string{"result true no, says the guard", "result false written", "result true Read names no file", "result true This agent does not use Grep."} {
		if !slices.Contains(h.events, e) {
			t.Errorf("no %q among %q", e, h.events)
		}
	}
	if b, err := os.ReadFile(filepath.Join(h.vault.Path(), "a.txt")); err != nil || string(b) != "x" {
		t.Error(string(b), err)
	}
}

// A Write and an Edit of the CLI are shown as the gateway's own would be.
func TestWhatTheCLIWouldChangeIsShown(t *testing.T) {
	h := open(t, func(o *claudecli.Options) { o.Files = files.New() })
	if err := os.WriteFile(filepath.Join(h.vault.Path(), "plan.md"), []byte("Buy tea."), 0o600); err != nil {
		t.Fatal(err)
	}
	h.well(uuid.NewString(), strings.Join([]string{`use Write {"file_path":"a.txt","content":"x"}`, `use Edit {"file_path":"plan.md","old_string":"tea","new_string":"coffee"}`, `use Bash {"command":"true"}`, "say done"}, "\n"))
	if want := []string{"Write x <nil>", "Edit Buy coffee. <nil>"}; !slices.Equal(h.shown, want) {
		t.Errorf("shown %q, want %q", h.shown, want)
	}
}

func TestTrustThatIsLostConcurrentlyEndsTheTools(t *testing.T) {
	h := open(t, nil)
	turn := h.turn(uuid.NewString(), `use Bash {"command":"touch done"}`+"\nsay so")
	turn.Still = func(context.Context) (bool, error) { return false, nil }
	if a, err := h.Answer(t.Context(), turn); err != nil || a.Fault != nil || !slices.Contains(h.events, "result true This person's access changed concurrently: the call was not made.") {
		t.Errorf("%+v, %v, %q", a, err, h.events)
	}
	if _, err := os.Stat(filepath.Join(h.vault.Path(), "done")); err == nil {
		t.Error("it was done")
	}
}

func TestAQuestionIsPutToThePerson(t *testing.T) {
	h := open(t, nil)
	h.well(uuid.NewString(), `use AskUserQuestion {"questions":[{"question":"Which tea?"}]}`+"\nsay thanks")
	if want := []string{`question [{"question":"Which tea?"}]`}; !slices.Equal(h.allowed, want) {
		t.Errorf("%q", h.allowed)
	}
	if want := `result false {"answers":{"Which tea?":"Green, Black"},"questions":[{"question":"Which tea?"}]}`; !slices.Contains(h.events, want) {
		t.Errorf("%q", h.events)
	}
}

func TestARequestThatIsTakenBackIsNotWaitedFor(t *testing.T) {
	h := open(t, nil)
	h.block = "Bash"
	h.well(uuid.NewString(), `withdraw Bash {"command":"true"}`+"\nsay went on")
	if !slices.Contains(h.events, "given up") {
		t.Errorf("%q", h.events)
	}
}

// alive reports whether the process that wrote its id into the file runs.
func (h *house) alive(name string) bool {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.vault.Path(), name))
	if err != nil {
		h.t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		h.t.Fatal(err)
	}
	return syscall.Kill(pid, 0) == nil
}

// runs waits for a file that a command writes.
func (h *house) runs(name string) {
	h.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if b, _ := os.ReadFile(filepath.Join(h.vault.Path(), name)); strings.HasSuffix(string(b), "\n") {
			return
		}
		if time.Now().After(end) {
			h.t.Fatal("never written: ", name)
		}
	}
}

func TestAStopInTheMiddleOfAToolLeavesNoProcess(t *testing.T) {
	h := open(t, func(o *claudecli.Options) { o.Grace = 100 * time.Millisecond })
	id := uuid.NewString()
	work := `say I begin` + "\n" + `use Bash {"command":"setsid sh -c 'echo $$ > far; exec sleep 1000' & sleep 0.1; while ! [ -s far ]; do sleep 0.01; done; echo $$ > near; exec sleep 1000"}`
	a, err := h.stopped(h.turn(id, work), "near")
	if err != nil || a.Text != "I begin" || a.Fault != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if h.alive("near") || h.alive("far") {
		t.Error("the command runs on")
	}
	if got := h.well(id, "count"); !strings.HasPrefix(got, "turn 1 of this process") {
		t.Errorf("it is not resumed: %q", got)
	}
}

// A CLI that is asked to stop says so in its transcript.
func TestAStopInterruptsBeforeItEnds(t *testing.T) {
	h := open(t, nil)
	h.block = "Read"
	id := uuid.NewString()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		h.until("it waits", func([]string) bool { return len(h.allowed) == 1 })
		stop()
	}()
	if a, err := h.Answer(ctx, h.turn(id, `use Read {"file_path":"a"}`)); err != nil || a.Fault != nil {
		t.Errorf("%+v, %v", a, err)
	}
	if !strings.Contains(h.transcript(id), "[Request interrupted by user]") {
		t.Error(h.transcript(id))
	}
}

func TestACLIThatDoesNotWantToEndIsEnded(t *testing.T) {
	h := open(t, func(o *claudecli.Options) { o.Grace = 100 * time.Millisecond })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		h.until("it works", func(events []string) bool { return slices.Contains(events, "text stay") })
		stop()
	}()
	if a, err := h.Answer(ctx, h.turn(uuid.NewString(), "stubborn")); err != nil || a.Text != "I stay" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestSilenceLastsAsLongAsTheTurnMay(t *testing.T) {
	h := open(t, func(o *claudecli.Options) { o.Grace = 100 * time.Millisecond })
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	heard := 0
	turn := h.turn(uuid.NewString(), "say a b\nsilence")
	turn.Heard = func() { heard++ }
	go func() {
		h.until("it has spoken", func(events []string) bool { return slices.Contains(events, "text b") })
		stop()
	}()
	if a, err := h.Answer(ctx, turn); err != nil || a.Text != "a b" || heard < 4 {
		t.Errorf("%+v, %v, heard %d", a, err, heard)
	}
}

func TestACrashIsReportedAndTheNextMessageContinues(t *testing.T) {
	h := open(t, nil)
	id := uuid.NewString()
	a := h.says(id, "say half\ncrash")
	if a.Fault == nil || a.Fault.Code != claudecli.CodeUnavailable || !a.Fault.CanRetry || a.Text != "half" || a.Usage.Input != 10 {
		t.Fatalf("%+v", a)
	}
	if e := a.Fault.Err.Error(); !strings.Contains(e, "exit code 7") || !strings.Contains(e, "something broke") || strings.Contains(e, "sk-secret") {
		t.Error(e)
	}
	if got := h.well(id, "count"); got != "turn 1 of this process, 3 messages" {
		t.Error(got)
	}
}

func TestWhatCannotBeginIsAFault(t *testing.T) {
	h := open(t, func(o *claudecli.Options) { o.Program = "/nowhere/claude" })
	if a := h.says(uuid.NewString(), "say x"); a.Fault == nil || a.Fault.Code != claudecli.CodeUnavailable || !strings.Contains(a.Fault.Text, "did not begin") {
		t.Errorf("%+v", a)
	}
	h = open(t, nil)
	turn := h.turn(uuid.NewString(), "say x")
	turn.Resume = true // of a session that is not there
	if a, err := h.Answer(t.Context(), turn); err != nil || a.Fault == nil || !strings.Contains(a.Fault.Err.Error(), "No conversation found") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestLinesThatMakeNoSenseAreSkipped(t *testing.T) {
	h := open(t, nil)
	if got := h.well(uuid.NewString(), "garbage\nsay still here"); got != "still here" {
		t.Error(got)
	}
}

func TestALongMessageComesWhole(t *testing.T) {
	h := open(t, nil)
	if got := h.well(uuid.NewString(), strings.Repeat("x", 3<<20)+"\nsay read"); got != "read" {
		t.Error(got)
	}
}

func TestARefusedKeyIsReportedAtOnce(t *testing.T) {
	h := open(t, nil)
	for _, text := range []string{"retry 401", "fail Not logged in · Please run /login"} {
		if a := h.says(uuid.NewString(), text); a.Fault == nil || a.Fault.Code != claudecli.CodeAuth || a.Fault.CanRetry {
			t.Errorf("%s: %+v", text, a)
		}
	}
	if a := h.says(uuid.NewString(), "fail it hurts, sk-secret"); a.Fault == nil || a.Fault.Text != "Claude Code reports: it hurts, [redacted]" {
		t.Errorf("%+v", a.Fault)
	}
}

func TestNoOneBelowTheOwnerAtFullTrustIsAnswered(t *testing.T) {
	h := open(t, func(o *claudecli.Options) { o.Program = "/nowhere/claude" })
	for _, p := range []permission.Profile{
		{Trust: core.Sandboxed}, {Trust: core.Vault}, {Trust: core.Full}, {Trust: core.Vault, Owner: true}, {Trust: core.Sandboxed, Owner: true}, {Owner: true},
	} {
		turn := h.turn(uuid.NewString(), "say x")
		turn.Profile = p
		if a, err := h.Answer(t.Context(), turn); err != nil || a.Fault == nil || a.Fault.Code != claudecli.CodeDenied || !strings.Contains(a.Fault.Text, "Claude Code") {
			t.Errorf("%+v: %+v, %v", p, a, err)
		}
	}
}

// A CLI that reads nothing has its input closed while it still has much to say.
func TestAMessageThatCannotBeWrittenEndsTheTurn(t *testing.T) {
	program := filepath.Join(t.TempDir(), "claude")
	script := "#!/bin/sh\nexec 0<&-\ni=0\nwhile [ $i -lt 5000 ]; do echo '{\"type\":\"stream_event\",\"event\":{\"type\":\"other\"}}'; i=$((i+1)); done\nexit 7\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	h := open(t, func(o *claudecli.Options) { o.Program = program })
	for range 10 { // which of the two is seen first is chance
		ended := make(chan claudecli.Answer, 1)
		turn := h.turn(uuid.NewString(), strings.Repeat("x", 1<<20))
		go func() {
			a, err := h.Answer(t.Context(), turn)
			if err != nil {
				t.Error(err)
			}
			ended <- a
		}()
		select {
		case a := <-ended:
			if a.Fault == nil || a.Fault.Code != claudecli.CodeUnavailable || !a.Fault.CanRetry {
				t.Errorf("%+v", a)
			}
		case <-time.After(patience):
			t.Fatal("the turn does not end")
		}
	}
}
