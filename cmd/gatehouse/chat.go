package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/attach"
	"gatehouse/core/bus"
	"gatehouse/core/dispatch"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/queue"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/usage"
	"gatehouse/pairing"
)

// chat are the commands people type, the same on every platform.
type chat struct {
	book      *pairing.Book
	desk      *permission.Desk
	guard     *permission.Guard
	approvals *approvals
	sessions  *session.Store
	agents    *agent.Agents
	bus       *bus.Bus
	queue     *queue.Queue
	runs      *orchestrator.Orchestrator
	events    *orchestrator.Events
	files     *attach.Keeper
	usage     *usage.Ledger
	models    func() *models
	stop      func(bot, lane string) bool
	stopOne   func(run string) bool
	db        *store.DB
	clock     core.Clock
	model     func() string // that answers where nobody chose another
	busyMode  func() string
	platform  func(bot string) string
	link      func(bot, code string) string // of an invitation, "" where the platform has none
	overheard *agent.Overheard
	render    func(to core.Address, markdown string) []core.Part
	noModel   func(name string) string // why no turn is answered by that model; "": it is
}

// A chatCommand is one line of the table that the help text, the platforms'
// menus and the dispatcher share.
type chatCommand struct {
	name    string
	about   string
	owner   bool   // for owner and admins
	control bool   // passes by the chat's line
	args    string // what may stand behind the name; "" for nothing
	private bool   // its answer in a group is for who asked alone, where the platform can
	run     func(c *chat, ctx context.Context, call dispatch.Call) (dispatch.Outcome, error)
}

// chatCommands is that table. /claim, /start and /help of strangers are
// answered at the gate; here they are for people with access.
func chatCommands() []chatCommand {
	return []chatCommand{
		{name: "start", about: "what this bot is", run: (*chat).start},
		{name: "help", about: "this list", run: (*chat).help},
		{name: "new", about: "begin a new conversation; /new keep remembers this one", args: "keep", run: (*chat).fresh},
		{name: "stop", about: "stop the answer that is being made", control: true, run: (*chat).stopRun},
		{name: "status", about: "what is going on in this chat", control: true, run: (*chat).status},
		{name: "sessions", about: "your conversations, to go on with one", private: true, run: (*chat).list},
		{name: "resume", about: "go on with a conversation: /resume ID", args: "ID", private: true, run: (*chat).resume},
		{name: "model", about: "which model answers here: /model lists, /model NAME chooses", args: "NAME", run: (*chat).chooseModel},
		{name: "busy", about: "what becomes of messages while I am busy", args: "collect, queue or interrupt", run: (*chat).busy},
		{name: "compact", about: "sum up the older part of this conversation", run: (*chat).compact},
		{name: "usage", about: "what your answers took, and what is left", private: true, run: (*chat).usageOf},
		{name: "whoami", about: "who you are to this bot, and what you may", private: true, run: (*chat).whoami},
		{name: "claim", about: "become the owner, with a code", args: "CODE", private: true, run: (*chat).claimed},
		{name: "pair", about: "use an invitation: /pair CODE", args: "CODE", private: true, run: (*chat).pair},
		{name: "link", about: "make another account of yours the same person to me", args: "CODE", private: true, run: (*chat).linkAccount},
		{name: "trust", about: "what tools may do in this conversation: /trust auto, ask, full 15m, vault, sandboxed", owner: true, args: "auto, ask, full 15m, vault or sandboxed", run: (*chat).trust},
		{name: "agent", about: "who answers here: /agent lists, /agent NAME chooses", owner: true, args: "NAME", run: (*chat).agent},
		{name: "pairing", about: "who waits to be let in", owner: true, private: true, run: (*chat).pending},
		{name: "approve", about: "let somebody in: /approve CODE [sandboxed|vault] [7d]", owner: true, control: true, args: "CODE [sandboxed|vault] [7d]", run: (*chat).approve},
		{name: "deny", about: "turn somebody away: /deny CODE", owner: true, control: true, args: "CODE", run: (*chat).denyRequest},
		{name: "invite", about: "make an invitation: /invite [sandboxed|vault] [people] [7d]", owner: true, args: "[sandboxed|vault] [people] [7d]", private: true, run: (*chat).invite},
		{name: "enable", about: "let this group talk to the bot: /enable [level] [mention|context|all] [20/60s]", owner: true, args: "[level] [mention|context|all] [20/60s]", run: (*chat).enable},
		{name: "disable", about: "stop answering in this group", owner: true, run: (*chat).disable},
	}
}

