package page

import (
	"context"
	"net/url"
	"sync"
	"time"

	"gatehouse/core"
)

// Address returns path with those values that are not "".
func Address(path string, values map[string]string) string {
	v := url.Values{}
	for name, value := range values {
		if value != "" {
			v.Set(name, value)
		}
	}
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}

// Left returns how many seconds are left of d after a time, rounded up; 0 after it.
func Left(at, now time.Time, d time.Duration) int {
	if gone := now.Sub(at); gone >= 0 && gone < d {
		return Seconds(d - gone)
	}
	return 0
}

// eachWorkers decide at the same time: the store commits what comes together at once.
const eachWorkers = 8

// Each calls do for every id, eachWorkers at a time. It returns how many succeeded,
// how many were decided before or are gone, and the first other error, after which no
// more are begun.
func Each(ctx context.Context, ids []string, do func(ctx context.Context, id string) error) (done, late int, failed error) {
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
	)
	next := func() (id string, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(ids) == 0 || failed != nil {
			return "", false
		}
		id, ids = ids[0], ids[1:]
		return id, true
	}
	settle := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		switch kind := core.KindOf(err); {
		case err == nil:
			done++
		case kind == core.Conflict || kind == core.NotFound:
			late++
		case failed == nil:
			failed = err
		}
	}
	for range min(eachWorkers, len(ids)) {
		workers.Go(func() {
			for id, ok := next(); ok; id, ok = next() {
				settle(do(ctx, id))
			}
		})
	}
	workers.Wait()
	return done, late, failed
}
