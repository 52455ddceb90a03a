package embedding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/search"
)

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
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := most
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}

// Near returns what a user's text means. It is nil, and words alone are compared, where
// nothing is embedded yet or the model does not answer within two seconds. After that it
// is not asked for thirty seconds, and after each further failure for twice as long, up to
// ten minutes.
func (e *Embedder) Near(ctx context.Context, user int64, text string) *search.Near {
	k, near := e.recall(user, text)
	if near != nil || k.Dimensions == 0 || text == "" || e.isQuiet() {
		return near
	}
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	e.searches.Add(1)
	vectors, err := e.ask(asking, user, []string{e.o.Prefixes.Search + cut(text, maxText)})
	e.searches.Add(-1)
	if err == nil && len(vectors[0]) != k.Dimensions {
		err = fmt.Errorf("the model gives %d dimensions, not %d", len(vectors[0]), k.Dimensions)
	}
	if ctx.Err() != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.fail(err)
		return nil
	}
	e.deaf, e.quiet, e.until = false, 0, time.Time{}
	near = &search.Near{Model: k.ID, Values: vectors[0]}
	if e.cached = append(e.cached, cached{user, text, near}); len(e.cached) > maxCached {
		e.cached = append(e.cached[:0:0], e.cached[1:]...)
	}
	return near
}

// isQuiet reports whether the model is not asked, as it has failed.
func (e *Embedder) isQuiet() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.o.Clock.Now().Before(e.until)
}

// fail notes why a search was not embedded; e.mu is held. What is about its user or text
// alone does not keep others from asking.
func (e *Embedder) fail(err error) {
	if core.KindOf(err) == core.Busy || refused(err) {
		return
	}
	if !e.deaf {
		e.o.Log.Warn("searches compare words alone", "model", e.o.Name, "err", err)
	}
	e.deaf, e.quiet = true, min(max(firstQuiet, 2*e.quiet), lastWait)
	e.until = e.o.Clock.Now().Add(e.quiet)
}

// Forget drops what a user has searched for.
func (e *Embedder) Forget(user int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cached = slices.DeleteFunc(e.cached, func(c cached) bool { return c.user == user })
}

// current returns the model.
func (e *Embedder) current() known {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known
}

// recall returns the model, and its recent answer for a text of a user.
func (e *Embedder) recall(user int64, text string) (known, *search.Near) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.cached {
		if c.user == user && c.text == text {
			return e.known, c.near
		}
	}
	return e.known, nil
}
