// Package orchestrator answers one turn: ten steps from the session to the
// final, with events on the way and one Result at the end. It knows no
// platform and no HTTP. The rows and events of runs are in core/runs.
//
// The ten steps: the session is resolved in the claim's transaction (Prepare);
// then the session event, the agent, the working directory, the context, the
// system prompt, the tools and their permissions, the model, its events, and
// the cleanup. Whole messages are in the transcript before they are shown as
// whole; deltas are previews.
package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/ask"
	"gatehouse/core/attach"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/orchestrator/incoming"
	"gatehouse/core/orchestrator/metrics"
	"gatehouse/core/permission"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/tool"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
)

// ErrAborted is the cause of a run's context that a user has ended.
var ErrAborted = errors.New("stopped by the person")

// Limits of one run; zero values mean the defaults.
type Limits struct {
	RunTime      time.Duration // 30 min
	Silence      time.Duration // 300 s without output of the model
	OutputTokens int           // 16,000
	Rounds       int           // 50: calls of the model in one run
}

// Options of New. All but Log, Metrics and Limits are required.
type Options struct {
	Clock    core.Clock
	Log      *slog.Logger
	Metrics  *metrics.Metrics
	Sessions *session.Store
	Agents   *agent.Agents
	Usage    *usage.Ledger
	// Reserve sets aside what a call of a model is expected to take, where a
	// budget is; nil: no budgets. usage.Ledger reports what it returns.
	Reserve func(ctx context.Context, r usage.Row) (id int64, notice string, err error)
	// Spend records the cost of calls of a run that ends without a Result:
	// returned to the queue, or failed internally; may be nil.
	Spend func(ctx context.Context, rows []usage.Row) error
	// Incoming reads what comes with messages; its clock and log are the run's.
	Incoming incoming.Sources
	// Later transcribes voice messages of users later; nil: nothing does.
	Later Later
	// Files keeps whose files are that came with messages, and what was read of them;
	// nil: without previews.
	Files *attach.Ledger
	Chats []string // sources of sessions that are chats
	// Model returns the model of that name, for a guest or for anyone else; "" is the
	// configured one. Unknown: core.Invalid; not for guests: core.Denied.
	Model func(name string, guest bool) (llm.Model, error)
	// Cost is a call's price in millionths of a dollar, and whether it is known.
	Cost    func(model string, u core.Tokens) (int64, bool)
	MayRead func(trust core.Trust, user int64, path string) bool
	// Equip gives a turn its tools and what it may do with them; nil: none.
	Equip func(ctx context.Context, t *Turn, dir vault.Dir, who agent.Agent) (*Kit, error)
	Guard Guard // required with Equip
	// Search makes the tool WebSearch of anyone who looks. It is offered where the
	// model's provider searches and the kit has no such tool; nil: never.
	Search func(look tool.Look) tool.Tool
	// Overheard returns the newest messages of others in a group that were not
	// addressed to the bot, oldest first; may be nil.
	Overheard func(at core.Address) []agent.Quoted
	// Still is the trust that the turn has now: as it was begun with, its Base
	// when a raise was taken back, Stranger when its sender has lost anything
	// else. It is asked before rounds and calls of tools, when a user was waited
	// for and else at most once a second. Nil: no one looks.
	Still func(ctx context.Context, t *Turn) (core.Trust, error)
	// Raise is the trust for a time that holds for a chat's turn, asked in the
	// claim's transaction; nil: there is none, ever.
	Raise func(ctx context.Context, tx *store.Tx, t *Turn, ref session.Ref) (Raise, error)
	// NotBegun returns a run's calls since a time that waited for approval and never
	// got it; may be nil.
	NotBegun func(ctx context.Context, run string, since time.Time) (map[string]bool, error)
	// Runs returns a session's newest runs with the user of each, which identifies
	// the authors in a transcript. Nil: only the present turn's author is known.
	Runs func(ctx context.Context, session string) (map[string]int64, error)
	// Choose opens a choice of the user's, in the transaction that ends the run;
	// required with Equip.
	Choose func(ctx context.Context, tx *store.Tx, a ask.Ask) error
	// Follower does what is to be done about successful runs, after them; may be nil.
	Follower Follower
	// Backups keeps the notes on conversations; nil: a compaction writes its own.
	Backups Backups
	// Helped notes calls that a helper of a turn is about to make, for the audit log;
	// parent is the call of Task that it works on. May be nil.
	Helped func(ctx context.Context, t *Turn, parent string, calls []core.Block) error
	// Memory has what users want of answers; may be nil.
	Memory Memory
	// Runtime answers the turns with a model of its own; may be nil.
	Runtime Runtime
	// Council answers turns with several models; may be nil.
	Council Council
	Limits  Limits
}

