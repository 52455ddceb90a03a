package embedding

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/document"
	"gatehouse/core/llm/embed"
)

// Run embeds what is not embedded, in the order in which it was indexed, until ctx ends.
// When the model or its prefix is another one than before, all is embedded again; until then what is done
// is found by meaning, and all by words. It begins when the library is ready, and passes
// over what the model may not get: the crawler removes it. A failure is logged once, until it is another one,
// and tried again after two seconds to ten minutes.
func (e *Embedder) Run(ctx context.Context) {
	wait := firstWait
	for ctx.Err() == nil {
		if !e.o.Ready() {
			_, err := e.begin(ctx) // searches are compared with what is embedded already
			e.note(err)
			core.Sleep(ctx, e.o.Clock, notReady)
			continue
		}
		more, err := e.step(ctx)
		pause := idle
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause, wait = max(wait, after(err)), min(2*wait, lastWait)
		case more:
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

// step embeds one batch, and reports whether there may be a next one.
func (e *Embedder) step(ctx context.Context) (more bool, err error) {
	k, err := e.begin(ctx)
	if err != nil {
		return false, err
	}
	list, err := e.o.Library.PendingAfter(ctx, k.ID, e.after, e.size)
	if err != nil {
		return false, err
	}
	more = len(list) == e.size
	if len(list) > 0 {
		for n := 0; n < maxWays && (e.searches.Load() > 0 || e.o.Busy != nil && e.o.Busy()); n++ {
			core.Sleep(ctx, e.o.Clock, giveWay)
		}
		began := e.o.Clock.Now()
		if err := e.embed(ctx, list); err != nil {
			return false, errors.Join(err, e.count(ctx, k, false))
		}
		e.resize(e.o.Clock.Now().Sub(began))
	}
	if e.after = (document.Passage{}); more {
		e.after = list[len(list)-1]
	} else {
		e.report()
	}
	return more, e.count(ctx, k, more)
}

// resize has the next batch take so long that a search, which a server may answer only
// after it, need not wait long.
func (e *Embedder) resize(took time.Duration) {
	switch {
	case took > slow:
		e.size = max(1, e.size/2)
	case took < fast:
		e.size = min(batch, 2*e.size)
	}
}

// count counts for the metrics, while there is more not each time.
func (e *Embedder) count(ctx context.Context, k known, more bool) error {
	now := e.o.Clock.Now()
	if more && now.Sub(e.counted) < countEvery {
		return nil
	}
	done, all, err := e.o.Library.Embedded(ctx, k.ID)
	if err != nil {
		return err
	}
	e.counted = now
	e.o.Metrics.progress(done, all)
	return nil
}

// begin returns the model; one that is not the last gets a new number. At the start and
// once a day the passages on which it has failed are pending again.
func (e *Embedder) begin(ctx context.Context) (known, error) {
	k := e.current()
	now := e.o.Clock.Now()
	if k.ID > 0 && now.Sub(e.began) < retryAfter {
		return k, nil
	}
	if k.ID > 0 {
		e.began = now
		return k, e.o.Library.Begin(ctx, k.ID)
	}
	stored, err := e.o.Memory.Load(ctx, memoryKey)
	if err != nil {
		return known{}, fmt.Errorf("embedding model: %w", err)
	}
	_ = json.Unmarshal([]byte(stored), &k) // "" for none: it is the first
	if k.Name != e.o.Name || k.Wanted != e.o.Dimensions || k.Prefix != e.o.Prefixes.Passage || k.ID <= 0 {
		k = known{ID: max(0, k.ID) + 1, Name: e.o.Name, Wanted: e.o.Dimensions, Prefix: e.o.Prefixes.Passage}
		if err := e.keep(ctx, k); err != nil {
			return known{}, err
		}
	}
	if err := e.o.Library.Begin(ctx, k.ID); err != nil {
		return known{}, err
	}
	e.began = now
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
