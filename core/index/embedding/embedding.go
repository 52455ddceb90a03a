// Package embedding has a model embed the passages of the index in the background, and
// what users search for.
package embedding

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
)

// A Model embeds texts, as embed.Client does.
type Model interface {
	Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int64, err error)
}

// A Library keeps passages with their vectors.
type Library interface {
	PendingAfter(ctx context.Context, model int64, after document.Passage, limit int) ([]document.Passage, error)
	Embed(ctx context.Context, model int64, list []document.Passage, vectors [][]float32) error
	Embedded(ctx context.Context, model int64) (done, all int64, err error)
	Begin(ctx context.Context, model int64) error
}

// A Memory keeps texts under names over a restart.
type Memory interface {
	Load(ctx context.Context, key string) (string, error)
	Save(ctx context.Context, key, value string) error
}

// Options for New. All but Ready, Spend, Busy and Metrics are needed.
type Options struct {
	Model      Model
	Name       string // of the model
	Dimensions int    // that are configured; 0: those of the first answer
	Prefixes   Prefixes
	Library    Library
	Memory     Memory
	// Ready reports whether the library was compared with the vault: before that it may
	// have texts that were closed or deleted concurrently. nil: it always is.
	Ready func() bool
	// MayRead returns which files of the vault the model may get texts of, as their rules
	// are now. It is called directly before each request.
	MayRead func() func(name string) bool
	// Spend makes a call that is expected to read tokens for a user, 0 for none, within
	// the budgets, and records what it took; nil: there are no budgets.
	Spend   func(ctx context.Context, user, tokens int64, call func() (took int64, err error)) error
	Busy    func() bool // messages are being answered: the next batch waits a little; may be nil
	Clock   core.Clock
	Log     *slog.Logger
	Metrics *Metrics // may be nil
}

// Timing and limits.
const (
	batch      = 32          // passages that are embedded at a time, where the model is fast
	slow       = time.Second // of a request, for which searches wait: the next has half the passages
	fast       = 250 * time.Millisecond
	idle       = 30 * time.Second // between looks for new passages
	notReady   = time.Second      // between looks whether to begin
	firstWait  = 2 * time.Second  // after a failure; each further one waits twice as long
	lastWait   = 10 * time.Minute
	retryAfter = 24 * time.Hour // passages on which the model has failed
	countEvery = 10 * time.Second
	giveWay    = 50 * time.Millisecond // a step of waiting for messages
	maxWays    = 20                    // steps for one batch, so that it always goes on
	askFor     = 2 * time.Second       // for the model to embed what a user searches for
	firstQuiet = 30 * time.Second      // after a search that was not embedded; each further one doubles it
	maxText    = 16 << 10              // bytes of a passage that the model gets
	maxCached  = 64                    // searches whose vectors are kept, so that their further pages and repetitions do not ask
	memoryKey  = "index_embedding"     // in Memory
)

// A known is the model whose vectors are stored.
type known struct {
	ID         int64  `json:"id"` // counts the models that there were
	Name       string `json:"name"`
	Wanted     int    `json:"wanted"`           // Options.Dimensions
	Prefix     string `json:"prefix,omitempty"` // of its passages
	Dimensions int    `json:"dimensions"`       // of its vectors; 0: there are none yet
}

// A Status is what the embedder does.
type Status struct {
	Model     string
	Done, All int64  // passages
	Err       string // why it does not go on; "" while it does
}

// An Embedder is run by one goroutine; Near and Status may be called by any.
type Embedder struct {
	o       Options
	kick    chan struct{} // one request at most
	counted time.Time     // for the metrics

	began   time.Time        // when the library was last asked to begin
	size    int              // of a batch, up to batch
	after   document.Passage // the last that this round over what is pending has reached
	failing int64            // the first passage of the batch that has failed
	bad     int              // passages of this round on which the model fails alone
	why     error            // of the last

	mu     sync.Mutex
	known  known
	err    string // of the last batch
	deaf   bool   // a search was not embedded, and it was logged
	quiet  time.Duration
	until  time.Time // searches do not ask before, for quiet
	cached []cached

	searches atomic.Int64 // that are being embedded
}

type cached struct {
	user int64 // who has searched for it
	text string
	near *search.Near
}

// New returns an embedder that has not begun.
func New(o Options) *Embedder {
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	if o.Ready == nil {
		o.Ready = func() bool { return true }
	}
	return &Embedder{o: o, kick: make(chan struct{}, 1), size: batch}
}

// Kick has new passages embedded soon. It does not shorten the wait after a failure.
func (e *Embedder) Kick() {
	select {
	case e.kick <- struct{}{}:
	default: // it is asked already
	}
}

// Status returns what goes on.
func (e *Embedder) Status(ctx context.Context) (Status, error) {
	e.mu.Lock()
	s, id := Status{Model: e.o.Name, Err: e.err}, e.known.ID
	e.mu.Unlock()
	var err error
	s.Done, s.All, err = e.o.Library.Embedded(ctx, id)
	return s, err
}
