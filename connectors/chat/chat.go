// Package chat carries out what people write to a bot besides messages: commands,
// pressed buttons, and answers to questions.
package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/attach"
	"gatehouse/core/bus"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/queue"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/usage"
	"gatehouse/pairing"
)

// Options are what the commands work on.
type Options struct {
	Book      *pairing.Book
	Desk      *permission.Desk
	Guard     *permission.Guard
	Sessions  *session.Store
	Agents    *agent.Agents
	Bus       *bus.Bus
	Queue     *queue.Queue
	Runs      *orchestrator.Orchestrator
	Events    *orchestrator.Events
	Files     *attach.Keeper
	Usage     *usage.Ledger
	Models    func(guest bool) []string // that may answer, in order
	Stop      func(bot, lane string) bool
	StopOne   func(run string) bool
	DB        *store.DB
	Clock     core.Clock
	Model     func() string // that answers where nobody chose another
	BusyMode  func() string
	Platform  func(bot string) string
	Link      func(bot, code string) string // of an invitation, "" where the platform has none
	Overheard *agent.Overheard
	Render    func(to core.Address, markdown string) []core.Part
	NoModel   func(name string) string // why no turn is answered by that model; "": it is
}

// Chat carries out the commands that people type, the same on every platform.
type Chat struct{ o Options }

// New returns the commands over these parts.
func New(o Options) *Chat { return &Chat{o} }

// An entry is one line of the table that the help text, the platforms'
// menus and the dispatcher share.
type entry struct {
	name    string
	about   string
	owner   bool   // for owner and admins
	control bool   // passes by the chat's line
	args    string // what may stand behind the name; "" for nothing
	private bool   // its answer in a group is for who asked alone, where the platform can
	run     func(c *Chat, ctx context.Context, call command.Call) (command.Outcome, error)
}

// entrys is that table. /claim, /start and /help of strangers are
// answered at the gate; here they are for people with access.
func commands() []entry {
	return []entry{
		{name: "start", about: texts.Text("about_start"), run: (*Chat).start},
		{name: "help", about: texts.Text("about_help"), run: (*Chat).help},
		{name: "new", about: texts.Text("about_new"), args: texts.Text("args_new"), run: (*Chat).fresh},
		{name: "stop", about: texts.Text("about_stop"), control: true, run: (*Chat).stopRun},
		{name: "status", about: texts.Text("about_status"), control: true, run: (*Chat).status},
		{name: "sessions", about: texts.Text("about_sessions"), private: true, run: (*Chat).list},
		{name: "resume", about: texts.Text("about_resume"), args: texts.Text("args_id"), private: true, run: (*Chat).resume},
		{name: "model", about: texts.Text("about_model"), args: texts.Text("args_name"), run: (*Chat).chooseModel},
		{name: "busy", about: texts.Text("about_busy"), args: texts.Text("args_busy"), run: (*Chat).busy},
		{name: "compact", about: texts.Text("about_compact"), run: (*Chat).compact},
		{name: "usage", about: texts.Text("about_usage"), private: true, run: (*Chat).usageOf},
		{name: "whoami", about: texts.Text("about_whoami"), private: true, run: (*Chat).whoami},
		{name: "claim", about: texts.Text("about_claim"), args: texts.Text("args_code"), private: true, run: (*Chat).claimed},
		{name: "pair", about: texts.Text("about_pair"), args: texts.Text("args_code"), private: true, run: (*Chat).pair},
		{name: "link", about: texts.Text("about_link"), args: texts.Text("args_code"), private: true, run: (*Chat).linkAccount},
		{name: "trust", about: texts.Text("about_trust"), owner: true, args: texts.Text("args_trust"), run: (*Chat).trust},
		{name: "agent", about: texts.Text("about_agent"), owner: true, args: texts.Text("args_name"), run: (*Chat).agent},
		{name: "pairing", about: texts.Text("about_pairing"), owner: true, private: true, run: (*Chat).pending},
		{name: "approve", about: texts.Text("about_approve"), owner: true, control: true, args: texts.Text("args_approve"), run: (*Chat).approve},
		{name: "deny", about: texts.Text("about_deny"), owner: true, control: true, args: texts.Text("args_code"), run: (*Chat).denyRequest},
		{name: "invite", about: texts.Text("about_invite"), owner: true, args: texts.Text("args_invite"), private: true, run: (*Chat).invite},
		{name: "enable", about: texts.Text("about_enable"), owner: true, args: texts.Text("args_enable"), run: (*Chat).enable},
		{name: "disable", about: texts.Text("about_disable"), owner: true, run: (*Chat).disable},
	}
}

