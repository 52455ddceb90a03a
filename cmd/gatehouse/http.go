package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/accounts"
	"gatehouse/admin/approvals"
	"gatehouse/admin/chats"
	admincontexts "gatehouse/admin/contexts"
	"gatehouse/admin/daily"
	adminimports "gatehouse/admin/imports"
	"gatehouse/admin/operations"
	"gatehouse/admin/page"
	adminpeople "gatehouse/admin/people"
	"gatehouse/admin/settings"
	"gatehouse/cmd/gatehouse/bottexts"
	"gatehouse/cmd/gatehouse/control/server"
	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/cmd/gatehouse/sealing"
	"gatehouse/cmd/gatehouse/unasked"
	"gatehouse/configs"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/contexts"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/runs"
	"gatehouse/core/session"
	"gatehouse/core/usage"
	"gatehouse/web"
	"gatehouse/web/api"
	apicontexts "gatehouse/web/api/contexts"
	apidaily "gatehouse/web/api/daily"
	"gatehouse/web/api/health"
	apiimports "gatehouse/web/api/imports"
	"gatehouse/web/api/passages"
	"gatehouse/web/api/sessions"
	"gatehouse/web/api/turns"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/static"
)

func callerKey(r *http.Request) string   { return web.From(r.Context()).Key() }
func callerSecure(r *http.Request) bool  { return web.From(r.Context()).HTTPS }
func callerIsLocal(r *http.Request) bool { return web.From(r.Context()).Local }

// handlers returns everything that the main listener serves, behind every check,
// and what the command line's socket serves.
func (a *app) handlers(inbox turns.Inbox) (public, private http.Handler, err error) {
	metrics, log := web.NewMetrics(a.reg), logView{a.db, a.usage}
	door := auth.NewDoor(a.keys, a.admins, auth.DoorOptions{Clock: a.clock, Localhost: a.cfg.LocalhostAccess == "chat", Local: callerIsLocal, Address: callerKey})
	mux := http.NewServeMux()
	rest := api.New(api.Options{
		Door: door, Inbox: inbox, Repeats: a.inspect, Follower: a.bus, Runs: runsView{a}, Sessions: sessionsView{a}, Finder: a.library.Finder, Journal: a.apiJournal(), Sync: a.apiSync(), Voice: a.voice, Contexts: apicontexts.Options{Store: contexts.New(a.vault), May: a.readable.mayRead}, Daily: apidaily.Options{Lists: a.schedule, Starter: dailyActs{a.schedule, a.queue}},
		Passages: passages.Options{Index: a.library.Documents, MayRead: a.readable.mayRead, Refill: a.library.Crawler.Kick},
		Reader:   shelfView{a.sessions, a}, Editor: a.conversations, Transcripts: a.sessions, Failures: failuresView{a.events}, Bots: botsView{a.fleet, log},
		Pairings: a.pairing, Decisions: a.pairing, People: a.pairing.People, Asks: asksView{a.guard, a}, Grants: asksView{a.guard, a}, Answers: answersView{a}, Agents: agentsView{a.agents}, Files: a.files, Bell: a.bus,
		Keys: keysView{a.keys, a.db, a.pairing.People}, Audit: log, Figures: log, Mail: a.unasked(), Imports: apiimports.Options{Imports: a.imports, Reports: a.imports, Temp: a.vault.Unnamed, Intake: a.intake},
		Gatherer: a.reg, Clock: a.clock, Log: a.log, Metrics: metrics,
		Checks: []health.Check{
			{Name: "database", Func: a.db.Check},
			{Name: "database file", Func: a.file.Look},
			{Name: "queue", Func: func(ctx context.Context) error { _, err := a.inspect.Depths(ctx); return err }},
		},
	})
	rest.Register(mux)
	programs := http.NewServeMux()
	rest.Register(programs)
	a.openai(mux, answer.Options{Door: door, Inbox: inbox, Follower: a.bus, Runs: runsView{a}, Models: modelsView{a}, Clock: a.clock, Log: a.log, Metrics: metrics})
	agents := a.mcp(door, programs)
	mux.Handle("/mcp", agents)
	a.admins.OnEnd(func() { go door.Look() })
	panel := a.panel(door, metrics)
	mux.Handle("/admin", panel)
	mux.Handle("/admin/", panel)
	mux.Handle("GET /static/", static.Handler("/static/"))
	mux.Handle("GET /{$}", http.RedirectHandler("/admin", http.StatusSeeOther))
	mux.Handle("/", web.Serve(a.log, web.ShowEither, web.Nowhere(mux)))
	site, err := web.NewSite(web.SiteOptions{Clock: a.clock, Log: a.log, Hosts: a.cfg.AllowedHosts, Origins: a.cfg.CORSOrigins, Proxies: a.cfg.TrustedProxies})
	if err != nil {
		return nil, nil, err
	}
	return site.Wrap(a.first(rest).Wrap(mux)), a.socketHandler(programs, agents), nil
}

