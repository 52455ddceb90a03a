package main

import (
	"context"
	"slices"

	"gatehouse/cmd/gatehouse/scheduling"
	"gatehouse/connectors/chat/accuracy"
	chatask "gatehouse/connectors/chat/ask"
	chatdaily "gatehouse/connectors/chat/daily"
	chathandoff "gatehouse/connectors/chat/handoff"
	chatproject "gatehouse/connectors/chat/project"
	chatremind "gatehouse/connectors/chat/remind"
	"gatehouse/connectors/chat/why"
	"gatehouse/core"
	chatcommand "gatehouse/core/command"
	"gatehouse/core/schedule"
	"gatehouse/core/schedule/remind"
	"gatehouse/core/store"
)

// dailyActs are daily agents as the panel and the API start and switch them.
type dailyActs struct {
	*schedule.Scheduler
	inbox schedule.Inbox
}

// Start runs an agent for a date.
func (v dailyActs) Start(ctx context.Context, name, date string, force bool, by core.Actor) (schedule.Run, error) {
	return v.Scheduler.Start(ctx, v.inbox, name, date, force, by)
}

// moreCommands returns the chat commands that are not those of every gateway.
func (a *app) moreCommands(asks *chatask.Buttons, council *why.Commands) []chatcommand.Command {
	return slices.Concat(
		chatremind.New(chatremind.Options{DB: a.db, Clock: a.clock, Reminders: a.reminders, Zones: a.pairing.People, Asks: asks}).Commands(),
		(&chathandoff.Command{DB: a.db, Sessions: a.sessions, Markdown: a.handoff}).Commands(),
		(&chatproject.Command{DB: a.db, Projects: a.projects, Chats: a.projects, Sessions: a.sessions, Asks: asks}).Commands(),
		chatdaily.New(dailyActs{a.schedule, a.queue}, asks).Commands(),
		a.memoryCommands(a.db, a.sessions, asks, a.clock),
		council.Commands(accuracy.Guests(a.models)),
	)
}

// joinSchedule builds daily agents.
func (a *app) joinSchedule() {
	a.schedule = schedule.New(schedule.Options{
		DB: a.db, Vault: a.vault, Clock: a.clock, Log: a.log, Metrics: schedule.NewMetrics(a.reg, a.clock), Ring: a.bus.Ring,
		State: func(ctx context.Context, bot, update string) (state, why string, err error) {
			step, err := a.inspect.Update(ctx, bot, update)
			return step.State, step.Error, err
		},
		Name: func(ctx context.Context) (string, error) {
			return a.pairing.People.AccountName(ctx, a.db, core.Operator)
		},
	})
	a.reminders = remind.New(remind.Options{
		DB: a.db, Clock: a.clock, Log: a.log, Post: a.outbox.Post, Name: a.pairing.People.Name,
		May: a.mayTalk,
	})
	a.daily = scheduling.New(scheduling.Options{Scheduler: a.schedule, DB: a.db, Open: a.vault.OpenNoLinks, Sessions: a.sessions, Guard: a.guard, Clock: a.clock, Reminders: a.reminders, Zone: a.pairing.People.Timezone, OwnerChat: a.pairing.People.OwnerChat, Reach: a.pairing.People.Reach,
		Render: func(to core.Address, markdown string) []core.Part { return a.hub.Render(to, markdown) }})
}

// mayTalk reports whether an account may talk to the bot there now.
func (a *app) mayTalk(ctx context.Context, tx *store.Tx, to core.Address, from core.Peer) (bool, error) {
	trust, err := a.pairing.Trust(ctx, tx, &core.Inbound{Address: to, From: from, Kind: core.KindMessage, Addressed: true, At: tx.Time()})
	return trust > core.Stranger, err
}