// Later transcribes voice messages later.
type Later interface {
	// Room reports whether n further voice messages of a user can wait. Their sender is
	// promised the text then.
	Room(ctx context.Context, user int64, n int) bool
	// AddMessage keeps the promise for one, in the transaction that ends the run.
	AddMessage(ctx context.Context, tx *store.Tx, user int64, in *core.Inbound, f core.File) error
}

// A Follower does what is to be done about a finished run. Its work is stored with the
// end of the run, so no crash loses it.
type Follower interface {
	// Follow returns what is to be done about an answered turn, as runs.End has it; ""
	// for nothing. It queries nothing.
	Follow(s *session.Session, at core.Address, user int64, trust core.Trust) string
	// Ring reports that there is something to do. It does not block.
	Ring()
}

// A Guard decides on tool calls and asks users; *guard.Guard is one. It
// returns when it is decided, at the latest when ctx ends. waiting reports when
// a wait for a user begins and ends.
type Guard interface {
	Allow(ctx context.Context, p permission.Profile, t tool.Tool, c *tool.Call, emit func(core.Event), waiting func(bool)) (permission.Decision, error)
	Ask(ctx context.Context, p permission.Profile, questions json.RawMessage, emit func(core.Event), waiting func(bool)) (json.RawMessage, error)
}

// A Kit is what a turn may use.
type Kit struct {
	Profile  permission.Profile
	Turn     *tool.Turn
	Tools    []tool.Tool // those that are offered at this trust
	Missing  []string    // plain text on what is not offered, and why; for the prompt
	Servers  []string    // MCP servers that answer
	Warnings []core.Warning
	Close    func() // ends what the turn's tools have left; nil: nothing
}

// An Orchestrator runs turns; it is safe for concurrent use.
type Orchestrator struct {
	Options
	calls *call.Runner
}

// New returns an Orchestrator.
func New(o Options) *Orchestrator {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New(nil, nil, nil)
	}
	if o.Limits.RunTime == 0 {
		o.Limits.RunTime = 30 * time.Minute
	}
	if o.Limits.Silence == 0 {
		o.Limits.Silence = 300 * time.Second
	}
	if o.Limits.OutputTokens == 0 {
		o.Limits.OutputTokens = 16_000
	}
	if o.Limits.Rounds == 0 {
		o.Limits.Rounds = 50
	}
	if o.Files == nil {
		o.Files = &attach.Ledger{}
	}
	o.Incoming.Clock, o.Incoming.Log = o.Clock, o.Log
	if o.NotBegun == nil {
		o.NotBegun = func(context.Context, string, time.Time) (map[string]bool, error) { return nil, nil }
	}
	return &Orchestrator{Options: o, calls: call.New(o.Clock, o.Log, TaskName)}
}

// A Turn is what Run answers.
type Turn struct {
	Run      string
	Attempt  int  // of this run, 1 at the first; Prepare counts it
	Last     bool // no attempt follows this one
	Session  session.Session
	Contexts []string // what the session is about; Prepare sets them
	IsNew    bool
	Warnings []core.Warning
	Rows     []core.Inbound // of one sender; their texts are the message
	User     int64
	Admin    bool // the sender is owner or admin
	Trust    core.Trust
	// Base is Trust without what was given for a time, from RaisedSince until RaisedUntil.
	Base        core.Trust
	RaisedSince time.Time
	RaisedUntil time.Time
	Dir         vault.Dir  // where its tools work; set by Run
	Role        agent.Role // who answers, and the ceiling of agent and workspace; Prepare sets it unless its agent has a name
	Model       string     // that users chose for the chat; "" is none. Where it is not there for them another answers, with a warning
	Origin      any        // what its source has prepared it with; only the source reads it
	Received    time.Time  // when its first row was stored
	Started     time.Time
	// Waiting is called when the run begins and ends to wait for a user; may be nil.
	Waiting func(bool)
	// Progress is called with a tool's output while it runs; may be nil.
	Progress func(text string)
	// Heard is called with the text of a recording while it is transcribed; may be nil.
	Heard func(text string)

	unsure bool // over the API, in a chat's session that may have been a group's; Prepare sets it
}