func (a *app) socketHandler(programs, agents http.Handler) http.Handler {
	return server.New(server.Options{
		API: programs, MCP: agents, DB: a.db, Log: a.log, Jobs: a.jobs, Tasks: a.tasks, Eraser: a.eraser, Codes: a.pairing.Codes, Sessions: a.sessions, Vault: a.vault, Grants: a.guard,
		Files: a.files, Mail: a.unasked(), Bots: a.bots, Limits: a.limits, Servers: a.tools.Servers.Health, InviteLink: a.inviteLink, Settings: settingsView{a}.report, Users: a.pairing.People, Accounts: a.accounts, Admins: a.admins,
		Rebuild: func(ctx context.Context, progress func(string)) (any, error) { return a.library.Rebuild(ctx, progress) },
		Retry:   func(ctx context.Context, progress func(string)) (any, error) { return a.retryVoice(ctx, progress) },
		Rotate: func(ctx context.Context, progress func(string)) (any, error) {
			return sealing.Rotate(ctx, a.db, a.sealed, progress)
		},
	})
}

// openFiles returns the handler of the command line on the files of a gateway
// that does not run. The caller calls end, also after an error.
func openFiles(ctx context.Context, cfg *configs.Config) (h http.Handler, end func() error, err error) {
	a, err := build(ctx, cfg, slog.New(slog.DiscardHandler), core.System{})
	if err == nil {
		_, h, err = a.handlers(a.queue)
	}
	return h, a.Close, err
}

func (a *app) panel(door *auth.Door, metrics *web.Metrics) http.Handler {
	previews, log := a.newPreviews(), logView{a.db, a.usage}
	var links page.Links
	if a.demo {
		links = a.admins
	}
	return admin.New(door, a.admins, admin.Options{
		Options:  page.Options{Codes: a.admins, Links: links, Log: a.log, Clock: a.clock, Bell: a.bus, Metrics: metrics, Asset: func(name string) string { return static.Address("/static/", name) }},
		Unlisted: a.pairing.People.Unlisted, Accounts: accounts.Options{Accounts: a.accounts, Terms: a.accounts, Sessions: a.admins.Sessions, TwoStep: a.accounts, Password: a.admins.CheckPassword},
		Operations: operations.Options{Bots: panelBots{a.fleet}, Audit: log.Did, Lanes: a.inspect, Dead: a.queue, Sends: a.outbox, Stalled: a.inspect.Stalled,
			Models: modelsPage{a}, Failing: modelsPage{a}.failing, Quantile: runs.Quantile, AuditLog: log.AuditLog,
			Usage: func(ctx context.Context, since time.Time) ([]usage.Total, error) {
				return a.usage.Totals(ctx, a.db, since)
			},
		},
		People: adminpeople.Options{Requests: a.pairing, Decisions: a.pairing, Access: a.pairing.People, Persons: a.pairing.People, Terms: a.pairing.People, Blocks: a.pairing.People, Places: a.pairing.Places,
			Spending: peopleView{a}, Care: peopleView{a}, LastSeen: peopleView{a}.lastSeen, SetPlace: peopleView{a}.setPlace,
			Invites: a.pairing.Codes, InviteLink: a.inviteLink, Preset: a.bots.Preset, Preview: func(ctx context.Context, level core.Trust) (adminpeople.Preview, error) {
				p, err := previews.Preview(ctx, level)
				return adminpeople.Preview(p), err
			}},
		Find:      a.panelFind(),
		Imports:   adminimports.Options{Imports: a.imports, Entries: a.imports, Temp: a.vault.Unnamed, Intake: a.intake},
		Journal:   a.panelJournal(),
		Contexts:  admincontexts.Options{Store: contexts.New(a.vault), Files: a.vault.FS(), May: a.readable.may, Did: log.Did},
		Daily:     daily.Options{Lists: a.schedule, Acts: dailyActs{a.schedule, a.queue}},
		Approvals: approvals.Options{Asks: asksView{a.guard, a}, Grants: asksView{a.guard, a}, Raises: a.raises},
		Settings: settings.Options{Settings: settingsView{a}, Changes: settingsView{a}, NewBots: settingsView{a}, Texts: a.botTexts(), Keys: a.keys,
			Backups: backupsView{a.backups}, BackupJob: backupsView{a.backups}.Job, Restores: a.restores,
			Agents: a.agents, Library: a.agents, Drafts: a.agents, SaveAgent: agentFiles{a.agents, log}.save, Servers: a.tools.Servers.Health},
		Log: activityView{a.activity},
		Chats: chats.Options{Logs: true, Chats: panelChats{a.sessions, a}, Acts: panelActs{a}, Bound: panelActs{a}.Bound, Groups: a.sessions.Groups, Search: a.sessions.Search,
			Runs: panelRuns{a.events}, Traces: a.inspect, Active: a.bus.Active, Sources: a.bots.Sources, Label: call.Label,
			Spent: func(ctx context.Context, runs ...string) (map[string]usage.Total, error) {
				return a.usage.Spent(ctx, a.db, runs...)
			},
			Say: panelActs{a}.say, Next: panelActs{a}.next, Retry: panelActs{a}.retry, Files: a.files, Speech: a.voice.On(), Questions: panelQuestions{answersView{a}}},
	})
}

