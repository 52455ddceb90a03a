// Package claudecli answers turns by the Claude Code CLI, driven over its
// stream-json protocol. The CLI has a loop, tools and a transcript of its own
// and runs as the gateway's user without a sandbox: it answers the owner and
// admins at full trust and no one else. Every tool call is decided by the
// gateway's Guard, as in the gateway's own loop.
package claudecli

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/permission"
	"gatehouse/core/sandbox"
	"gatehouse/core/texts"
	"gatehouse/core/tool"
)

// Prefix begins the names of the models that are answered by the CLI; what
// follows is the CLI's name of a model: "claudecli/sonnet".
const Prefix = "claudecli/"

// A Guard decides on tool calls and asks users; *guard.Guard is one.
type Guard interface {
	Allow(ctx context.Context, p permission.Profile, t tool.Tool, c *tool.Call, emit func(core.Event), waiting func(bool)) (permission.Decision, error)
	Ask(ctx context.Context, p permission.Profile, questions json.RawMessage, emit func(core.Event), waiting func(bool)) (json.RawMessage, error)
}

// Options of New. Program, Stage, Home and Guard must be given.
type Options struct {
	Program string               // the CLI: an absolute path
	Stage   string               // a program that calls sandbox.Main first: what watches over the CLI's processes
	Veil    func() *sandbox.Veil // hides the gateway's own files from the CLI and what it starts; nil, or returns nil: hides nothing
	Home    string               // HOME of the CLI: the vault, so that transcripts are where the gateway reads them
	Path    string               // PATH of the CLI; "" is /usr/local/bin:/usr/bin:/bin
	Key     string               // ANTHROPIC_API_KEY; "": the CLI's own login in Home
	BaseURL string               // ANTHROPIC_BASE_URL; "": Anthropic's
	// MCPConfig is a .mcp.json that the CLI loads where there is such a file; "" none.
	MCPConfig string
	Guard     Guard
	Files     []tool.Tool  // the gateway's own, by whose Change a call of the CLI's is shown that has the same input
	Clock     core.Clock   // nil: the system's
	Log       *slog.Logger // nil: none
	Processes int          // at once, in all; 0 is 4, of about 200 MB each
	Idle      time.Duration
	Grace     time.Duration // that a process has to end on its own; 0 is 5 s
}

// A Runner keeps the processes of the CLI, one a session. It is safe for
// concurrent use; Close it.
type Runner struct {
	o Options

	places chan struct{} // one element for each turn that runs; at most o.Processes

	mu      sync.Mutex
	procs   map[string]*process // by session; at most o.Processes
	waiting int                 // turns, for a place; at most maxWaiting
	closed  bool
}

// maxWaiting bounds the turns that wait for a process; a further one is refused.
const maxWaiting = 64

// New returns a Runner. No process runs before the first Answer.
func New(o Options) *Runner {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Veil == nil {
		o.Veil = func() *sandbox.Veil { return nil }
	}
	if o.Path == "" {
		o.Path = "/usr/local/bin:/usr/bin:/bin"
	}
	if o.Processes == 0 {
		o.Processes = 4
	}
	if o.Idle == 0 {
		o.Idle = 10 * time.Minute
	}
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	return &Runner{o: o, procs: map[string]*process{}, places: make(chan struct{}, o.Processes)}
}

// A Turn is what Answer answers.
type Turn struct {
	Session string // a UUID
	Resume  bool   // the session has a transcript that the CLI goes on with
	Dir     string // the session's working directory, absolute: transcripts are found by it
	Model   string // as the CLI calls it
	System  string // the system prompt, below the CLI's own
	Replace bool   // System is in the place of the CLI's own
	Line    string // the UUID of the message's line in the transcript
	Said    []core.Block
	Profile permission.Profile
	Tools   *tool.Turn
	Offers  func(name string) bool // what the turn's agent lets a model use
	// Emit receives core.Init, core.TextDelta, core.Thinking, core.ToolUseStart,
	// core.ToolResult and the Guard's events, from any goroutine.
	// Still reports whether the sender still has the turn's trust; it is called
	// before each tool call. May be nil.
	Still   func(ctx context.Context) (bool, error)
	Emit    func(core.Event)
	Waiting func(bool)  // a user is waited for
	Heard   func()      // the model got on
	Busy    func(n int) // that many more or fewer tools are running, for which a silence is no fault
}