// handlers is the table as the dispatcher takes it, every owner's command
// behind the check of who asks.
func (c *chat) handlers() map[string]dispatch.Handler {
	out := map[string]dispatch.Handler{}
	for _, cmd := range chatCommands() {
		out[cmd.name] = func(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
			if cmd.owner {
				if _, err := c.owner(ctx, call); err != nil {
					return dispatch.Outcome{}, err
				}
			}
			return cmd.run(c, ctx, call)
		}
	}
	return out
}

// isControl reports whether a row passes by its chat's line.
func isControl(in *core.Inbound) bool {
	if in.Kind != core.KindCommand {
		return false
	}
	for _, cmd := range chatCommands() {
		if cmd.name == in.Command {
			return cmd.control
		}
	}
	return false
}

// owner is the actor of an owner's or admin's call; Denied for anybody else.
func (c *chat) owner(ctx context.Context, call dispatch.Call) (core.Actor, error) {
	user, role, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil {
		return core.Actor{}, err
	}
	if call.In.From.Shared || role != "owner" && role != "admin" {
		return core.Actor{}, core.Errorf(core.Denied, "Only the owner of this bot may do that.")
	}
	return core.Actor{User: user, Via: "chat"}, nil
}

func said(format string, args ...any) (dispatch.Outcome, error) {
	return dispatch.Outcome{Text: fmt.Sprintf(format, args...)}, nil
}

func (c *chat) start(_ context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	return said("Hello %s. Write to me and I answer. /help lists what else I can do.", plain(call.In.From.Name))
}

func (c *chat) help(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	_, err := c.owner(ctx, call)
	var b strings.Builder
	b.WriteString("Write to me and I answer. Commands:\n\n")
	for _, cmd := range chatCommands() {
		if !cmd.owner || err == nil {
			fmt.Fprintf(&b, "- /%s: %s\n", cmd.name, cmd.about) // plain, so that a tap sends it
		}
	}
	return dispatch.Outcome{Text: b.String()}, nil
}

func (c *chat) stopRun(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if ok, err := c.mayStop(ctx, call); err != nil {
		return dispatch.Outcome{}, err
	} else if !ok {
		return said("Somebody else is being answered: only whoever asked for it, or the owner, can stop that.")
	}
	if c.stop(call.In.Bot, call.In.Bot+"|"+call.In.Chat) {
		return dispatch.Outcome{}, nil // the run's own end says that it was stopped
	}
	return said("Nothing is running here.")
}

// mayStop: a group's answer is stopped by whoever asked for it, the owner or an admin.
func (c *chat) mayStop(ctx context.Context, call dispatch.Call) (bool, error) {
	if !call.In.Group() {
		return true, nil
	}
	user, role, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil || role == "owner" || role == "admin" {
		return true, err
	}
	for _, r := range c.bus.Active() {
		if r.Bot == call.In.Bot && r.Chat == call.In.Chat && r.User != user {
			return false, nil
		}
	}
	return true, nil
}

