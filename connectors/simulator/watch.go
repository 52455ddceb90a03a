package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"gatehouse/core"
)

// Watchers receive what users can see from now on. The methods are safe for
// concurrent use.
type Watchers[C any] struct {
	site  *Site
	parts func(*C) (seq *uint64, at *time.Time, kind string)

	mu   sync.Mutex
	all  map[int]func(C)
	last int    // id given
	seq  uint64 // of the last change
}

// NewWatchers returns none yet. parts are a change's number, which ascends from 1,
// its time and its kind.
func NewWatchers[C any](site *Site, parts func(*C) (seq *uint64, at *time.Time, kind string)) *Watchers[C] {
	return &Watchers[C]{site: site, parts: parts, all: map[int]func(C){}}
}

// Emit sends a change to every watcher. change is called only if there is one. A
// change without a time gets the current time.
func (s *Watchers[C]) Emit(change func() C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	if len(s.all) == 0 {
		return
	}
	c := change()
	seq, at, _ := s.parts(&c)
	*seq = s.seq
	if at.IsZero() {
		*at = s.site.plan.Clock.Now()
	}
	for _, f := range s.all {
		f(c)
	}
}

// Watch calls f for every change, at once and in order, before the bot has its
// answer. f must return quickly and must not call the server. stop ends it.
func (s *Watchers[C]) Watch(f func(C)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.add(f)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, id)
	}
}

func (s *Watchers[C]) add(f func(C)) (id int) {
	s.last++
	s.all[s.last] = f
	return s.last
}

// Subscribe returns Watch as a channel with a buffer. The channel closes when ctx
// ends, the server closes, or the reader falls behind by more than the buffer:
// anyone who reads on must check the history again.
func (s *Watchers[C]) Subscribe(ctx context.Context, buffer int) <-chan C {
	c := make(chan C, max(buffer, 1))
	s.mu.Lock()
	defer s.mu.Unlock()
	var id int
	leave := func() { // under the lock
		if s.all[id] != nil {
			delete(s.all, id)
			close(c)
		}
	}
	id = s.add(func(v C) {
		select {
		case c <- v:
		default:
			leave()
		}
	})
	s.site.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.site.Closing():
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		leave()
	})
	return c
}

// Await returns the newest of what is that match accepts, or what comes of
// a change before ctx ends (of; nil: nothing).
func Await[C, M any](ctx context.Context, s *Watchers[C], stands func() []M, of func(C) *M, match func(M) bool) (M, error) {
	var none M
	for {
		sub, cancel := context.WithCancel(ctx)
		defer cancel() // rarely more than one
		changes := s.Subscribe(sub, 1024)
		history := stands()
		for i := len(history) - 1; i >= 0; i-- {
			if match(history[i]) {
				return history[i], nil
			}
		}
		for c := range changes {
			if m := of(c); m != nil && match(*m) {
				return *m, nil
			}
		}
		select {
		case <-ctx.Done():
			return none, ctx.Err()
		case <-s.site.Closing():
			return none, core.Errorf(core.Busy, "the simulator was closed")
		default: // fell behind: look again
		}
	}
}

// ServeEvents streams changes as server-sent events: the kind as event name,
// the sequence number as id, a comment every 15 s. A reader that falls 10,000
// changes behind is cut off.
func (s *Watchers[C]) ServeEvents(w http.ResponseWriter, r *http.Request) {
	changes := s.Subscribe(r.Context(), 10_000)
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	fmt.Fprint(w, ": following\n\n")
	rc.Flush()
	clock := s.site.plan.Clock
	beat := clock.After(15 * time.Second)
	for {
		select {
		case c, ok := <-changes:
			if !ok {
				return
			}
			b, err := json.Marshal(c)
			if err != nil {
				return
			}
			seq, _, kind := s.parts(&c)
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", *seq, kind, b)
			if len(changes) > 0 {
				continue // one flush for all that wait
			}
		case <-beat:
			beat = clock.After(15 * time.Second)
			fmt.Fprint(w, ": still here\n\n")
		}
		if rc.Flush() != nil {
			return
		}
	}
}