// An Answer is how a turn ended.
type Answer struct {
	Text     string // the last message's text; of one that broke off, as far as they came
	Said     int    // messages with text
	Calls    int    // tool calls, without those of sub-agents
	Usage    core.Tokens
	Counted  bool   // Usage is the CLI's
	MicroUSD *int64 // what the CLI means that the turn cost, in millionths of a dollar; nil unknown
	Fault    *Fault // nil: it ended well, or ctx did
}

// Codes of a Fault, as in core.Failed.
const (
	CodeDenied      = "invalid"     // not for this sender, or no turn that the CLI can answer
	CodeAuth        = "auth"        // it is not logged in, or its key is refused
	CodeUnavailable = "unavailable" // it cannot run, ended in the middle, or reports an error
	CodeBusy        = "busy"        // the maximum of processes is running
)

// A Fault is a failure as text for the user who asked.
type Fault struct {
	Code     string
	Text     string
	CanRetry bool
	Err      error // for the log; nil: none
}

// Refusal returns why the CLI does not answer a turn of this profile, or "" if it does.
func Refusal(p permission.Profile) string {
	switch {
	case !p.Owner:
		return texts.Text("cli_owner")
	case p.Trust != core.Full:
		return texts.Text("cli_trust", texts.With{"Trust": p.Trust})
	}
	return ""
}

// Answer has the CLI answer t, once fewer than Processes other turns run; turns wait
// in the order in which they came. When ctx ends it interrupts the CLI, ends the
// process with everything it started, and returns what was written so far, within
// about twice Grace. Everything that goes wrong with the CLI is a Fault; an
// error is ours.
func (r *Runner) Answer(ctx context.Context, t *Turn) (Answer, error) {
	if why := Refusal(t.Profile); why != "" {
		return Answer{Fault: &Fault{Code: CodeDenied, Text: why}}, nil
	}
	leave, fault := r.enter(ctx, t)
	if leave == nil {
		return Answer{Fault: fault}, nil
	}
	defer leave()
	p, fault := r.take(t)
	if fault != nil {
		return Answer{Fault: fault}, nil
	}
	k := &talk{r: r, p: p, t: t, open: map[string]bool{}, shown: map[string]bool{}, asks: map[string]context.CancelFunc{}, used: map[string]core.Tokens{}}
	a := k.run(ctx)
	r.release(p, ctx.Err() == nil && a.Fault == nil && !p.isGone())
	return a, nil
}

// enter waits for a place among the turns that run, which the caller leaves. leave
// is nil without one: when ctx ends, or with a Fault.
func (r *Runner) enter(ctx context.Context, t *Turn) (leave func(), _ *Fault) {
	leave = func() { <-r.places }
	select {
	case r.places <- struct{}{}:
		return leave, nil
	default:
	}
	r.mu.Lock()
	if r.waiting >= maxWaiting {
		r.mu.Unlock()
		return nil, &Fault{Code: CodeBusy, Text: texts.Text("cli_many"), CanRetry: true}
	}
	r.waiting++
	r.mu.Unlock()
	t.Busy(1) // the model's silence is ours
	defer func() {
		t.Busy(-1)
		r.mu.Lock()
		r.waiting--
		r.mu.Unlock()
	}()
	select {
	case r.places <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, nil
	}
}

// Leave ends the session's process, if one waits: someone else is about to go
// on with the transcript, which the process would not see.
func (r *Runner) Leave(session string) {
	r.mu.Lock()
	p := r.procs[session]
	if p == nil || p.busy {
		r.mu.Unlock()
		return
	}
	delete(r.procs, session)
	r.mu.Unlock()
	p.end(r.o.Clock.After(r.o.Grace))
}

