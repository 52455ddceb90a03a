package simulator

import "context"

// A Journal keeps the newest requests of the bots to a simulator, with their method
// as kind. It is safe for concurrent use.
type Journal[R any] struct{ log *Log[R] }

// NewJournal returns an empty Journal of at most limit requests, see NewLog.
func NewJournal[R any](limit int, parts func(*R) (seq *uint64, method string)) *Journal[R] {
	return &Journal[R]{NewLog(limit, parts)}
}

// Record adds a finished request.
func (j *Journal[R]) Record(r R) { j.log.Add(r) }

// Requests returns the recorded requests after seq, oldest first; method "" is all.
func (j *Journal[R]) Requests(after uint64, method string) []R { return j.log.Since(after, method) }

// Count returns how often a method was called since the start ("" is all methods).
func (j *Journal[R]) Count(method string) int { return j.log.Count(method) }

// AwaitRequest waits for a finished request to method after seq that match
// (nil is any) accepts. It is how a test waits without sleeping. A long poll counts
// when it is answered.
func (j *Journal[R]) AwaitRequest(ctx context.Context, after uint64, method string, match func(R) bool) (R, error) {
	return j.log.Await(ctx, after, method, match)
}
