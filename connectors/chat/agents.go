package chat

import (
	"context"
	"slices"
	"strings"

	"gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/command"
	"gatehouse/core/store"
	"gatehouse/core/texts"
	"gatehouse/pairing/places"
)

// Models names the language models.
type Models interface {
	// Names returns the models that may answer, in order.
	Names(guest bool) []string
	// Default returns the model that answers in a chat that has chosen none.
	Default() string
	// Missing returns why a model cannot answer, or "".
	Missing(name string) string
}

// agents handles /agent. Only the owner and the admins choose agents: an agent's
// file sets its instructions and limits.
type agents struct {
	db     *store.DB
	bound  *bound
	agents *agent.Agents
	models Models
	groups *places.Store
	asks   *ask.Buttons
}

// run lists the agents, or chooses the one that answers in this conversation.
func (a *agents) run(ctx context.Context, r command.Request) (command.Outcome, error) {
	if r.Args() == "" {
		return a.list(ctx, r)
	}
	chosen, warnings := a.agents.Choose(r.Args())
	if len(warnings) > 0 || !slices.Contains(a.agents.Names(), chosen.Name) {
		return command.Respond("agent_unknown", texts.With{"Name": texts.Plain(r.Args())})
	}
	err := a.db.Tx(ctx, func(tx *store.Tx) error {
		if !r.In.Group() { // a chat without a conversation begins one with the choice
			if _, err := a.bound.resolve(ctx, tx, r); err != nil {
				return err
			}
		}
		return a.bound.sessions.SetAgent(ctx, tx, r.In.Address, chosen.Name)
	})
	if r.In.Group() && (err == nil || core.KindOf(err) == core.Conflict) {
		return a.setGroup(ctx, r, chosen.Name)
	}
	if err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("agent_chosen", texts.With{"Name": texts.Plain(chosen.Name)})
}

func (a *agents) list(ctx context.Context, r command.Request) (command.Outcome, error) {
	list := a.agents.List()
	var b strings.Builder
	b.WriteString(texts.Text("agents") + "\n\n")
	o := ask.Offer{Command: "agent"}
	for _, x := range list {
		missing := ""
		if x.Model != "" && a.models.Missing(x.Model) != "" {
			missing = texts.Plain(x.Model)
		}
		b.WriteString(texts.Text("agents_line", texts.With{"Name": texts.Plain(x.Name), "About": texts.Plain(x.Description), "Model": missing, "Instead": texts.Plain(a.models.Default())}) + "\n")
		if len(list) > 1 {
			o.Add(x.Name, x.Name)
		}
	}
	b.WriteString("\n" + texts.Text("agents_end"))
	return a.asks.Offer(r, b.String(), o)
}

// setGroup makes an agent answer in every conversation that begins in the group.
func (a *agents) setGroup(ctx context.Context, r command.Request, name string) (command.Outcome, error) {
	s, err := a.groups.Place(ctx, a.db, r.In.Bot, r.In.Place)
	if err != nil {
		return command.Outcome{}, err
	}
	s.Agent = name
	if err := a.groups.SetPlace(ctx, r.In.Bot, r.In.Place, s, r.By()); err != nil {
		return command.Outcome{}, err
	}
	return command.Respond("agent_chosen_group", texts.With{"Name": texts.Plain(name)})
}
