package main

import (
	"context"

	"gatehouse/connectors/chat"
	"gatehouse/core"
	"gatehouse/core/dispatch"
	"gatehouse/core/queue"
)

func (a *app) joinDispatch(qm *queue.Metrics) {
	c := chat.New(chat.Options{Book: a.book, Desk: a.desk, Guard: a.guard, Sessions: a.sessions, Agents: a.agents, Bus: a.bus, Queue: a.queue, DB: a.db,
		Runs: a.runs, Events: a.events, Files: a.files, Usage: a.usage, Clock: a.clock,
		Models: func(guest bool) []string { return a.models().open(guest) }, Model: func() string { return a.models().first.About().Name },
		NoModel:  func(name string) string { return a.models().noModel(a.cfg, name) },
		BusyMode: func() string { return a.now().BusyMode }, Platform: a.platform, Link: a.inviteLink, Overheard: &a.overheard,
		Stop: late{a}.AbortLane, StopOne: late{a}.AbortRun,
		Render: func(to core.Address, markdown string) []core.Part { return a.hub.Render(to, markdown) }})
	a.chat = c
	a.dispatcher = dispatch.New(dispatch.Options{
		Clock: a.clock, Log: a.log, Queue: a.queue, Runs: a.runs, Events: a.events, Bus: a.bus, Screen: screen{a}, Stage: qm.Stage,
		Render:   func(to core.Address, markdown string) []core.Part { return a.hub.Render(to, markdown) },
		Commands: c.Handlers(), Unknown: c.Unknown, Callback: c.Callback, Answer: c.Answer,
		Keep: a.keepFiles, Attach: a.showing(),
	})
}

// screen is the Hub, which is made after the dispatcher.
type screen struct{ a *app }

func (s screen) Preview(ctx context.Context, to core.Address, id string, part core.Part) (string, error) {
	return s.a.hub.Preview(ctx, to, id, part)
}
func (s screen) Typing(ctx context.Context, to core.Address) error { return s.a.hub.Typing(ctx, to) }
func (s screen) Acknowledge(ctx context.Context, to core.Address, id, text string) error {
	return s.a.hub.Acknowledge(ctx, to, id, text)
}

func (s screen) React(ctx context.Context, to core.Address, messageID, emoji string) error {
	return s.a.hub.React(ctx, to, messageID, emoji)
}