// Handlers returns the table as the dispatcher takes it, every owner's command
// behind the check of who asks.
func (c *Chat) Handlers() map[string]command.Handler {
	out := map[string]command.Handler{}
	for _, cmd := range commands() {
		out[cmd.name] = func(ctx context.Context, call command.Call) (command.Outcome, error) {
			if cmd.owner {
				if _, err := c.owner(ctx, call); err != nil {
					return command.Outcome{}, err
				}
			}
			return cmd.run(c, ctx, call)
		}
	}
	return out
}

// IsControl reports whether a row passes by its chat's line.
func IsControl(in *core.Inbound) bool {
	if in.Kind != core.KindCommand {
		return false
	}
	for _, cmd := range commands() {
		if cmd.name == in.Command {
			return cmd.control
		}
	}
	return false
}

// owner is the actor of an owner's or admin's call; Denied for anybody else.
func (c *Chat) owner(ctx context.Context, call command.Call) (core.Actor, error) {
	user, role, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err != nil {
		return core.Actor{}, err
	}
	if call.In.From.Shared || role != "owner" && role != "admin" {
		return core.Actor{}, texts.Error(core.Denied, "owner_only")
	}
	return core.Actor{User: user, Via: "chat"}, nil
}

// said answers with a text of the catalogue.
func said(name string, with ...texts.With) (command.Outcome, error) {
	return command.Outcome{Text: texts.Text(name, with...)}, nil
}

func (c *Chat) start(_ context.Context, call command.Call) (command.Outcome, error) {
	return said("greeting", texts.With{"Who": plain(call.In.From.Name)})
}

func (c *Chat) help(ctx context.Context, call command.Call) (command.Outcome, error) {
	_, err := c.owner(ctx, call)
	var b strings.Builder
	b.WriteString(texts.Text("commands") + "\n\n")
	for _, cmd := range commands() {
		if !cmd.owner || err == nil { // the command is plain, so that a tap sends it
			b.WriteString(texts.Text("commands_line", texts.With{"Command": cmd.name, "About": cmd.about}) + "\n")
		}
	}
	return command.Outcome{Text: b.String()}, nil
}

func (c *Chat) stopRun(ctx context.Context, call command.Call) (command.Outcome, error) {
	if ok, err := c.mayStop(ctx, call); err != nil {
		return command.Outcome{}, err
	} else if !ok {
		return said("stop_another")
	}
	if c.o.Stop(call.In.Bot, call.In.Bot+"|"+call.In.Chat) {
		return command.Outcome{}, nil // the run's own end says that it was stopped
	}
	return said("stop_nothing")
}

// mayStop: a group's answer is stopped by whoever asked for it, the owner or an admin.
func (c *Chat) mayStop(ctx context.Context, call command.Call) (bool, error) {
	if !call.In.Group() {
		return true, nil
	}
	user, role, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err != nil || role == "owner" || role == "admin" {
		return true, err
	}
	for _, r := range c.o.Bus.Active() {
		if r.Bot == call.In.Bot && r.Chat == call.In.Chat && r.User != user {
			return false, nil
		}
	}
	return true, nil
}

