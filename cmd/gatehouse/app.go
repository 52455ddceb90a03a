package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gatehouse/cmd/gatehouse/admission"
	"gatehouse/cmd/gatehouse/attachments"
	"gatehouse/cmd/gatehouse/claude"
	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/fleet"
	"gatehouse/cmd/gatehouse/isolation"
	"gatehouse/cmd/gatehouse/library"
	"gatehouse/cmd/gatehouse/logs"
	"gatehouse/cmd/gatehouse/memory"
	"gatehouse/cmd/gatehouse/models"
	"gatehouse/cmd/gatehouse/ownfiles"
	"gatehouse/cmd/gatehouse/restore"
	"gatehouse/cmd/gatehouse/scheduling"
	"gatehouse/cmd/gatehouse/standby"
	"gatehouse/configs"
	"gatehouse/configs/live"
	"gatehouse/connectors"
	"gatehouse/connectors/chat"
	chatask "gatehouse/connectors/chat/ask"
	"gatehouse/core"
	"gatehouse/core/activity"
	"gatehouse/core/agent"
	coreask "gatehouse/core/ask"
	"gatehouse/core/attach"
	"gatehouse/core/backup"
	"gatehouse/core/backup/directory"
	"gatehouse/core/bus"
	"gatehouse/core/dispatch"
	"gatehouse/core/erasure"
	"gatehouse/core/erasure/tasks"
	"gatehouse/core/importer"
	importtasks "gatehouse/core/importer/tasks"
	"gatehouse/core/jobs"
	"gatehouse/core/llm"
	"gatehouse/core/llm/health"
	"gatehouse/core/llm/quote"
	"gatehouse/core/llm/registry"
	"gatehouse/core/nodes"
	"gatehouse/core/orchestrator"
	"gatehouse/core/orchestrator/incoming"
	runmetrics "gatehouse/core/orchestrator/metrics"
	"gatehouse/core/paraid"
	"gatehouse/core/permission/guard"
	"gatehouse/core/permission/raise"
	"gatehouse/core/queue"
	"gatehouse/core/queue/flight"
	"gatehouse/core/queue/inspect"
	"gatehouse/core/queue/metrics"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/report"
	"gatehouse/core/runs"
	"gatehouse/core/sandbox"
	"gatehouse/core/schedule"
	"gatehouse/core/schedule/remind"
	"gatehouse/core/sealed"
	"gatehouse/core/session"
	"gatehouse/core/session/discover"
	"gatehouse/core/store"
	"gatehouse/core/store/integrity"
	"gatehouse/core/texts"
	"gatehouse/core/toolset"
	"gatehouse/core/upkeep"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
	"gatehouse/pairing"
	"gatehouse/pairing/bots"
	"gatehouse/web/account"
	"gatehouse/web/auth"
	"gatehouse/web/importing"
)

