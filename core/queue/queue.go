// Package queue stores messages between the platform and their answers: inbox,
// lanes, leases, outbox and cursors, all tables of one database
// (docs/delivery.md). A message for which Put returned nil is answered once, in
// the order of its chat, also after a crash.
//
// A lane orders the work of one chat. A node claims a lane under a new epoch,
// runs its first turn and releases it in the transaction that stores the
// result; a result under an old epoch is dropped. Claims are part of the
// transactions that add work (Put) or finish it (Ack). A message therefore
// costs three commits: stored and claimed, answered, sent.
package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/queue/burst"
	"gatehouse/core/queue/metrics"
	"gatehouse/core/queue/moved"
	"gatehouse/core/queue/orphans"
	"gatehouse/core/queue/outbox"
	"gatehouse/core/store"
)

// Turns decides about messages, and makes turns of them. Each call is made in the
// queue's transaction.
type Turns interface {
	// Admit decides about a new update; it is called once for each.
	Admit(ctx context.Context, tx *store.Tx, in *core.Inbound) (Admission, error)
	// Claim returns the admission of a stored update as it is now: trust may have
	// been lowered since. Stranger refuses the row. It is not called in the
	// transaction that has just admitted the update.
	Claim(ctx context.Context, tx *store.Tx, in *core.Inbound) (Admission, error)
	// Prepare is called for a claimed turn that will run: it may lower t.Trust and
	// leaves in t.Work what the handler needs. An error with a kind is left in
	// t.Err for the handler to report.
	Prepare(ctx context.Context, tx *store.Tx, t *Turn) error
	// Ended is called for a run that will have no result: its rows were given up
	// or refused after the first claim. It may be called twice for a run.
	Ended(ctx context.Context, tx *store.Tx, run string) error
}

// An Admission is what is known of an update and its sender. It travels with the
// turn that the update becomes.
type Admission struct {
	core.Admission
	Answer    bool // an open question waits for this message; of Admit only
	Awaited   bool // with Answer: a command waited for it, and handles it in the turn of the chat
	Control   bool // a command that is handled at once
	Shows     bool // a command that only shows something: it passes by all but its sender's earlier commands
	Collect   bool // neighbouring messages of the sender become one turn
	Interrupt bool // the message ends the sender's run in the lane
}

// A Handler works off turns.
type Handler interface {
	// Handle ends the turn by Ack, Fail or GiveBack. It is called on a goroutine
	// for each turn.
	Handle(ctx context.Context, t *Turn)
	// Behind is called after the commit that has stored a message of a chat while
	// a turn of its lane runs on this node. It must not block.
	Behind(in *core.Inbound, lane string, a Admission)
	// Refused is called after the commit that has refused a pressed button: too many were
	// pressed. It must not block.
	Refused(press *core.Inbound)
}

// A Rate allows N messages per sender and bot in each Per; the zero value allows all.
type Rate struct {
	N   int
	Per time.Duration
}

// MaxAttempts is how often a turn is tried before its rows are dead.
const MaxAttempts = 5

// Limits and times of the queue; each is a rule of docs/delivery.md.
const (
	maxLimited   = 20               // rows of one chat that may wait for the rate limit
	maxCollect   = 10               // rows in one turn
	collectBytes = 100 << 10        // of text in one turn
	leaseTime    = 30 * time.Second // a lane or bot is another's after this much silence
	pollEvery    = time.Second      // the safety net under the doorbell
	maxControls  = 16               // control turns at once, in addition to runs
)

// Options of New. Lane is required.
type Options struct {
	Clock   core.Clock
	Log     *slog.Logger
	Metrics *metrics.Metrics
	// Lane is the key of the line an update belongs to, by its bot and chat alone.
	Lane func(ctx context.Context, tx *store.Tx, in *core.Inbound) (string, error)
	// Ring receives core.TopicQueue after commits that the operator should see (a dead
	// letter). It must not block. Optional.
	Ring  func(topics ...core.Topic)
	Rate  func() Rate // may change at any time and must be quick; nil: no limit
	Texts Texts
	Node  string // a stable name of this node
	// Replaced is closed when another gateway has the queue: nothing can be settled any more. Optional.
	Replaced <-chan struct{}
	Slots    int // turns at once; 0 means 64
}

// Texts are the notices that the queue posts to chats.
type Texts struct {
	TooMany string // over the rate limit
	GaveUp  string // after the last try
}

