package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"gatehouse/configs"
	"gatehouse/connectors"
	"gatehouse/connectors/discord"
	"gatehouse/connectors/telegram"
	"gatehouse/core"
	"gatehouse/pairing/bots"
)

// A fleet is the configured bots, as they are now: reload changes them while
// the gateway runs. Bots of one platform share its metrics.
type fleet struct {
	telegram *telegram.Metrics
	discord  *discord.Metrics
	hangup   <-chan os.Signal // asks for a reload; nil: nobody can
	changing sync.Mutex       // one reload at a time

	mu      sync.RWMutex
	bots    []configs.Bot // at most connectors.MaxBots
	trouble string        // why the file of bots is not in use as it stands; "" when it is
	since   time.Time     // of trouble
}

func (f *fleet) all() []configs.Bot {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return slices.Clone(f.bots)
}

func (f *fleet) find(name string) (configs.Bot, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return botNamed(f.bots, name)
}

func (f *fleet) troubleNow() (text string, since time.Time) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.trouble, f.since
}

// set makes these the bots, and reports whether the trouble is another one.
func (f *fleet) set(bots []configs.Bot, trouble string, now time.Time) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if news = trouble != f.trouble; news {
		f.since = now
	}
	f.bots, f.trouble = bots, trouble
	return news
}

// openBots reads the bots of settings and file. At the start a bot without a
// good token is a wrong configuration; later it is that bot's trouble alone.
func (a *app) openBots(context.Context) error {
	a.fleet = &fleet{telegram: telegram.NewMetrics(a.reg), discord: discord.NewMetrics(a.reg)}
	bots, err := a.cfg.ReadBots(nil)
	if err != nil {
		return err
	}
	var faults configs.Problems
	for _, b := range bots {
		if b.Fault != "" {
			faults = append(faults, configs.Problem{Name: b.Where, Fault: b.Fault})
		}
	}
	if len(faults) > 0 {
		return faults
	}
	a.fleet.set(bots, "", a.clock.Now())
	return nil
}

// connect makes the connector of a bot. A new platform is one more case.
func (a *app) connect(b configs.Bot) (connectors.Connector, error) {
	switch b.Platform {
	case telegram.Platform:
		return telegram.New(telegram.Options{
			Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL,
			Cursors: a.queue, Memory: a.db, Menu: a.chat.Menu(), Pace: bool(a.cfg.Pace), Hears: a.cfg.TranscribeURL != "", Files: a.vault.FS(),
			Clock: a.clock, Log: a.log, Metrics: a.fleet.telegram,
		})
	case discord.Platform:
		return discord.New(discord.Options{
			Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL,
			Cursors: a.queue, Memory: a.db, Menu: a.chat.Commands(), Complete: a.chat.Complete, Form: a.chat.Form, Pace: bool(a.cfg.Pace), Hears: a.cfg.TranscribeURL != "", Files: a.vault.FS(),
			Clock: a.clock, Log: a.log, Metrics: a.fleet.discord,
		})
	}
	return nil, core.Errorf(core.Invalid, "bot %s: no such platform", b.Name)
}

// connectors makes one for each bot.
func (a *app) connectors(ctx context.Context) (out []connectors.Connector, err error) {
	for _, b := range a.fleet.all() {
		if b.Fault != "" {
			continue // of a file that was named in the panel: holdBack tells
		}
		c, err := a.connect(b)
		if err != nil {
			return nil, err
		}
		if err := a.settleAccount(ctx, b, false); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// botNames are the configured bots.
func (a *app) botNames() (names []string) {
	for _, b := range a.fleet.all() {
		names = append(names, b.Name)
	}
	return names
}

func (a *app) pairingBots() (out []bots.Bot) {
	for _, b := range a.fleet.all() {
		out = append(out, bots.Bot{Name: b.Name, Platform: b.Platform})
	}
	return out
}

// platform is where a bot lives; one that is gone was named like its platform,
// for all that is known.
func (a *app) platform(name string) string {
	if b, ok := a.fleet.find(name); ok {
		return b.Platform
	}
	return name
}

// policy is how a bot treats strangers; one that is not configured is silent.
func (a *app) policy(name string) bots.Policy {
	b, ok := a.fleet.find(name)
	if !ok {
		return bots.Policy{DM: bots.Disabled}
	}
	dm, _ := core.ParseTrust(b.DMTrust) // checked by configs
	group, _ := core.ParseTrust(b.GroupTrust)
	return bots.Policy{Platform: b.Platform, DM: b.DMPolicy, Allowed: b.AllowedUsers, DMTrust: dm, GroupTrust: group}
}

// preset is the level chosen beforehand when somebody is let in to a bot.
func (a *app) preset(bot string, scope core.Scope) core.Trust {
	p := a.policy(bot)
	if scope == core.ScopeGroup {
		return p.GroupTrust
	}
	return p.DMTrust
}

// testBot asks the platform who a bot's token is.
func testBot(ctx context.Context, b configs.Bot) (username string, err error) {
	c, err := newProbe(b)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Test(ctx)
}

// A probe is a connector that is only asked who it is.
type probe interface {
	connectors.Tester
	Close() error
}

func newProbe(b configs.Bot) (probe, error) {
	switch b.Platform {
	case telegram.Platform:
		return telegram.New(telegram.Options{Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL, Cursors: noCursors{}})
	case discord.Platform:
		return discord.New(discord.Options{Name: b.Name, Token: b.Token.Reveal(), APIURL: b.APIURL, Cursors: noCursors{}})
	}
	return nil, fmt.Errorf("bot %s: no such platform", b.Name)
}

// noCursors is for a bot that does not poll.
type noCursors struct{}

func (noCursors) Cursor(context.Context, string) (string, time.Time, error) {
	return "", time.Time{}, nil
}
