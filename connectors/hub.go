package connectors

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
)

// MaxBots bounds how many connectors one Hub holds.
const MaxBots = 64

// stopPatience is how long Stop waits for a connector to return.
const stopPatience = 5 * time.Second

// A Hub holds all connectors by name, keeps each running under its own
// supervisor, and passes what goes out to the right one. One connector's
// failure, panic or hang never touches another.
//
// It stops in two steps: when Run's ctx ends, connectors receive no more. Replies
// can still be sent until Close.
type Hub struct {
	inbox   Inbox
	clock   core.Clock
	log     *slog.Logger
	metrics *Metrics
	random  func(int64) int64

	table sync.RWMutex
	bots  map[string]*bot // at most MaxBots

	changing sync.Mutex // serializes Put, Fail and Remove

	closed atomic.Bool
	mu     sync.Mutex
	run    context.Context // Run's, once it runs
	runs   sync.WaitGroup  // supervisors; added to under mu, before run ends

	listening sync.Mutex
	onChange  []func(core.BotState)
}

// HubOptions are optional parts of a Hub. The comments name the defaults.
type HubOptions struct {
	Clock   core.Clock          // core.System
	Log     *slog.Logger        // discarded
	Metrics *Metrics            // unregistered
	Random  func(n int64) int64 // draws from [0, n) for backoff; math/rand/v2
}

