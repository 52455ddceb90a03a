package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"gatehouse/cmd/gatehouse/control"
	"gatehouse/cmd/gatehouse/isolation"
	"gatehouse/cmd/gatehouse/logs"
	"gatehouse/cmd/gatehouse/memory"
	"gatehouse/cmd/gatehouse/restore"
	"gatehouse/cmd/gatehouse/sealing"
	"gatehouse/cmd/gatehouse/secrets"
	"gatehouse/cmd/gatehouse/service"
	"gatehouse/cmd/gatehouse/standby"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/nodes"
	"gatehouse/web"
)

type serveCmd struct {
	New            bool `help:"Begin with an empty database although the vault has conversations."`
	LostContentKey bool `help:"Delete the texts of the database that are encrypted with a key that is lost."`
	Standby        bool `help:"While another gateway has the vault and the database, wait, and take its place when it ends."`
}

func (c *serveCmd) Help() string {
	return "Without a bot (GATEHOUSE_TELEGRAM_TOKEN, GATEHOUSE_DISCORD_TOKEN, GATEHOUSE_BOTS_FILE) only the panel and the API are served. Files with tokens and the file of bots are read again when they change, and at a SIGHUP where no terminal is. The first Ctrl-C (or SIGTERM) drains: running answers get GATEHOUSE_DRAIN_TIMEOUT; a second one ends at once."
}

func (c *serveCmd) Run(p *process) error {
	cfg, err := configs.LoadAll()
	if err != nil {
		return err
	}
	if c.Standby && (c.New || c.LostContentKey) {
		return core.Errorf(core.Invalid, "--standby cannot be used together with --new or --lost-content-key: start once without it")
	}
	if err := secrets.Close(cfg); err != nil {
		fmt.Fprintln(p.Stderr, "gatehouse: other programs of this user may be able to read the gateway's secrets:", err)
	}
	defer p.hearHangups()()
	debug.SetTraceback("crash") // a panic ends by a signal: its exit code would be that of a wrong configuration
	log := logs.New(p.Stderr, cfg, p.Terminal)
	p.manager = service.Find(log)
	alive, stop := context.WithCancel(context.WithoutCancel(p.Context))
	defer stop()
	go p.manager.Live(alive)
	defer context.AfterFunc(p.Context, p.manager.Stopping)()
	if !c.Standby {
		err := c.serve(p, cfg)
		if errors.As(err, new(taken)) {
			err = core.Errorf(core.KindOf(err), "%s. With --standby it would wait until the other one ends, and take its place", strings.TrimSuffix(core.TextOf(err), "."))
		}
		return err
	}
	for {
		waited, err := standby.Wait(p.Context, cfg, log, version, p.manager, func() bool { return restore.Runs(cfg, time.Now()) })
		if err != nil || p.Context.Err() != nil {
			return unlessEnded(p.Context, err)
		}
		if waited { // maybe for days: with the program and the settings of now
			p.again = &restore.Restart{}
			return nil
		}
		if err := c.serve(p, cfg); !errors.As(err, new(taken)) {
			return err
		}
	}
}

// taken is an error of the start: another gateway has the vault or the database.
type taken struct{ error }

func (t taken) Unwrap() error { return t.error }

func (c *serveCmd) serve(p *process, cfg *configs.Config) error {
	if err := restore.Resume(cfg, logs.New(p.Stderr, cfg, p.Terminal)); err != nil {
		return err
	}
	if err := checkStart(p.Context, cfg, c.New); err != nil {
		return err
	}
	if c.LostContentKey {
		if err := sealing.Discard(p.Context, cfg, logs.New(p.Stderr, cfg, p.Terminal)); err != nil {
			return err
		}
	}
	return serve(p, cfg, nil)
}

// serve runs the gateway with cfg until the process is asked to stop. ready,
// when given, is the demo's and called once everything listens.
func serve(p *process, cfg *configs.Config, ready func(a *app, oneTime string)) (err error) {
	if err := checkAddresses(cfg); err != nil {
		return err
	}
	started := sync.OnceFunc(memory.Start())
	defer started()
	log := logs.New(p.Stderr, cfg, p.Terminal)
	cfg.ReadFrom(p.EnvFile)
	a, err := build(p.Context, cfg, log, clockOf(cfg), isolation.Begin)
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return err
	}
	a.demo = ready != nil
	oneTime, err := a.admins.Prepare(p.Context, p.Terminal || ready != nil)
	if err != nil {
		return err
	}
	limited, stop := context.WithCancel(p.Context)
	defer stop()
	ctx, due := a.restores.Until(p.Context)
	err = a.Run(ctx, p.hangup, func() {
		started()
		p.manager.Serving("serving " + strings.Join(append(a.bots.Names(), "panel", "API"), ", "))
		go memory.Limit(limited, core.System{})
		if ready != nil {
			ready(a, oneTime)
			return
		}
		a.greet(p, oneTime)
	})
	if err = errors.Join(err, a.Close()); err == nil && due() {
		p.again = a.restores.Run(p.Context)
	}
	return err
}