// app is every part of the gateway, built in the order of dependence and
// closed in the reverse order. "What talks to what" is answered here.
type app struct {
	cfg   *configs.Config // as it was given
	log   *slog.Logger
	clock core.Clock
	reg   *prometheus.Registry

	vault         *vault.Vault
	readable      *readable
	files         *attach.Keeper // what comes with messages
	incoming      *attachments.Incoming
	shown         *attachments.Shown
	ledger        *attach.Ledger
	db            *store.DB
	sealed        *sealed.Box // of encrypted columns
	bus           *bus.Bus
	flight        *flight.Recorder
	outbox        *outbox.Outbox
	queue         *queue.Queue
	inspect       *inspect.Reader // of the tables of the queue
	pairing       *pairing.Gate
	raises        *raise.Store
	asks          *coreask.Store
	guard         *guard.Guard
	gate          *admission.Gate
	trials        *isolation.Trials
	sandbox       *isolation.Sandbox
	veil          func() *sandbox.Veil // returns nil: nothing is hidden at full trust
	own           *ownfiles.Files
	usage         *usage.Ledger
	spending      *spending
	rolls         *usage.Rollups
	demo          bool // the panel has a link that signs in
	agents        *agent.Agents
	schedule      *schedule.Scheduler
	reminders     *remind.Store
	daily         *scheduling.Daily
	overheard     agent.Overheard
	keys          *auth.Keys
	admins        *auth.Admins
	accounts      *account.Store
	sessions      *session.Store
	conversations *conversations
	modelOptions  registry.Options
	paraIDs       *paraid.Registry
	copied
	noted
	remembered
	voices     // what transcribes recordings
	councils   // what several models answered
	library    *library.Library
	events     *runs.Store
	responses  *storedResponses
	runs       *orchestrator.Orchestrator
	running    *dispatch.Running
	ends       *dispatch.Ends
	dispatcher *dispatch.Dispatcher
	stage      func(name string, took time.Duration) // of a turn, for metrics
	chat       *chat.Chat
	hub        *connectors.Hub
	bots       *fleet.Bots
	fleet      *fleet.Fleet
	settings   *live.Settings
	models     *registry.Registry
	providers  *models.File
	health     *health.Board
	claude     *claude.Runtime // nil: CLAUDE_CLI names none
	tools      *toolset.Set
	activity   *activity.Worker
	upkeep     *upkeep.Upkeep
	file       *integrity.Watch // of the database
	faults     *report.Faults   // of the log
	reports    *report.Store
	memory     *memory.Releaser
	jobs       *jobs.Table // what takes longer than a request
	tasks      *tasks.Tasks
	importer   *importer.Importer
	imports    *importtasks.Tasks
	intake     *importing.Intake
	discoverer *discover.Discoverer
	backups    *directory.Directory
	restores   *restore.Restores
	owners     erasure.Registry
	eraser     *erasure.Eraser
	serving    atomic.Bool           // users may be waiting
	taken      chan struct{}         // closed when another gateway has the database
	cut        atomic.Bool           // another gateway is about to have it
	runtime    string                // directory of the socket and the key file
	asked      [2]string             // ADDR and METRICS_ADDR as they were set: cfg has what is listened on
	know       func(models []string) // has metrics count them by name

	closers
}

// build opens and joins every part; nothing works before Run. The caller
// closes the app, also after an error.
func build(ctx context.Context, cfg *configs.Config, log *slog.Logger, clock core.Clock, try tries) (*app, error) {
	a := &app{cfg: cfg, clock: clock, reg: prometheus.NewRegistry(), faults: report.NewFaults(clock, version), taken: make(chan struct{})}
	a.log = logs.Watch(log, a.faults.Note)
	a.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerBuild(a.reg)
	a.reg.MustRegister(standby.Gauge())
	a.within(lastWords, a.taken, func() {
		log.Error("this gateway has not ended after another one took its place: it waits for something, and is ended now", "after", lastWords)
		os.Exit(1)
	})
	for _, step := range []func(context.Context) error{a.beginTrials(try), a.readBots, a.openVault, a.openStore, a.joinCore, a.adoptFiles, a.joinConnectors, a.joinUpkeep} {
		if err := step(ctx); err != nil {
			return a, integrity.Explain(cfg.DatabasePath(), err)
		}
	}
	return a, nil
}

func (a *app) readBots(context.Context) (err error) {
	a.bots, err = fleet.Read(a.cfg)
	return err
}

func (a *app) openVault(context.Context) (err error) {
	if a.runtime, err = control.Dir(a.cfg.VaultPath); err != nil {
		return err
	}
	if err := backup.CheckFinished(a.cfg.VaultPath); err != nil {
		return err
	}
	if a.vault, err = vault.Open(a.cfg.VaultPath); err != nil {
		return err
	}
	a.closing(a.vault.Close)
	if err := a.vault.Lock(true); core.KindOf(err) == core.Conflict {
		return taken{err}
	} else if err != nil {
		return err
	}
	swept, err := backup.Sweep(a.cfg.VaultPath)
	for _, file := range swept {
		a.log.Info("deleted what a backup left that was ended before it was complete", "backup", file)
	}
	if err != nil {
		a.log.Warn("files of a backup that was ended before it was complete could not be deleted", "err", err)
	}
	return nil
}

