// Package chat handles what users send to a bot other than messages: commands,
// pressed buttons, and answers to questions. A command is a value: New lists those
// of every gateway, and Options.More has those of packages below that it adds.
// Subpackage ask has the text of questions and approvals.
package chat

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/connectors"
	"gatehouse/connectors/chat/access"
	"gatehouse/connectors/chat/accuracy"
	"gatehouse/connectors/chat/activity"
	"gatehouse/connectors/chat/ask"
	"gatehouse/connectors/chat/find"
	"gatehouse/connectors/chat/journal"
	"gatehouse/connectors/chat/saved"
	"gatehouse/connectors/chat/spending"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/attach"
	"gatehouse/core/bus"
	"gatehouse/core/command"
	"gatehouse/core/permission/raise"
	"gatehouse/core/queue"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/core/usage"
	"gatehouse/pairing/places"
)

// Options are the parts that the commands work on.
type Options struct {
	DB       *store.DB
	Clock    core.Clock
	Users    Users
	Pairings access.Pairings
	Codes    access.Codes
	Groups   *places.Store
	Raises   *raise.Store

	Sessions  *session.Store
	Queue     *queue.Queue
	Updates   Updates
	Outbox    *outbox.Outbox
	Running   *bus.Bus
	Stopper   Stopper
	Runs      *runs.Store
	Compacter Compacter
	Chooser   Chooser
	Files     *attach.Keeper

	Asks      *ask.Buttons
	Agents    *agent.Agents
	Models    Models
	Usage     *usage.Ledger
	Overheard Overheard
	Finder    find.Finder
	Journal   journal.Options   // without DB, Clock and Asks
	Saved     saved.Command     // without Resolve and Asks
	More      []command.Command // of packages below (their Commands), at the end of the menu

	BusyMode func() string                                       // where a chat has chosen none
	Logging  func() bool                                         // the owner's conversations are logged in the vault
	Platform func(bot string) string                             // of a bot
	Link     func(bot, code string) string                       // that uses an invitation; "" where the platform has none
	Council  func(ctx context.Context, r command.Request) string // what the sender's last answer of a council cost; "" without one
}

// Users identifies the senders of messages.
type Users interface {
	// User returns the id and the role of a user, or 0 for an unknown one.
	User(ctx context.Context, q store.Queryer, p core.Peer) (id int64, role core.Role, err error)
	// Peer returns the account of a user on a platform.
	Peer(ctx context.Context, q store.Queryer, user int64, platform string) (core.Peer, error)
}

// Chat handles commands, buttons and answers, the same on every platform.
type Chat struct {
	db       *store.DB
	users    Users
	commands []command.Command

	asks    *ask.Buttons
	diary   *journal.Commands
	answers *answers
}

// TakeAlbum is that of journal.Commands.
func (c *Chat) TakeAlbum(ctx context.Context, tx *store.Tx, in *core.Inbound) error {
	return c.diary.TakeAlbum(ctx, tx, in)
}

