package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"gatehouse/configs"
	"gatehouse/connectors"
	"gatehouse/core"
	"gatehouse/core/agent"
	"gatehouse/core/bus"
	"gatehouse/core/dispatch"
	"gatehouse/core/llm"
	"gatehouse/core/llm/quote"
	"gatehouse/core/orchestrator"
	"gatehouse/core/permission"
	"gatehouse/core/queue"
	"gatehouse/core/sandbox"
	"gatehouse/core/session"
	"gatehouse/core/store"
	"gatehouse/core/tool/mcp"
	"gatehouse/core/usage"
	"gatehouse/core/vault"
	"gatehouse/pairing"
	"gatehouse/web/auth"
)

// app is every part of the gateway, built in the order of dependence and
// closed in the reverse order. "What talks to what" is answered here.
type app struct {
	cfg   *configs.Config
	log   *slog.Logger
	clock core.Clock
	reg   *prometheus.Registry

	vault      *vault.Vault
	db         *store.DB
	bus        *bus.Bus
	queue      *queue.Queue
	book       *pairing.Book
	desk       *permission.Desk
	guard      *permission.Guard
	gate       *gate
	box        sandbox.Box // nil: nothing runs isolated, and noBox says why
	noBox      string
	usage      *usage.Ledger
	agents     *agent.Agents
	keys       *auth.Keys
	admins     *auth.Admins
	sessions   *session.Store
	events     *orchestrator.Events
	runs       *orchestrator.Orchestrator
	dispatcher *dispatch.Dispatcher
	hub        *connectors.Hub
	fleet      *fleet
	models     *models
	claude     *claudeCode // nil: CLAUDE_CLI names none
	servers    *mcp.Servers
	upkeep     *upkeep
	runtime    string // folder of the socket and the key file

	ignored struct { // lines of .parachuteignore
		mu    sync.Mutex
		at    time.Time
		lines []string
	}

	closers []func() error
}

// build opens and joins every part; nothing works before Run. The caller
// closes the app, also after an error.
func build(ctx context.Context, cfg *configs.Config, log *slog.Logger, clock core.Clock) (*app, error) {
	a := &app{cfg: cfg, log: log, clock: clock, reg: prometheus.NewRegistry()}
	a.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.registerBuild()
	for _, step := range []func(context.Context) error{a.openBots, a.openVault, a.openStore, a.joinCore, a.joinConnectors, a.joinUpkeep} {
		if err := step(ctx); err != nil {
			return a, err
		}
	}
	return a, nil
}

func (a *app) closing(f func() error) { a.closers = append(a.closers, f) }

// Close ends every part in the reverse order of build.
func (a *app) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(errs...)
}

func (a *app) openVault(context.Context) (err error) {
	if a.runtime, err = runtimeDir(a.cfg.VaultPath); err != nil {
		return err
	}
	if a.vault, err = vault.Open(a.cfg.VaultPath); err != nil {
		return err
	}
	a.closing(a.vault.Close)
	return a.vault.Lock(true)
}

func (a *app) openStore(ctx context.Context) (err error) {
	commits := prometheus.NewCounter(prometheus.CounterOpts{Name: "gatehouse_db_commits_total", Help: "Commits of the database."})
	group := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gatehouse_db_group_size", Help: "Transactions in one commit.", Buckets: []float64{1, 2, 4, 8, 16, 32, 64}})
	a.reg.MustRegister(commits, group)
	a.db, err = store.Open(ctx, a.cfg.DatabasePath(), store.Options{Clock: a.clock, Log: a.log, OnCommit: func(n int) {
		commits.Inc()
		group.Observe(float64(n))
	}})
	if err != nil {
		return err
	}
	a.closing(a.db.Close)
	return nil
}

// late is what exists only after the parts that call it.
type late struct{ a *app }

func (l late) Wait(to core.Address) time.Duration { return l.a.hub.Wait(to) }
func (l late) Repeats(bot string) time.Duration   { return l.a.hub.Repeats(bot) }
func (l late) Send(ctx context.Context, out core.Outgoing) core.Delivery {
	return l.a.hub.Send(ctx, out)
}
func (l late) AbortUser(bot string, user int64) { l.a.dispatcher.AbortUser(bot, user) }