// Run works until ctx ends, then drains: connectors take no more, answers in
// hand get the drain time, what is cut is given back; the outbox is sent; then
// the listeners close.
func (a *app) Run(ctx context.Context, hangup <-chan os.Signal, ready func()) (err error) {
	a.reports.Begin(ctx)
	defer func() {
		if p := recover(); p != nil {
			panic(p) // the run did not end
		}
		a.reports.End(ctx, err)
	}()
	if err := control.MakeDir(a.runtime); err != nil {
		return err
	}
	if err := a.keys.EnsureFile(ctx, control.KeyFile(a.runtime)); err != nil {
		return err
	}
	if n, err := a.sessions.Repair(ctx); err != nil {
		a.log.Warn("sidecars could not be repaired", "err", err)
	} else if n > 0 {
		a.log.Info("sidecars repaired", "n", n)
	}
	if err := a.guard.Abandon(ctx); err != nil {
		return err
	}
	if err := a.queue.TakeOver(ctx, a.bots.Names(), a.gate, a.hub); err != nil {
		return err
	}
	a.serving.Store(true)
	listeners, err := a.listen(ctx)
	if err != nil {
		return err
	}
	late, stopLate := context.WithCancel(context.WithoutCancel(ctx)) // what outlives the drain
	defer stopLate()
	background, stopBackground := context.WithCancel(late)
	defer stopBackground()

	var tail sync.WaitGroup // ends with late
	failed := make(chan error, 9)
	for _, l := range listeners {
		tail.Go(func() { failed <- l.server.Run(late, l.listener) })
	}
	tail.Go(func() { a.events.Run(background, func(err error) { a.log.Error("store events", "err", err) }) })
	tail.Go(func() { a.upkeep.Run(background) })
	tail.Go(func() { a.reports.Run(background) })
	tail.Go(func() { a.memory.Run(background) })
	tail.Go(func() { a.pending.Run(background) })
	tail.Go(func() { failed <- a.keys.Run(background) })
	if a.cfg.OnServer() {
		tail.Go(func() { nodes.Keep(background, a.self()) })
	}

	tail.Go(func() { failed <- replaced(background, a.taken) })

	work, stopWork := context.WithCancel(ctx)
	defer stopWork()
	var heart sync.WaitGroup
	heart.Go(func() { failed <- a.queue.Serve(work, a.cfg.DrainTimeout, a.dispatcher) })
	heart.Go(func() { failed <- a.hub.Run(work) })
	heart.Go(func() { a.fleet.Watch(work, hangup) })
	heart.Go(func() { a.agents.Watch(work) })
	heart.Go(func() { a.providers.Watch(work) })
	heart.Go(func() { a.activity.Run(work) })
	heart.Go(func() { a.library.Run(work) })
	heart.Go(func() { a.tools.Servers.Watch(work) })
	heart.Go(func() { a.discoverer.Run(work) })
	heart.Go(func() { a.schedule.Run(work, a.queue) })
	heart.Go(func() { a.reminders.Run(work) })
	heart.Go(func() { a.handoffs.Run(work) })
	heart.Go(func() { a.extractor.Run(work) })
	a.log.Info("serving", "addr", a.cfg.Addr, "vault", a.vault.Path(), "runtime", a.runtime, "bots", strings.Join(a.bots.Names(), " "), "model", a.models.Default())
	a.unasked().TellOfCrash(work, a.reports, a.bots.Working(), a.log)
	ready()
	a.memory.Release(work) // what start-up took is not needed again

	err = untilStopped(ctx, failed, a.log, a.cfg.DrainTimeout)
	stopWork()
	heart.Wait()
	a.bus.CutAll()
	stopBackground()
	stopLate()
	tail.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, unlessEnded(ctx, e))
	}
	a.log.Info("stopped")
	return err
}

// clockOf returns the gateway's clock. With a database on a server it is the server's, so that
// another machine that takes this one's place reads its times as they were meant.
func clockOf(cfg *configs.Config) core.Clock {
	if cfg.OnServer() {
		return core.NewShared()
	}
	return core.System{}
}

