package embedding

import (
	"context"
	"errors"
	"fmt"

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
// nothing is embedded yet or the model does not answer within two seconds.
func (e *Embedder) Near(ctx context.Context, user int64, text string) *search.Near {
	k, near := e.recall(text)
	if near != nil || k.Dimensions == 0 || text == "" {
		return near
	}
	asking, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	vectors, err := e.ask(asking, user, []string{cut(text, maxText)})
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