func (a *app) joinCore(ctx context.Context) error {
	a.desk = permission.NewDesk(a.db, a.clock)
	a.keys = auth.NewKeys(a.db, a.clock, a.log)
	a.admins = auth.NewAdmins(a.db, auth.AdminOptions{Clock: a.clock, Log: a.log, Password: a.cfg.AdminPassword.Reveal(), Address: callerKey, Secure: callerSecure})
	a.events = orchestrator.NewEvents(a.db, a.clock)
	a.bus = bus.New(a.loadEvents, a.events.Latest)
	g := &gate{http: auth.Gate{Localhost: a.cfg.LocalhostAccess == "chat"}}
	a.gate = g
	asks := &approvals{desk: a.desk}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	a.box, a.noBox = sandbox.Open(a.cfg.Sandbox, self)
	a.guard = permission.NewGuard(permission.GuardOptions{DB: a.db, Desk: a.desk, Vault: a.vault, Isolation: a.box != nil,
		Clock: a.clock, Log: a.log, Metrics: permission.NewMetrics(a.reg), Show: ringing{toolAsks{asks}, a.bus.Ring}})
	qm := queue.NewMetrics(a.reg, append(a.botNames(), core.APIBot))
	p := &preparer{platform: a.platform}
	a.sessions = session.New(session.Options{DB: a.db, Vault: a.vault, Clock: a.clock, Log: a.log, Version: version})
	a.closing(a.sessions.Close)
	a.queue = queue.New(a.db, queue.Options{
		Clock: a.clock, Log: a.log, Metrics: qm, Gate: g, Sender: late{a},
		Lane: func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error) {
			return a.sessions.Lane(ctx, tx, in.Address)
		},
		Control: isControl,
		Waiting: func(ctx context.Context, tx *store.Tx, in *core.Inbound) (bool, error) {
			return waiting(a.desk, a.book)(ctx, tx, in)
		},
		Collect: a.collect,
		Prepare: func(ctx context.Context, tx *store.Tx, t *queue.Turn) error { return p.prepare(ctx, tx, t) },
		Ring:    a.bus.Ring,
		Ended:   a.events.Abandon,
		Rate:    queue.Rate(a.cfg.RateLimit),
		Texts:   queue.Texts{TooMany: textTooMany, GaveUp: textGaveUp},
		Node:    "node", Slots: a.cfg.LimitRuns,
	})
	a.book = pairing.New(a.db, pairing.Options{
		Clock: a.clock, Log: a.log, Metrics: pairing.NewMetrics(a.reg, a.botNames()), Policy: a.policy, Bots: a.pairingBots, Ring: a.bus.Ring,
	}, a.queue, asks, late{a})
	g.moves = append(g.moves, a.sessions.Move, a.book.Move, a.queue.Move, a.desk.Move)
	g.book, p.book, asks.mail, asks.book = a.book, a.book, a.queue, a.book
	a.reg.MustRegister(a.queue.Gauges(), a.book.Gauges(), a.desk.Gauges())
	if err := a.joinRuns(qm); err != nil {
		return err
	}
	p.runs = a.runs
	a.joinDispatch(asks, qm)
	return a.book.EnsureOperator(ctx)
}

func (a *app) collect(ctx context.Context, tx *store.Tx, in *core.Inbound) (bool, error) {
	mode, err := a.sessions.BusyMode(ctx, tx, in.Address)
	if mode == "" {
		mode = a.cfg.BusyMode
	}
	return mode == "collect", err
}

// mayRead is what local/quote may show somebody, asked for every file; lines of
// .parachuteignore are read again once a second at most.
func (a *app) mayRead(trust core.Trust, user int64, path string) bool {
	a.ignored.mu.Lock()
	if now := a.clock.Now(); a.ignored.at.IsZero() || now.Sub(a.ignored.at).Abs() > time.Second {
		a.ignored.lines, a.ignored.at = permission.IgnoreLines(a.vault), now
	}
	lines := a.ignored.lines
	a.ignored.mu.Unlock()
	may, _ := permission.Profile{User: user, Trust: trust, GuestRead: a.cfg.GuestRead}.Bounds(lines)
	return may(path)
}

// mayReadNow is the Read tool's check, .parachuteignore as it is now included.
func (a *app) mayReadNow(trust core.Trust, user int64, path string) bool {
	mayRead, _ := a.guard.Bounds(permission.Profile{User: user, Trust: trust, GuestRead: a.cfg.GuestRead})
	return mayRead(path)
}

