// Package saved is the chat command /context: a saved context becomes what the conversation
// is about.
package saved

import (
	"context"
	"strings"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/contexts"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// Contexts are named lists of directories and files.
type Contexts interface {
	Get(name string) (contexts.Context, error)
	Names() []string
}

// Subjects sets what conversations are about.
type Subjects interface {
	Update(ctx context.Context, tx *store.Tx, id string, c session.Change, by core.Actor) (session.Detail, error)
}

// A Command handles /context.
type Command struct {
	Contexts Contexts
	Subjects Subjects
	// Resolve returns the conversation of the chat. It begins one if there is none.
	Resolve func(ctx context.Context, tx *store.Tx, r command.Request) (session.Session, error)
	// MayRead reports whether a user at this trust may read a file of the vault.
	MayRead func(trust core.Trust, user int64, name string) bool
	Asks    *ask.Buttons
}

// Run lists the saved contexts, or makes one what the conversation is about.
func (c *Command) Run(_ context.Context, r command.Request) (command.Outcome, error) {
	if r.Args() == "" {
		return c.list(r)
	}
	found, err := c.Contexts.Get(r.Args())
	if kind := core.KindOf(err); kind == core.NotFound || kind == core.Invalid && contexts.CheckName(r.Args()) != nil {
		return command.Respond("context_unknown", texts.With{"Name": texts.Escape(core.CutRunes(core.CleanName(r.Args()), 64))})
	}
	if err != nil {
		return command.Outcome{}, err
	}
	paths, left := found.Paths(func(name string) bool { return c.MayRead(r.Trust, r.User, name) })
	shown := make([]string, len(paths))
	for i, p := range paths {
		shown[i] = "- " + texts.Escape(core.Visible(p))
	}
	return command.Outcome{Text: texts.Text("context_chosen", texts.With{"Name": found.Name, "Paths": strings.Join(shown, "\n"), "Left": left}), Write: func(ctx context.Context, tx *store.Tx) error {
		sess, err := c.Resolve(ctx, tx, r)
		if err != nil {
			return err
		}
		_, err = c.Subjects.Update(ctx, tx, sess.ID, session.Change{SetContexts: &paths, Trust: r.Trust}, r.By())
		return err
	}}, nil
}

func (c *Command) list(r command.Request) (command.Outcome, error) {
	names := c.Contexts.Names()
	if len(names) == 0 {
		return command.Respond("contexts_none")
	}
	o := ask.Offer{Command: "context"}
	var b strings.Builder
	b.WriteString(texts.Text("contexts") + "\n\n")
	for _, name := range names {
		o.Add(name, name)
		b.WriteString("- `" + name + "`\n")
	}
	return c.Asks.Offer(r, b.String(), o)
}
