package orchestrator

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/llm"
	"gatehouse/core/orchestrator/bill"
	"gatehouse/core/orchestrator/incoming"
	"gatehouse/core/orchestrator/named"
	"gatehouse/core/orchestrator/watchdog"
	"gatehouse/core/session"
	"gatehouse/core/transcript"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
)

// run is one turn on its way.
type run struct {
	o          *Orchestrator
	t          *Turn
	show       func(core.Event)
	model      llm.Model // nil: the runtime answers
	name       string    // of the model that answers
	agent      agent.Agent
	kit        *Kit                // nil without tools
	loweredKit atomic.Pointer[Kit] // once a raise has ended: what there is without it
	conv       *transcript.Conversation

	resume       transcript.Resume
	verdict      *core.Council // of a council's answer
	work         *Work         // the runtime's turn; nil: the loop's
	began        time.Time     // of this attempt; differences to it survive a clock that is set
	watchdog     *watchdog.Watchdog
	rounds       atomic.Int32 // of the run and its sub-turns
	trustChecked atomic.Int64 // when the trust was last checked, in nanoseconds after began; negative: look now
	trustLowered atomic.Bool  // it is less than the run began with

	stop    string // why the model's last answer ended
	begun   bool   // the event session was emitted
	files   *incoming.Reader
	notices []core.Warning // on what the request gives
	memory  Remembered
	given   Given // what a council found of its answer
	bill    *bill.Bill

	fixed     int // tokens of the prompt and the tools, estimated
	learnt    int // the model's window, as its provider named it in this run
	maxTokens int // tokens of the conversation after a refusal; 0 no limit

	found    named.Found // of the web
	telling  sync.Mutex  // one event after the other
	lowering sync.Mutex

	mu      sync.Mutex      // of what follows: calls may run next to each other
	context int64           // tokens of the last request with its answer, by the provider; 0 unknown
	next    int             // number of the run's next line
	said    int             // answers of the model with text, for the session's count
	calls   int             // tool calls
	ids     map[string]bool // of these; bounded by the rounds
}

// newRun returns a run of t that shows its events through emit.
func (o *Orchestrator) newRun(t *Turn, emit func(core.Event)) *run {
	of := usage.Row{Run: t.Run, Session: t.Session.ID, User: t.User, Bot: t.Rows[0].Bot}
	return &run{o: o, t: t, show: emit, began: o.Clock.Now(), watchdog: watchdog.New(o.Clock),
		bill: &bill.Bill{Of: of, Cost: o.Cost, Reserve: o.Reserve, Ledger: o.Usage}}
}

// emit shows one event; tools may do so next to each other. It may take as long
// as the run has to wait for its events to be stored.
func (r *run) emit(e core.Event) {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.show(e)
}

