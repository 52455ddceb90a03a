package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/watch"
	"gatehouse/pairing"
)

// watchBots reads bots and tokens again when their files change, and when a
// hangup asks for it, and brings what runs in line. It returns when ctx ends.
func (a *app) watchBots(ctx context.Context) {
	w := watch.New(watch.Options{What: "bots and tokens", Clock: a.clock, Log: a.log, Asked: a.fleet.hangup})
	defer w.Close()
	for {
		wait := watch.Anyway
		if !a.reload(ctx) {
			wait = watch.Soon
		}
		var dirs []string // at most two for each bot and one more
		for _, file := range a.botFiles() {
			dirs = append(dirs, foldersOf(file)...)
		}
		if w.Folders(dirs) && ctx.Err() == nil {
			continue // what changed before the watch began
		}
		if !w.Changed(ctx, wait) {
			return
		}
	}
}

// foldersOf are the folder that a file stands in and, where a link leads
// elsewhere, the one it leads to.
func foldersOf(file string) []string {
	dirs := []string{filepath.Dir(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

// botFiles are the files that say which bots there are and what their tokens are.
func (a *app) botFiles() (files []string) {
	if path, _ := a.cfg.BotsPath(); path != "" {
		files = append(files, path)
	}
	for _, b := range a.fleet.all() {
		if b.TokenFile != "" {
			files = append(files, b.TokenFile)
		}
	}
	return files
}

// reload reads the bots and brings what runs in line: who is new starts, who is
// gone stops, whose token or address changed gets another connector, and nobody
// else is touched. What people may do changes at once for all. It reports
// whether everything could be done; the next call tries the rest again.
func (a *app) reload(ctx context.Context) (done bool) {
	a.fleet.changing.Lock()
	defer a.fleet.changing.Unlock()
	was := a.fleet.all()
	now, err := a.now().ReadBots(was)
	trouble := ""
	if err != nil {
		trouble = strings.Join(strings.Fields(err.Error()), " ")
	}
	done = true
	for _, b := range was {
		if _, stays := botNamed(now, b.Name); !stays && !a.endBot(ctx, b) {
			now, done = append(now, b), false // it is still stopping
		}
	}
	before, _ := a.fleet.troubleNow()
	a.fleet.set(slices.Clone(now), before, a.clock.Now()) // first what people may do, then who works
	stand := make([]configs.Bot, 0, len(now))             // what came of it
	for _, b := range now {
		old, known := botNamed(was, b.Name)
		if !known || !alike(old, b) {
			if err := a.changeBot(ctx, b, known); err != nil {
				a.log.Warn("bot could not be changed yet", "bot", b.Name, "err", err, "retry_in", watch.Soon)
				if done = false; !known {
					continue
				}
				b.Token, b.APIURL, b.Fault = old.Token, old.APIURL, old.Fault // unlike what is wanted: tried again
			}
		}
		stand = append(stand, b)
	}
	if a.fleet.set(stand, trouble, a.clock.Now()) {
		a.tellTrouble(trouble)
	}
	return done
}

func (a *app) tellTrouble(trouble string) {
	if trouble != "" {
		a.log.Error("the file of bots can't be used: its bots stay as they were", "err", trouble)
	} else {
		a.log.Info("the file of bots is in use again")
	}
	a.bus.Ring("bots")
}

func botNamed(bots []configs.Bot, name string) (configs.Bot, bool) {
	i := slices.IndexFunc(bots, func(b configs.Bot) bool { return b.Name == name })
	if i < 0 {
		return configs.Bot{}, false
	}
	return bots[i], true
}

// alike reports whether a bot needs no other connector to be the other.
func alike(a, b configs.Bot) bool {
	return a.Platform == b.Platform && a.APIURL == b.APIURL && a.Token.Reveal() == b.Token.Reveal() && a.Fault == b.Fault
}

// endBot stops a bot that is no longer configured. What it has still to say
// waits for its return.
func (a *app) endBot(ctx context.Context, b configs.Bot) bool {
	a.queue.LetGo(b.Name)
	if err := a.hub.Remove(b.Name); err != nil && core.KindOf(err) != core.NotFound {
		a.log.Warn("bot could not be removed yet", "bot", b.Name, "err", err, "retry_in", watch.Soon)
		return false
	}
	a.log.InfoContext(ctx, "bot removed", "bot", b.Name)
	a.bus.Ring("bots")
	return true
}

// changeBot starts a bot, or has it go on with another token or address.
func (a *app) changeBot(ctx context.Context, b configs.Bot, known bool) error {
	if b.Fault != "" {
		a.log.Error("bot has no good token", "bot", b.Name, "reason", b.Fault)
		return a.holdBot(ctx, b, known, a.hub.Fail(b.Name, b.Platform, b.Fault))
	}
	c, err := a.connect(b)
	if err != nil {
		a.log.Error("bot has no good token", "bot", b.Name, "reason", core.TextOf(err))
		return a.holdBot(ctx, b, known, a.hub.Fail(b.Name, b.Platform, core.TextOf(err)))
	}
	if err = a.settleAccount(ctx, b, known); err != nil {
		return err
	}
	if err = a.hub.Put(c); err == nil {
		a.log.InfoContext(ctx, map[bool]string{true: "bot goes on with another token or address", false: "bot added"}[known], "bot", b.Name, "platform", b.Platform)
	}
	return a.holdBot(ctx, b, known, err)
}

// settleAccount sees to it that a bot which is another account than the last
// one of its name takes no message for a repeat of the old account's. At the
// start nothing runs; later the bot is held back first.
func (a *app) settleAccount(ctx context.Context, b configs.Bot, running bool) error {
	key, account := "bot.account."+b.Name, b.Account()
	last, err := a.db.Load(ctx, key)
	if err != nil || last == account {
		return err
	}
	if last != "" {
		if running {
			if err := a.hub.Fail(b.Name, b.Platform, "its token belongs to another account now; it starts with that one"); err != nil {
				return err
			}
		}
		if err := a.queue.NewAccount(ctx, b.Name); err != nil {
			return err
		}
		a.log.InfoContext(ctx, "the bot is another account now", "bot", b.Name)
	}
	return a.db.Save(ctx, key, account)
}

// holdBot takes on what waits to be sent by a bot that is new here.
func (a *app) holdBot(ctx context.Context, b configs.Bot, known bool, err error) error {
	if err != nil || known {
		return err
	}
	pairing.NewMetrics(a.reg, []string{b.Name}) // the same series, with this bot's at 0
	return a.queue.Hold(ctx, b.Name)
}
