package main

import (
	panelmemory "gatehouse/admin/memory"
	"gatehouse/cmd/gatehouse/remembering"
	"gatehouse/connectors/chat"
	chatask "gatehouse/connectors/chat/ask"
	chatmemory "gatehouse/connectors/chat/memory"
	corememory "gatehouse/core/memory"
	"gatehouse/core/orchestrator"
	"gatehouse/core/texts"
	apimemory "gatehouse/web/api/memory"
)

// remembered is what persons said about answers.
type remembered struct{ corrections *corememory.Store }

// remembers builds the memory of corrections, and returns it as runs use it.
func (a *app) remembers() orchestrator.Memory {
	a.corrections = corememory.New(corememory.Options{DB: a.db, Clock: a.clock, Log: a.log, Box: a.sealed, Metrics: corememory.NewMetrics(a.reg), Ring: func() { a.bus.Ring("memory") }, Domain: a.domainOf})
	o := remembering.Options{Store: a.corrections, Off: !bool(a.cfg.Memory), Log: a.log, Clock: a.clock, Open: a.asks.Open}
	if len(a.cfg.Council) > 0 {
		o.Judged = a.council
	}
	return remembering.New(o)
}

// memoryCommands returns the chat commands of the memory.
func (a *app) memoryCommands(asks *chatask.Buttons) []chat.Command {
	if !a.cfg.Memory {
		return nil
	}
	c := chatmemory.New(a.corrections, a.corrections, asks)
	return []chat.Command{
		{Name: "memory", About: texts.Text("about_memory"), Args: texts.Text("args_memory"), Private: true, Run: c.Run},
		{Name: "remember", About: texts.Text("about_remember"), Args: texts.Text("args_remember"), Private: true, Run: c.Remember},
		{Name: "forget", About: texts.Text("about_forget"), Args: texts.Text("args_forget"), Private: true, Run: c.Forget},
	}
}

// apiMemory returns what the memory's endpoints need.
func (a *app) apiMemory() apimemory.Options {
	return apimemory.Options{Reader: a.corrections, Writer: a.corrections, Restore: a.corrections.Restore}
}

// panelMemory returns what the panel's page of the memory needs.
func (a *app) panelMemory() panelmemory.Options {
	return panelmemory.Options{Reader: a.corrections, Writer: a.corrections, Restore: a.corrections.Restore}
}