// unasked returns what sends messages of programs.
func (a *app) unasked() unasked.Mail {
	return unasked.Mail{Options: unasked.Options{DB: a.db, Outbox: a.outbox, Sessions: a.sessions, People: a.pairing.People,
		Render: a.hub.Render, Copy: a.shown.Copy, Remove: a.files.Remove}}
}

// botTexts returns what bots say on their own, for the panel.
func (a *app) botTexts() bottexts.Texts {
	return bottexts.Texts{Find: a.bots.Find, Own: a.settings.OwnText, Change: a.fleet.Change}
}

// agentFiles are the files of agents as the panel writes them.
type agentFiles struct {
	*agent.Agents
	log logView
}

// save writes one, with an audit entry.
func (f agentFiles) save(ctx context.Context, file, version, text string, by core.Actor) error {
	if err := f.Save(file, version, text); err != nil {
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
type runsView struct{ a *app }

func (v runsView) Abort(session string) bool { return v.a.running.Abort(session) }

func (v runsView) Run(ctx context.Context, id string) (turns.Run, error) {
	r, err := v.a.events.ByRun(ctx, id)
	if err != nil {
		return turns.Run{}, err // a run that has no row yet has not ended
	}
	return apiRun(r), nil
}

func apiRun(r runs.Row) turns.Run {
	return turns.Run{ID: r.ID, Session: r.Session, User: r.User, Ended: r.State != "running"}
}

// sessionsView is core/session as the API lists it.
type sessionsView struct{ a *app }

func (v sessionsView) Locate(ctx context.Context, user int64, id string) (string, bool, error) {
	found, known, err := v.a.sessions.Locate(ctx, user, id)
	if err == nil && !known && user == core.Operator { // perhaps only written down as Markdown
		if known, err = v.a.importer.Open(ctx, found); err == nil && known {
			return v.a.sessions.Locate(ctx, user, id)
		}
	}
	return found, known, err
}

func (v sessionsView) Session(ctx context.Context, id string) (sessions.Row, error) {
	s, err := v.a.sessions.ByID(ctx, v.a.db, id)
	return sessions.RowOf(s), err
}

func filterOf(q sessions.Query) session.Filter {
	return session.Filter{
		User: q.User, All: q.Everybody, Module: q.Module, Source: q.Source, AgentType: q.AgentType, Archived: q.Archived,
		Tag: q.Tag, Context: q.Context, Search: q.Search, Limit: q.Limit, Offset: q.Offset, Cursor: q.Cursor,
	}
}

func (v sessionsView) Count(ctx context.Context, q sessions.Query) (int, error) {
	return v.a.sessions.Count(ctx, filterOf(q))
}

func (v sessionsView) List(ctx context.Context, q sessions.Query) ([]sessions.Row, string, error) {
	f := filterOf(q)
	if f.Search != "" {
		return v.search(ctx, f)
	}
	list, next, err := v.a.sessions.List(ctx, f)
	rows := make([]sessions.Row, 0, len(list))
	for _, s := range list {
		rows = append(rows, sessions.RowOf(s))
	}
	return rows, next, err
}

func (v sessionsView) search(ctx context.Context, f session.Filter) ([]sessions.Row, string, error) {
	list, next, err := v.a.sessions.Search(ctx, f)
	rows := make([]sessions.Row, 0, len(list))
	for _, found := range list {
		row := sessions.RowOf(found.Session)
		row.Hit = &sessions.Hit{In: found.Hit.In, Excerpt: found.Hit.Excerpt, Message: found.Hit.Message, Role: found.Hit.Role, At: found.Hit.At}
		rows = append(rows, row)
	}
	return rows, next, err
}

// inviteLink is the address that opens a chat with the bot and uses the code;
// "" where the platform has none, or the bot's name there is not known yet.
func (a *app) inviteLink(bot, code string) string {
	if a.bots.Platform(bot) != telegram.Platform || a.hub == nil {
		return ""
	}
	for _, s := range a.hub.States() {
		if s.Bot == bot && s.Username != "" {
			return "https://t.me/" + strings.TrimPrefix(s.Username, "@") + "?start=" + url.QueryEscape(code)
		}
	}
	return ""
}
