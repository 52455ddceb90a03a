package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/core/agent"
	"gatehouse/core/dispatch"
	"gatehouse/core/store"
)

// agent says which agents there are, or has another one answer in this
// conversation. It is the owner's to say: an agent's words are from a file of
// theirs, and its limits too.
func (c *chat) agent(ctx context.Context, call dispatch.Call) (dispatch.Outcome, error) {
	list := c.agents.List()
	word := strings.TrimSpace(call.In.Text)
	if word == "" {
		var b strings.Builder
		b.WriteString("Agents:\n\n")
		for _, a := range list {
			fmt.Fprintf(&b, "- %s: %s\n", plain(a.Name), plain(a.Description))
		}
		b.WriteString("\n`/agent NAME` has one of them answer here, until `/new`.")
		return dispatch.Outcome{Text: b.String()}, nil
	}
	who, warnings := c.agents.Choose(word)
	if i := slices.IndexFunc(list, func(a agent.Agent) bool { return a.Name == who.Name }); len(warnings) > 0 || i < 0 {
		return said("There is no agent %s. `/agent` lists them.", plain(word))
	}
	to := call.In.Address
	if err := c.db.Tx(ctx, func(tx *store.Tx) error { return c.sessions.SetAgent(ctx, tx, to, who.Name) }); err != nil {
		return dispatch.Outcome{}, err
	}
	return said("%s answers in this conversation now.", plain(who.Name))
}
