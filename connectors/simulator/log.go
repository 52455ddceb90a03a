package simulator

import (
	"context"
	"strings"
	"sync"
)

// Bounds of a log: entries when no other number is given, and kinds that are counted.
const (
	defaultLog = 20_000
	maxKinds   = 1000
)

// A Log is a ring of what happened, with counts that never forget. Its methods
// may be called from any goroutine.
type Log[E any] struct {
	limit int
	parts func(*E) (seq *uint64, kind string)

	mu     sync.Mutex
	ring   []E
	last   uint64
	counts map[string]int
	bell   chan struct{} // closed at the next entry
}

// NewLog returns a log of at most limit entries, 20,000 when 0. parts are an entry's
// number, which ascends from 1, and its kind.
func NewLog[E any](limit int, parts func(*E) (seq *uint64, kind string)) *Log[E] {
	if limit <= 0 {
		limit = defaultLog
	}
	return &Log[E]{limit: limit, parts: parts, counts: map[string]int{}}
}

// Add numbers an entry and appends it; the oldest makes room.
func (l *Log[E]) Add(e E) {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, kind := l.parts(&e)
	l.last++
	*seq = l.last
	if l.counts[kind] > 0 || len(l.counts) < maxKinds {
		l.counts[kind]++
	}
	if len(l.ring) < l.limit {
		l.ring = append(l.ring, e)
	} else {
		l.ring[l.at(l.last)] = e
	}
	if l.bell != nil {
		close(l.bell)
		l.bell = nil
	}
}

// at returns where an entry is in the ring.
func (l *Log[E]) at(seq uint64) uint64 { return (seq - 1) % uint64(l.limit) }

// Since returns the entries of a kind, in any case, after seq, oldest first; kind
// "" is all.
func (l *Log[E]) Since(after uint64, kind string) []E {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since(after, kind)
}

func (l *Log[E]) since(after uint64, kind string) []E {
	var out []E
	first := l.last - uint64(len(l.ring)) + 1
	for seq := max(after+1, first); seq <= l.last; seq++ {
		e := l.ring[l.at(seq)]
		if _, is := l.parts(&e); kind == "" || strings.EqualFold(is, kind) {
			out = append(out, e)
		}
	}
	return out
}

// Count returns how many entries of a kind there ever were ("" is all kinds).
func (l *Log[E]) Count(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind == "" {
		return int(l.last)
	}
	n := 0
	for is, times := range l.counts {
		if strings.EqualFold(is, kind) {
			n += times
		}
	}
	return n
}

// Await waits for an entry of a kind after seq that match (nil is any) accepts.
func (l *Log[E]) Await(ctx context.Context, after uint64, kind string, match func(E) bool) (E, error) {
	for {
		l.mu.Lock()
		if l.bell == nil {
			l.bell = make(chan struct{})
		}
		list, bell := l.since(after, kind), l.bell
		after = max(after, l.last)
		l.mu.Unlock()
		for _, e := range list {
			if match == nil || match(e) {
				return e, nil
			}
		}
		select {
		case <-bell:
		case <-ctx.Done():
			var none E
			return none, ctx.Err()
		}
	}
}
