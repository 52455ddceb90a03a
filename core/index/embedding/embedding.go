// Package embedding has a model embed the passages of the index in the background, and
// what users search for.
package embedding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/index/search"
	"gatehouse/core/llm/embed"
)

// A Model embeds texts, as embed.Client does.
type Model interface {
	Embed(ctx context.Context, texts []string) (vectors [][]float32, tokens int64, err error)
}

// A Library keeps passages with their vectors.
type Library interface {
	Pending(ctx context.Context, model int64, limit int) ([]document.Passage, error)
	Embed(ctx context.Context, model int64, list []document.Passage, vectors [][]float32) error
	Embedded(ctx context.Context, model int64) (done, all int64, err error)
	DropVectors(ctx context.Context, except int64) error
}

// A Memory keeps texts under names over a restart.
type Memory interface {
	Load(ctx context.Context, key string) (string, error)
	Save(ctx context.Context, key, value string) error
}

// Options for New. All but Spend, Busy and Metrics are needed.
type Options struct {
	Model      Model
	Name       string // of the model
	Dimensions int    // that are configured; 0: those of the first answer
	Library    Library
	Memory     Memory
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
	batch      = 32               // passages that are embedded at a time
	idle       = 30 * time.Second // between looks for new passages
	firstWait  = 2 * time.Second  // after a failure; each further one waits twice as long
	lastWait   = 10 * time.Minute
	countEvery = 10 * time.Second
	giveWay    = 50 * time.Millisecond // a step of waiting for messages
	maxWays    = 20                    // steps for one batch, so that it always goes on
	askFor     = 2 * time.Second       // for the model to embed what a user searches for
	maxText    = 16 << 10              // bytes of a passage that the model gets
	maxCached  = 64                    // searches whose vectors are kept, so that their further pages and repetitions do not ask
	memoryKey  = "index_embedding"     // in Memory
)

// A known is the model whose vectors are stored.
type known struct {
	ID         int64  `json:"id"` // counts the models that there were
	Name       string `json:"name"`
	Wanted     int    `json:"wanted"`     // Options.Dimensions
	Dimensions int    `json:"dimensions"` // of its vectors; 0: there are none yet
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

	mu     sync.Mutex
	known  known
	err    string // of the last batch
	deaf   bool   // a search was not embedded, and it was logged
	cached []cached
}

type cached struct {
	text string
	near *search.Near
}

// New returns an embedder that has not begun.
func New(o Options) *Embedder {
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	return &Embedder{o: o, kick: make(chan struct{}, 1)}
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

// Run embeds what is not embedded, in the order in which it was indexed, until ctx ends.
// When the model is another one than before, all is embedded again; meanwhile what is done
// is found by meaning, and all by words. A failure is logged once, until it is another one,
// and tried again after two seconds to ten minutes.
func (e *Embedder) Run(ctx context.Context) {
	wait := firstWait
	for ctx.Err() == nil {
		n, err := e.step(ctx)
		pause := idle
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause, wait = max(wait, after(err)), min(2*wait, lastWait)
		case n > 0:
			pause, wait = 0, firstWait
		}
		e.note(err)
		e.wait(ctx, min(pause, lastWait), err == nil)
	}
}

// wait waits, with kicks not after the next one.
func (e *Embedder) wait(ctx context.Context, d time.Duration, kicks bool) {
	if d <= 0 {
		return
	}
	kick := e.kick
	if !kicks {
		kick = nil
	}
	select {
	case <-ctx.Done():
	case <-e.o.Clock.After(d):
	case <-kick:
	}
}

func after(err error) time.Duration {
	if f := (*embed.Fault)(nil); errors.As(err, &f) {
		if !f.Again {
			return time.Minute // someone has to change something
		}
		return f.After
	}
	return 0
}

func (e *Embedder) note(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	e.mu.Lock()
	was := e.err
	e.err = text
	e.mu.Unlock()
	if text != "" && text != was {
		e.o.Log.Warn("passages are not embedded, and found by their words alone", "model", e.o.Name, "err", err)
	}
}

// step embeds one batch and returns its size.
func (e *Embedder) step(ctx context.Context) (int, error) {
	k, err := e.begin(ctx)
	if err != nil {
		return 0, err
	}
	list, err := e.o.Library.Pending(ctx, k.ID, batch)
	if err != nil {
		return 0, err
	}
	if now := e.o.Clock.Now(); len(list) < batch || now.Sub(e.counted) >= countEvery {
		done, all, err := e.o.Library.Embedded(ctx, k.ID)
		if err != nil {
			return 0, err
		}
		e.counted = now
		e.o.Metrics.progress(done, all)
	}
	if len(list) == 0 {
		return 0, nil
	}
	for n := 0; e.o.Busy != nil && n < maxWays && e.o.Busy(); n++ {
		core.Sleep(ctx, e.o.Clock, giveWay)
	}
	return len(list), e.embed(ctx, k, list)
}