// Run answers t and reports what happens through emit, in the order of
// core.Event; the terminal event is in the Result. An error is ours alone
// (disk, database) and nothing was decided: the turn may be tried again. When
// ctx ends with ErrAborted the Result is aborted; any other cancellation of
// ctx is returned as its cause.
func (o *Orchestrator) Run(ctx context.Context, t *Turn, emit func(core.Event)) (res Result, err error) {
	r := o.newRun(t, emit)
	r.files = &incoming.Reader{Sources: o.Incoming, Run: t.Run, User: t.User, Last: t.Last, Heard: t.Heard}
	if o.Later != nil && t.User != 0 && !core.OfSession(t.Rows[0].Bot) {
		r.files.Waits = func(ctx context.Context, n int) bool { return o.Later.Room(ctx, t.User, n) }
	}
	defer func() {
		if res.Write == nil { // an error, or a panic: nothing else will store what was spent
			r.lose(context.WithoutCancel(ctx))
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conv, err := o.Sessions.Open(ctx, t.Session)
	if err != nil {
		return Result{}, err
	}
	r.conv = conv
	defer conv.Close()
	r.watchdog.Busy(1) // until a model is asked
	r.watch(ctx, cancel)
	talk, err := r.prepare(ctx)
	if r.kit != nil && r.kit.Close != nil {
		defer r.kit.Close()
	}
	if cause := context.Cause(ctx); err != nil && cause != nil { // a stop, whatever it met
		return r.cut("", cause)
	}
	if core.KindOf(err) != core.Other {
		r.begin() // a stream begins with the session, also of a turn that is refused
		return r.failed("", &llm.Fault{Code: "invalid", Text: core.TextOf(err), Err: err})
	}
	if err != nil {
		return Result{}, err
	}
	defer r.settleTrust(context.WithoutCancel(ctx))
	if r.work != nil {
		return r.delegate(ctx, r.work)
	}
	level := r.council()
	if before, ok := r.saidBefore(); ok && level == "" {
		return r.answerAgain(before)
	}
	if r.conv.Refused(t.Run) {
		return r.refusedBefore()
	}
	if open, since := r.interrupted(); len(open) > 0 {
		if res, ended, err := r.pickUp(ctx, talk, open, since); ended || err != nil {
			return res, err
		}
	}
	r.prepared()
	if level != "" {
		return r.answerByCouncil(ctx, talk, level)
	}
	return r.answer(ctx, talk)
}

// prepare makes the steps from the session event to the model request.
func (r *run) prepare(ctx context.Context) (*talk, error) {
	opt := r.t.options()
	role := &r.t.Role
	r.agent = role.Agent
	dir, missing, err := r.o.workingDirectory(r.t)
	if err != nil {
		return nil, err
	}
	r.t.Dir = dir
	if err := r.files.FetchAll(ctx, r.t.Rows); err != nil {
		return nil, err
	}
	if err := r.kept(); err != nil {
		return nil, err
	}
	warnings := append(slices.Clone(role.Warnings), missing...)
	if warnings, err = r.choose(opt.Model, warnings); err != nil {
		return nil, err
	}
	if r.model == nil {
		return nil, r.prepareWork(ctx, warnings)
	}
	if r.o.Runtime != nil {
		r.o.Runtime.Leave(r.t.Session.ID)
	}
	r.name = r.model.About().Name
	if r.o.Equip != nil && r.model.About().Tools {
		if r.kit, err = r.o.Equip(ctx, r.t, dir, r.agent); err != nil {
			return nil, err
		}
		r.kit.Profile.Named = r.named
		r.kit.Tools = append(r.kit.Tools, r.inner()...)
		warnings = append(warnings, r.kit.Warnings...)
	}
	system, meta, err := r.promptOf(ctx, dir)
	if err != nil {
		return nil, err
	}
	r.fix(system)
	history, err := r.appendUserMessage(ctx)
	if err != nil {
		return nil, err
	}
	meta.Model = r.name
	r.open(meta, warnings)
	t := &talk{r: r, name: r.name, own: true, long: true, tools: r.tools(), keep: r.append, show: r.emit, req: &llm.Request{System: system, Messages: history,
		MaxTokens: r.outputTokens(), Temperature: opt.Temperature, Stop: opt.Stop, Sender: r.sender(r.t.Trust)}}
	t.offer()
	return t, nil
}

// prompt returns the system prompt; with personal, also what is remembered of the person and
// what was overheard in the group.
func (r *run) prompt(ctx context.Context, dir vault.Dir, personal bool) (string, core.PromptMetadata, error) {
	in := &r.t.Rows[0]
	p := agent.PromptInput{
		Agent: r.agent, Custom: r.t.options().SystemPrompt, WorkingDirectory: dir.Path, Dir: dir, Contexts: r.t.Contexts,
		MayRead: func(path string) bool { return r.o.MayRead(r.trust(), r.t.User, path) },
		Sender:  in.From.Name, Trust: r.trust(), Group: in.Group(), Shows: in.Turn == nil, Now: r.o.Clock.Now(),
	}
	if r.kit != nil {
		p.Missing = r.kit.Missing
		if len(r.kit.Tools) > 0 {
			p.Place = dir.Path
			if dir.Inside {
				p.Place = dir.Rel
			}
			if r.trust() == core.Sandboxed {
				p.Area = core.GuestDir(r.t.User)
			}
		}
	}
	if personal {
		p.Memory = r.memory.Standing
	}
	if personal && in.Group() && r.o.Overheard != nil {
		p.Context = r.o.Overheard(in.Address)
	}
	return r.o.Agents.Prompt(ctx, p)
}

// sender returns the user whose files a model may quote, at a trust. The answer to a group has
// those of no one alone, as others read it.
func (r *run) sender(trust core.Trust) llm.Sender {
	if r.t.Shared() {
		return llm.Sender{Trust: trust}
	}
	return llm.Sender{User: r.t.User, Trust: trust}
}

// open emits the events that are before the answer.
func (r *run) open(meta core.PromptMetadata, warnings []core.Warning) {
	r.begin()
	r.emit(core.UserMessage{Content: r.t.Text()})
	r.emit(meta)
	if r.work == nil { // the runtime reports it
		r.emit(r.init())
		r.emit(core.ModelChosen{Model: r.name})
	}
	for _, w := range slices.Concat(r.t.Warnings, warnings, r.notices, r.files.Notices, r.memory.notices()) {
		r.emit(w)
	}
}

func (r *run) init() core.Init {
	init := core.Init{Tools: []string{}, PermissionMode: "default", MCPServers: []string{}}
	if r.kit != nil {
		for _, t := range r.kit.Tools {
			init.Tools = append(init.Tools, t.Name)
		}
		init.MCPServers = append(init.MCPServers, r.kit.Servers...)
		if r.kit.Profile.Auto {
			init.PermissionMode = "auto"
		}
	}
	return init
}

func (r *run) title() string {
	if r.t.Session.Title != "" {
		return r.t.Session.Title
	}
	text := r.t.Text()
	if r.t.Rows[0].Forwarded() {
		text = "Forwarded: " + strings.TrimSpace(text)
	}
	return session.Title(text)
}

// appendUserMessage appends the user's message to the transcript, unless an earlier
// attempt did, and returns the conversation up to it.
func (r *run) appendUserMessage(ctx context.Context) ([]llm.Message, error) {
	lines := 0
	var err error
	if r.t.Attempt > 1 {
		if lines, err = r.conv.HasRun(r.t.Run); err != nil {
			return nil, err
		}
	}
	before, err := r.appendGiven(lines)
	if err != nil {
		return nil, err
	}
	past, resume, err := r.conv.History(r.budget(historyBudget))
	if err != nil {
		return nil, err
	}
	r.resume, r.next, past = resume, max(before+1, lines), r.withoutAnsweredAgain(past)
	spoken, author, err := r.spoken(ctx) // in every attempt: what is not read is reported again
	if err != nil {
		return nil, err
	}
	if lines > before {
		return r.messagesForModel(past, r.memory.Relevant), nil
	}
	said := transcript.Message{Role: "user", Blocks: spoken, Run: r.t.Run, Author: author}
	if err := r.conv.Append(r.t.Run, before, said); err != nil {
		return nil, err
	}
	return r.messagesForModel(past, r.memory.Relevant, said), nil
}

// spoken returns the user's message, with what came with it, and who wrote it.
func (r *run) spoken(ctx context.Context) (said []core.Block, author *transcript.Author, err error) {
	said, author = r.initial(), r.author()
	begun := r.t.Session.MessageCount > 0
	r.files.Trust, r.files.Begun = r.t.Trust, begun
	r.files.Wrote = func(block, text string, quote *core.Quote) {
		if author != nil {
			author.Add(block, text, quote)
		}
	}
	var model *llm.About
	if r.model != nil {
		about := r.model.About()
		model = &about
	}
	for _, row := range r.t.Rows {
		if again, err := r.repeated(ctx, &row); err != nil || again != nil {
			if err != nil {
				return nil, nil, err
			}
			said = append(said, again.Blocks...)
			if again.Author == nil {
				author = nil // the framing of its blocks is not recorded
			} else if author != nil {
				author.Said = append(author.Said, again.Author.Said...)
			}
			continue
		}
		if incoming.Says(&row, begun) {
			block := incoming.Text(&row, r.t.Trust, begun)
			if row.Again != "" {
				block = incoming.Repeated(row.Text).Text
			}
			said = append(said, core.Block{Type: "text", Text: block})
			if author != nil {
				author.Add(block, row.Text, incoming.Referred(&row, begun))
			}
		}
		said = append(said, r.files.Blocks(ctx, &row, model)...)
	}
	return said, author, context.Cause(ctx) // a recording that was cut off is not one that cannot be transcribed
}

// author returns who wrote the turn's message in a chat; nil for the API's.
func (r *run) author() *transcript.Author {
	in := &r.t.Rows[0]
	if core.OfSession(in.Bot) {
		return nil
	}
	a := &transcript.Author{Name: core.CleanName(in.From.Name), Platform: in.From.Platform, Trust: r.t.Trust}
	if in.Group() {
		a.Place = core.CleanName(in.PlaceName)
	}
	return a
}

// messageForModel returns a message as the model may read it again: without tool calls
// where there are no tools. Only of a message with some are the blocks copies.
func (r *run) messageForModel(m *transcript.Message) llm.Message {
	out := llm.Message{Role: m.Role, Blocks: slices.Clip(m.Blocks)}
	if !m.UsesTools() {
		return out
	}
	out.Blocks = make([]core.Block, 0, len(m.Blocks))
	for i := range m.Blocks {
		if b := &m.Blocks[i]; r.kit != nil || b.Type != "tool_use" && b.Type != "tool_result" {
			out.Blocks = append(out.Blocks, *b)
		}
	}
	return out
}

// append keeps a message as the run's next line.
func (r *run) append(m transcript.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.conv.Append(r.t.Run, r.next, m); err != nil {
		return err
	}
	r.next++
	return nil
}
