package main

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/bus"
	"gatehouse/core/dispatch"
	"gatehouse/core/permission"
	"gatehouse/core/queue"
	"gatehouse/core/session"
	"gatehouse/core/store"
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
	stop      func(bot, lane string) bool
	db        *store.DB
	model     string
}

// A chatCommand is one line of the table that the help text, the platforms'
// menus and the dispatcher share.
type chatCommand struct {
	name    string
	about   string
	owner   bool // for owner and admins
	control bool // passes by the chat's line
	run     func(c *chat, ctx context.Context, call dispatch.Call) (dispatch.Outcome, error)
}

// chatCommands is that table. /claim, /start and /help of strangers are
// answered at the gate; here they are for people with access.
func chatCommands() []chatCommand {
	return []chatCommand{
		{name: "start", about: "what this bot is", run: (*chat).start},
		{name: "help", about: "this list", run: (*chat).help},
		{name: "new", about: "begin a new conversation", run: (*chat).fresh},
		{name: "stop", about: "stop the answer that is being made", control: true, run: (*chat).stopRun},
		{name: "status", about: "what is going on in this chat", control: true, run: (*chat).status},
		{name: "whoami", about: "who you are to this bot, and what you may", run: (*chat).whoami},
		{name: "claim", about: "become the owner, with a code", run: (*chat).claimed},
		{name: "trust", about: "whether tools ask you first: /trust auto or /trust ask", owner: true, run: (*chat).trust},
		{name: "agent", about: "who answers here: /agent lists, /agent NAME chooses", owner: true, run: (*chat).agent},
		{name: "pairing", about: "who waits to be let in", owner: true, run: (*chat).pending},
		{name: "approve", about: "let somebody in: /approve CODE [sandboxed|vault]", owner: true, control: true, run: (*chat).approve},
		{name: "deny", about: "turn somebody away: /deny CODE", owner: true, control: true, run: (*chat).denyRequest},
		{name: "enable", about: "let this group talk to the bot", owner: true, run: (*chat).enable},
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

func (c *chat) fresh(_ context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	to := call.In.Address
	return dispatch.Outcome{
		Text:  "A new conversation begins with your next message.",
		Write: func(ctx context.Context, tx *store.Tx) error { return c.sessions.Unbind(ctx, tx, to) },
	}, nil
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
	return said("%s\n\n- waiting: %d\n- model: `%s`\n- trust here: %s", running, waiting, c.model, call.Trust)
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
	if len(words) == 0 || len(words) > 2 {
		return said("Write `/approve CODE`, or `/approve CODE vault` to let somebody read the vault.")
	}
	var a core.Approval
	if len(words) == 2 {
		if a.Trust, err = core.ParseTrust(words[1]); err != nil {
			return dispatch.Outcome{}, err
		}
	}
	r, err := c.book.Approve(ctx, words[0], a, by)
	if core.KindOf(err) == core.NotFound {
		return said("%s", noRequest)
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return said("Approved %s at trust %s.", plain(r.Display), r.ApprovedTrustLevel)
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

// trust says or changes whether the tools of this conversation ask first.
func (c *chat) trust(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if call.In.Group() {
		return said("In a group tools always ask.")
	}
	to := call.In.Address
	word := strings.TrimSpace(call.In.Text)
	set := func() error {
		return c.db.Tx(ctx, func(tx *store.Tx) error { return c.sessions.SetTrustAuto(ctx, tx, to, word == "auto") })
	}
	switch word {
	case "auto":
		return dispatch.Outcome{Text: "In this conversation tools go on without asking, within trust " + call.Trust.String() + ". What is forbidden stays forbidden. `/trust ask` undoes this, and so does `/new`."}, set()
	case "ask":
		return dispatch.Outcome{Text: "In this conversation tools ask you first."}, set()
	}
	return said("You are at trust %s here. `/trust auto` lets tools go on without asking, `/trust ask` has them ask.", call.Trust)
}

func (c *chat) enable(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	return c.place(ctx, call, func(by core.Actor) error {
		return c.book.Enable(ctx, call.In.Bot, call.In.Place, call.In.PlaceName, core.Stranger, by)
	}, "This group may talk to me now: mention me, or reply to me.")
}

func (c *chat) disable(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	return c.place(ctx, call, func(by core.Actor) error {
		return c.book.Disable(ctx, call.In.Bot, call.In.Place, by)
	}, "I answer no more in this group.")
}

func (c *chat) place(ctx context.Context, call dispatch.Call, set func(core.Actor) error, done string) (dispatch.Outcome, error) {
	if !call.In.Group() {
		return said("That works in a group: write it there.")
	}
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if err := set(by); err != nil {
		return dispatch.Outcome{}, err
	}
	return said("%s", done)
}

func (c *chat) unknown(_ context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if call.In.Group() {
		return dispatch.Outcome{}, nil // it may be meant for another bot
	}
	return said("I don't know `/%s`. `/help` lists what I know.", plain(call.In.Command))
}

// callback carries out a pressed button.
func (c *chat) callback(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	gone := core.Errorf(core.Invalid, "This button is not known any more.")
	id, option, ok := permission.SplitData(call.In.Callback.Data)
	if !ok {
		return dispatch.Outcome{}, gone
	}
	ask, err := c.desk.ByID(ctx, c.db, id)
	if core.KindOf(err) == core.NotFound || err == nil && ask.Bot != call.In.Bot {
		return dispatch.Outcome{}, gone
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	var text string
	switch {
	case ask.Kind == permission.KindChoice && ask.Chat == call.In.Chat:
		return c.choose(ctx, call, ask, option)
	case ask.Kind == permission.KindQuestion && ask.Chat == call.In.Chat:
		return c.answerBy(ctx, call, ask, option)
	case ask.Kind == permission.KindPermission:
		text, err = c.decide(ctx, call, ask, option)
	case ask.Kind == permission.KindPairing && ask.Chat == call.In.Chat:
		var by core.Actor
		if by, err = c.owner(ctx, call); err == nil {
			text, err = c.approvals.press(ctx, ask, option, by)
		}
	default:
		err = gone
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return dispatch.Outcome{Text: core.CutRunes(text, 150)}, nil
}

// decide lets a tool's call go on, or not: the owner's or an admin's word.
func (c *chat) decide(ctx context.Context, call dispatch.Call, ask permission.Ask, option string) (string, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return "", err
	}
	if err := c.guard.Press(ctx, ask.ID, option, by); err != nil {
		return "", err
	}
	if option == permission.OptionDeny {
		return "Denied", nil
	}
	return "Allowed", nil
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
