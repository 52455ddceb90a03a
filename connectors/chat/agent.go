package chat

import (
	"context"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
)

// agent says which agents there are, or has another one answer in this
// conversation. It is the owner's to say: an agent's words are from a file of
// theirs, and its limits too.
func (c *Chat) agent(ctx context.Context, call command.Call) (command.Outcome, error) {
	list := c.o.Agents.List()
	word := strings.TrimSpace(call.In.Text)
	if word == "" {
		var b strings.Builder
		b.WriteString(texts.Text("agents") + "\n\n")
		o := offer{Command: "agent"}
		for _, a := range list {
			missing := ""
			if a.Model != "" && c.o.NoModel(a.Model) != "" {
				missing = plain(a.Model)
			}
			b.WriteString(texts.Text("agents_line", texts.With{"Name": plain(a.Name), "About": plain(a.Description), "Model": missing, "Instead": plain(c.o.Model())}) + "\n")
			if len(list) > 1 {
				o.add(a.Name, a.Name)
			}
		}
		b.WriteString("\n" + texts.Text("agents_end"))
		return c.offer(ctx, call, b.String(), o)
	}
	who, warnings := c.o.Agents.Choose(word)
	if i := slices.IndexFunc(list, func(a agent.Agent) bool { return a.Name == who.Name }); len(warnings) > 0 || i < 0 {
		return said("agent_unknown", texts.With{"Name": plain(word)})
	}
	to := call.In.Address
	err := c.o.DB.Tx(ctx, func(tx *store.Tx) error {
		if !call.In.Group() { // a conversation that does not stand yet begins with the choice
			if _, err := c.here(ctx, tx, call); err != nil {
				return err
			}
		}
		return c.o.Sessions.SetAgent(ctx, tx, to, who.Name)
	})
	if call.In.Group() && (err == nil || core.KindOf(err) == core.Conflict) {
		return c.groupAgent(ctx, call, who.Name)
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return said("agent_chosen", texts.With{"Name": plain(who.Name)})
}

// groupAgent has an agent answer in every conversation that begins in the group.
func (c *Chat) groupAgent(ctx context.Context, call command.Call, name string) (command.Outcome, error) {
	by, err := c.owner(ctx, call)
	if err != nil {
		return command.Outcome{}, err
	}
	s, err := c.o.Book.Place(ctx, c.o.DB, call.In.Bot, call.In.Place)
	if err != nil {
		return command.Outcome{}, err
	}
	s.Agent = name
	if err := c.o.Book.SetPlace(ctx, call.In.Bot, call.In.Place, s, by); err != nil {
		return command.Outcome{}, err
	}
	return said("agent_chosen_group", texts.With{"Name": plain(name)})
}
