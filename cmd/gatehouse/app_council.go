package main

import (
	"gatehouse/connectors/chat"
	"gatehouse/connectors/chat/why"
	"gatehouse/core/council/ledger"
	"gatehouse/core/texts"
)

// councils are the parts of the app that councils of several models need.
type councils struct {
	council *ledger.Store // questions, answers, outcomes and domains
}

// councilCommands returns the chat commands of councils.
func councilCommands(c *why.Commands) []chat.Command {
	return []chat.Command{
		{Name: "why", About: texts.Text("about_why"), Private: true, Run: c.Why},
		{Name: "pick", About: texts.Text("about_pick"), Args: texts.Text("args_pick"), Private: true, Run: c.Pick},
	}
}
