package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/orchestrator"
)

// Running knows the runs and commands that are running, and stops them. It is
// safe for concurrent use.
type Running struct {
	clock core.Clock

	mu      sync.Mutex
	runs    map[string]*active   // by lane; bounded by the queue's slots
	aborted map[sender]time.Time // when their runs were stopped; at most maxAborted
	stopped map[string]time.Time // when a stop found no run in a lane; at most maxAborted
}

// A sender is a user on a bot, or an API key.
type sender struct {
	bot  string
	user int64
	key  string
}

// maxAborted bounds the senders that are kept for turns that were claimed before
// the senders lost access and have not begun. That takes only moments.
const maxAborted = 256

// An active is a run, or a command, that can be stopped.
type active struct {
	cancel  context.CancelCauseFunc
	session string
	bot     string
	user    int64
	lane    string
	key     string // of the API key that asked; "" without one
	run     string
}

// NewRunning returns a Running without runs.
func NewRunning(clock core.Clock) *Running {
	return &Running{clock: clock, runs: map[string]*active{}, aborted: map[sender]time.Time{}, stopped: map[string]time.Time{}}
}

// Busy reports whether a run of the user is running, with any bot.
func (r *Running) Busy(user int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.runs {
		if a.user == user {
			return true
		}
	}
	return false
}

// Abort stops the run of a session, and reports whether there was one.
func (r *Running) Abort(session string) bool {
	return r.abort(orchestrator.ErrAborted, func(a *active) bool { return a.session == session })
}

// AbortLane stops the bot's run in a lane, and reports whether there was one. A
// run over HTTP in the same conversation goes on. A run that was claimed before and has not
// begun is stopped when it does.
func (r *Running) AbortLane(bot, lane string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abortNow(orchestrator.ErrAborted, func(a *active) bool { return a.lane == lane && a.bot == bot }) {
		return true
	}
	if len(r.stopped) >= maxAborted {
		clear(r.stopped)
	}
	r.stopped[bot+" "+lane] = r.clock.Now()
	return false
}

// AbortRun stops the run with an id, and reports whether it was running.
func (r *Running) AbortRun(run string) bool {
	return r.abort(orchestrator.ErrAborted, func(a *active) bool { return a.run == run && run != "" })
}

// errInterrupted is the cause of a run that its sender's next message ends.
var errInterrupted = fmt.Errorf("%w by writing on", orchestrator.ErrAborted)

// Interrupt stops the bot's run in a lane if it is the user's, because of their
// next message. It reports whether there was one.
func (r *Running) Interrupt(bot, lane string, user int64) bool {
	return r.abort(errInterrupted, func(a *active) bool { return a.lane == lane && a.bot == bot && a.user == user })
}

// AbortUser stops a user's runs on a bot, and those that are claimed and have
// not begun.
func (r *Running) AbortUser(bot string, user int64) {
	r.abortSender(sender{bot: bot, user: user}, func(a *active) bool { return a.bot == bot && a.user == user })
}

// AbortKey stops the runs of an API key, and those that are claimed and have not
// begun.
func (r *Running) AbortKey(key string) {
	r.abortSender(sender{key: key}, func(a *active) bool { return key != "" && a.key == key })
}

func (r *Running) abortSender(who sender, match func(*active) bool) {
	r.mu.Lock()
	if len(r.aborted) >= maxAborted {
		clear(r.aborted)
	}
	r.aborted[who] = r.clock.Now()
	r.mu.Unlock()
	r.abort(orchestrator.ErrAborted, match)
}

func (r *Running) abort(cause error, match func(*active) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.abortNow(cause, match)
}

// abortNow is abort; the caller holds r.mu.
func (r *Running) abortNow(cause error, match func(*active) bool) (found bool) {
	for _, a := range r.runs {
		if match(a) {
			a.cancel(cause)
			found = true
		}
	}
	return found
}

// begin adds a run that was claimed at taken, until the returned function is
// called. It stops the run if its sender lost access since, or if it was to be stopped.
func (r *Running) begin(lane string, a *active, taken time.Time) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[lane] = a
	if at, ok := r.stopped[a.bot+" "+a.lane]; ok {
		delete(r.stopped, a.bot+" "+a.lane)
		if taken.Before(at) {
			a.cancel(orchestrator.ErrAborted)
		}
	}
	for _, who := range [...]sender{{bot: a.bot, user: a.user}, {key: a.key}} {
		if at, ok := r.aborted[who]; ok && !taken.After(at) {
			a.cancel(orchestrator.ErrAborted)
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.runs[lane] == a {
			delete(r.runs, lane)
		}
	}
}