func (a *app) openStore(ctx context.Context) (err error) {
	commits := prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_db_commits_total", Help: "Commits of the database."})
	group := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gatehouse_db_group_size", Help: "Transactions in one commit.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64}})
	a.reg.MustRegister(commits, group)
	a.db, err = store.Open(ctx, a.cfg.DatabasePath(), store.Options{Clock: a.clock, Log: a.log, Password: a.cfg.DatabasePassword.Reveal(), Alone: store.LockWait, OnTaken: sync.OnceFunc(func() { a.cut.Store(true); close(a.taken) }), OnCommit: func(n int) {
		commits.Inc()
		group.Observe(float64(n))
	}})
	if core.KindOf(err) == core.Busy {
		return taken{err}
	} else if err != nil {
		return err
	}
	a.closing(a.db.Close)
	if a.cfg.OnServer() {
		if ok, err := a.vault.Holds(); err == nil && !ok { // it was taken away before this one had the database
			return taken{core.Errorf(core.Conflict, "another gateway has taken the lock of the vault %s", a.vault.Path())}
		}
		if err := nodes.Agree(ctx, a.db, a.agree); err != nil {
			return err
		}
	}
	a.reg.MustRegister(nodes.Gauge(a.db))
	a.reports = report.New(report.Options{DB: a.db, Clock: a.clock, Log: a.log, Version: version, Faults: a.faults})
	if err := a.watchDatabase(ctx); err != nil {
		return err
	}
	a.flight = flight.Open(filepath.Join(a.cfg.VaultPath, ".parachute", "sends"), databaseID(a.cfg.DatabasePath()), a.log)
	a.closing(a.flight.Close)
	a.ledger = attach.NewLedger(a.db, a.sealed, int64(a.cfg.FilesPersonMB)<<20, int64(a.cfg.FilesMB)<<20)
	a.files = attach.New(a.vault, a.clock, a.ledger)
	a.reg.MustRegister(a.ledger.Gauge())
	if a.settings, err = live.Open(ctx, a.cfg, a.db, a.log, logs.LevelOf(a.log)); err != nil {
		return err
	}
	fleet.SweepTokens(ctx, a.settings, a.log)
	a.readable = &readable{vault: a.vault, clock: a.clock, settings: a.settings}
	a.shown = attachments.NewShown(attachments.Options{DB: a.db, Vault: a.vault, Files: a.files, MayRead: a.readable.mayRead})
	return a.bots.Refresh(a.settings.Now())
}

