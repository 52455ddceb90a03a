package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"gatehouse/admin"
	"gatehouse/admin/accounts"
	"gatehouse/admin/approvals"
	"gatehouse/admin/chats"
	admincontexts "gatehouse/admin/contexts"
	admincouncil "gatehouse/admin/council"
	"gatehouse/admin/daily"
	adminimports "gatehouse/admin/imports"
	adminnodes "gatehouse/admin/nodes"
	"gatehouse/admin/operations"
	"gatehouse/admin/page"
	adminpeople "gatehouse/admin/people"
	adminprojects "gatehouse/admin/projects"
	adminreports "gatehouse/admin/reports"
	"gatehouse/admin/settings"
	"gatehouse/cmd/gatehouse/bottexts"
	"gatehouse/cmd/gatehouse/commands/console"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/control/server"
	"gatehouse/cmd/gatehouse/isolation"
	"gatehouse/cmd/gatehouse/sealing"
	"gatehouse/cmd/gatehouse/unasked"
	"gatehouse/cmd/gatehouse/views"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/contexts"
	"gatehouse/core/nodes"
	"gatehouse/core/orchestrator/call"
	"gatehouse/core/runs"
	"gatehouse/core/store/migrations"
	"gatehouse/core/usage"
	"gatehouse/web"
	"gatehouse/web/api"
	apicontexts "gatehouse/web/api/contexts"
	apicouncil "gatehouse/web/api/council"
	apidaily "gatehouse/web/api/daily"
	"gatehouse/web/api/handoffs"
	"gatehouse/web/api/health"
	apiimports "gatehouse/web/api/imports"
	"gatehouse/web/api/passages"
	"gatehouse/web/api/projects"
	"gatehouse/web/auth"
	"gatehouse/web/openai/answer"
	"gatehouse/web/static"
)

func callerKey(r *http.Request) string   { return web.From(r.Context()).Key() }
func callerSecure(r *http.Request) bool  { return web.From(r.Context()).HTTPS }
func callerIsLocal(r *http.Request) bool { return web.From(r.Context()).Local }

// handlers returns everything that the main listener serves, behind every check,
// and what the command line's socket serves.
func (a *app) handlers(inbox closedInbox) (public, private http.Handler, err error) {
	see := a.views()
	metrics, log := web.NewMetrics(a.reg), see.Log()
	authn := auth.NewAuthenticator(a.keys, a.admins, auth.AuthenticatorOptions{Clock: a.clock, Localhost: a.cfg.LocalhostAccess == "chat", Local: callerIsLocal, Address: callerKey})
	mux := http.NewServeMux()
	rest := api.New(api.Options{
		Authenticator: authn, Inbox: inbox, Repeats: a.inspect, Follower: a.bus, Runs: see.Runs(), Sessions: see.Sessions(), Finder: a.library.Finder, Journal: a.apiJournal(), Memory: a.apiMemory(), Sync: a.apiSync(), Voice: a.voice, Contexts: apicontexts.Options{Store: contexts.New(a.vault), May: a.readable.mayRead}, Council: apicouncil.Options{Store: a.council, Pick: a.picks().Pick}, Daily: apidaily.Options{Lists: a.schedule, Starter: dailyActs{a.schedule, a.queue}},
		Projects: projects.Options{Store: a.projects},
		Handoffs: handoffs.Options{Backups: a.handoffs, Markdown: a.handoff},
		Passages: passages.Options{Index: a.library.Documents, MayRead: a.readable.mayRead, Refill: a.library.Crawler.Kick},
		Reader:   see.Reader(), Editor: a.conversations, Transcripts: a.sessions, Failures: see.Failures(), Bots: see.Bots(),
		Pairings: a.pairing, Decisions: a.pairing, People: a.pairing.People, Asks: see.Asks(), Grants: see.Asks(), Answers: see.Answers(), Agents: see.Agents(), Model: a.mayAnswer, Files: a.files, Bell: a.bus,
		Keys: see.Keys(), Audit: log, Figures: log, Mail: a.unasked(), Imports: apiimports.Options{Imports: a.imports, Reports: a.imports, Temp: a.vault.Unnamed, Intake: a.intake},
		Gatherer: a.reg, Clock: a.clock, Log: a.log, Metrics: metrics,
		Checks: []health.Check{
			{Name: "serving", Func: inbox.Open},
			{Name: "database", Func: a.db.Check},
			{Name: "database file", Func: a.file.Look},
			{Name: "queue", Func: func(ctx context.Context) error { _, err := a.inspect.Depths(ctx); return err }},
		},
	})
	rest.Register(mux)
	programs := http.NewServeMux()
	rest.Register(programs)
	a.openai(mux, answer.Options{Authenticator: authn, Inbox: inbox, Follower: a.bus, Runs: see.Runs(), Models: modelsView{a}, Clock: a.clock, Log: a.log, Metrics: metrics})
	agents := a.mcp(authn, programs)
	mux.Handle("/mcp", agents)
	a.admins.OnEnd(func() { go authn.Look() })
	panel := a.panel(authn, metrics)
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
		Files: a.files, Mail: a.unasked(), Bots: a.bots, Limits: a.sandbox.Limits, Servers: a.tools.Servers.Health, InviteLink: a.fleet.InviteLink, Settings: settingsView{a}.report, Users: a.pairing.People, Accounts: a.accounts, Admins: a.admins,
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
	a, err := build(ctx, cfg, slog.New(slog.DiscardHandler), clockOf(cfg), isolation.Begin)
	if err == nil {
		_, h, err = a.handlers(closedInbox{ctx, a.queue})
	}
	if dir, bad := control.Dir(cfg.VaultPath); errors.As(err, new(taken)) && bad == nil {
		err = core.Errorf(core.Conflict, "%s. If that is the gateway, it does not answer in %s: run the command as its user, with its XDG_RUNTIME_DIR or TMPDIR (%s)", core.TextOf(err), dir, console.AsGateway)
	}
	return h, a.Close, err
}

