package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"gatehouse/core"
)

// The collector's soft limit: up to it the heap may grow as Go lets it, to twice
// what is in use; near it garbage is collected sooner and memory given back.
// Many runs that wait hold much and make little garbage, so that costs them
// nothing, and memory is what small machines lack. Where more is in use the
// limit rises with it, so that the collector never has to fight for room.
const (
	memoryLimit = 96 << 20
	limitEvery  = time.Second
	limitStep   = 4 << 20 // smaller changes are not worth the stop of all goroutines
)

// thrift keeps the limit until ctx ends. Whoever sets GOMEMLIMIT or GOGC
// decides themselves.
func thrift(ctx context.Context, clock core.Clock) {
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

// inUse is what the limit counts and the collector cannot give back: what it
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

// limitFor is the limit where so much is in use.
func limitFor(used int64) int64 { return max(memoryLimit, used*3/2-memoryLimit/4) }
