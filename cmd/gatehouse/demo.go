package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"gatehouse/admin/page"
	"gatehouse/cmd/gatehouse/logs"
	"gatehouse/cmd/gatehouse/phones"
	"gatehouse/cmd/gatehouse/restore"
	"gatehouse/cmd/gatehouse/stage"
	"gatehouse/configs"
	"gatehouse/configs/values"
	"gatehouse/core"
	"gatehouse/web/auth"
)

type demoCmd struct {
	Fresh bool `help:"Empty the demo's vault and the simulators' memory first."`
}

func (c *demoCmd) Help() string {
	return "The vault is ~/Gatehouse-demo, or GATEHOUSE_VAULT_PATH; it is kept between starts, with the simulators' state. Without a provider of models in the settings, three scripted models are the council of /accuracy. Other settings are taken from GATEHOUSE_* as for serve; the platforms are always the simulated ones."
}

func (c *demoCmd) Run(p *process) (err error) {
	cfg, err := configs.Load()
	if err != nil {
		return err
	}
	if err := c.settings(cfg); err != nil {
		return err
	}
	if err := stage.VaultFree(cfg.VaultPath); err != nil {
		return err
	}
	if c.Fresh {
		if err := stage.Empty(cfg.VaultPath); err != nil {
			return err
		}
	}
	isNew := !stage.Made(cfg.VaultPath)
	if err := errors.Join(restore.Resume(cfg, logs.New(p.Stderr, cfg, p.Terminal)), stage.Fill(cfg.VaultPath)); err != nil {
		return err
	}
	sims, err := stage.Open(cfg.VaultPath)
	defer func() { err = errors.Join(err, sims.Close()) }()
	if err != nil {
		return err
	}
	phonesPage, err := stage.Listen(3334)
	if err != nil {
		return err
	}
	questions, stopCouncil, err := stage.OpenCouncil(cfg)
	if err != nil {
		return err
	}
	defer stopCouncil()
	claims := &demoClaims{ctx: p.Context}
	handler, err := sims.Page(phones.Options{Claim: claims.code, Prepared: prepared(questions), Panel: "http://" + cfg.Addr + "/admin"})
	if err != nil {
		return err
	}
	stop := stage.Serve(phonesPage, handler)
	defer stop()
	cfg.TelegramToken, cfg.TelegramApiURL = values.NewSecret(sims.Telegram.Token()), sims.Telegram.URL()
	cfg.DiscordToken, cfg.DiscordApiURL = values.NewSecret(sims.Discord.Token()), sims.Discord.URL()
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

// prepared returns what the owner is offered to try the council.
func prepared(questions []string) []string {
	if len(questions) == 0 {
		return nil
	}
	return append([]string{"/accuracy high"}, append(questions, "/why", "/accuracy off")...)
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
		cfg.VaultPath = filepath.Join(home, stage.Folder)
		cfg.CameFrom(configs.SourceDemo, "VAULT_PATH")
	}
	if cfg.Source("ADDR") == configs.SourceDefault && cfg.Source("PORT") == configs.SourceDefault {
		l, err := stage.Listen(3333)
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
	fmt.Fprintf(p.Stdout, "\nThe vault is %s; other files beside it begin with its name.\nCtrl-C stops it; starting again goes on where it was.\n\n", a.vault.Path())
}
