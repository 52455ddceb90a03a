// Package standby waits until the gateway that has a vault and its database has ended, so
// that this program can take its place.
package standby

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/cmd/gatehouse/service"
	"gatehouse/cmd/gatehouse/standby/vaultid"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/nodes"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store/migrations"
	"gatehouse/core/store/postgres"
	"gatehouse/core/vault"
	"gatehouse/web"
	"gatehouse/web/api/health"
)

const (
	pause    = 500 * time.Millisecond // between two looks whether the other gateway has ended
	lookTime = 15 * time.Second       // of one look at a database on a server
	checks   = 20                     // looks at the vault for each at the database while the vault is taken
	repeat   = 10 * time.Minute       // a reason that stays is logged as often
	grace    = 100 * time.Millisecond // of open requests at the end
)

// Wait returns as soon as no other gateway has the vault of cfg, nor its database where
// that is on a server; waited reports whether one had. Until then it answers on cfg.Addr:
// /healthz with 200, all else with 503; on cfg.MetricsAddr are the metrics of a gateway
// that waits. It returns ctx's error when ctx ends, and core.Invalid at once for a
// database that this program could not serve, such as one that a newer program has
// migrated; later that is logged. manager is told that the program has started. While
// restores reports true, another gateway is about to lock the vault for a restore. version
// is that of the program.
func Wait(ctx context.Context, cfg *configs.Config, log *slog.Logger, version string, manager *service.Manager, restores func() bool) (waited bool, err error) {
	w := &watch{cfg: cfg, log: log, restores: restores, said: map[core.Kind]time.Time{}}
	if free, err := w.look(ctx, true); free || err != nil {
		return false, err
	}
	servers, err := listen(cfg, log)
	if err != nil {
		return false, err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var ended sync.WaitGroup
	for _, s := range servers {
		ended.Go(func() {
			if err := web.NewServer(s.handler, web.ServerOptions{Log: log, Grace: grace}).Run(serving, s); err != nil {
				log.Error("a standby that does not answer", "err", err)
			}
		})
	}
	if cfg.OnServer() {
		self := Self(cfg, log, version, nodes.Standby, servers[0].Addr().String())
		self.Able = w.able
		self.Holder, self.Steal = func() (string, error) { return holder(cfg.VaultPath) }, func(process string) error { return vault.Unlock(cfg.VaultPath, process) }
		ended.Go(func() { nodes.Keep(serving, self) })
	}
	manager.Serving("standing by until the other gateway ends")
	log.Info("standing by", "addr", servers[0].Addr().String(), "vault", cfg.VaultPath)
	err = w.until(ctx)
	stop()
	ended.Wait()
	return true, err
}

// Self returns this gateway as it is listed for others that share its database.
func Self(cfg *configs.Config, log *slog.Logger, version, state, addr string) nodes.Self {
	return nodes.Self{
		Node: nodes.Node{ID: nodes.ID(addr), Version: version, Newest: migrations.Newest(migrations.Postgres), Address: addr, State: state}, Clock: core.System{}, Log: log,
		Open: func() (*sqlx.DB, error) {
			return postgres.Open(prompt(cfg.DatabasePath()), cfg.DatabasePassword.Reveal(), false, 1)
		},
	}
}

// holder returns who has the vault's lock and has signed it; "" if nobody has it.
func holder(path string) (process string, err error) {
	if held, err := vault.Held(path); err != nil || !held {
		return "", err
	}
	return vault.Signature(path)
}

// prompt returns a database's address with a short time to connect to each of its servers, so that one
// that does not answer leaves time to find another.
func prompt(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	q := u.Query()
	wait := "3"
	if strings.Contains(u.Host+q.Get("host"), ",") {
		wait = "1"
	}
	q.Set("connect_timeout", wait)
	u.RawQuery = q.Encode()
	return u.String()
}

// A server answers on one listener.
type server struct {
	net.Listener
	handler http.Handler
}

func listen(cfg *configs.Config, log *slog.Logger) (all []server, err error) {
	defer func() {
		if err != nil {
			for _, s := range all {
				err = errors.Join(err, s.Close())
			}
		}
	}()
	site, err := web.NewSite(web.SiteOptions{Log: log, Hosts: cfg.AllowedHosts, Proxies: cfg.TrustedProxies})
	if err != nil {
		return nil, err
	}
	page, err := web.Scraped(web.MetricsPage(metrics()), web.SiteOptions{Hosts: cfg.AllowedHosts})
	if err != nil {
		return nil, err
	}
	l, err := web.Listen(cfg.Addr, "GATEHOUSE_ADDR")
	if err != nil {
		return nil, err
	}
	all = append(all, server{l, site.Wrap(handler(log))})
	if cfg.MetricsAddr == "" {
		return all, nil
	}
	if l, err = web.Listen(cfg.MetricsAddr, "GATEHOUSE_METRICS_ADDR"); err != nil {
		return all, err
	}
	return append(all, server{l, page}), nil
}

// metrics are those of a gateway that waits.
func metrics() prometheus.Gatherer {
	reg, waits := prometheus.NewRegistry(), Gauge()
	waits.Set(1)
	reg.MustRegister(waits)
	return reg
}

// Gauge returns the metric by which a gateway that waits is known; it is 0 in one that
// serves.
func Gauge() prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_standby", Help: "1 in a gateway that waits until another one has ended, which has no other metrics; else 0."})
}

