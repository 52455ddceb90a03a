package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gatehouse/admin/page"
	"gatehouse/cmd/gatehouse/logs"
	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/cmd/gatehouse/restore"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/connectors/discord/discordtest"
	"gatehouse/connectors/telegram/telegramtest"
	"gatehouse/core"
	"gatehouse/core/vault"
	"gatehouse/web/auth"
)

type demoCmd struct {
	Fresh bool `help:"Empty the demo's vault and the simulators' memory first."`
}

func (c *demoCmd) Help() string {
	return "The vault is ~/Gatehouse-demo, or GATEHOUSE_VAULT_PATH; it is kept between starts, with the simulators' state. Other settings are taken from GATEHOUSE_* as for serve; the platforms are always the simulated ones."
}

func (c *demoCmd) Run(p *process) (err error) {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	if err := c.settings(cfg); err != nil {
		return err
	}
	if err := vaultFree(cfg.VaultPath); err != nil {
		return err
	}
	if c.Fresh {
		if err := emptyDemo(cfg.VaultPath); err != nil {
			return err
		}
	}
	_, err = os.Stat(filepath.Join(cfg.VaultPath, demoMark))
	isNew := errors.Is(err, fs.ErrNotExist)
	if err := errors.Join(restore.Resume(cfg, logs.New(p.Stderr, cfg, p.Terminal)), fillDemo(cfg.VaultPath)); err != nil {
		return err
	}
	sims, err := openSims(cfg.VaultPath)
	defer func() { err = errors.Join(err, sims.Close()) }()
	if err != nil {
		return err
	}
	phonesPage, err := listenNear(3334)
	if err != nil {
		return err
	}
	claims := &demoClaims{ctx: p.Context}
	handler, err := sims.page(phones.Options{Claim: claims.code, Panel: "http://" + cfg.Addr + "/admin"})
	if err != nil {
		return err
	}
	stop := servePhones(phonesPage, handler)
	defer stop()
	cfg.TelegramToken, cfg.TelegramApiURL = values.NewSecret(sims.telegram.Token()), sims.telegram.URL()
	cfg.DiscordToken, cfg.DiscordApiURL = values.NewSecret(sims.discord.Token()), sims.discord.URL()
	cfg.BotsFile = "off" // no real bot next to them
	cfg.CameFrom(configs.SourceDemo, "TELEGRAM_TOKEN", "TELEGRAM_API_URL", "DISCORD_TOKEN", "DISCORD_API_URL", "BOTS_FILE")
	defer c.announceStop(p, &err)()
	return serve(p, cfg, func(a *app, oneTime string) {
		if isNew {
			if err := a.schedule.AddSample("reflection"); err != nil {
				a.log.Warn("the demo has no daily agent", "err", err)
			}
		}
		claims.serve(a)
		c.welcome(p, a, oneTime, phonesPage.Addr().String(), claims.code())
	})
}

// sims are the simulated platforms, nil where one is not open.
type sims struct {
	telegram *telegramtest.Server
	discord  *discordtest.Server
}

// simStates returns the files next to the vault in which the simulators keep ids,
// users and histories: a start without them would assign the same ids again, and the
// gateway would treat new messages as repeats.
func simStates(vault string) (telegram, discord string) {
	return vault + ".simulator.json", vault + ".simulator-discord.json"
}

// openSims starts both. What is open is to be closed, also after an error.
func openSims(vault string) (s sims, err error) {
	telegram, discord := simStates(vault)
	if s.telegram, err = telegramtest.Open(telegramtest.Options{StateFile: telegram}); err != nil {
		return s, err
	}
	s.discord, err = discordtest.Open(discordtest.Options{StateFile: discord, Bots: []discordtest.BotAccount{{Intents: discordtest.IntentContent}}})
	return s, err
}

func (s sims) Close() error {
	var errs []error
	if s.telegram != nil {
		errs = append(errs, s.telegram.Close())
	}
	if s.discord != nil {
		errs = append(errs, s.discord.Close())
	}
	return errors.Join(errs...)
}

// page returns the phones page for both, with users to play.
func (s sims) page(opt phones.Options) (http.Handler, error) {
	telegram, err := phones.Telegram(s.telegram)
	if err != nil {
		return nil, err
	}
	discord, err := phones.Discord(s.discord)
	if err != nil {
		return nil, err
	}
	return phones.New(opt, telegram, discord)
}

// vaultFree fails when a gateway works on the vault already: its files and the
// simulators' are left alone then.
func vaultFree(path string) error {
	if _, err := os.Stat(filepath.Join(path, ".parachute", "lock")); err != nil {
		return nil // it does not exist, or opening it will fail
	}
	v, err := vault.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(v.Lock(true), v.Close())
}

// announceStop prints a line when a stop is requested. The function that it returns
// is called at the end and prints another one, unless the demo has failed.
func (c *demoCmd) announceStop(p *process, failed *error) (end func()) {
	said := make(chan struct{})
	unheard := context.AfterFunc(p.Context, func() {
		defer close(said)
		fmt.Fprintln(p.Stdout, "\nStopping; answers being written are finished first. Ctrl-C again stops at once.")
	})
	return func() {
		if unheard() {
			return
		}
		if <-said; *failed == nil {
			fmt.Fprintln(p.Stdout, "Stopped. The next start goes on from here.")
		}
	}
}

// demoClaims hands out the owner's claim code while no one owns the bot.
type demoClaims struct {
	ctx context.Context
	mu  sync.Mutex
	app *app // nil until it serves
	now string
	end time.Time
}

