package page

import "context"

// onceKey is the context key of what a request has read.
type onceKey struct{}

// A memo is what one request has read: at most one entry for each call of Once. A
// request is served by one goroutine.
type memo map[string]any

// Once is Load, but reads the source called key at most once for each request: the
// menu counts what the page shows. The caller must not change what it returns.
func Once[T any](ctx context.Context, f *Frame, key, what string, read func(context.Context) (T, error)) Part[T] {
	known, ok := ctx.Value(onceKey{}).(memo)
	if !ok {
		return Load(ctx, f, what, read)
	}
	if p, ok := known[key].(Part[T]); ok {
		return p
	}
	p := Load(ctx, f, what, read)
	known[key] = p
	return p
}
