// Package outbox stores replies in the database and sends them to platforms, in
// the order of each chat (docs/delivery.md). A reply that was posted in a
// transaction is sent after its commit, also after a crash. Where it is unknown
// whether a message has arrived, it is repeated only where the platform shows it
// once, or marked as a possible repeat.
//
// The node that holds the lease of a bot sends for it; each send is fenced by
// the epoch of that lease.
package outbox

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/queue/flight"
	"gatehouse/core/store"
)

// A Sender delivers to platforms.
type Sender interface {
	// Wait returns how long to wait before the next send to the chat.
	Wait(to core.Address) time.Duration
	// Send notifies out.Flight, if it is set, before anything of out may leave.
	Send(ctx context.Context, out core.Outgoing) core.Delivery
	// Repeats returns for how long the platform recognises a row that is sent
	// again and shows it once; 0 when it does not.
	Repeats(bot string) time.Duration
}

// Metrics receives what became of sends.
type Metrics interface {
	Delivered(bot string, o core.Outcome, took time.Duration)
	AddBot(bot string) // all its series exist from now on
}

// Limits and times; each is a rule of docs/delivery.md.
const (
	leaseTime     = 30 * time.Second // until another node may lease the bot
	lookLate      = 10 * time.Second // between two looks for replies of bots that are not configured
	retryStore    = time.Second      // between tries to store the outcome of a send
	maxSending    = 512              // chats of a bot that are worked on; others wait in the table
	maxRetryPause = time.Minute
	maxMark       = 8 * time.Second // old, on a server, at the send: a gateway that was frozen for longer may have been replaced
)

// Options of New.
type Options struct {
	Clock   core.Clock
	Log     *slog.Logger
	Metrics Metrics
	// Ring receives core.TopicQueue after commits that the operator should see (a send
	// that failed or has an unknown outcome). It must not block. Optional.
	Ring    func(topics ...core.Topic)
	Node    string // a stable name of this node
	Late    string // the notice that a message for one user could not be shown to them
	Notices Notices
	// Flight records how far sends get. Optional: without it every send that a crash
	// has cut counts as one that had left.
	Flight *flight.Recorder
	// Cut reports whether this gateway is about to be replaced by another one. It must be quick. Optional.
	Cut func() bool
}

// An Outbox stores replies and sends them. Its methods may be called
// concurrently. Nothing is sent before Open.
type Outbox struct {
	db *store.DB
	o  Options

	mu      sync.Mutex
	sender  Sender                   // nil until TakeOver
	work    context.Context          // of sends; nil until Open
	open    bool                     // replies are sent; a stop closes it last
	sending map[chatKey]bool         // chats with a send in progress; true: check again after it; at most maxSending of a bot
	count   map[string]int           // of sending, by bot; bounded by the configured bots
	more    map[string]bool          // bots of which chats wait that found no room in sending; bounded by the configured bots
	places  map[string]chan struct{} // of the bots; bounded by the configured bots
	bots    map[string]int64         // bot → epoch of our lease; bounded by the configured bots
	blocked map[string]time.Time     // bot → before when it must write to no chat; bounded by the configured bots

	looked time.Time // by failLate

	changing sync.Mutex // one change of bots at a time

	bell  chan struct{} // SendWaiting may find something
	sends sync.WaitGroup
}

type chatKey struct{ bot, chat string }

// New returns an Outbox over db.
func New(db *store.DB, o Options) *Outbox {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = uncounted{}
	}
	if o.Ring == nil {
		o.Ring = func(...core.Topic) {}
	}
	if o.Node == "" {
		o.Node = "node-" + uuid.NewString()
	}
	return &Outbox{db: db, o: o, sending: map[chatKey]bool{}, count: map[string]int{}, more: map[string]bool{}, places: map[string]chan struct{}{}, bots: map[string]int64{}, blocked: map[string]time.Time{}, bell: make(chan struct{}, 1)}
}

// uncounted is a Metrics that counts nothing.
type uncounted struct{}

func (uncounted) Delivered(string, core.Outcome, time.Duration) {}
func (uncounted) AddBot(string)                                 {}

// Open starts sending. Sends are cancelled when work ends.
func (b *Outbox) Open(work context.Context) {
	b.mu.Lock()
	b.work, b.open = work, true
	b.mu.Unlock()
}

// Close begins no further send, and returns a channel that is closed when the
// last one has ended.
func (b *Outbox) Close() <-chan struct{} {
	b.mu.Lock()
	b.open = false
	b.mu.Unlock()
	sent := make(chan struct{})
	go func() { b.sends.Wait(); close(sent) }()
	return sent
}

// Bell receives when SendWaiting should be called before its time.
func (b *Outbox) Bell() <-chan struct{} { return b.bell }

func (b *Outbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// Leased returns the bots that this node sends for.
func (b *Outbox) Leased() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.bots))
}

// Active returns to how many chats a send is in progress.
func (b *Outbox) Active() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sending)
}

func (b *Outbox) logErr(ctx context.Context, op string, err error) {
	if err != nil && ctx.Err() == nil {
		b.o.Log.ErrorContext(ctx, "queue: "+op, "err", err)
	}
}