func (c *demoClaims) serve(a *app) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.app = a
}

// code returns one that works for some minutes at least; "" when there is an owner.
func (c *demoClaims) code() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.app == nil {
		return ""
	}
	if owned, err := c.app.pairing.HasOwner(c.ctx); err != nil || owned {
		return ""
	}
	if time.Until(c.end) < 5*time.Minute {
		code, end, err := c.app.pairing.Codes.NewClaim(c.ctx, false)
		if err != nil {
			return ""
		}
		c.now, c.end = code, end
	}
	return c.now
}

// settings returns the demo's settings, which the environment overrides.
func (c *demoCmd) settings(cfg *configs.Config) error {
	if cfg.Source("VAULT_PATH") == configs.SourceDefault {
		home, err := os.UserHomeDir()
		if err != nil {
			return core.Errorf(core.Invalid, "there is no home folder for the demo's vault: set GATEHOUSE_VAULT_PATH")
		}
		cfg.VaultPath = filepath.Join(home, demoFolder)
		cfg.CameFrom(configs.SourceDemo, "VAULT_PATH")
	}
	if cfg.Source("ADDR") == configs.SourceDefault && cfg.Source("PORT") == configs.SourceDefault {
		l, err := listenNear(3333)
		if err != nil {
			return err
		}
		cfg.Addr = l.Addr().String()
		cfg.CameFrom(configs.SourceDemo, "ADDR")
		if err := l.Close(); err != nil {
			return err
		}
	}
	if cfg.Source("LOCALHOST_ACCESS") == configs.SourceDefault {
		cfg.LocalhostAccess = "chat"
		cfg.CameFrom(configs.SourceDemo, "LOCALHOST_ACCESS")
	}
	if cfg.Source("GUEST_READ") == configs.SourceDefault {
		cfg.GuestRead = values.List{"Public/**"}
		cfg.CameFrom(configs.SourceDemo, "GUEST_READ")
	}
	if cfg.Model == "" && !cfg.HasProvider() {
		cfg.Model = "local/quote:30ms"
		cfg.CameFrom(configs.SourceDemo, "MODEL")
	}
	if cfg.Source("LOG_LEVEL") == configs.SourceDefault {
		if err := cfg.LogLevel.Decode("warn"); err != nil { // the links stay in sight
			return err
		}
		cfg.CameFrom(configs.SourceDemo, "LOG_LEVEL")
	}
	return nil
}

// listenNear listens on loopback at port, or at any free one.
func listenNear(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return l, nil
}

func servePhones(l net.Listener, h http.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	return func() {
		cancel()
		_ = server.Close()
		<-done
	}
}

// demoFolder is the demo's vault in the home directory, unless another one is set.
const demoFolder = "Gatehouse-demo"

// demoMark is in a vault that the demo made: only such a one is emptied.
const demoMark = ".parachute/demo"

// emptyDemo forgets the vault and what the simulators kept next to it.
func emptyDemo(vault string) error {
	if _, err := os.Stat(vault); err == nil {
		if _, err := os.Stat(filepath.Join(vault, demoMark)); err != nil {
			return core.Errorf(core.Invalid, "%s was not made by the demo, so --fresh leaves it alone: set GATEHOUSE_VAULT_PATH to another folder", vault)
		}
		if err := os.RemoveAll(vault); err != nil {
			return fmt.Errorf("empty the demo's vault: %w", err)
		}
	}
	telegram, discord := simStates(vault)
	for _, state := range []string{telegram, discord} {
		if err := os.Remove(state); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget a simulator's memory: %w", err)
		}
	}
	return nil
}

// fillDemo copies the sample vault into a new directory. A directory that has files
// already is left as it is.
func fillDemo(vault string) error {
	entries, err := os.ReadDir(vault)
	if err == nil && len(entries) > 0 {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("demo vault: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(vault, ".parachute"), 0o700); err != nil {
		return fmt.Errorf("demo vault: %w", err)
	}
	if err := os.WriteFile(filepath.Join(vault, demoMark), []byte("made by gatehouse demo\n"), 0o600); err != nil {
		return fmt.Errorf("demo vault: %w", err)
	}
	if err := os.CopyFS(vault, configs.SampleVault()); err != nil {
		return fmt.Errorf("demo vault: %w", err)
	}
	return nil
}

func (c *demoCmd) welcome(p *process, a *app, oneTime, phonesAddr, code string) {
	fmt.Fprintf(p.Stdout, `
Gatehouse is running with a simulated Telegram and a simulated Discord.
Open these in a browser:

  The phones   http://%s/
               play people who write to the bots
  The panel    http://%s%s?token=%s
               decide who may talk to them; this link signs you in, once and within %d minutes
  The API      http://%s/docs
               what programs can ask for

`, phonesAddr, a.cfg.Addr, page.LinkPath, a.admins.NewLink(), auth.LinkTime/time.Minute, a.cfg.Addr)
	if oneTime != "" {
		fmt.Fprintf(p.Stdout, "To sign in later or elsewhere, the name is admin, the one-time password  %s\n", oneTime)
	} else {
		fmt.Fprintf(p.Stdout, "To sign in later or elsewhere, the name is admin, with the password you chose. Forgotten? 'bin/gatehouse demo --fresh' starts again.\n")
	}
	if code != "" {
		fmt.Fprintf(p.Stdout, "To own the bots, send this from Olga's Telegram           /claim %s\n", code)
	}
	fmt.Fprintf(p.Stdout, "\nEverything is kept in %s\nCtrl-C stops it; starting again goes on where it was.\n\n", a.vault.Path())
}
