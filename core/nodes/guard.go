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

// tellCut tells Cut what changes, until ctx ends.
func (k *keeper) tellCut(ctx context.Context) {
	off, done := false, true
	for core.Sleep(ctx, k.Clock, time.Second) {
		if now := k.reached.cut(k.Clock.Now()); now != off || !done {
			off = now
			done = k.Cut(off)
		}
	}
}

// watchVault ends this gateway when it has lost the vault, until ctx ends.
func (k *keeper) watchVault(ctx context.Context) {
	for core.Sleep(ctx, k.Clock, time.Second) {
		switch holds, silent := k.vault.look(k.Holds); {
		case !holds:
			k.end(errUnlocked)
			return
		case silent >= deaf && k.reached.standsBy():
			k.end(errDeaf)
			// Any that stands by may take the vault's lock at once: this process commits nothing from now on.
			if err := k.limited(context.WithoutCancel(ctx), k.leaveVault); err != nil {
				k.Log.Warn("this gateway could not be noted as replaced", "err", err)
			}
			return
		}
	}
}

// leaveVault notes that this process is replaced.
func (k *keeper) leaveVault(ctx context.Context) error {
	_, err := k.db.ExecContext(ctx, `UPDATE nodes SET state = $1 WHERE process = $2`, replaced, k.process)
	return err
}

// deaf is after how long a vault that does not answer ends a gateway that others stand by for. One for which the vault
// hangs as well is not heard of by then.
const deaf = Silence + 2*Every + time.Second

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