// handler answers the probes as a gateway does that is alive and not ready.
func handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", web.Serve(log, web.WriteProblem, health.Live))
	mux.Handle("GET /readyz", web.Serve(log, web.WriteProblem, func(w http.ResponseWriter, _ *http.Request) error {
		return web.WriteJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "standby"})
	}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { // no failure to be logged
		web.ShowEither(w, r, &web.Problem{Fault: web.Unavailable, Detail: "this gateway is a standby: another one serves", RetryAfter: time.Second})
	})
	return mux
}

// watch looks whether the other gateway has ended.
type watch struct {
	cfg      *configs.Config
	log      *slog.Logger
	restores func() bool
	seen     bool // another gateway had the vault

	said map[core.Kind]time.Time // when a reason of each kind was logged
}

func (w *watch) until(ctx context.Context) error {
	for n := 1; ; n++ {
		if !core.Sleep(ctx, core.System{}, pause) {
			return ctx.Err()
		}
		switch free, err := w.look(ctx, n%checks == 0); {
		case core.KindOf(err) == core.Invalid:
			w.because(core.Invalid, err)
		case err != nil || free:
			return err
		}
	}
}

// look reports whether neither vault nor database is taken. It makes nothing, and locks
// the vault for no longer than it takes to see whether it is locked. check has it look at
// the database of a vault that is taken, too.
func (w *watch) look(ctx context.Context, check bool) (free bool, err error) {
	held, err := vault.Held(w.cfg.VaultPath)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case held:
		w.seen = true
		w.because(core.Conflict, errors.New("another gateway has the vault"))
		if check && w.cfg.OnServer() {
			return false, w.usable(ctx)
		}
		return false, nil
	case missing && w.seen:
		w.because(core.NotFound, errors.New("the vault is gone: is the folder mounted? 'gatehouse serve' finishes a restore that was interrupted"))
		return false, nil
	case err != nil && !missing:
		w.because(core.Other, err)
		return false, nil
	case w.restores():
		w.because(core.Conflict, errors.New("another gateway restores a backup"))
		return false, nil
	case !w.cfg.OnServer():
		return true, nil
	}
	found, err := w.database(ctx)
	switch {
	case core.KindOf(err) == core.Invalid:
		return false, err
	case err != nil:
		w.because(core.Other, err)
	case found.Holder != "":
		w.because(core.Busy, errors.New("another gateway uses the database"+found.Holder))
	case !w.fits(found.Metadata[vaultid.Key]):
		w.because(core.NotFound, w.misfit(found.Metadata[vaultid.Key]))
	default:
		return true, nil
	}
	return false, nil
}

// able returns why this program could not serve, should the other gateway be gone.
func (w *watch) able(ctx context.Context) error {
	if w.restores() {
		return errors.New("another gateway restores a backup")
	}
	found, err := w.database(ctx)
	if err != nil {
		return err
	}
	if !w.fits(found.Metadata[vaultid.Key]) {
		return w.misfit(found.Metadata[vaultid.Key])
	}
	return columns.Complete(found.Metadata[columns.InUse], w.cfg.ContentKeyPath(), configs.Prefix+"_CONTENT_KEY_FILE")
}

// misfit is the reason why the folder is not the vault with that id.
func (w *watch) misfit(id string) error {
	return errors.New(w.cfg.VaultPath + " is not the vault that the database belongs to: its file " + vaultid.File + " does not say " + id + ". Is the folder mounted?")
}

func (w *watch) database(ctx context.Context) (postgres.Found, error) {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	return postgres.Look(limited, w.cfg.DatabasePath(), w.cfg.DatabasePassword.Reveal(), vaultid.Key, columns.InUse)
}

// usable returns core.Invalid if this program could not serve the database, which another
// gateway uses. That it cannot be reached is logged.
func (w *watch) usable(ctx context.Context) error {
	found, err := w.database(ctx)
	if err == nil {
		err = columns.Complete(found.Metadata[columns.InUse], w.cfg.ContentKeyPath(), configs.Prefix+"_CONTENT_KEY_FILE")
	}
	if err != nil && core.KindOf(err) != core.Invalid && ctx.Err() == nil {
		w.because(core.Other, err)
		return nil
	}
	return err
}

// fits reports whether the folder is the vault that a database was marked with.
func (w *watch) fits(id string) bool {
	own, err := vaultid.Of(w.cfg.VaultPath)
	return id == "" || err == nil && own == id
}

// because logs why the program goes on waiting, unless a reason of that kind was logged not
// long ago.
func (w *watch) because(kind core.Kind, reason error) {
	if at, ok := w.said[kind]; ok && time.Since(at) < repeat {
		return
	}
	w.said[kind] = time.Now()
	level := slog.LevelWarn
	if kind == core.Conflict || kind == core.Busy {
		level = slog.LevelInfo // another gateway serves
	}
	w.log.Log(context.Background(), level, "waiting", "because", reason)
}
