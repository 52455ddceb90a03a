package fleet

import (
	"slices"
	"sync"

	"gatehouse/core"
)

// Pause has the bots that run receive nothing while the gateway cannot store it, so that one that
// takes its place can: a platform sends to one receiver alone. Without off those go on that it had stopped, unless they
// were stopped since; it reports whether all do. What waits to be sent is not affected.
func (f *Fleet) Pause(off bool) (done bool) {
	f.changing.Lock()
	defer f.changing.Unlock()
	if !off {
		return f.resume()
	}
	f.Log.Warn("the database was not reached for some seconds, and another gateway stands by: the bots receive nothing until it is")
	var stops sync.WaitGroup
	for _, s := range f.Hub.States() {
		if s.State == core.Stopped || s.State == core.FailedPhase || slices.Contains(f.paused, s.Bot) {
			continue
		}
		f.paused = append(f.paused, s.Bot)
		stops.Go(func() {
			if err := f.Hub.Pause(s.Bot, "the database is not reached, and another gateway may take over"); err != nil {
				f.Log.Warn("bot receives no more, and takes long to stop", "bot", s.Bot, "err", err)
			}
		})
	}
	stops.Wait()
	return true
}

// resume starts the bots that Pause has stopped; those that are still stopping stay in the list.
func (f *Fleet) resume() (done bool) {
	f.paused = slices.DeleteFunc(f.paused, func(bot string) bool {
		if b, ok := f.Bots.Find(bot); !ok || b.Off {
			return true
		}
		err := f.Hub.Start(bot)
		if core.KindOf(err) == core.Busy {
			return false
		}
		if err != nil {
			f.Log.Warn("bot does not receive", "bot", bot, "err", err)
		}
		return true
	})
	if done = len(f.paused) == 0; done {
		f.Log.Info("the database is reached again: the bots receive")
	}
	return done
}