func (a *app) joinRuns(qm *queue.Metrics) (err error) {
	search := quote.Grep(a.vault.Root(), func(s llm.Sender, path string) bool { return a.mayRead(s.Trust, s.User, path) }, a.clock)
	if a.models, err = newModels(a.cfg, search, a.clock, a.log); err != nil {
		return err
	}
	a.closing(func() error { a.models.Close(); return nil })
	prices, err := llm.ParsePrices(configs.Prices())
	if err != nil {
		return fmt.Errorf("prices: %w", err)
	}
	a.agents = agent.New(a.vault, agent.Options{Clock: a.clock, Log: a.log, Base: agent.Default(filepath.Base(a.vault.Path()), ""), Default: a.cfg.DefaultAgent})
	kits, err := newKits(a)
	if err != nil {
		return err
	}
	a.closing(kits.shell.Close)
	a.servers = kits.servers
	a.closing(a.servers.Close)
	var other orchestrator.Runtime
	if c, err := a.joinClaude(kits); err != nil {
		return err
	} else if c != nil {
		other = c
	}
	budget := func(b configs.Budget) usage.Budget { return usage.Budget(b) }
	a.usage = usage.New(usage.NewMetrics(a.reg, a.models.names), usage.Budgets{
		UserDay: budget(a.cfg.BudgetUserDay), BotDay: budget(a.cfg.BudgetBotDay), Day: budget(a.cfg.BudgetDay)})
	om := orchestrator.NewMetrics(a.reg, a.models.names, toolNames)
	om.Stage = qm.Stage
	a.runs = orchestrator.New(orchestrator.Options{
		Clock: a.clock, Log: a.log, Metrics: om, Sessions: a.sessions, Agents: a.agents, Files: a.vault.Root().FS(),
		Usage: a.usage, Reserve: func(ctx context.Context, r usage.Row) (int64, string, error) { return a.usage.Reserve(ctx, a.db, r) },
		Model: a.models.find, Runtime: other, Cost: claudePrices(prices.Cost), MayRead: a.mayReadNow,
		Spend: a.spend,
		Equip: kits.equip, Guard: a.guard,
		Still: func(ctx context.Context, t *orchestrator.Turn) (bool, error) { return a.gate.still(ctx, a.db, t) },
		Choose: func(ctx context.Context, tx *store.Tx, ask permission.Ask) error {
			_, err := a.desk.Open(ctx, tx, ask)
			if core.KindOf(err) == core.Busy {
				return nil // the person's own words do as well as a button
			}
			return err
		},
		Limits: orchestrator.Limits{RunTime: a.cfg.LimitRunTime, Silence: a.cfg.LimitSilence, OutputTokens: a.cfg.LimitOutputTokens, Rounds: a.cfg.LimitRounds},
	})
	return nil
}

func (a *app) joinDispatch(asks *approvals, qm *queue.Metrics) {
	c := &chat{book: a.book, desk: a.desk, guard: a.guard, approvals: asks, sessions: a.sessions, agents: a.agents, bus: a.bus, queue: a.queue, db: a.db, model: a.models.first.About().Name}
	a.dispatcher = dispatch.New(dispatch.Options{
		Clock: a.clock, Log: a.log, Queue: a.queue, Runs: a.runs, Events: a.events, Bus: a.bus, Screen: screen{a}, Stage: qm.Stage,
		Render:   func(to core.Address, markdown string) []core.Part { return a.hub.Render(to, markdown) },
		Commands: c.handlers(), Unknown: c.unknown, Callback: c.callback, Answer: c.answer,
		Texts: dispatch.Texts{Unsupported: textUnsupported, Stopped: textStopped, Failed: textFailed},
	})
	c.stop = a.dispatcher.AbortLane
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

func (a *app) joinConnectors(ctx context.Context) error {
	cs, err := a.connectors(ctx)
	if err != nil {
		return err
	}
	a.hub, err = connectors.NewHub(a.queue, connectors.HubOptions{Clock: a.clock, Log: a.log, Metrics: connectors.NewMetrics(a.reg)}, cs...)
	if err != nil {
		return err
	}
	a.hub.OnChange(func(core.BotState) { a.bus.Ring("bots") })
	a.closing(a.hub.Close)
	return nil
}

func (a *app) joinUpkeep(context.Context) error {
	a.upkeep = newUpkeep([]chore{
		{"pairing", time.Minute, a.book.Expire},
		{"asks", time.Minute, a.guard.Expire},
		{"old_asks", 6 * time.Hour, a.desk.Prune},
		{"reservations", time.Hour, func(ctx context.Context) (int, error) { return a.usage.SettleStale(ctx, a.db) }},
		{"queue", 10 * time.Minute, a.queue.Prune},
		{"run_events", 10 * time.Minute, a.events.Prune},
		{"admin_sessions", time.Hour, a.admins.Sweep},
		{"trash", 6 * time.Hour, func(context.Context) (int, error) { return a.vault.Prune(a.clock.Now(), 30) }},
		{"claude_code", time.Minute, a.evictClaude},
		{"conversations", 10 * time.Minute, func(context.Context) (int, error) { a.sessions.Evict(); return 0, nil }},
	}, a.clock, a.log, a.reg)
	return nil
}

func (a *app) registerBuild() {
	revision, goVersion := buildInfo()
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gatehouse_build_info", Help: "Always 1."}, []string{"version", "revision", "go"})
	info.WithLabelValues(version, revision, goVersion).Set(1)
	a.reg.MustRegister(info)
}

// loadEvents is the event store as the bus reads it.
func (a *app) loadEvents(ctx context.Context, run string, attempt, n int) ([]bus.Entry, error) {
	pieces, err := a.events.Load(ctx, run, attempt, n)
	if err != nil {
		return nil, err
	}
	out := make([]bus.Entry, len(pieces))
	for i, p := range pieces {
		out[i] = bus.Entry{ID: bus.EventID(run, attempt, p.N), Run: run, Attempt: attempt, N: p.N, Type: core.EncodedType(p.Data), Data: p.Data}
	}
	return out, nil
}

// spend records what calls took whose run has ended without being stored.
func (a *app) spend(ctx context.Context, rows []usage.Row) error {
	return a.db.Tx(ctx, func(tx *store.Tx) error {
		for _, r := range rows {
			if err := a.usage.Record(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
}