func (a *app) panel(authn *auth.Authenticator, metrics *web.Metrics) http.Handler {
	see := a.views()
	previews, log := a.newPreviews(), see.Log()
	var links page.Links
	if a.demo {
		links = a.admins
	}
	return admin.New(authn, a.admins, admin.Options{
		Options:  page.Options{Codes: a.admins, Links: links, Log: a.log, Clock: a.clock, Bell: a.bus, Metrics: metrics, Asset: func(name string) string { return static.Address("/static/", name) }},
		Unlisted: a.pairing.People.Unlisted, Accounts: accounts.Options{Accounts: a.accounts, Terms: a.accounts, Sessions: a.admins.Sessions, TwoStep: a.accounts, Password: a.admins.CheckPassword},
		Operations: operations.Options{Bots: see.PanelBots(), Audit: log.Did, Lanes: a.inspect, Dead: a.queue, Sends: a.outbox, Stalled: a.inspect.Stalled, Retrying: a.inspect.Retrying,
			Models: modelsPage{a}, Failing: modelsPage{a}.failing, Quantile: runs.Quantile, AuditLog: log.AuditLog,
			Usage: func(ctx context.Context, since time.Time) ([]usage.Total, error) {
				return a.usage.Totals(ctx, a.db, since)
			},
		},
		People: adminpeople.Options{Requests: a.pairing, Decisions: a.pairing, Access: a.pairing.People, Persons: a.pairing.People, Keys: a.keysOf, Terms: a.pairing.People, Blocks: a.pairing.People, Places: a.pairing.Places,
			Spending: see.People(), PersonalData: see.People(), LastSeen: see.People().LastSeen, SetPlace: see.People().SetPlace,
			Invites: a.pairing.Codes, InviteLink: a.fleet.InviteLink, Preset: a.bots.Preset, Preview: previews.Preview},
		Find:      a.panelFind(),
		Imports:   adminimports.Options{Imports: a.imports, Entries: a.imports, Temp: a.vault.Unnamed, Intake: a.intake},
		Journal:   a.panelJournal(),
		Council:   admincouncil.Options{Store: a.council, Pick: a.picks().Pick, Seats: a.councilSeats},
		Reports:   adminreports.Options{Reports: a.reports},
		Nodes:     a.panelNodes(),
		Memory:    a.panelMemory(),
		Projects:  adminprojects.Options{Store: a.projects, Did: log.Did},
		Contexts:  admincontexts.Options{Store: contexts.New(a.vault), Files: a.vault.FS(), May: a.readable.may, Did: log.Did},
		Daily:     daily.Options{Lists: a.schedule, Acts: dailyActs{a.schedule, a.queue}},
		Approvals: approvals.Options{Asks: see.Asks(), Grants: see.Asks(), Raises: a.raises},
		Settings: settings.Options{Settings: settingsView{a}, Changes: settingsView{a}, NewBots: settingsView{a}, Texts: a.botTexts(), Keys: a.keys,
			Backups: see.Backups(), BackupJob: see.Backups().Job, Restores: a.restores,
			Agents: a.agents, Library: a.agents, Drafts: a.agents, SaveAgent: see.AgentFiles().Save, Servers: a.tools.Servers.Health},
		Log: activityView{a.activity},
		Chats: chats.Options{Logs: true, Chats: see.Chats(), Acts: see.Acts(), Bound: see.Acts().Bound, Waits: see.Acts().Waits, Groups: a.sessions.Groups, Search: a.sessions.Search,
			Runs: a.events, Traces: a.inspect, Active: a.bus.Active, Sources: a.bots.Sources, Label: call.Label,
			Spent: func(ctx context.Context, runs ...string) (map[string]usage.Total, error) {
				return a.usage.Spent(ctx, a.db, runs...)
			},
			Say: see.Acts().Say, Next: see.Acts().Next, Models: see.Acts().Models, Retry: see.Acts().Retry, Files: a.files, Read: a.ledger.ReadFor, Speech: a.voice.On(), Questions: see.Questions()},
	})
}

// panelNodes returns the list of gateways; none on SQLite, where there is but one.
func (a *app) panelNodes() adminnodes.Options {
	if !a.cfg.OnServer() {
		return adminnodes.Options{}
	}
	return adminnodes.Options{Needed: migrations.Newest(migrations.Postgres), List: func(ctx context.Context) ([]nodes.Node, error) { return nodes.List(ctx, a.db) }}
}

// keysOf returns the keys of a user that have not expired.
func (a *app) keysOf(ctx context.Context, user int64) ([]auth.KeyRow, error) {
	rows, err := a.keys.List(ctx, auth.MaxKeys)
	return slices.DeleteFunc(rows, func(k auth.KeyRow) bool {
		return k.User != user || !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(a.clock.Now())
	}), err
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

// views returns the core as the panel and the API ask for it.
func (a *app) views() *views.Core {
	return &views.Core{
		DB: a.db, Clock: a.clock, Bus: a.bus, Queue: a.queue, Inspect: a.inspect, Pairing: a.pairing, AskStore: a.asks, Guard: a.guard, Ledger: a.usage,
		AgentList: a.agents, Models: a.models.Names, SessionStore: a.sessions, Conversations: a.conversations, Events: a.events, Orchestrator: a.runs, Running: a.running,
		BotList: a.bots, Fleet: a.fleet, Importer: a.importer, Tasks: a.tasks, KeyStore: a.keys, Library: a.library, Directory: a.backups,
	}
}