func (a *app) joinCore(ctx context.Context) error {
	a.asks = coreask.New(a.db, a.clock)
	a.keys = auth.NewKeys(a.db, a.clock, a.log)
	a.running = dispatch.NewRunning(a.clock)
	a.keys.OnEnd(a.running.AbortKey)
	a.admins = auth.NewAdmins(a.db, auth.AdminOptions{Clock: a.clock, Log: a.log, Password: a.cfg.AdminPassword.Reveal(), Key: a.sealed, Address: callerKey, Secure: callerSecure})
	a.events, a.responses = runs.New(a.db, a.clock), newResponses(a.db, a.clock)
	a.bus = bus.New(storedEvents{a.events}.entries, a.events.Latest)
	a.bus.Clock = a.clock
	a.ends = dispatch.NewEnds(a.events, a.bus, a.clock)
	shown, tools := &chatask.Pairings{Asks: a.asks}, &chatask.Tools{Bots: a.bots.Names, Changed: func() { a.bus.Ring(core.TopicApprovals) }}
	a.own = ownfiles.New(ownfiles.Options{Config: a.cfg, Vault: a.vault, Runtime: a.runtime, Tokens: func() []string { return a.bots.Files(a.cfg) }})
	a.guard = guard.New(guard.Options{DB: a.db, Asks: a.asks, Vault: a.vault, Isolation: a.isolated, Own: a.own.Visible,
		Clock: a.clock, Log: a.log, Metrics: guard.NewMetrics(a.reg), Show: tools, Chat: admission.ChatOfRun})
	qm := metrics.New(a.reg, append(a.bots.Names(), core.APIBot, core.ScheduleBot))
	if err := a.openJournal(ctx); err != nil {
		return err
	}
	a.sessions = session.New(session.Options{ParaID: a.paraIDs.ForChat, Project: a.projectOf, DB: a.db, Vault: a.vault, Clock: a.clock, Log: a.log, Version: version, Projects: a.cfg.ClaudeProjects, DropVectors: library.DropVectors, Pause: func(ctx context.Context) { giveWay(ctx, a.clock, a.queue) }})
	a.closing(a.sessions.Close)
	if err := a.openLibrary(); err != nil {
		return err
	}
	a.outbox = outbox.New(a.db, outbox.Options{Clock: a.clock, Log: a.log, Metrics: qm, Ring: a.bus.Ring, Node: "node", Late: texts.Text("late"), Flight: a.flight, Cut: a.cut.Load,
		Notices: outbox.Notices{Missing: chat.UnsureNotice, Resolved: chat.UnsureResolved}})
	a.queue = queue.New(a.db, a.outbox, queue.Options{
		Clock: a.clock, Log: a.log, Metrics: qm,
		Lane: func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error) {
			return a.sessions.Lane(ctx, tx, in.Address)
		},
		Ring:  a.bus.Ring,
		Rate:  func() queue.Rate { return queue.Rate(a.settings.Now().RateLimit) },
		Texts: queue.Texts{TooMany: texts.Text("too_many"), GaveUp: texts.Text("gave_up")},
		Node:  "node", Slots: a.cfg.LimitRuns, Replaced: a.taken,
	})
	a.pairing = pairing.New(a.db, pairing.Options{
		Clock: a.clock, Log: a.log, Metrics: pairing.NewMetrics(a.reg, a.bots.Names()), Bots: bots.New(a.bots.Places, a.bots.Policy), Ring: a.bus.Ring, Merge: a.owners.Merge, Ungrant: a.guard.Forget, Text: a.settings.OwnText,
	}, admission.Mailbox{Outbox: a.outbox, Queue: a.queue}, shown, a.running)
	a.accounts = account.New(account.Options{DB: a.db, SignIn: a.admins, Users: a.pairing.People, Keys: a.keys, Invitations: a.pairing.Codes, Box: a.sealed, Abort: func(user int64) { a.running.AbortUser(core.APIBot, user) }})
	a.admins.AskSecond(a.accounts)
	a.admins.OnEnd(func() { a.bus.Ring(core.TopicAccounts) })
	a.raises = raise.New(a.db, a.clock, a.pairing, a.pairing.People, a.guard, func() { a.bus.Ring(core.TopicApprovals) })
	shown.Mail, shown.People, tools.Mail, tools.People = a.outbox, a.pairing.People, a.outbox, a.pairing.People
	a.inspect = inspect.New(a.db, inspect.Options{Clock: a.clock, Leased: a.outbox.Leased, Running: a.queue.Running})
	a.reg.MustRegister(a.inspect.Gauges(append(a.bots.Names(), core.APIBot, core.ScheduleBot)), a.pairing.Gauges(), a.asks.Gauges())
	a.joinSchedule()
	if err := a.joinRuns(qm); err != nil {
		return err
	}
	a.conversations = &conversations{db: a.db, sessions: a.sessions, bus: a.bus, guard: a.guard, activity: a.activity, responses: a.responses.Store, council: a.council, files: a.ledger, projects: a.projects, people: a.pairing.People, cfg: a.cfg, models: a.models, agents: a.agents}
	a.joinChat()
	a.gate = admission.New(admission.Options{
		Pairing: a.pairing, Raises: a.raises, HTTP: auth.Gate{Localhost: a.cfg.LocalhostAccess == "chat"}, Chat: a.chat, Runs: a.runs, Ends: a.ends,
		Sessions: a.sessions, BusyMode: func() string { return a.settings.Now().BusyMode }, Platform: a.bots.Platform, Move: a.owners.Move, Overheard: &a.overheard, Outbox: a.outbox,
		Schedule: a.schedule, Daily: a.daily,
	})
	a.stage = qm.Stage
	return a.pairing.People.EnsureOperator(ctx)
}

