package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/cmd/gatehouse/attachments"
	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/connectors/chat"
	chatask "gatehouse/connectors/chat/ask"
	"gatehouse/connectors/chat/saved"
	"gatehouse/connectors/chat/why"
	"gatehouse/core"
	chatcommand "gatehouse/core/command"
	"gatehouse/core/contexts"
	"gatehouse/core/dispatch"
)

func (a *app) joinChat() {
	var council *why.Commands
	buttons := chatask.NewButtons(chatask.ButtonOptions{Pick: func(ctx context.Context, r chatcommand.Request, query, mark string) (chatcommand.Outcome, error) {
		return council.Press(ctx, r, query, mark)
	}, DB: a.db, Clock: a.clock, Users: a.pairing.People, Access: a.pairing, Asks: a.asks, Questions: a.asks, Decisions: a.guard, Pairings: a.pairing, Inbox: a.queue, Mail: a.outbox})
	council = why.New(a.db, a.picks(), a.outbox, a.sessions)
	a.chat = chat.New(chat.Options{
		DB: a.db, Clock: a.clock, Users: a.pairing.People, Pairings: a.pairing, Codes: a.pairing.Codes, Groups: a.pairing.Places, Raises: a.raises,
		Sessions: a.sessions, Queue: a.queue, Updates: a.inspect, Outbox: a.outbox, Running: a.bus, Stopper: dispatch.Stops{DB: a.db, Queue: a.queue, Running: a.running, Events: a.events}, Runs: a.events, Compacter: a.runs, Chooser: a.runs, Files: a.files,
		Asks: buttons, More: a.moreCommands(buttons, council), Council: council.Spent,
		Agents: a.agents, Models: a.models, Usage: a.usage, Overheard: &a.overheard, Finder: a.library.Finder, Journal: a.chatJournal(), Saved: saved.Command{Contexts: contexts.New(a.vault), Subjects: a.sessions, MayRead: a.readable.mayRead},
		BusyMode: func() string { return a.settings.Now().BusyMode }, Logging: func() bool { return bool(a.settings.Now().Activity) }, Platform: a.bots.Platform, Link: func(bot, code string) string { return a.fleet.InviteLink(bot, code) },
	})
}

func (a *app) joinDispatch() {
	a.incoming = attachments.NewIncoming(a.files, a.hub, func(ctx context.Context, from core.Peer) (int64, error) {
		user, _, err := a.pairing.People.User(ctx, a.db, from)
		return user, err
	}, a.log)
	a.dispatcher = dispatch.New(dispatch.Options{
		Clock: a.clock, Log: a.log, Queue: a.queue, Outbox: a.outbox, Runs: a.runs, Events: a.events, Bus: a.bus, Ends: a.ends, Running: a.running,
		Screen: a.hub, Render: a.hub.Render, Stage: a.stage,
		Commands: a.chat.Handlers(), Unknown: a.chat.Unknown, Callback: a.chat.Callback, Answer: a.chat.Answer,
		Keep: a.incoming.Keep, Attach: a.shown.Parts, Detach: a.files.Remove, Scheduled: a.daily.End,
	})
}

func (a *app) joinConnectors(ctx context.Context) error {
	var err error
	a.fleet, err = fleet.Open(ctx, fleet.Options{
		Bots: a.bots, Settings: a.settings, Platforms: fleet.NewPlatforms(a.cfg, a.queue, a.db, a.chat, a.vault.FS(), a.clock, a.log, a.reg),
		Queue: a.queue, Outbox: a.outbox, DB: a.db, Ring: a.bus.Ring, Clock: a.clock, Log: a.log, Registry: a.reg,
	})
	if err != nil {
		return err
	}
	a.hub = a.fleet.Hub
	a.closing(a.hub.Close)
	a.joinDispatch()
	return nil
}

func registerBuild(reg prometheus.Registerer) {
	revision, goVersion := buildInfo()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gatehouse_build_info", Help: "Always 1."}, []string{"version", "revision", "go"})
	info.WithLabelValues(version, revision, goVersion).Set(1)
	reg.MustRegister(info)
}