func (c *chat) status(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	running := "Nothing is running here."
	for _, r := range c.bus.Active() {
		if r.Bot == call.In.Bot && r.Chat == call.In.Chat {
			running = fmt.Sprintf("An answer is being made, for %d s now. `/stop` stops it.", int(call.In.At.Sub(r.Started).Abs().Seconds()))
		}
	}
	var waiting int
	err := c.db.Get(ctx, &waiting, `SELECT count(*) FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited')`, call.In.Bot+"|"+call.In.Chat)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if running != "Nothing is running here." && waiting > 0 {
		waiting-- // the one that is being answered
	}
	set, err := c.sessions.Settings(ctx, c.db, call.In.Address)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if set.Model, err = c.chosenModel(ctx, call); err != nil {
		return dispatch.Outcome{}, err
	}
	trust, err := c.trustHere(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return said("%s\n\n- waiting: %d\n- model: `%s`\n- while busy: %s\n- trust here: %s", running, waiting, cmp.Or(set.Model, c.model()), cmp.Or(set.BusyMode, c.busyMode()), trust)
}

func (c *chat) whoami(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	user, role, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if user == 0 {
		return said("You are %s, id `%s`. You may talk here because this group may, at trust %s.", plain(call.In.From.Name), call.In.From.ID, call.Trust)
	}
	return said("You are %s, id `%s`, known here as user %d (%s), at trust %s.", plain(call.In.From.Name), call.In.From.ID, user, role, call.Trust)
}

// claimed is reached by nobody but those whose /claim the gate let pass: it
// has answered already.
func (c *chat) claimed(context.Context, dispatch.Call) (dispatch.Outcome, error) {
	return dispatch.Outcome{}, nil
}

func (c *chat) pending(ctx context.Context, _ dispatch.Call) (dispatch.Outcome, error) {
	rs, err := c.book.Requests(ctx, "pending", 20)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if len(rs) == 0 {
		return said("Nobody waits to be let in.")
	}
	var b strings.Builder
	b.WriteString("Waiting to be let in:\n\n")
	for _, r := range rs {
		fmt.Fprintf(&b, "- %s, id `%s` on %s, code `%s`\n", plain(r.Display), r.PlatformUserID, r.Bot, r.Code)
	}
	b.WriteString("\n`/approve CODE` lets somebody in, `/deny CODE` does not.")
	return dispatch.Outcome{Text: b.String()}, nil
}

func (c *chat) approve(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	words := strings.Fields(call.In.Text)
	a, err := approval(words[min(1, len(words)):], c.clock.Now())
	if len(words) == 0 || len(words) > 3 || err != nil {
		return said("Write `/approve CODE`, `/approve CODE vault` to let somebody read the vault, or `/approve CODE 7d` for a week.")
	}
	r, err := c.book.Approve(ctx, words[0], a, by)
	if core.KindOf(err) == core.NotFound {
		return said("%s", noRequest)
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	until := ""
	if !a.ExpiresAt.IsZero() {
		until = ", until " + a.ExpiresAt.UTC().Format("2 January 15:04") + " UTC"
	}
	return said("Approved %s at trust %s%s.", plain(r.Display), r.ApprovedTrustLevel, until)
}

// noRequest answers a code that is wrong, used up or too old.
const noRequest = "Nobody waits with that code. `/pairing` lists who does."

func (c *chat) denyRequest(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	ref := strings.TrimSpace(call.In.Text)
	if ref == "" {
		return said("Write `/deny CODE`.")
	}
	r, err := c.book.Deny(ctx, ref, by)
	if core.KindOf(err) == core.NotFound {
		return said("%s", noRequest)
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return said("Denied %s. They hear nothing more for a week.", plain(r.Display))
}

func (c *chat) unknown(_ context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if call.In.Group() {
		return dispatch.Outcome{}, nil // it may be meant for another bot
	}
	return said("I don't know `/%s`. `/help` lists what I know.", plain(call.In.Command))
}

// plain makes hostile text fit to stand in our Markdown.
func plain(s string) string {
	s = core.CleanName(s)
	if s == "" {
		return "somebody"
	}
	return markdownEscape.Replace(s)
}

var markdownEscape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`)
