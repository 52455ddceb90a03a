package nodes

import (
	"context"
	"sync"
	"time"

	"gatehouse/core"
)

// cutAfter is after how long without the database a gateway that others stand by for is cut off:
// before it is replaced.
const cutAfter = Silence - 2*time.Second

// reached is when a gateway last reached the database. It is safe for concurrent use.
type reached struct {
	mu     sync.Mutex
	at     time.Time // zero: not yet
	others bool      // one stood by then
}

func (r *reached) note(at time.Time, others bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.others = at, others
}

// cut reports whether the gateway is about to be replaced.
func (r *reached) cut(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.others && now.Sub(r.at) >= cutAfter
}

// standsBy reports whether another gateway stood by when the database was last reached.
func (r *reached) standsBy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.others
}

// guard tells Cut what changes, and ends this gateway when it has lost the vault, until ctx ends.
func (k *keeper) guard(ctx context.Context) {
	off, done := false, true
	for core.Sleep(ctx, k.Clock, time.Second) {
		if err := k.lost(); err != nil {
			k.end(err)
			return
		}
		if now := k.reached.cut(k.Clock.Now()); k.Cut != nil && (now != off || !done) {
			off = now
			done = k.Cut(off)
		}
	}
}

// lost returns why this gateway has to end: it does not have the vault's lock any more, or the vault does not answer
// and another gateway stands by, for which the vault may be there.
func (k *keeper) lost() error {
	if k.Holds == nil {
		return nil
	}
	holds, silent := k.vault.look(k.Holds)
	switch {
	case !holds:
		return errUnlocked
	case silent >= Silence && k.reached.standsBy():
		return errSilent
	}
	return nil
}

// A reach is what one that serves knows of the vault. A file server may keep it waiting for any time, so it is asked in a
// goroutine, of which there is one at most. It is used by one goroutine.
type reach struct {
	answer chan held // nil: it was not asked
	silent int       // looks without an answer; one a second
}

type held struct {
	is  bool
	err error
}

// look asks, unless the answer to an earlier question is still awaited, and returns what the last answer was, and for how long there was none
// while this process worked.
func (r *reach) look(holds func() (bool, error)) (is bool, silent time.Duration) {
	r.silent++
	if r.answer == nil {
		r.answer = make(chan held, 1)
		go func(answer chan<- held) {
			is, err := holds()
			answer <- held{is, err}
		}(r.answer)
	}
	select {
	case a := <-r.answer:
		r.answer = nil
		if a.err == nil {
			r.silent = 0
			return a.is, 0
		}
	default:
	}
	return true, time.Duration(r.silent) * time.Second
}
