package fleet

import (
	"gatehouse/core"
)

// Pause has the bots that run receive nothing while the gateway cannot store it, so that one that takes its place can:
// a platform sends to one receiver alone. Without off those go on that it had stopped. What
// waits to be sent is not affected.
func (f *Fleet) Pause(off bool) {
	f.changing.Lock()
	defer f.changing.Unlock()
	if !off {
		f.Log.Info("the database is reached again: the bots receive")
		for _, bot := range f.paused {
			if err := f.Hub.Start(bot); err != nil && core.KindOf(err) != core.NotFound {
				f.Log.Warn("bot does not receive yet", "bot", bot, "err", err)
			}
		}
		f.paused = nil
		return
	}
	f.Log.Warn("the database is not reached, and another gateway stands by: the bots receive nothing until it is")
	for _, s := range f.Hub.States() {
		if s.State == core.Stopped || s.State == core.FailedPhase {
			continue
		}
		f.paused = append(f.paused, s.Bot)
		if err := f.Hub.Stop(s.Bot); err != nil {
			f.Log.Warn("bot receives no more, and takes long to stop", "bot", s.Bot, "err", err)
		}
	}
}
