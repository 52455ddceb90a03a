package main

import (
	"context"

	"gatehouse/connectors/chat"
	chatask "gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/dispatch"
	"gatehouse/core/queue"
)

func (a *app) joinDispatch(qm *queue.Metrics) {
	render := func(to core.Address, markdown string) []core.Part { return a.hub.Render(to, markdown) }
	c := chat.New(chat.Options{
		DB: a.db, Clock: a.clock, Users: a.book, Pairings: a.book, Codes: a.book, Groups: a.book, Doors: a.book, Raises: a.book,
		Conversations: a.sessions, Bindings: a.sessions, Resolver: a.sessions, ChatSettings: a.sessions, TrustModes: a.sessions, Transcripts: a.sessions,
		Lanes: a.queue, Inbox: a.queue, Outbox: a.queue, Running: a.bus, Stopper: a.running, Runs: a.events, Compacter: a.runs, Files: a.files,
		Asks:   chatask.NewButtons(chatask.ButtonOptions{DB: a.db, Clock: a.clock, Access: a.book, Asks: a.desk, Questions: a.desk, Decisions: a.guard, Pairings: a.book, Inbox: a.queue, Mail: a.queue, Render: render}),
		Agents: a.agents, Models: modelNames{a}, Usage: a.usage, Overheard: &a.overheard,
		BusyMode: func() string { return a.now().BusyMode }, Platform: a.platform, Link: a.inviteLink,
	})
	a.chat = c
	a.dispatcher = dispatch.New(dispatch.Options{
		Clock: a.clock, Log: a.log, Queue: a.queue, Runs: a.runs, Events: a.events, Bus: a.bus, Ends: a.ends, Running: a.running, Screen: screen{a}, Stage: qm.Stage,
		Render:   render,
		Commands: c.Handlers(), Unknown: c.Unknown, Callback: c.Callback, Answer: c.Answer,
		Keep: a.keepFiles, Attach: a.showing(),
	})
}

// modelNames names the models that answer now.
type modelNames struct{ a *app }

func (m modelNames) Names(guest bool) []string  { return m.a.models().open(guest) }
func (m modelNames) Default() string            { return m.a.models().first.About().Name }
func (m modelNames) Missing(name string) string { return m.a.models().noModel(m.a.cfg, name) }

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