// New returns a Chat over these parts.
func New(o Options) *Chat {
	bound := &bound{o.Sessions, o.Raises, o.Platform}
	chosen := &chosenModel{o.DB, bound, o.Sessions, o.Groups}
	c := &Chat{db: o.DB, users: o.Users, asks: o.Asks,
		answers: &answers{o.DB, o.Users, o.Sessions, o.Queue, o.Updates, o.Outbox, o.Stopper, o.Runs, o.Files, o.Platform}}
	zone := func(ctx context.Context, user int64) (*time.Location, error) {
		return o.Journal.Zones.Timezone(ctx, o.DB, user)
	}
	people := &access.Commands{Clock: o.Clock, Pairings: o.Pairings, Codes: o.Codes, Link: o.Link, Zone: zone}
	groups := &groups{o.DB, o.Groups, o.Overheard}
	conversations := &conversations{o.DB, o.Clock, bound, o.Queue, o.Compacter, o.Overheard, o.Asks, chosen}
	models := &models{chosen, o.Models, o.Asks}
	agents := &agents{o.DB, bound, o.Agents, o.Models, o.Groups, o.Asks}
	busy := &busy{o.DB, bound, o.Sessions, o.BusyMode, o.Asks}
	trust := &trust{o.DB, bound, o.Sessions, o.Clock, zone}
	o.Saved.Resolve, o.Saved.Asks, o.Journal.DB, o.Journal.Clock, o.Journal.Asks = bound.resolve, o.Asks, o.DB, o.Clock, o.Asks
	c.diary = journal.New(o.Journal)
	c.commands = []command.Command{
		// For strangers /start, /help and /claim are answered at the gate.
		{Name: "start", About: texts.Text("about_start"), Shows: true, Run: c.start},
		{Name: "help", About: texts.Text("about_help"), Args: texts.Text("args_name"), Shows: true, Run: c.help},
		{Name: "new", About: texts.Text("about_new"), How: texts.Text("new_how"), Args: texts.Text("args_new"), Where: command.ManagedGroup, Run: conversations.begin},
		{Name: "stop", About: texts.Text("about_stop"), Control: true, Run: c.answers.stop},
		{Name: "status", About: texts.Text("about_status"), Control: true, Run: (&status{o.DB, o.Updates, o.Running, o.Sessions, chosen, o.Agents, o.Chooser, busy, trust, o.Council}).show},
		{Name: "sessions", About: texts.Text("about_sessions"), Shows: true, Private: true, Where: command.DirectOnly, Elsewhere: texts.Text("sessions_in_group"), Run: conversations.list},
		{Name: "resume", About: texts.Text("about_resume"), Args: texts.Text("args_id"), Private: true, Where: command.DirectOnly, Elsewhere: texts.Text("resume_in_group"), Run: conversations.resume},
		{Name: "search", About: texts.Text("about_search"), Args: texts.Text("args_search"), Private: true, Run: find.New(o.DB, o.Finder, o.Sessions, zone, o.Asks).Run},
		{Name: "journal", About: texts.Text("about_journal"), Args: texts.Text("args_journal"), Private: true, Where: command.DirectOnly, Elsewhere: texts.Text("journal_in_group"), Run: c.diary.Run},
		{Name: "j", About: texts.Text("about_j"), Args: texts.Text("args_journal"), Private: true, Where: command.DirectOnly, Elsewhere: texts.Text("journal_in_group"), Run: c.diary.Run},
		{Name: "timezone", About: texts.Text("about_timezone"), Args: texts.Text("args_timezone"), Shows: true, Private: true, Run: c.diary.Zone},
		{Name: "context", About: texts.Text("about_context"), Args: texts.Text("args_name"), Shows: true, Managers: true, Complete: o.Saved.Contexts.Names, Run: o.Saved.Run},
		{Name: "model", About: texts.Text("about_model"), Args: texts.Text("args_name"), Shows: true, Where: command.ManagedGroupArgs, Complete: func() []string { return o.Models.Names(false) }, Run: models.run},
		{Name: "accuracy", About: texts.Text("about_accuracy"), How: texts.Text("accuracy_levels"), Args: texts.Text("args_accuracy"), Guests: accuracy.Guests(o.Models), Where: command.ManagedGroupArgs, Run: accuracy.New(o.Models, models.run, o.Asks)},
		{Name: "busy", About: texts.Text("about_busy"), How: texts.Text("busy_how"), Args: texts.Text("args_busy"), Shows: true, Where: command.ManagedGroupArgs, Run: busy.run},
		{Name: "compact", About: texts.Text("about_compact"), Where: command.ManagedGroup, Run: conversations.compact},
		{Name: "usage", About: texts.Text("about_usage"), Shows: true, Private: true, Run: (&spending.Usage{DB: o.DB, Clock: o.Clock, Ledger: o.Usage}).Run},
		{Name: "whoami", About: texts.Text("about_whoami"), Shows: true, Private: true, Run: whoami},
		{Name: "claim", About: texts.Text("about_claim"), Args: texts.Text("args_code"), Private: true, Run: claimed},
		{Name: "pair", About: texts.Text("about_pair"), How: texts.Text("pair_how"), Args: texts.Text("args_code"), Private: true, Where: command.DirectOnly, Elsewhere: texts.Text("code_in_group"), Run: access.Pair},
		{Name: "link", About: texts.Text("about_link"), Args: texts.Text("args_code"), Private: true, Where: command.DirectOnly, Elsewhere: texts.Text("code_in_group"), Run: people.MakeLink},
		{Name: "trust", About: texts.Text("about_trust"), How: texts.Text("trust_how"), Args: texts.Text("args_trust"), Shows: true, Managers: true, Where: command.DirectOnly, Elsewhere: texts.Text("trust_in_group"), Run: trust.run},
		{Name: "activity", About: texts.Text("about_activity"), How: texts.Text("activity_how"), Args: texts.Text("args_activity"), Shows: true, Managers: true, Where: command.DirectOnly, Elsewhere: texts.Text("activity_in_group"), Run: (&activity.Command{DB: o.DB, Chats: o.Sessions, Sessions: o.Sessions, Logging: o.Logging, Resolve: bound.resolve}).Run},
		{Name: "agent", About: texts.Text("about_agent"), Args: texts.Text("args_name"), Shows: true, Managers: true, Complete: o.Agents.Names, Run: agents.run},
		{Name: "pairing", About: texts.Text("about_pairing"), Shows: true, Managers: true, Private: true, Run: people.Pending},
		{Name: "approve", About: texts.Text("about_approve"), How: texts.Text("approve_how"), Args: texts.Text("args_approve"), Managers: true, Control: true, Run: people.Approve},
		{Name: "deny", About: texts.Text("about_deny"), How: texts.Text("deny_how"), Args: texts.Text("args_code"), Managers: true, Control: true, Run: people.Deny},
		{Name: "invite", About: texts.Text("about_invite"), How: texts.Text("invite_how"), Args: texts.Text("args_invite"), Managers: true, Private: true, Where: command.DirectOnly, Elsewhere: texts.Text("invite_in_group"), Run: people.Invite},
		{Name: "enable", About: texts.Text("about_enable"), How: texts.Text("enable_how"), Args: texts.Text("args_enable"), Managers: true, Where: command.GroupOnly, Elsewhere: texts.Text("group_here"), Run: groups.enable},
		{Name: "disable", About: texts.Text("about_disable"), Managers: true, Where: command.GroupOnly, Elsewhere: texts.Text("group_here"), Run: groups.disable},
	}
	c.commands = append(c.commands, o.More...)
	return c
}

