package chat

import (
	"context"
	"slices"
	"strings"

	"gatehouse/connectors"
	"gatehouse/connectors/chat/help"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/texts"
)

// allow returns nil if the sender of r may use c in this chat, or an error with the
// answer.
func allow(c command.Command, r command.Request) error {
	group := r.In.Group()
	switch {
	case c.Managers && !r.Manages():
		return texts.Error(core.Denied, "owner_only")
	case r.Guest() && !c.ForGuests():
		return c.Guests()
	case c.Where == command.DirectOnly && group, c.Where == command.GroupOnly && !group:
		return &core.Error{Kind: core.Invalid, Text: c.Elsewhere}
	case c.Where == command.ManagedGroup, c.Where == command.ManagedGroupArgs && r.Args() != "":
		return managesChat(r)
	}
	return nil
}

// managesChat returns nil if the sender may change the settings of the chat:
// their own direct chat, or any group if they are the owner or an admin.
func managesChat(r command.Request) error {
	if r.In.Group() && !r.Manages() {
		return texts.Error(core.Denied, "group_owner_only")
	}
	return nil
}

// request identifies the sender of a call.
func (c *Chat) request(ctx context.Context, call command.Call) (command.Request, error) {
	user, role, err := c.users.User(ctx, c.db, call.In.From)
	return command.Request{Call: call, User: user, Role: role}, err
}

// Handlers returns the commands by name, behind the checks of sender and chat.
func (c *Chat) Handlers() map[string]command.Handler {
	out := map[string]command.Handler{}
	for _, cmd := range c.commands {
		out[cmd.Name] = func(ctx context.Context, call command.Call) (command.Outcome, error) {
			r, err := c.request(ctx, call)
			if err == nil {
				err = allow(cmd, r)
			}
			if err != nil {
				return command.Outcome{}, err
			}
			out, err := cmd.Run(ctx, r)
			return c.asks.Last(r, out), err
		}
	}
	return out
}

// Passes reports whether a message is a command that is handled at once, and whether it is
// one that only shows something: neither waits for an answer that is made.
func (c *Chat) Passes(in *core.Inbound) (control, shows bool) {
	i := slices.IndexFunc(c.commands, func(cmd command.Command) bool { return cmd.Name == in.Command })
	if i < 0 || in.Kind != core.KindCommand {
		return false, false
	}
	return c.commands[i].Control, c.commands[i].Shows && strings.TrimSpace(in.Text) == ""
}

// Menu returns the commands that everyone with access can use now, guests too, for platforms
// that show one menu to all.
func (c *Chat) Menu() []connectors.Command { return c.list(false) }

// Commands returns all commands, for platforms that list the commands of a bot.
func (c *Chat) Commands() []connectors.Command { return c.list(true) }

func (c *Chat) list(all bool) (out []connectors.Command) {
	for _, cmd := range c.commands {
		if all || cmd.ForGuests() {
			out = append(out, connectors.Command{Name: cmd.Name, Description: cmd.About, Args: cmd.Args, Private: cmd.Private, Completes: cmd.Complete != nil})
		}
	}
	return out
}

// Complete returns the names that contain typed and may follow a command. Only
// the owner and the admins get any.
func (c *Chat) Complete(ctx context.Context, who core.Peer, name, typed string) (out []string) {
	r, err := c.request(ctx, command.Call{In: &core.Inbound{From: who}})
	i := slices.IndexFunc(c.commands, func(cmd command.Command) bool { return cmd.Name == name })
	if err != nil || !r.Manages() || i < 0 || c.commands[i].Complete == nil {
		return nil
	}
	for _, n := range c.commands[i].Complete() {
		if strings.Contains(strings.ToLower(n), strings.ToLower(typed)) {
			out = append(out, n)
		}
	}
	return out
}

// Unknown answers a command that is not in the list.
func (c *Chat) Unknown(_ context.Context, call command.Call) (command.Outcome, error) {
	if call.In.Group() {
		return command.Outcome{}, nil // it may be meant for another bot
	}
	return command.Respond("unknown_command", texts.With{"Command": texts.Plain(call.In.Command)})
}

func (c *Chat) start(_ context.Context, r command.Request) (command.Outcome, error) {
	return command.Respond("greeting", texts.With{"Who": texts.Plain(r.In.From.Name)})
}

// help lists the commands that the sender may use, or explains the one that is named.
func (c *Chat) help(_ context.Context, r command.Request) (command.Outcome, error) {
	name := strings.ToLower(strings.TrimPrefix(r.Args(), "/"))
	var list []command.Command
	for _, cmd := range c.commands {
		may := r.Manages() || !cmd.Managers && !r.Guest() || cmd.ForGuests()
		switch {
		case may:
			list = append(list, cmd)
		case cmd.Name == name:
			return command.Respond("owner_only")
		}
	}
	if name == "" {
		return command.Outcome{Text: help.List(list)}, nil
	}
	i := slices.IndexFunc(list, func(cmd command.Command) bool { return cmd.Name == name })
	if i < 0 {
		return command.Respond("unknown_command", texts.With{"Command": texts.Plain(name)})
	}
	return command.Outcome{Text: help.One(list[i])}, nil
}

// whoami returns how this gateway knows the sender.
func whoami(_ context.Context, r command.Request) (command.Outcome, error) {
	if r.User == 0 {
		return command.Respond("whoami_group", texts.With{"Who": texts.Plain(r.In.From.Name), "ID": r.In.From.ID, "Trust": r.Trust})
	}
	return command.Respond("whoami", texts.With{"Who": texts.Plain(r.In.From.Name), "ID": r.In.From.ID, "User": r.User, "Role": r.Role, "Trust": r.Trust})
}

// claimed answers nothing: the gate has handled the code and has answered.
func claimed(context.Context, command.Request) (command.Outcome, error) {
	return command.Outcome{}, nil
}