// NewHub returns a Hub of at most MaxBots connectors with different names. It
// starts nothing: Run does.
func NewHub(inbox Inbox, o HubOptions, cs ...Connector) (*Hub, error) {
	if len(cs) > MaxBots {
		return nil, core.Errorf(core.TooLarge, "%d bots are configured, at most %d are possible", len(cs), MaxBots)
	}
	h := &Hub{inbox: inbox, clock: o.Clock, log: o.Log, metrics: o.Metrics, random: o.Random, bots: make(map[string]*bot, len(cs))}
	if h.clock == nil {
		h.clock = core.System{}
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.metrics == nil {
		h.metrics = NewMetrics(nil)
	}
	for _, c := range cs {
		name := c.Name()
		if _, twice := h.bots[name]; twice || !nameable(name) {
			return nil, core.Errorf(core.Invalid, "a bot cannot be named %q: the name is empty, reserved or taken", name)
		}
		h.bots[name] = h.newBot(c)
		h.metrics.show(name, core.Stopped)
	}
	return h, nil
}

func nameable(name string) bool { return name != "" && !core.OfSession(name) }

func (h *Hub) newBot(c Connector) *bot {
	b := &bot{hub: h, conn: c, state: core.BotState{Bot: c.Name(), State: core.Stopped, Since: h.clock.Now()}}
	if p, ok := c.(Platformer); ok {
		b.state.Platform = p.Platform()
	}
	return b
}

// OnChange calls f after each change of a bot's state, reason or user
// name, in order per bot. f must be quick and must not call Start or Stop. It
// is called before Run, at most a few times in a program's life.
func (h *Hub) OnChange(f func(core.BotState)) {
	h.listening.Lock()
	defer h.listening.Unlock()
	h.onChange = append(h.onChange, f)
}

// Run starts every connector that Stop has not stopped. It returns when ctx has
// ended and all connectors have returned. It runs once.
func (h *Hub) Run(ctx context.Context) error {
	h.mu.Lock()
	if h.run != nil || h.closed.Load() {
		h.mu.Unlock()
		return core.Errorf(core.Conflict, "the connectors run already, or have ended")
	}
	h.run = ctx
	h.mu.Unlock()
	for _, name := range h.names() {
		if h.isOff(name) {
			continue
		}
		if err := h.Start(name); err != nil && ctx.Err() == nil {
			h.log.ErrorContext(ctx, "connector not started", "bot", name, "err", err)
		}
	}
	<-ctx.Done()
	h.mu.Lock() // a Start that found ctx alive has added to runs; later ones find it ended
	defer h.mu.Unlock()
	h.runs.Wait()
	return nil
}

func (h *Hub) isOff(name string) bool {
	b, err := h.bot(name)
	h.mu.Lock()
	defer h.mu.Unlock()
	return err == nil && b.off
}

// Start starts a stopped or failed bot; a running one stays as it is. It returns
// NotFound for an unknown bot, Conflict if the Hub does not run, and Busy while
// the bot is stopping or being changed.
func (h *Hub) Start(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := h.bot(name)
	if err != nil {
		return err
	}
	return h.start(b)
}

// start starts b. The caller holds h.mu.
func (h *Hub) start(b *bot) error {
	name := b.conn.Name()
	if b.retired {
		return core.Errorf(core.Busy, "bot %s is being changed: try again in a moment", name)
	}
	if h.run == nil || h.run.Err() != nil {
		return core.Errorf(core.Conflict, "bot %s cannot be started: the gateway is not running or is shutting down", name)
	}
	if b.done != nil {
		select {
		case <-b.done:
		default:
			if b.stopping {
				return core.Errorf(core.Busy, "bot %s is still stopping: try again in a moment", name)
			}
			return nil
		}
	}
	ctx, cancel := context.WithCancel(h.run)
	done := make(chan struct{})
	b.cancel, b.done, b.stopping, b.off = cancel, done, false, false
	b.endAs(core.BotState{State: core.Stopped})
	b.set(core.BotState{State: core.Starting}, true)
	h.runs.Go(func() {
		defer close(done)
		defer cancel()
		b.supervise(ctx)
	})
	return nil
}

// Stop stops receiving for a bot; its replies are still sent. It returns when the
// connector has returned, or Busy after five seconds.
func (h *Hub) Stop(name string) error { return h.stop(name, core.BotState{State: core.Stopped}) }

// Pause is Stop for a bot that will be started again by itself: its state is reconnecting, for that reason.
func (h *Hub) Pause(name, reason string) error {
	return h.stop(name, core.BotState{State: core.Reconnecting, Reason: reason})
}

// stop ends a bot's receiving, which is in the state as from then on.
func (h *Hub) stop(name string, as core.BotState) error {
	b, err := h.bot(name)
	if err != nil {
		return err
	}
	h.mu.Lock()
	b.off = true
	h.mu.Unlock()
	b.endAs(as)
	done, err := h.halt(b)
	if done == nil || err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.done == done { // it was not started again
		b.set(as, true)
	}
	return nil
}

// halt ends b's supervisor and waits for it, at most stopPatience. done is nil
// when there never was one.
func (h *Hub) halt(b *bot) (done chan struct{}, err error) {
	h.mu.Lock()
	done, cancel := b.done, b.cancel
	b.stopping = done != nil
	h.mu.Unlock()
	if done == nil {
		return nil, nil
	}
	cancel()
	select {
	case <-done:
		return done, nil
	case <-h.clock.After(stopPatience):
		return done, core.Errorf(core.Busy, "bot %s takes long to stop; it takes no more messages", b.conn.Name())
	}
}

// Close ends sending: later deliveries are NotSent. Call it after Run has returned
// and the outbox has drained.
func (h *Hub) Close() error {
	h.closed.Store(true)
	h.changing.Lock()
	defer h.changing.Unlock()
	var errs []error
	for _, b := range h.all() {
		if c, ok := b.conn.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// States returns the states of all bots, by name.
func (h *Hub) States() []core.BotState {
	bots := h.all()
	out := make([]core.BotState, 0, len(bots))
	for _, b := range bots {
		out = append(out, b.current())
	}
	core.Sort(out, func(a, b core.BotState) int { return cmp.Compare(a.Bot, b.Bot) })
	return out
}

// Test checks a bot's credentials with one call and returns its name on the
// platform. Its error can be shown to the operator.
func (h *Hub) Test(ctx context.Context, name string) (username string, err error) {
	b, err := h.bot(name)
	if err != nil {
		return "", err
	}
	if b.refusal != "" {
		return "", core.Errorf(core.Denied, "%s", b.refusal)
	}
	t, ok := b.conn.(Tester)
	if !ok {
		return "", core.Errorf(core.Invalid, "bot %s has no test", name)
	}
	defer Recover(b.hub.log, b.conn.Name(), "test", &err)
	return t.Test(ctx)
}

func (h *Hub) bot(name string) (*bot, error) {
	h.table.RLock()
	defer h.table.RUnlock()
	if b, ok := h.bots[name]; ok {
		return b, nil
	}
	return nil, core.Errorf(core.NotFound, "there is no bot named %q", name)
}

func (h *Hub) all() []*bot {
	h.table.RLock()
	defer h.table.RUnlock()
	return slices.Collect(maps.Values(h.bots))
}

func (h *Hub) names() []string {
	h.table.RLock()
	defer h.table.RUnlock()
	return slices.Sorted(maps.Keys(h.bots))
}
