// Package project is the chat command /project.
package project

import (
	"context"
	"strings"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/project"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

type (
	// Projects are a user's (project.Store).
	Projects interface {
		List(ctx context.Context, user int64) ([]project.Project, error)
		Named(ctx context.Context, q store.Queryer, user int64, name string) (project.Project, bool, error)
		CreateIn(ctx context.Context, tx *store.Tx, user int64, name string) (project.Project, error)
	}
	// Chats have an active project each (project.Store).
	Chats interface {
		Choose(ctx context.Context, tx *store.Tx, at core.Address, id string) error
		Active(ctx context.Context, q store.Queryer, at core.Address, user int64) (project.Project, bool, error)
	}
	// Sessions finds and changes the conversation of a chat (session.Store).
	Sessions interface {
		Current(ctx context.Context, q store.Queryer, at core.Address) (session.Session, bool, error)
		Update(ctx context.Context, tx *store.Tx, id string, c session.Change, by core.Actor) (session.Detail, error)
	}
)

// A Command handles /project. All fields are required.
type Command struct {
	DB       *store.DB
	Projects Projects
	Chats    Chats
	Sessions Sessions
	Asks     *ask.Buttons
}

// Commands returns /project.
func (c *Command) Commands() []command.Command {
	return []command.Command{{Name: "project", About: texts.Text("about_project"), Args: texts.Text("args_name"), Shows: true, Where: command.ManagedGroup, Run: c.Run}}
}

const none = "off"

// whose returns the user whose projects are meant: the sender, and in a group the operator,
// who has the conversations of groups.
func whose(r *command.Request) int64 {
	if r.In.Group() {
		return core.Operator
	}
	return r.User
}

// Run lists the sender's projects, or makes one the chat's active project. One that does
// not exist is created. The present conversation joins it. In a group it shows the active
// one alone, because its members would read the names of the others.
func (c *Command) Run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if err := r.Known(); err != nil {
		return command.Outcome{}, err
	}
	if r.Args() == "" {
		return c.list(ctx, r)
	}
	if strings.EqualFold(r.Args(), none) {
		return command.Outcome{Text: texts.Text("project_off"), Write: func(ctx context.Context, tx *store.Tx) error { return c.choose(ctx, tx, r, "") }}, nil
	}
	name, err := project.Name(r.Args())
	if err != nil {
		return command.Respond("project_name", texts.With{"Most": project.MaxName})
	}
	user := whose(&r)
	known, exists, err := c.Projects.Named(ctx, c.DB, user, name)
	if err != nil {
		return command.Outcome{}, err
	}
	if exists {
		name = known.Name
	}
	return command.Outcome{Text: texts.Text("project_chosen", texts.With{"Name": texts.Escape(name), "New": !exists}), Write: func(ctx context.Context, tx *store.Tx) error {
		p, exists, err := c.Projects.Named(ctx, tx, user, name)
		if err == nil && !exists {
			p, err = c.Projects.CreateIn(ctx, tx, user, name)
		}
		if err != nil {
			return err
		}
		return c.choose(ctx, tx, r, p.ID)
	}}, nil
}

// choose sets the project of the chat and of its conversation.
func (c *Command) choose(ctx context.Context, tx *store.Tx, r command.Request, id string) error {
	if err := c.Chats.Choose(ctx, tx, r.In.Address, id); err != nil {
		return err
	}
	s, ok, err := c.Sessions.Current(ctx, tx, r.In.Address)
	if err != nil || !ok || s.User != whose(&r) {
		return err
	}
	_, err = c.Sessions.Update(ctx, tx, s.ID, session.Change{Project: &id, Trust: r.Trust}, r.By())
	return err
}

func (c *Command) list(ctx context.Context, r command.Request) (command.Outcome, error) {
	if r.In.Group() {
		return c.present(ctx, r)
	}
	list, err := c.Projects.List(ctx, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	if len(list) == 0 {
		return command.Respond("projects_none")
	}
	active, _, err := c.Chats.Active(ctx, c.DB, r.In.Address, r.User)
	if err != nil {
		return command.Outcome{}, err
	}
	o := ask.Offer{Command: "project"}
	var b strings.Builder
	b.WriteString(texts.Text("projects") + "\n\n")
	for _, p := range list {
		b.WriteString(texts.Text("project_line", texts.With{"Name": texts.Escape(p.Name), "Active": p.ID == active.ID}) + "\n")
		o.Add(core.CutRunes(p.Name, 40), p.Name)
	}
	if active.ID != "" {
		o.Add(texts.Text("button_project_off"), none)
	}
	return c.Asks.Offer(r, strings.TrimSpace(b.String()), o)
}

// present shows the active project of a group.
func (c *Command) present(ctx context.Context, r command.Request) (command.Outcome, error) {
	active, _, err := c.Chats.Active(ctx, c.DB, r.In.Address, whose(&r))
	if err != nil {
		return command.Outcome{}, err
	}
	o := ask.Offer{Command: "project"}
	if active.ID != "" {
		o.Add(texts.Text("button_project_off"), none)
	}
	return c.Asks.Offer(r, texts.Text("project_in_group", texts.With{"Name": texts.Escape(active.Name)}), o)
}