// self returns this gateway as it is listed for those that stand by.
func (a *app) self() nodes.Self {
	self := standby.Self(a.cfg, a.log, version, nodes.Serving, a.cfg.Addr)
	self.Time = a.agree
	self.Cut = func(off bool) bool { a.cut.Store(off); return a.fleet.Pause(off) }
	self.Sign, self.Holds = a.vault.Sign, a.vault.Holds
	self.Replaced = func() { a.db.End(core.Errorf(core.Busy, "another gateway has taken the place of this one")) }
	return self
}

// skewed is from when on a difference of clocks is logged.
const skewed = 30 * time.Second

// agree has the gateway go by the server's time.
func (a *app) agree(now time.Time) {
	shared, ok := a.clock.(*core.Shared)
	if !ok {
		return
	}
	if moved := shared.Agree(now); moved.Abs() > skewed {
		a.log.Warn("the clock of this machine, or of the database's server, is wrong: the gateway goes by the server's", "moved", moved.Round(time.Second))
	}
}

// replaced returns an error once another gateway has taken the database, and nil when ctx ends.
func replaced(ctx context.Context, taken <-chan struct{}) error {
	select {
	case <-taken:
		return core.Errorf(core.Conflict, "another gateway has the database since the connection to it was lost: this one ends")
	case <-ctx.Done():
		return nil
	}
}

// untilStopped returns when ctx ends, or with the error of the first part that
// ended on its own. Parts that end because ctx did may be heard of before ctx.
func untilStopped(ctx context.Context, failed <-chan error, log *slog.Logger, grace time.Duration) (err error) {
	select {
	case <-ctx.Done():
	case err = <-failed:
		if err = unlessEnded(ctx, err); err == nil && ctx.Err() == nil {
			err = errors.New("a part ended unexpectedly")
		}
	}
	if ctx.Err() != nil {
		log.Info("stopping: taking no more, finishing what runs", "grace", grace)
	}
	return err
}

// unlessEnded is err, or nil where err only means that ctx has ended: a stop
// that comes while a part still starts is a clean one.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// A listening is one server on its listener.
type listening struct {
	listener net.Listener
	server   *web.Server
}

// checkAddresses returns an error before a first start makes anything if an address is taken. Any
// other start finds it out last: the gateway that has the address may have the vault, too, which is
// the better answer.
func checkAddresses(cfg *configs.Config) error {
	made := cfg.DatabasePath()
	if cfg.OnServer() {
		made = cfg.VaultPath
	}
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, a := range [][2]string{{cfg.Addr, "GATEHOUSE_ADDR"}, {cfg.MetricsAddr, "GATEHOUSE_METRICS_ADDR"}} {
		if a[0] == "" {
			continue
		}
		l, err := web.Listen(a[0], a[1])
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) listen(ctx context.Context) (out []listening, err error) {
	defer func() {
		if err != nil {
			for _, l := range out {
				_ = l.listener.Close()
			}
		}
	}()
	add := func(addr, setting string, h http.Handler) error {
		l, err := web.Listen(addr, setting)
		if err != nil {
			return err
		}
		out = append(out, listening{l, web.NewServer(h, web.ServerOptions{Log: a.log, Grace: 5 * time.Second})})
		return nil
	}
	main, private, err := a.handlers(closedInbox{ctx, a.queue})
	if err != nil {
		return out, err
	}
	if err := add(a.cfg.Addr, "GATEHOUSE_ADDR", main); err != nil {
		return out, err
	}
	a.asked = [2]string{a.cfg.Addr, a.cfg.MetricsAddr}
	a.cfg.Addr = out[0].listener.Addr().String()
	if a.cfg.MetricsAddr != "" {
		page, err := web.Scraped(web.MetricsPage(a.reg), web.SiteOptions{Hosts: a.cfg.AllowedHosts})
		if err != nil {
			return out, err
		}
		if err := add(a.cfg.MetricsAddr, "GATEHOUSE_METRICS_ADDR", page); err != nil {
			return out, err
		}
		a.cfg.MetricsAddr = out[1].listener.Addr().String()
	}
	l, err := control.Listen(a.runtime)
	if err != nil {
		return out, err
	}
	return append(out, listening{l, web.NewServer(private, web.ServerOptions{Log: a.log})}), nil
}

// closedInbox refuses API turns while the gateway stops.
type closedInbox struct {
	ctx   context.Context
	inbox interface {
		Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error
	}
}

// Open is an error while the gateway stops.
func (c closedInbox) Open(context.Context) error {
	if c.ctx.Err() != nil {
		return core.Errorf(core.Busy, "the gateway is stopping: try again when it is back")
	}
	return nil
}

func (c closedInbox) Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error {
	if err := c.Open(ctx); err != nil {
		return err
	}
	return c.inbox.Put(ctx, page, cursor)
}