// begin returns the model; one that is not the last gets a new number.
func (e *Embedder) begin(ctx context.Context) (known, error) {
	e.mu.Lock()
	k := e.known
	e.mu.Unlock()
	if k.ID > 0 {
		return k, nil
	}
	stored, err := e.o.Memory.Load(ctx, memoryKey)
	if err != nil {
		return known{}, fmt.Errorf("embedding model: %w", err)
	}
	_ = json.Unmarshal([]byte(stored), &k) // "" for none: it is the first
	if k.Name != e.o.Name || k.Wanted != e.o.Dimensions || k.ID <= 0 {
		k = known{ID: max(0, k.ID) + 1, Name: e.o.Name, Wanted: e.o.Dimensions}
		if err := e.keep(ctx, k); err != nil {
			return known{}, err
		}
	}
	if err := e.o.Library.DropVectors(ctx, k.ID); err != nil {
		return known{}, err
	}
	e.set(k)
	return k, nil
}

func (e *Embedder) keep(ctx context.Context, k known) error {
	b, _ := json.Marshal(k) // text and numbers: it cannot fail
	if err := e.o.Memory.Save(ctx, memoryKey, string(b)); err != nil {
		return fmt.Errorf("embedding model: %w", err)
	}
	return nil
}

func (e *Embedder) set(k known) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known, e.cached = k, nil
}

// embed has passages embedded. Where the server refuses them together they are tried
// one by one, and those that it refuses alone are stored without a vector.
func (e *Embedder) embed(ctx context.Context, k known, list []document.Passage) error {
	err := e.together(ctx, k, list)
	if !refused(err) {
		return err
	}
	var bad []document.Passage
	for i := 0; i < len(list); i++ {
		k, _ := e.recall("")
		if one := e.together(ctx, k, list[i:i+1]); refused(one) {
			bad = append(bad, list[i])
		} else if one != nil {
			return one
		}
	}
	if len(bad) == len(list) {
		if _, fault := e.ask(ctx, 0, []string{"text"}); fault != nil {
			return fault // it takes nothing at all
		}
	}
	for _, p := range bad {
		e.o.Log.Warn("a passage is not embedded", "passage", p.N, "of", p.Content, "err", err)
	}
	return e.o.Library.Embed(ctx, k.ID, bad, make([][]float32, len(bad)))
}

func refused(err error) bool {
	f := (*embed.Fault)(nil)
	return errors.As(err, &f) && f.Refused()
}

func (e *Embedder) together(ctx context.Context, k known, list []document.Passage) error {
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = cut(p.Embedded())
	}
	vectors, err := e.ask(ctx, 0, texts)
	if err != nil {
		return err
	}
	if k, err = e.sized(ctx, k, len(vectors[0])); err != nil {
		return err
	}
	return e.o.Library.Embed(ctx, k.ID, list, vectors)
}

// sized notes the dimensions of the model's first vectors, and holds it to them.
func (e *Embedder) sized(ctx context.Context, k known, dimensions int) (known, error) {
	if k.Dimensions == dimensions {
		return k, nil
	}
	if k.Dimensions != 0 {
		return k, fmt.Errorf("the model %s gives %d dimensions, and gave %d before: it is another model, so set GATEHOUSE_EMBED_DIMENSIONS to have all embedded again", k.Name, dimensions, k.Dimensions)
	}
	k.Dimensions = dimensions
	if err := e.keep(ctx, k); err != nil {
		return k, err
	}
	e.set(k)
	return k, nil
}

// ask asks the model within the budget.
func (e *Embedder) ask(ctx context.Context, user int64, texts []string) (vectors [][]float32, err error) {
	expected := int64(0)
	for _, t := range texts {
		expected += int64(len(t)/4 + 1)
	}
	call := func() (took int64, err error) {
		vectors, took, err = e.o.Model.Embed(ctx, texts)
		if e.o.Metrics.asked(err); err == nil && took == 0 {
			took = expected // the server does not count
		}
		return took, err
	}
	if e.o.Spend == nil {
		_, err = call()
	} else {
		err = e.o.Spend(ctx, user, expected, call)
	}
	if err == nil && len(vectors) != len(texts) {
		err = errors.New("the model gives too few vectors")
	}
	return vectors, err
}

// cut returns the beginning of a text.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}

// Near returns what a user's text means. It is nil, and words alone are compared, where
// nothing is embedded yet or the model does not answer within two seconds.
func (e *Embedder) Near(ctx context.Context, user int64, text string) *search.Near {
	k, near := e.recall(text)
	if near != nil || k.Dimensions == 0 || text == "" {
		return near
	}
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	vectors, err := e.ask(asking, user, []string{cut(text)})
	if err == nil && len(vectors[0]) != k.Dimensions {
		err = fmt.Errorf("the model gives %d dimensions, not %d", len(vectors[0]), k.Dimensions)
	}
	if ctx.Err() != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		if !e.deaf {
			e.o.Log.Warn("searches compare words alone", "model", e.o.Name, "err", err)
		}
		e.deaf = true
		return nil
	}
	e.deaf = false
	near = &search.Near{Model: k.ID, Values: vectors[0]}
	if e.cached = append(e.cached, cached{text, near}); len(e.cached) > maxCached {
		e.cached = append(e.cached[:0:0], e.cached[1:]...)
	}
	return near
}

// recall returns the model, and what it has said about a text lately.
func (e *Embedder) recall(text string) (known, *search.Near) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.cached {
		if c.text == text {
			return e.known, c.near
		}
	}
	return e.known, nil
}
