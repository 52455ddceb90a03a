// Package memory keeps the gateway's memory small: it moves the garbage collector's
// limit with what is in use, and returns memory to the system after a burst.
package memory

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"gatehouse/core"
)

// The collector's soft limit: up to it the heap may grow as Go lets it, to twice
// what is in use; near it garbage is collected sooner and memory given back.
// Many runs that wait hold much and make little garbage, so that costs them
// nothing, and memory is what small machines lack. Where more is in use the
// limit rises with it, so that the collector always has room.
//
// Constants were measured with 80 MiB of garbage a second and 150 MiB in use. A
// constant limit of 96 MiB took 2.5 times the processor time for less than half
// the work. A constant GOGC of 50 took half the processor time and 14 % more
// memory, and a third more processor time with 10 MiB in use.
const (
	memoryLimit = 96 << 20
	limitEvery  = time.Second
	limitStep   = 4 << 20 // smaller changes are not worth the stop of all goroutines
)

// startLimit is what a start may take before it collects garbage.
const startLimit = 48 << 20

// Start adds the collection of garbage off until the gateway has started: a start leaves
// some 10 MiB, which Release returns, and a collection takes processor time from what it
// waits for. The caller calls end once. It does nothing where GOMEMLIMIT or GOGC is set.
func Start() (end func()) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(startLimit)
	return func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	}
}

// Limit keeps the limit until ctx ends. It does nothing where GOMEMLIMIT or GOGC is
// set.
func Limit(ctx context.Context, clock core.Clock) {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	now := limitFor(0)
	before := debug.SetMemoryLimit(now)
	defer debug.SetMemoryLimit(before)
	for core.Sleep(ctx, clock, limitEvery) {
		if want := limitFor(inUse()); want >= now+limitStep || want <= now-limitStep {
			now = want
			debug.SetMemoryLimit(now)
		}
	}
}

// inUse returns what the limit counts and the collector cannot give back: what it
// last found in use on the heap, whole stacks, and its own books. With less
// counted, many goroutines that wait would have it collect without a pause.
func inUse() (sum int64) {
	var read []metrics.Sample
	for _, name := range []string{"gc/heap/live", "memory/classes/heap/stacks", "memory/classes/metadata/mspan/inuse",
		"memory/classes/metadata/other", "memory/classes/other", "memory/classes/profiling/buckets"} {
		read = append(read, metrics.Sample{Name: "/" + name + ":bytes"})
	}
	metrics.Read(read)
	for _, s := range read {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += int64(s.Value.Uint64())
		}
	}
	return sum
}

// limitFor returns the limit where so much is in use.
func limitFor(used int64) int64 { return max(memoryLimit, used*3/2-memoryLimit/4) }

// When the gateway rests: restAfter without more work than quiet, which is some
// twenty messages, after more than restWorth. A burst leaves garbage, pages of
// the database and free room in the C library behind; Go gives its part back
// only in the course of further work, SQLite and the C library never.
//
// It rests again, moreRests times at intervals of restAgain: connections to models are
// then closed, the caches drop what was not used since (Cache), and what the housekeeping
// took in between goes.
const (
	restEvery = 5 * time.Second
	restAfter = 30 * time.Second
	restAgain = 2 * time.Minute
	moreRests = 2
	quiet     = 4 << 20 // bytes allocated in the meantime
	restWorth = 8 << 20 // since the last rest, and as much as is in use
)

// A rester decides when to rest. The zero value is ready to use.
type rester struct {
	last  uint64   // allocated when it last rested
	marks []uint64 // allocated at each of the last checks
	more  int      // further rests that are pending
	again int      // checks until the first of them is due
}

// due reports whether to rest now. Call it every restEvery with the bytes that
// were ever allocated and those that are in use.
func (r *rester) due(allocated, live uint64) bool {
	r.again = max(0, r.again-1)
	r.marks = append(r.marks, allocated)
	if n := len(r.marks) - int(restAfter/restEvery) - 1; n < 0 {
		return false
	} else if n > 0 {
		r.marks = r.marks[n:]
	}
	switch {
	case allocated-r.marks[0] > quiet:
		return false
	case allocated-r.last >= max(restWorth, live):
		r.more = moreRests
	case r.more > 0 && r.again == 0:
		r.more--
	default:
		return false
	}
	r.last, r.again = allocated, int(restAgain/restEvery)
	return true
}

// A Database returns the memory that it does not need.
type Database interface {
	Rest(ctx context.Context) error
}

// A Cache drops what it can read again and was not used recently, and moves what it
// keeps close together: one small object keeps a page of garbage in memory.
type Cache interface{ Rest() }

// A Releaser returns memory to the system.
type Releaser struct {
	db     Database
	clock  core.Clock
	log    *slog.Logger
	caches []Cache
}

// NewReleaser returns a Releaser of the process, the database and the caches.
func NewReleaser(db Database, clock core.Clock, log *slog.Logger, caches ...Cache) *Releaser {
	return &Releaser{db, clock, log, caches}
}

// Run releases memory when there has been little to do for a while after much,
// until ctx ends.
func (r *Releaser) Run(ctx context.Context) {
	var idle rester
	for core.Sleep(ctx, r.clock, restEvery) {
		if !idle.due(allocations()) {
			continue
		}
		r.Release(ctx)
		r.log.LogAttrs(ctx, slog.LevelDebug, "gave memory back", slog.Int64("in_use", inUse()))
	}
}

// Release returns to the system the memory that is not needed now. Garbage is collected
// first, so that what the caches move goes where there is room; what they dropped, and
// what pools keep, goes with the second collection.
func (r *Releaser) Release(ctx context.Context) {
	runtime.GC()
	for _, c := range r.caches {
		c.Rest()
	}
	if err := r.db.Rest(ctx); err != nil && ctx.Err() == nil {
		r.log.Warn("memory is not given back", "err", err)
	}
	debug.FreeOSMemory()
}

// allocations returns the bytes that were ever allocated and those that the
// collector last found in use.
func allocations() (ever, live uint64) {
	read := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(read)
	return read[0].Value.Uint64(), read[1].Value.Uint64()
}
