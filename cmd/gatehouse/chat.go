package main

import (
	"cmp"
	"context"
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
	"gatehouse/core/texts"
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
		{name: "start", about: texts.Text("about_start"), run: (*chat).start},
		{name: "help", about: texts.Text("about_help"), run: (*chat).help},
		{name: "new", about: texts.Text("about_new"), args: texts.Text("args_new"), run: (*chat).fresh},
		{name: "stop", about: texts.Text("about_stop"), control: true, run: (*chat).stopRun},
		{name: "status", about: texts.Text("about_status"), control: true, run: (*chat).status},
		{name: "sessions", about: texts.Text("about_sessions"), private: true, run: (*chat).list},
		{name: "resume", about: texts.Text("about_resume"), args: texts.Text("args_id"), private: true, run: (*chat).resume},
		{name: "model", about: texts.Text("about_model"), args: texts.Text("args_name"), run: (*chat).chooseModel},
		{name: "busy", about: texts.Text("about_busy"), args: texts.Text("args_busy"), run: (*chat).busy},
		{name: "compact", about: texts.Text("about_compact"), run: (*chat).compact},
		{name: "usage", about: texts.Text("about_usage"), private: true, run: (*chat).usageOf},
		{name: "whoami", about: texts.Text("about_whoami"), private: true, run: (*chat).whoami},
		{name: "claim", about: texts.Text("about_claim"), args: texts.Text("args_code"), private: true, run: (*chat).claimed},
		{name: "pair", about: texts.Text("about_pair"), args: texts.Text("args_code"), private: true, run: (*chat).pair},
		{name: "link", about: texts.Text("about_link"), args: texts.Text("args_code"), private: true, run: (*chat).linkAccount},
		{name: "trust", about: texts.Text("about_trust"), owner: true, args: texts.Text("args_trust"), run: (*chat).trust},
		{name: "agent", about: texts.Text("about_agent"), owner: true, args: texts.Text("args_name"), run: (*chat).agent},
		{name: "pairing", about: texts.Text("about_pairing"), owner: true, private: true, run: (*chat).pending},
		{name: "approve", about: texts.Text("about_approve"), owner: true, control: true, args: texts.Text("args_approve"), run: (*chat).approve},
		{name: "deny", about: texts.Text("about_deny"), owner: true, control: true, args: texts.Text("args_code"), run: (*chat).denyRequest},
		{name: "invite", about: texts.Text("about_invite"), owner: true, args: texts.Text("args_invite"), private: true, run: (*chat).invite},
		{name: "enable", about: texts.Text("about_enable"), owner: true, args: texts.Text("args_enable"), run: (*chat).enable},
		{name: "disable", about: texts.Text("about_disable"), owner: true, run: (*chat).disable},
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
		return core.Actor{}, texts.Error(core.Denied, "owner_only")
	}
	return core.Actor{User: user, Via: "chat"}, nil
}

// said answers with a text of the catalogue.
func said(name string, with ...texts.With) (dispatch.Outcome, error) {
	return dispatch.Outcome{Text: texts.Text(name, with...)}, nil
}

func (c *chat) start(_ context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	return said("greeting", texts.With{"Who": plain(call.In.From.Name)})
}

func (c *chat) help(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	_, err := c.owner(ctx, call)
	var b strings.Builder
	b.WriteString(texts.Text("commands") + "\n\n")
	for _, cmd := range chatCommands() {
		if !cmd.owner || err == nil { // the command is plain, so that a tap sends it
			b.WriteString(texts.Text("commands_line", texts.With{"Command": cmd.name, "About": cmd.about}) + "\n")
		}
	}
	return dispatch.Outcome{Text: b.String()}, nil
}

func (c *chat) stopRun(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if ok, err := c.mayStop(ctx, call); err != nil {
		return dispatch.Outcome{}, err
	} else if !ok {
		return said("stop_another")
	}
	if c.stop(call.In.Bot, call.In.Bot+"|"+call.In.Chat) {
		return dispatch.Outcome{}, nil // the run's own end says that it was stopped
	}
	return said("stop_nothing")
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
	running, seconds := false, 0
	for _, r := range c.bus.Active() {
		if r.Bot == call.In.Bot && r.Chat == call.In.Chat {
			running, seconds = true, int(call.In.At.Sub(r.Started).Abs().Seconds())
		}
	}
	var waiting int
	err := c.db.Get(ctx, &waiting, `SELECT count(*) FROM inbox WHERE lane = $1 AND state IN ('ready', 'limited')`, call.In.Bot+"|"+call.In.Chat)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if running && waiting > 0 {
		waiting-- // the one that is being answered
	}
	set, err := c.sessions.Settings(ctx, c.db, call.In.Address)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if set.Model, err = c.chosenModel(ctx, call); err != nil {
		return dispatch.Outcome{}, err
	}
	trust, _, err := c.trustHere(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return said("status", texts.With{"Running": running, "Seconds": seconds, "Waiting": waiting,
		"Model": cmp.Or(set.Model, c.model()), "Busy": cmp.Or(set.BusyMode, c.busyMode()), "Trust": trust})
}

func (c *chat) whoami(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	user, role, err := c.book.User(ctx, c.db, call.In.From)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	if user == 0 {
		return said("whoami_group", texts.With{"Who": plain(call.In.From.Name), "ID": call.In.From.ID, "Trust": call.Trust})
	}
	return said("whoami", texts.With{"Who": plain(call.In.From.Name), "ID": call.In.From.ID, "User": user, "Role": role, "Trust": call.Trust})
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
		return said("pending_nobody")
	}
	var b strings.Builder
	b.WriteString(texts.Text("pending") + "\n\n")
	for _, r := range rs {
		b.WriteString(texts.Text("pending_line", texts.With{"Who": plain(r.Display), "ID": r.PlatformUserID, "Bot": r.Bot, "Code": r.Code}) + "\n")
	}
	b.WriteString("\n" + texts.Text("pending_end"))
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
		return said("approve_how")
	}
	r, err := c.book.Approve(ctx, words[0], a, by)
	if core.KindOf(err) == core.NotFound {
		return said("no_request")
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	until := ""
	if !a.ExpiresAt.IsZero() {
		until = a.ExpiresAt.UTC().Format("2 January 15:04")
	}
	return said("approve_done", texts.With{"Who": plain(r.Display), "Trust": r.ApprovedTrustLevel, "Until": until})
}

func (c *chat) denyRequest(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return dispatch.Outcome{}, err
	}
	ref := strings.TrimSpace(call.In.Text)
	if ref == "" {
		return said("deny_how")
	}
	r, err := c.book.Deny(ctx, ref, by)
	if core.KindOf(err) == core.NotFound {
		return said("no_request")
	}
	if err != nil {
		return dispatch.Outcome{}, err
	}
	return said("deny_done", texts.With{"Who": plain(r.Display)})
}

func (c *chat) unknown(_ context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	if call.In.Group() {
		return dispatch.Outcome{}, nil // it may be meant for another bot
	}
	return said("unknown_command", texts.With{"Command": plain(call.In.Command)})
}

// plain makes hostile text fit to stand in our Markdown.
func plain(s string) string {
	s = core.CleanName(s)
	if s == "" {
		return texts.Text("somebody")
	}
	return markdownEscape.Replace(s)
}

var markdownEscape = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "#", `\#`, "|", `\|`, "~", `\~`, "!", `\!`)
