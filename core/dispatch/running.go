package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/command"
	"gatehouse/core/orchestrator"
)

// Running knows the runs and commands that are running, and stops them. It is
// safe for concurrent use.
type Running struct {
	clock core.Clock

	mu      sync.Mutex
	runs    map[string]*active   // by lane; bounded by the queue's slots
	aborted map[sender]time.Time // when their runs were stopped; at most maxAborted
	stops   []stop               // that found nothing to stop; at most maxAborted
}

// A sender is a user on a bot, or an API key.
type sender struct {
	bot  string
	user int64
	key  string
}

// A stop is a /stop.
type stop struct {
	command.Request
	at time.Time
}

// may reports whether the sender of /stop may stop a: in a group that is whoever asked for it,
// the owner or an admin.
func (s stop) may(a *active) bool {
	return !s.In.Group() || s.Manages() || a.from == s.In.From.ID || a.user != 0 && a.user == s.User
}

// here reports whether a is of the chat of s. A run over HTTP in the same conversation is not.
func (s stop) here(a *active) bool { return a.bot == s.In.Bot && a.lane == s.Lane }

// maxAborted bounds the senders and stops that are kept for turns that were claimed before
// and have not begun. That takes only moments.
const maxAborted = 256

// An active is a run, or a command, that can be stopped.
type active struct {
	cancel  context.CancelCauseFunc
	session string
	bot     string
	user    int64
	lane    string
	from    string // who asked, as the platform names them
	seq     int64  // of the first row that asked
	key     string // of the API key that asked; "" without one
	run     string
}

// NewRunning returns a Running without runs.
func NewRunning(clock core.Clock) *Running {
	return &Running{clock: clock, runs: map[string]*active{}, aborted: map[sender]time.Time{}}
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

// Abort stops the run of a session, and reports whether there was one. One that has not begun is the
// queue's to stop (Queue.Stop), before.
func (r *Running) Abort(session string) bool {
	return r.abort(orchestrator.ErrAborted, func(a *active) bool { return a.session == session })
}

// AbortRun is Abort for a run.
func (r *Running) AbortRun(run string) bool {
	return r.abort(orchestrator.ErrAborted, func(a *active) bool { return run != "" && a.run == run })
}

// Stop stops what is being answered in the chat of r, a /stop: what was asked before, and in a
// group what its sender may stop. It reports whether there was something, and else whether there
// was another's. A turn that is claimed and has not begun is stopped by the same rules when it
// begins.
func (r *Running) Stop(by command.Request) (stopped, others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := stop{by, r.clock.Now()}
	stopped, others = r.stop(s, func(a *active) bool { return a.seq < s.Seq })
	if !stopped && !others {
		if len(r.stops) >= maxAborted {
			r.stops = slices.Delete(r.stops, 0, 1)
		}
		r.stops = append(r.stops, s)
	}
	return stopped, others
}

// StopRun stops a run in the chat of by, a pressed button, as Stop does.
func (r *Running) StopRun(by command.Request, run string) (stopped, others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop(stop{Request: by}, func(a *active) bool { return run != "" && a.run == run })
}

// stop stops what s may stop of what match finds in its chat; the caller holds r.mu.
func (r *Running) stop(s stop, match func(*active) bool) (stopped, others bool) {
	for _, a := range r.runs {
		switch {
		case !s.here(a) || !match(a):
		case s.may(a):
			a.cancel(orchestrator.ErrAborted)
			stopped = true
		default:
			others = true
		}
	}
	return stopped, others && !stopped
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
	found := false
	for _, a := range r.runs {
		if match(a) {
			a.cancel(cause)
			found = true
		}
	}
	return found
}

// begin adds a run that was claimed at taken, until the returned function is
// called. It stops the run if its sender lost access since, or wrote /stop.
func (r *Running) begin(lane string, a *active, taken time.Time) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[lane] = a
	r.stops = slices.DeleteFunc(r.stops, func(s stop) bool {
		// What was claimed later had waited, for an approval or the rate: it was not meant. In one
		// page with its /stop a message is claimed first, whichever was written first.
		if s.here(a) && s.may(a) && a.seq < s.Seq && !taken.After(s.at) {
			a.cancel(orchestrator.ErrAborted)
		}
		return s.here(a)
	})
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