// A Result is how a run ended. State is done, aborted or error; Terminal is
// the event to publish when Write has been committed.
type Result struct {
	State    string
	Response string // Markdown: the answer, or the part of it that was written
	Terminal core.Event
	Notes    string // Markdown: what the chat reads under it in addition to; the dispatcher's
	// Buttons are shown under the response: whether to continue work that a crash
	// has interrupted.
	Buttons []core.Button
	Quiet   bool // nothing is sent to the chat: its sender wrote again before there was text
	// Asides are shown in the chat as messages of their own, after the response.
	Asides []Aside
	// Write stores the run's end: session row, run row, usage.
	Write func(ctx context.Context, tx *store.Tx) error
}

// Prepare resolves the turn's session, reports who answers, and notes the run, in
// the claim's transaction. The turn's trust is then the least of what it came
// with, the session's, the workspace's, the agent's and the request's. This is
// the one place where a Raise enters: it is above what the sender and the
// session have, and below workspace and agent.
func (o *Orchestrator) Prepare(ctx context.Context, tx *store.Tx, t *Turn, ref session.Ref) error {
	if ref.Options != nil && ref.Options.Agent != "" {
		ref.AgentType = ref.Options.Agent
	}
	var err error
	t.Session, t.IsNew, t.Warnings, err = o.Sessions.Resolve(ctx, tx, ref)
	if err != nil {
		return err
	}
	if err := o.stillLast(ctx, tx, t); err != nil {
		return err
	}
	if t.Contexts, err = o.Sessions.Contexts(ctx, tx, t.Session.ID); err != nil {
		return err
	}
	t.Model = cmp.Or(t.Model, t.Session.ChatModel)
	t.unsure = t.Rows[0].Turn != nil && t.Session.Scope == "" && slices.Contains(o.Chats, t.Session.Source)
	t.User, t.Admin, t.Started = ref.User, ref.Admin, tx.Time()
	if t.Role.Agent.Name == "" {
		t.Role = o.Agents.Role(t.Session.AgentType, t.Session.Workspace)
	}
	t.Trust = core.Least(ref.Trust, t.Session.TrustLevel, t.Role.Trust)
	if ref.Options != nil && ref.Options.Trust != core.Stranger {
		t.Trust = core.Least(t.Trust, ref.Options.Trust)
	}
	if t.Base = t.Trust; o.Raise != nil && ref.Options == nil {
		raise, err := o.Raise(ctx, tx, t, ref)
		if err != nil {
			return err
		}
		t.Trust, t.RaisedSince, t.RaisedUntil = max(t.Base, core.Least(raise.Trust, t.Role.Trust)), raise.Since, raise.Until
	}
	t.Attempt, err = runs.Begin(ctx, tx, runs.Start{ID: t.Run, Session: t.Session.ID, Bot: ref.Bot, Chat: ref.Chat, User: ref.User})
	return err
}

// options returns the API request's wishes; the zero value for chats.
func (t *Turn) options() core.Options {
	if t.Rows[0].Turn != nil {
		return *t.Rows[0].Turn
	}
	return core.Options{}
}

// worker returns the user that t works for.
func (o *Orchestrator) worker(t *Turn) agent.Worker {
	w := agent.Worker{Trust: t.Trust, User: t.User}
	if o.MayRead != nil {
		w.MayRead = func(name string) bool { return o.MayRead(t.Trust, t.User, name) }
	}
	return w
}

// workingDirectory returns where t works at its trust, with a warning where that is
// not the directory that was asked for.
func (o *Orchestrator) workingDirectory(t *Turn) (vault.Dir, []core.Warning, error) {
	return o.Agents.WorkingDirectory(o.worker(t), t.options().WorkingDirectory, t.Session.WorkingDirectory, t.Role.WorkingDirectory)
}

// Shared reports whether others may read the turn's conversation: it is a group's, or the message came over the API and the
// conversation is a chat's that may have been a group's. Call it after Prepare.
func (t *Turn) Shared() bool {
	return t.Rows[0].Group() || t.Session.Scope == core.ScopeGroup || t.unsure
}

// guest reports whether the turn is of someone who is let in, not of the house.
func (t *Turn) guest() bool { return !t.Admin && t.Trust <= core.Sandboxed }

// Text returns the turn's message: the rows' texts, a blank line between.
func (t *Turn) Text() string {
	text := t.Rows[0].Text
	for _, r := range t.Rows[1:] {
		text += "\n\n" + r.Text
	}
	return text
}