// A Queue stores messages and replies in its tables and works them off. Its
// methods may be called concurrently. Serve starts the work.
type Queue struct {
	db     *store.DB
	outbox *outbox.Outbox
	o      Options

	mu      sync.Mutex
	turns   Turns           // nil until TakeOver
	handler Handler         // nil until Serve
	work    context.Context // of handlers
	stuck   []*Turn         // could not be settled (full disk); tried again by the poll; bounded by the slots

	bell     chan struct{} // work may be waiting
	slots    *slots
	limits   *limits
	moved    *moved.Lanes
	bursts   *burst.Bursts
	suspects suspects
	rejects  rejects
}

// ErrFenced means that the lane of the turn has another owner: the result was
// dropped and nothing of it was written.
var ErrFenced = errors.New("the lane has another owner now")

// New returns a queue over db that posts to out. It claims and sends nothing
// before Serve.
func New(db *store.DB, out *outbox.Outbox, o Options) *Queue {
	if o.Clock == nil {
		o.Clock = core.System{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = metrics.New(nil, nil)
	}
	if o.Ring == nil {
		o.Ring = func(...core.Topic) {}
	}
	if o.Rate == nil {
		o.Rate = func() Rate { return Rate{} }
	}
	if o.Slots == 0 {
		o.Slots = 64
	}
	if o.Node == "" {
		o.Node = "node-" + uuid.NewString()
	}
	return &Queue{
		db: db, outbox: out, o: o, bell: make(chan struct{}, 1), slots: &slots{free: o.Slots, controls: maxControls, running: map[string]*Turn{}}, bursts: burst.New(o.Clock),
		moved: moved.New(o.Lane), limits: &limits{rate: o.Rate, outbox: out, notice: o.Texts.TooMany},
	}
}

// Serve claims lanes, calls handler for each turn and sends the
// outbox until ctx ends; call it after TakeOver. When ctx ends, running turns get grace to finish, at most until
// Options.Replaced; then their context is cancelled. Serve returns when every turn is settled and the
// outbox of reachable chats is sent, within the rest of grace.
func (q *Queue) Serve(ctx context.Context, grace time.Duration, handler Handler) error {
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	q.outbox.Open(work)
	q.mu.Lock()
	q.handler, q.work = handler, work
	q.mu.Unlock()
	q.slots.setOpen(true)
	q.ring()
	q.poll(ctx)

	q.slots.setOpen(false)
	return q.drain(grace, cut)
}

// ErrShutdown is the cause of a cancelled turn after the grace period.
var ErrShutdown = errors.New("the gateway is stopping")

func (q *Queue) drain(grace time.Duration, cut context.CancelCauseFunc) error {
	over := q.o.Clock.After(grace)
	turns := make(chan struct{})
	go func() { q.slots.turns.Wait(); close(turns) }()
	late := false
	select {
	case <-turns:
	case <-over:
		late = true
	case <-q.o.Replaced:
		late = true
	}
	if late {
		cut(ErrShutdown)
		<-turns
	}
	if !late {
		q.logErr(context.Background(), "drain the outbox", q.outbox.SendWaiting(context.Background()))
	}
	sent := q.outbox.Close()
	if late {
		<-sent
		return nil
	}
	select {
	case <-sent:
		return nil
	case <-over:
	case <-q.o.Replaced:
	}
	cut(ErrShutdown)
	<-sent
	return nil
}

// poll serves the doorbell, and checks for work every second.
func (q *Queue) poll(ctx context.Context) {
	renew := q.o.Clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.bell:
		case <-q.outbox.Bell():
		case <-q.o.Clock.After(pollEvery):
		}
		if ctx.Err() != nil {
			return
		}
		if now := q.o.Clock.Now(); now.Sub(renew) >= leaseTime/3 || now.Before(renew) {
			renew = now
			q.logErr(ctx, "renew leases", q.renew(ctx))
			if store.OnServer(q.db.Path()) {
				n, err := orphans.Free(ctx, q.db, q.o.Node, q.slots.runs, q.o.Log)
				q.logErr(ctx, "free lanes", err)
				q.logErr(ctx, "recover the outbox", q.outbox.Recover(ctx))
				if n > 0 {
					q.ring()
				}
			}
		}
		q.settleStuck(ctx)
		q.logErr(ctx, "claim", q.claimWaiting(ctx))
		q.logErr(ctx, "outbox", q.outbox.SendWaiting(ctx))
	}
}

func (q *Queue) logErr(ctx context.Context, op string, err error) {
	if err != nil && ctx.Err() == nil {
		q.o.Log.ErrorContext(ctx, "queue: "+op, "err", err)
	}
}

// ring wakes the poll loop. It does not block.
func (q *Queue) ring() {
	select {
	case q.bell <- struct{}{}:
	default:
	}
}
