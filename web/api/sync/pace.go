package sync

import (
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"gatehouse/core"
	"gatehouse/web"
)

// Requests of a key. A list reads the whole directory, so there are fewer of them.
const (
	listsPerSecond    = 2
	listsAtFirst      = 60
	requestsPerSecond = 50
	requestsAtFirst   = 200
	maxKeys           = 1000 // whose requests are counted
)

// pace limits how often keys ask. It is safe for concurrent use.
type pace struct {
	clock core.Clock
	every rate.Limit
	first int

	mu   sync.Mutex
	keys map[string]*rate.Limiter // by key; at most maxKeys
}

func newPace(clock core.Clock, every rate.Limit, first int) *pace {
	return &pace{clock: clock, every: every, first: first, keys: map[string]*rate.Limiter{}}
}

// take counts a request of key, or returns when it may ask again.
func (p *pace) take(key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	l := p.keys[key]
	if l == nil {
		p.makeRoom(now)
		l = rate.NewLimiter(p.every, p.first)
		p.keys[key] = l
	}
	r := l.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return nil
	}
	r.CancelAt(now)
	wait = time.Duration(math.Ceil(wait.Seconds())) * time.Second
	return &web.Problem{Fault: web.TooManyRequests, RetryAfter: wait, Detail: "this key asks too often: ask again later"}
}

// makeRoom forgets keys that have asked for nothing for long, and all if there are none.
func (p *pace) makeRoom(now time.Time) {
	if len(p.keys) < maxKeys {
		return
	}
	for key, l := range p.keys {
		if l.TokensAt(now) >= float64(p.first) {
			delete(p.keys, key)
		}
	}
	if len(p.keys) >= maxKeys {
		clear(p.keys)
	}
}

// of returns the pace of a request.
func (a *API) of(r *http.Request) *pace {
	if r.Method == http.MethodGet { // the manifest and changes
		return a.lists
	}
	return a.rest
}
