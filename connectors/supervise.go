package connectors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/core"
)

// steady is how long a connector must run before its count of failures resets.
// One that connects and breaks at once is retried with backoff.
const steady = time.Minute

// A bot is one connector with its supervisor and state.
type bot struct {
	hub     *Hub
	conn    Connector
	refusal string // why conn may neither run nor send; "" when it may

	// Of the current or last supervisor; guarded by hub.mu.
	cancel   context.CancelFunc
	done     chan struct{} // closed when it has returned
	stopping bool
	off      bool // stopped by Stop, also after it is replaced
	retired  bool // being replaced: it does not start again

	telling sync.Mutex // held while listeners are called, which keeps changes in order
	mu      sync.Mutex
	state   core.BotState
	ends    core.BotState // its state once it has stopped
}

// supervise keeps the connector running until ctx ends or the platform rejects
// its credentials. After any other return or panic of Run it retries.
func (b *bot) supervise(ctx context.Context) {
	for failures := 1; ; failures++ {
		began := b.hub.clock.Now()
		good, err := b.once(ctx)
		if ctx.Err() != nil {
			b.set(b.ended(), true)
			return
		}
		if core.KindOf(err) == core.Denied {
			reason := core.TextOf(err)
			if b.refusal == "" {
				b.hub.log.ErrorContext(ctx, "bot stopped: the platform refuses it", "bot", b.conn.Name(), "reason", reason)
			}
			b.set(core.BotState{State: core.FailedPhase, Reason: reason, LastError: reason}, true)
			return
		}
		if good && b.hub.clock.Now().Sub(began) >= steady {
			failures = 1
		}
		wait := Backoff(failures, b.hub.random)
		b.hub.log.WarnContext(ctx, "connector ended", "bot", b.conn.Name(), "err", err, "failures", failures, "retry_in", wait)
		b.set(core.BotState{State: core.Reconnecting, Reason: "the connection ended; trying again", LastError: err.Error()}, true)
		if !core.Sleep(ctx, b.hub.clock, wait) {
			b.set(b.ended(), true)
			return
		}
	}
}

// endAs has the bot be in that state once it has stopped.
func (b *bot) endAs(s core.BotState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends = s
}

// ended returns the state of a bot that was asked to stop.
func (b *bot) ended() core.BotState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends
}

// once runs the connector once; good reports whether it was Running. Its inbox and
// its reports end with it, so that a late goroutine of an earlier run can neither
// store messages nor overwrite the state.
func (b *bot) once(ctx context.Context) (good bool, err error) {
	life := &life{inbox: b.hub.inbox}
	defer life.end()
	report := func(s core.BotState) {
		life.mu.Lock()
		defer life.mu.Unlock()
		if life.over || ctx.Err() != nil {
			return
		}
		switch s.State {
		case core.Running:
			good = true
		case "", core.Degraded, core.Reconnecting:
		default:
			s.State = "" // only the Hub sets stopped and failed
		}
		b.set(s, s.State != "")
	}
	defer Recover(b.hub.log, b.conn.Name(), "run", &err)
	if b.refusal != "" {
		return false, core.Errorf(core.Denied, "%s", b.refusal)
	}
	if err = b.conn.Run(ctx, life, report); err == nil {
		err = fmt.Errorf("run %s: the connector ended without being asked to", b.conn.Name())
	}
	return good, err
}

// A life is the inbox of one Run.
type life struct {
	inbox Inbox
	mu    sync.Mutex
	over  bool
}

func (l *life) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

func (l *life) Put(ctx context.Context, page []core.Inbound, cursor *core.Cursor) error {
	l.mu.Lock()
	over := l.over
	l.mu.Unlock()
	if over {
		return core.Errorf(core.Conflict, "this run of the connector is over")
	}
	return l.inbox.Put(ctx, page, cursor)
}

func (b *bot) current() core.BotState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// set merges s into the state: zero fields leave the earlier value, but a new phase
// (fresh) also replaces the reason. Listeners are called for changes, not for each
// success.
func (b *bot) set(s core.BotState, fresh bool) {
	b.telling.Lock()
	defer b.telling.Unlock()
	b.mu.Lock()
	was := b.state
	if s.State != "" && s.State != b.state.State {
		b.state.State, b.state.Since = s.State, b.hub.clock.Now()
	}
	if fresh || s.Reason != "" {
		b.state.Reason = s.Reason
	}
	if s.LastSuccess.After(b.state.LastSuccess) {
		b.state.LastSuccess = s.LastSuccess
	}
	if s.LastError != "" {
		b.state.LastError = core.CutRunes(s.LastError, 500)
	}
	if s.Username != "" {
		b.state.Username = s.Username
	}
	now := b.state
	b.mu.Unlock()
	if now.State == was.State && now.Reason == was.Reason && now.Username == was.Username {
		return
	}
	b.hub.metrics.show(now.Bot, now.State)
	b.hub.listening.Lock()
	listeners := b.hub.onChange
	b.hub.listening.Unlock()
	for _, f := range listeners {
		f(now)
	}
}