// Form returns the form that the button of a question opens.
func (c *Chat) Form(ctx context.Context, in *core.Inbound) (connectors.Form, error) {
	r, err := c.request(ctx, command.Call{In: in})
	if err != nil {
		return connectors.Form{}, err
	}
	return c.asks.Form(ctx, r)
}

// Asks returns what finds the questions that wait in a chat.
func (c *Chat) Asks() *ask.Buttons { return c.asks }

// Answer handles a message that answers the question open in its chat, or that a command
// waited for.
func (c *Chat) Answer(ctx context.Context, call command.Call) (command.Outcome, error) {
	r, err := c.request(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	name, err := c.asks.Next(ctx, r)
	if err != nil {
		return command.Outcome{}, err
	}
	name, args, _ := strings.Cut(name, " ") // what the command awaits the message for
	i := slices.IndexFunc(c.commands, func(cmd command.Command) bool { return cmd.Name == name })
	if i < 0 {
		return c.asks.Answer(ctx, r)
	}
	r = r.With(args)
	if err := allow(c.commands[i], r); err != nil {
		return command.Outcome{}, err
	}
	return c.commands[i].Run(ctx, r)
}

// Callback handles a pressed button.
func (c *Chat) Callback(ctx context.Context, call command.Call) (command.Outcome, error) {
	r, err := c.request(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	if run, ok := command.StopRun(call.In.Callback.Data); ok {
		return c.answers.stopButton(ctx, r, run)
	}
	if run, ok := command.AgainRun(call.In.Callback.Data); ok {
		return c.answers.again(ctx, r, run)
	}
	if run, ok := command.FileRun(call.In.Callback.Data); ok {
		return c.answers.asFile(ctx, r, run)
	}
	if row, ok := command.UnsureRow(call.In.Callback.Data); ok {
		return c.answers.showAgain(ctx, r, row)
	}
	return c.asks.Press(ctx, r)
}