// Evict ends the processes that have waited longer than Idle, and returns how many.
func (r *Runner) Evict() int {
	var old []*process
	r.mu.Lock()
	before := r.o.Clock.Now().Add(-r.o.Idle)
	for id, p := range r.procs {
		if !p.busy && (p.isGone() || !p.used.After(before)) {
			delete(r.procs, id)
			old = append(old, p)
		}
	}
	r.mu.Unlock()
	r.endAll(old)
	return len(old)
}

// Close ends every process; Answers that run see theirs end.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	var all []*process
	for id, p := range r.procs {
		delete(r.procs, id)
		all = append(all, p)
	}
	r.mu.Unlock()
	r.endAll(all)
	return nil
}

func (r *Runner) endAll(ps []*process) {
	var wg sync.WaitGroup
	for _, p := range ps {
		wg.Go(func() { p.end(r.o.Clock.After(r.o.Grace)) })
	}
	wg.Wait()
}

// take returns the session's process where it fits the turn, else a new one.
func (r *Runner) take(t *Turn) (*process, *Fault) {
	mcp := r.o.MCPConfig
	if _, err := os.Stat(mcp); err != nil {
		mcp = ""
	}
	args := arguments(t, mcp)
	spec := strings.Join(append([]string{t.Dir, t.System}, args[2:]...), "\x00")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, &Fault{Code: CodeUnavailable, Text: texts.Text("fault_stopping"), CanRetry: true}
	}
	if p := r.procs[t.Session]; p != nil {
		if p.busy {
			return nil, &Fault{Code: CodeBusy, Text: texts.Text("cli_busy"), CanRetry: true}
		}
		if p.spec == spec && !p.isGone() {
			p.busy = true
			return p, nil
		}
		r.drop(p)
	}
	r.room()
	p, err := r.start(t.Session, spec, t.Dir, args)
	if err != nil {
		return nil, &Fault{Code: CodeUnavailable, Text: texts.Text("cli_start"), Err: err}
	}
	p.busy = true
	r.procs[t.Session] = p
	return p, nil
}

// room makes way for one more process: the one that has waited longest for its
// session's next turn ends. There is one, as the caller has a place.
func (r *Runner) room() {
	if len(r.procs) < r.o.Processes {
		return
	}
	var oldest *process
	for _, p := range r.procs {
		if !p.busy && (oldest == nil || p.used.Before(oldest.used)) {
			oldest = p
		}
	}
	if oldest != nil {
		r.drop(oldest)
	}
}

// drop ends a process that no turn uses; the session's next one begins only
// when nothing is left of it.
func (r *Runner) drop(p *process) {
	delete(r.procs, p.session)
	p.end(r.o.Clock.After(r.o.Grace))
}

// release gives a process back after a turn, to wait for the next one or to end.
func (r *Runner) release(p *process, keep bool) {
	r.mu.Lock()
	p.busy, p.used = false, r.o.Clock.Now()
	keep = keep && !r.closed && r.procs[p.session] == p
	if !keep && r.procs[p.session] == p {
		delete(r.procs, p.session)
	}
	r.mu.Unlock()
	if !keep {
		p.kill()
		<-p.gone
	}
}

// away are tools that would work when the turn has ended, or elsewhere.
const away = "CronCreate,CronDelete,CronList,ScheduleWakeup,EnterWorktree,ExitWorktree,SendMessage,Workflow,Monitor"

// arguments start the CLI for t; the first two say which session.
func arguments(t *Turn, mcpConfig string) []string {
	args := []string{"--session-id", t.Session}
	if t.Resume {
		args[0] = "--resume"
	}
	args = append(args, "--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
		"--permission-prompt-tool=stdio", "--include-partial-messages", "--setting-sources", "project",
		"--disallowedTools", away, "--model", t.Model)
	if mcpConfig != "" {
		args = append(args, "--mcp-config", mcpConfig)
	}
	return args
}

// environment returns the CLI's whole environment; nothing is inherited.
func (r *Runner) environment() []string {
	env := []string{"PATH=" + r.o.Path, "HOME=" + r.o.Home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
	if r.o.Key != "" {
		env = append(env, "ANTHROPIC_API_KEY="+r.o.Key)
	}
	if r.o.BaseURL != "" {
		env = append(env, "ANTHROPIC_BASE_URL="+r.o.BaseURL)
	}
	return env
}
