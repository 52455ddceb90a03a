package views

import (
	"context"

	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/web/api/sessions"
	"gatehouse/web/api/turns"
)

// agentFiles are the files of agents as the panel writes them.
type agentFiles struct {
	*agent.Agents
	log logView
}

// Save writes one, with an audit entry.
func (f agentFiles) Save(ctx context.Context, file, version, text string, by core.Actor) error {
	if err := f.Agents.Save(file, version, text); err != nil {
		return err
	}
	return f.log.Did(ctx, by, "agent.write", file)
}

// botsView is the Hub with an audit row per switch.
type botsView struct {
	fleet *fleet.Fleet
	log   logView
}

func (v botsView) States() []core.BotState { return v.fleet.States() }

// panelBots are the bots as the panel shows and switches them. A switch stays
// after a restart.
type panelBots struct{ fleet *fleet.Fleet }

func (v panelBots) States() []core.BotState { return v.fleet.StatesWithFile() }
func (v panelBots) Start(bot string) error  { return v.fleet.Start(context.Background(), bot) }
func (v panelBots) Stop(bot string) error   { return v.fleet.Stop(context.Background(), bot) }
func (v panelBots) Test(ctx context.Context, bot string) (string, error) {
	return v.fleet.Hub.Test(ctx, bot)
}

func (v botsView) Start(ctx context.Context, bot string, by core.Actor) error {
	if err := v.fleet.Start(ctx, bot); err != nil {
		return err
	}
	return v.log.Did(ctx, by, "bot.start", bot)
}

func (v botsView) Stop(ctx context.Context, bot string, by core.Actor) error {
	if err := v.fleet.Stop(ctx, bot); err != nil {
		return err
	}
	return v.log.Did(ctx, by, "bot.stop", bot)
}

func (v botsView) Test(ctx context.Context, bot string) (string, error) {
	return v.fleet.Hub.Test(ctx, bot)
}

// runsView is what the API asks of runs.
type runsView struct{ c *Core }

func (v runsView) Abort(session string) bool { return v.c.Running.Abort(session) }

func (v runsView) AbortRun(ctx context.Context, session, run string) error {
	err := v.c.DB.Tx(ctx, func(tx *store.Tx) error {
		waiting, err := inspect.WaitingOf(ctx, tx, run)
		if err != nil {
			return err
		}
		return v.c.Queue.Stop(ctx, tx, session, waiting)
	})
	v.c.Running.AbortRun(run)
	return err
}

func (v runsView) Run(ctx context.Context, id string) (turns.Run, error) {
	r, err := v.c.Events.ByRun(ctx, id)
	if err != nil {
		return turns.Run{}, err // a run that has no row yet has not ended
	}
	return apiRun(r), nil
}

func apiRun(r runs.Row) turns.Run {
	return turns.Run{ID: r.ID, Session: r.Session, User: r.User, Ended: r.State != "running"}
}

// sessionsView is core/session as the API lists it.
type sessionsView struct{ c *Core }

func (v sessionsView) Locate(ctx context.Context, user int64, id string) (string, bool, error) {
	found, known, err := v.c.SessionStore.Locate(ctx, user, id)
	if err == nil && !known && user == core.Operator { // perhaps only written down as Markdown
		if known, err = v.c.Importer.Open(ctx, found); err == nil && known {
			return v.c.SessionStore.Locate(ctx, user, id)
		}
	}
	return found, known, err
}

func (v sessionsView) Session(ctx context.Context, id string) (sessions.Row, error) {
	s, err := v.c.SessionStore.ByID(ctx, v.c.DB, id)
	return sessions.RowOf(s), err
}

func filterOf(q sessions.Query) session.Filter {
	return session.Filter{
		User: q.User, All: q.Everybody, Module: q.Module, Source: q.Source, AgentType: q.AgentType, Project: q.Project, Archived: q.Archived,
		Tag: q.Tag, Context: q.Context, Search: q.Search, Limit: q.Limit, Offset: q.Offset, Cursor: q.Cursor,
	}
}

func (v sessionsView) Count(ctx context.Context, q sessions.Query) (int, error) {
	return v.c.SessionStore.Count(ctx, filterOf(q))
}

func (v sessionsView) List(ctx context.Context, q sessions.Query) ([]sessions.Row, string, error) {
	f := filterOf(q)
	if f.Search != "" {
		return v.search(ctx, f)
	}
	list, next, err := v.c.SessionStore.List(ctx, f)
	rows := make([]sessions.Row, 0, len(list))
	for _, s := range list {
		rows = append(rows, sessions.RowOf(s))
	}
	return rows, next, err
}

func (v sessionsView) search(ctx context.Context, f session.Filter) ([]sessions.Row, string, error) {
	list, next, err := v.c.SessionStore.Search(ctx, f)
	rows := make([]sessions.Row, 0, len(list))
	for _, found := range list {
		row := sessions.RowOf(found.Session)
		row.Hit = &sessions.Hit{In: found.Hit.In, Excerpt: found.Hit.Excerpt, Message: found.Hit.Message, Role: found.Hit.Role, At: found.Hit.At}
		rows = append(rows, row)
	}
	return rows, next, err
}
