// Package standby waits until the gateway that has a vault and its database has ended, so
// that this program can take its place.
package standby

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/sealed/columns"
	"gatehouse/core/store/postgres"
	"gatehouse/core/vault"
	"gatehouse/web"
	"gatehouse/web/api/health"
)

const (
	pause    = 500 * time.Millisecond // between two looks whether the other gateway has ended
	lookTime = 15 * time.Second       // of one look at a database on a server
	checks   = 20                     // looks at the vault for each at the database while the vault is taken
)

// detail is what a caller of anything but the probes reads.
const detail = "this gateway is a standby: another one serves"

// Wait returns nil as soon as no other gateway has the vault of cfg, nor its database
// where that is on a server. Until then it answers on cfg.Addr: /healthz with 200, all
// else with 503. It returns ctx's error when ctx ends, and core.Invalid for a database
// that this program could not serve, such as one that a newer program has migrated.
func Wait(ctx context.Context, cfg *configs.Config, log *slog.Logger) error {
	l, err := web.Listen(cfg.Addr, "GATEHOUSE_ADDR")
	if err != nil {
		return err
	}
	site, err := web.NewSite(web.SiteOptions{Log: log, Hosts: cfg.AllowedHosts, Proxies: cfg.TrustedProxies})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- web.NewServer(site.Wrap(handler(log)), web.ServerOptions{Log: log}).Run(serving, l) }()
	log.Info("standing by", "addr", l.Addr().String(), "vault", cfg.VaultPath)
	err = (&watch{cfg: cfg, log: log}).until(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// handler answers the probes as a gateway does that is alive and not ready.
func handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", web.Serve(log, web.WriteProblem, health.Live))
	mux.Handle("GET /readyz", web.Serve(log, web.WriteProblem, func(w http.ResponseWriter, _ *http.Request) error {
		return web.WriteJSON(w, http.StatusServiceUnavailable, map[string]string{"status": "standby"})
	}))
	mux.Handle("/", web.Serve(log, web.ShowEither, func(http.ResponseWriter, *http.Request) error {
		return &web.Problem{Fault: web.Unavailable, Detail: detail, RetryAfter: time.Second}
	}))
	return mux
}

// watch looks whether the other gateway has ended.
type watch struct {
	cfg  *configs.Config
	log  *slog.Logger
	said string // why it waits, as it was logged last
}

func (w *watch) until(ctx context.Context) error {
	for n := 0; ; n++ {
		free, err := w.look(ctx, n%checks == 0)
		if err != nil || free {
			return err
		}
		if !core.Sleep(ctx, core.System{}, pause) {
			return ctx.Err()
		}
	}
}

// look reports whether neither vault nor database is taken. The vault is locked while the
// database is looked at, so that of several that stand by one at a time does.
func (w *watch) look(ctx context.Context, check bool) (free bool, err error) {
	v, err := vault.Open(w.cfg.VaultPath)
	if err != nil {
		return false, w.because(err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	switch locked := v.Lock(true); {
	case core.KindOf(locked) == core.Conflict:
		if check && w.cfg.OnServer() {
			if _, err := w.database(ctx); core.KindOf(err) == core.Invalid {
				return false, err
			}
		}
		return false, w.because(core.Errorf(core.Conflict, "another gateway has the vault"))
	case locked != nil:
		return false, w.because(locked)
	case !w.cfg.OnServer():
		return true, nil
	}
	found, err := w.database(ctx)
	if err == nil && found.Holder != "" {
		err = core.Errorf(core.Busy, "another gateway uses the database%s", found.Holder)
	}
	if err == nil {
		err = fits(v, found.Metadata[idKey])
	}
	return err == nil, w.because(err)
}

// fits returns an error if v is not the vault that a database was marked with.
func fits(v *vault.Vault, id string) error {
	has, err := idOf(v)
	if err == nil && id != "" && has != id {
		return core.Errorf(core.NotFound, "%s is not the vault that the database belongs to: its file %s does not say %s. Is the folder mounted?", v.Path(), idFile, id)
	}
	return err
}

// database looks at a database on a server. It returns core.Invalid if this program could
// not serve it.
func (w *watch) database(ctx context.Context) (postgres.Found, error) {
	limited, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, err := postgres.Look(limited, w.cfg.DatabasePath(), w.cfg.DatabasePassword.Reveal(), idKey, columns.InUse)
	if err != nil {
		return found, err
	}
	return found, columns.Complete(found.Metadata[columns.InUse], w.cfg.ContentKeyPath(), configs.Prefix+"_CONTENT_KEY_FILE")
}

// because logs why the program goes on waiting when that is something new, and returns
// what ends the wait: an error that waiting does not mend.
func (w *watch) because(reason error) error {
	if core.KindOf(reason) == core.Invalid {
		return reason
	}
	if reason == nil || reason.Error() == w.said {
		return nil
	}
	w.said = reason.Error()
	level := slog.LevelWarn
	if kind := core.KindOf(reason); kind == core.Conflict || kind == core.Busy {
		level = slog.LevelInfo // another gateway serves
	}
	w.log.Log(context.Background(), level, "waiting", "because", w.said)
	return nil
}
