package fleet

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/watch"
	"gatehouse/pairing"
)

// Watch reloads bots and tokens when their files change and at each signal of
// hangup, which may be nil. It returns when ctx ends.
func (f *Fleet) Watch(ctx context.Context, hangup <-chan os.Signal) {
	w := watch.New(watch.Options{What: "bots and tokens", Clock: f.Clock, Log: f.Log, Asked: hangup})
	defer w.Close()
	for {
		wait := watch.Anyway
		if !f.reload(ctx) {
			wait = watch.Soon
		}
		var dirs []string // at most two for each bot and one more
		for _, file := range f.Bots.Files(f.Settings.Given()) {
			dirs = append(dirs, directoriesOf(file)...)
		}
		if w.Folders(dirs) && ctx.Err() == nil {
			continue // what changed before the watch began
		}
		if !w.Changed(ctx, wait) {
			return
		}
	}
}

// directoriesOf returns the directory of a file and, if the file is a link to
// another one, the directory of its target.
func directoriesOf(file string) []string {
	dirs := []string{filepath.Dir(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

// Reload applies the settings in effect to the bots. What cannot be changed yet is
// retried while the fleet watches.
func (f *Fleet) Reload(ctx context.Context) { f.reload(ctx) }

// reload reads the bots again: a new bot is started, a removed one stopped, and
// one with another token or address gets a new connector. Other bots keep
// running. Policies change first, for all bots. It reports whether every change
// was made; the next call retries the rest.
func (f *Fleet) reload(ctx context.Context) (done bool) {
	f.changing.Lock()
	defer f.changing.Unlock()
	was := f.Bots.All()
	now, err := f.Settings.Now().ReadBots(was)
	trouble := ""
	if err != nil {
		trouble = strings.Join(strings.Fields(err.Error()), " ")
	}
	done = true
	var late []configs.Bot // still stopping
	for _, b := range was {
		if _, stays := named(now, b.Name); !stays && !f.remove(ctx, b) {
			late, done = append(late, b), false
		}
	}
	before, _ := f.Bots.Trouble()
	f.Bots.set(slices.Concat(now, late), before, f.Clock.Now()) // policies first, then connectors
	settled := make([]configs.Bot, 0, len(now)+len(late))       // as they are now
	for _, b := range now {
		old, known := named(was, b.Name)
		if !known || !alike(old, b) || slices.Contains(f.leaving, b.Name) {
			if err := f.replace(ctx, b, known); err != nil {
				f.Log.Warn("bot could not be changed yet", "bot", b.Name, "err", err, "retry_in", watch.Soon)
				if done = false; !known {
					continue
				}
				b.Token, b.APIURL, b.Fault = old.Token, old.APIURL, old.Fault // differs from what is configured: retried
			}
		}
		settled = append(settled, b)
	}
	settled = append(settled, late...)
	if f.Bots.set(settled, trouble, f.Clock.Now()) {
		f.reportTrouble(trouble)
	}
	return done
}

// reportTrouble logs why the file of bots is not used, "" that it is again.
func (f *Fleet) reportTrouble(trouble string) {
	if trouble != "" {
		f.Log.Error("the bots file is invalid: the bots stay unchanged", "err", trouble)
	} else {
		f.Log.Info("the file of bots is in use again")
	}
	f.ring()
}

// alike reports whether two settings of a bot can share a connector.
func alike(a, b configs.Bot) bool {
	return a.Platform == b.Platform && a.APIURL == b.APIURL && a.Token.Reveal() == b.Token.Reveal() && a.Fault == b.Fault
}

// remove stops a bot that was removed from the configuration. Its replies fail; they are sent
// if it is configured again within a day. It reports whether the bot has stopped.
func (f *Fleet) remove(ctx context.Context, b configs.Bot) bool {
	err := f.Hub.Remove(b.Name)
	if err == nil || core.KindOf(err) == core.NotFound {
		err = f.Outbox.Remove(ctx, b.Name)
	}
	if err != nil {
		f.Log.Warn("bot could not be removed yet", "bot", b.Name, "err", err, "retry_in", watch.Soon)
		if !slices.Contains(f.leaving, b.Name) {
			f.leaving = append(f.leaving, b.Name)
		}
		return false
	}
	f.left(b.Name)
	f.Log.InfoContext(ctx, "bot removed", "bot", b.Name)
	f.ring()
	return true
}

// left forgets that a bot is stopping.
func (f *Fleet) left(name string) {
	f.leaving = slices.DeleteFunc(f.leaving, func(n string) bool { return n == name })
}

// replace starts a bot, or gives a known one a connector with another token or
// address.
func (f *Fleet) replace(ctx context.Context, b configs.Bot, known bool) error {
	if b.Fault != "" {
		f.Log.Error("bot has no good token", "bot", b.Name, "reason", b.Fault)
		return f.adopt(ctx, b, known, f.Hub.Fail(b.Name, b.Platform, b.Fault))
	}
	c, err := f.Platforms.Connect(b)
	if err != nil {
		f.Log.Error("bot has no good token", "bot", b.Name, "reason", core.TextOf(err))
		return f.adopt(ctx, b, known, f.Hub.Fail(b.Name, b.Platform, core.TextOf(err)))
	}
	if err = f.settleAccount(ctx, b, known); err != nil {
		return err
	}
	if err = f.Hub.Put(c); err == nil {
		f.left(b.Name)
		if known {
			f.Log.InfoContext(ctx, "bot goes on with another token or address", "bot", b.Name, "platform", b.Platform)
		} else {
			f.Log.InfoContext(ctx, "bot added", "bot", b.Name, "platform", b.Platform)
		}
	}
	return f.adopt(ctx, b, known, err)
}

// settleAccount stores which account a bot is. If it is another one than before,
// the queue forgets the numbers of received messages, so that none is taken for
// a repeat of the old account's. A running bot is stopped first.
func (f *Fleet) settleAccount(ctx context.Context, b configs.Bot, running bool) error {
	key, account := "bot.account."+b.Name, b.Account()
	last, err := f.DB.Load(ctx, key)
	if err != nil || last == account {
		return err
	}
	if last != "" {
		if running {
			if err := f.Hub.Fail(b.Name, b.Platform, "its token belongs to another account now; it starts with that one"); err != nil {
				return err
			}
		}
		if err := maintenance.NewAccount(ctx, f.DB, b.Name); err != nil {
			return err
		}
		f.Log.InfoContext(ctx, "the bot is another account now", "bot", b.Name)
	}
	return f.DB.Save(ctx, key, account)
}

// adopt claims the outbox of a bot that was not known and creates its metrics.
// It returns err, if there is one, and then does nothing.
func (f *Fleet) adopt(ctx context.Context, b configs.Bot, known bool, err error) error {
	if err != nil || known {
		return err
	}
	pairing.NewMetrics(f.Registry, []string{b.Name}) // the same series, with this bot's at 0
	return f.Outbox.Hold(ctx, b.Name)
}