func (c *Chat) status(ctx context.Context, call command.Call) (command.Outcome, error) {
	running, seconds := false, 0
	for _, r := range c.o.Bus.Active() {
		if r.Bot == call.In.Bot && r.Chat == call.In.Chat {
			running, seconds = true, int(call.In.At.Sub(r.Started).Abs().Seconds())
		}
	}
	waiting, err := c.o.Queue.Backlog(ctx, call.In.Bot+"|"+call.In.Chat)
	if err != nil {
		return command.Outcome{}, err
	}
	if running && waiting > 0 {
		waiting-- // the one that is being answered
	}
	set, err := c.o.Sessions.Settings(ctx, c.o.DB, call.In.Address)
	if err != nil {
		return command.Outcome{}, err
	}
	if set.Model, err = c.chosenModel(ctx, call); err != nil {
		return command.Outcome{}, err
	}
	trust, _, err := c.trustHere(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	return said("status", texts.With{"Running": running, "Seconds": seconds, "Waiting": waiting,
		"Model": cmp.Or(set.Model, c.o.Model()), "Busy": cmp.Or(set.BusyMode, c.o.BusyMode()), "Trust": trust})
}

func (c *Chat) whoami(ctx context.Context, call command.Call) (command.Outcome, error) {
	user, role, err := c.o.Book.User(ctx, c.o.DB, call.In.From)
	if err != nil {
		return command.Outcome{}, err
	}
	if user == 0 {
		return said("whoami_group", texts.With{"Who": plain(call.In.From.Name), "ID": call.In.From.ID, "Trust": call.Trust})
	}
	return said("whoami", texts.With{"Who": plain(call.In.From.Name), "ID": call.In.From.ID, "User": user, "Role": role, "Trust": call.Trust})
}

// claimed is reached by nobody but those whose /claim the gate let pass: it
// has answered already.
func (c *Chat) claimed(context.Context, command.Call) (command.Outcome, error) {
	return command.Outcome{}, nil
}

func (c *Chat) pending(ctx context.Context, _ command.Call) (command.Outcome, error) {
	rs, err := c.o.Book.Requests(ctx, "pending", 20)
	if err != nil {
		return command.Outcome{}, err
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
	return command.Outcome{Text: b.String()}, nil
}

func (c *Chat) approve(ctx context.Context, call command.Call) (command.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	words := strings.Fields(call.In.Text)
	a, err := approval(words[min(1, len(words)):], c.o.Clock.Now())
	if len(words) == 0 || len(words) > 3 || err != nil {
		return said("approve_how")
	}
	r, err := c.o.Book.Approve(ctx, words[0], a, by)
	if core.KindOf(err) == core.NotFound {
		return said("no_request")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	until := ""
	if !a.ExpiresAt.IsZero() {
		until = a.ExpiresAt.UTC().Format("2 January 15:04")
	}
	return said("approve_done", texts.With{"Who": plain(r.Display), "Trust": r.ApprovedTrustLevel, "Until": until})
}

func (c *Chat) denyRequest(ctx context.Context, call command.Call) (command.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	ref := strings.TrimSpace(call.In.Text)
	if ref == "" {
		return said("deny_how")
	}
	r, err := c.o.Book.Deny(ctx, ref, by)
	if core.KindOf(err) == core.NotFound {
		return said("no_request")
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return said("deny_done", texts.With{"Who": plain(r.Display)})
}

func (c *Chat) Unknown(_ context.Context, call command.Call) (command.Outcome, error) {
	if call.In.Group() {
		return command.Outcome{}, nil // it may be meant for another bot
	}
	return said("unknown_command", texts.With{"Command": plain(call.In.Command)})
}

// Menu returns the commands that anybody with access may use, for platforms
// with a menu.
func Menu() []connectors.Command {
	return slices.DeleteFunc(Commands(), func(c connectors.Command) bool {
		return slices.ContainsFunc(commands(), func(o entry) bool { return o.name == c.Name && o.owner })
	})
}

// Commands returns all commands: a platform that lists them shows them to
// everybody, and the owner's are refused to others.
func Commands() []connectors.Command {
	var out []connectors.Command
	for _, c := range commands() {
		out = append(out, connectors.Command{Name: c.name, Description: c.about, Args: c.args, Private: c.private,
			Completes: c.name == "agent" || c.name == "model"})
	}
	return out
}

// Complete returns the agents or models whose names contain what was typed, for
// the owner and admins.
func (c *Chat) Complete(ctx context.Context, who core.Peer, command, typed string) (out []string) {
	_, role, err := c.o.Book.User(ctx, c.o.DB, who)
	if err != nil || role != "owner" && role != "admin" {
		return nil
	}
	var names []string
	switch command {
	case "model":
		names = c.o.Models(false)
	case "agent":
		names = c.o.Agents.Names()
	}
	for _, n := range names {
		if strings.Contains(strings.ToLower(n), strings.ToLower(typed)) {
			out = append(out, n)
		}
	}
	return out
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