func (a *app) joinRuns(qm *metrics.Metrics) (err error) {
	a.health = health.New(a.clock, a.reg)
	a.modelOptions = registry.Options{Clock: a.clock, Log: a.log, Health: a.health, Search: quote.Grep(a.vault.Root(), a.library, func(s llm.Sender, path string) bool { return a.readable.mayRead(s.Trust, s.User, path) }, a.clock)}
	m, err := models.New(a.settings.Now(), a.modelOptions)
	if err != nil {
		return err
	}
	a.models = registry.NewRegistry(m)
	a.closing(a.models.Close)
	prices := models.NewPrices(a.cfg)
	a.agents = agent.New(a.vault, agent.Options{Clock: a.clock, Log: a.log, Base: agent.Default(filepath.Base(a.vault.Path()), ""), Default: a.settings.Now().DefaultAgent})
	if a.tools, err = a.openTools(); err != nil {
		return err
	}
	a.closing(a.tools.Close)
	var other orchestrator.Runtime
	if a.claude, err = claude.New(claude.Options{Config: a.cfg, Vault: a.vault.Path(), Veil: a.veil, Tools: a.tools, Guard: a.guard, Clock: a.clock, Log: a.log}); err != nil {
		return err
	}
	if a.claude != nil {
		a.closing(a.claude.Close)
		other = a.claude
	}
	a.usage = usage.New(usage.NewMetrics(a.reg, m.Names), budgetsOf(a.settings.Now()))
	a.spending = &spending{db: a.db, ledger: a.usage, clock: a.clock, cost: claude.Prices(prices.Cost)}
	a.rolls = usage.NewRollups(a.db, a.clock, a.usage.Tally, a.events.Tally, a.inspect.Tally)
	om := runmetrics.New(a.reg, m.Names, toolset.Names)
	a.know = func(names []string) { om.Know(names); a.usage.Know(names) }
	a.providers = &models.File{Settings: a.settings, Registry: a.models, Options: a.modelOptions, Prices: prices, Know: a.know, Clock: a.clock, Log: a.log}
	om.Stage = qm.Stage
	if err := a.openVoice(); err != nil {
		return err
	}
	pdf, err := pdfs()
	if err != nil {
		return err
	}
	a.openActivity(prices.Cost)
	a.runs = orchestrator.New(orchestrator.Options{
		Clock: a.clock, Log: a.log, Metrics: om, Sessions: a.sessions, Agents: a.agents,
		Search: toolset.WebSearch, Incoming: incoming.Sources{Files: a.vault.FS(), Fetch: func(ctx context.Context, user int64, run, bot string, f core.File) (core.File, error) {
			return a.incoming.Fetch(ctx, user, run, bot, f)
		}, Hear: a.hear, PDF: pdf}, Later: a.pending, Files: a.ledger, Chats: fleet.Addable(),
		Usage: a.usage, Reserve: a.spending.reserve,
		Model: a.models.Find, Runtime: other, Council: a.openCouncil(), Memory: a.remembers(), Cost: a.spending.cost, MayRead: a.readable.mayRead,
		Spend: a.spending.record, Follower: a.activity,
		Equip: a.tools.Equip, Guard: a.guard, NotBegun: a.guard.NotBegun, Runs: a.events.Users, Overheard: a.overheard.Last,
		Still: func(ctx context.Context, t *orchestrator.Turn) (core.Trust, error) { return a.gate.Still(ctx, a.db, t) },
		Raise: func(ctx context.Context, tx *store.Tx, t *orchestrator.Turn, ref session.Ref) (orchestrator.Raise, error) {
			return admission.Raised(ctx, tx, a.raises, t, ref)
		}, Helped: helpers{a.db}.use, Backups: a.handoffs,
		Choose: func(ctx context.Context, tx *store.Tx, ask coreask.Ask) error {
			_, err := a.asks.Open(ctx, tx, ask)
			if core.KindOf(err) == core.Busy {
				return nil // the user's own text works as well as a button
			}
			return err
		},
		Limits: orchestrator.Limits{RunTime: a.cfg.LimitRunTime, Silence: a.cfg.LimitSilence, OutputTokens: a.cfg.LimitOutputTokens, Rounds: a.cfg.LimitRounds},
	})
	return nil
}
