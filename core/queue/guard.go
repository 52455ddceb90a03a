package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// maxSuspects bounds the lanes remembered as having failed a claim.
const maxSuspects = 1024

// A claimError means that the first turn of a lane could not be claimed. It fails the
// transaction that stores or settles something else, so that is repeated
// with the lane under suspicion.
type claimError struct {
	lane string
	err  error
}

func (e *claimError) Error() string { return fmt.Sprintf("take a turn of lane %s: %v", e.lane, e.err) }
func (e *claimError) Unwrap() error { return e.err }

// guarded runs take for a lane, of which the first row may be broken. A message that
// cannot be claimed is retried alone, with pauses, and does not fail the
// transaction of another. Only a lane that has failed pays for the savepoint.
func (q *Queue) guarded(ctx context.Context, tx *store.Tx, u *unit, t *Turn) (wait time.Time, err error) {
	if !q.suspects.has(t.Lane) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			}
			if err != nil {
				err = &claimError{t.Lane, err}
			}
		}()
		return q.take(ctx, tx, u, t)
	}
	failed, err := tx.Try(ctx, func() (err error) { wait, err = q.take(ctx, tx, u, t); return err })
	if err != nil {
		return wait, err
	}
	if failed != nil {
		return time.Time{}, q.broken(ctx, tx, t, failed)
	}
	tx.OnCommit(func() { q.suspects.remove(t.Lane) })
	return wait, nil
}

// broken fills t with the first row of the lane alone and passes the error to the
// handler. A row that cannot be read becomes a dead letter.
func (q *Queue) broken(ctx context.Context, tx *store.Tx, t *Turn, why error) error {
	t.Rows, t.seqs, t.Run, t.Work, t.Err, t.Sender = nil, nil, "", nil, nil, Admission{}
	var r inboxRow
	err := tx.Get(ctx, &r, inboxColumns+` WHERE lane = $1 AND state IN ('ready', 'limited') ORDER BY seq LIMIT 1`, t.Lane)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	in, err := r.inbound()
	if err != nil || r.Attempts >= MaxAttempts {
		return q.deadLetter(ctx, tx, []int64{r.Seq}, why.Error())
	}
	t.Rows, t.seqs, t.Run, t.Attempt, t.Err = append(t.Rows, in), []int64{r.Seq}, r.Run, r.Attempts+1, why
	if t.Run == "" && !t.Control {
		t.Run = newRun()
	}
	_, err = tx.Exec(ctx, `UPDATE inbox SET run = $1, attempts = attempts + 1 WHERE seq = $2`, t.Run, r.Seq)
	return err
}

// suspects are lanes with a failed last claim. It is safe for concurrent use.
type suspects struct {
	mu    sync.Mutex
	lanes map[string]bool // at most maxSuspects
}

func (s *suspects) has(lane string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lanes[lane]
}

func (s *suspects) add(lane string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lanes == nil || len(s.lanes) >= maxSuspects {
		s.lanes = map[string]bool{} // those that still fail come back
	}
	s.lanes[lane] = true
}

func (s *suspects) remove(lane string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lanes, lane)
}

// A putError is an update that could not be stored.
type putError struct {
	update string
	err    error
}

func (e *putError) Error() string { return fmt.Sprintf("put update %s: %v", e.update, e.err) }
func (e *putError) Unwrap() error { return e.err }

// maxRejects limits how many updates with a failed Put are remembered.
const maxRejects = 256

// putGuarded runs putOne and remembers failures. A failing update fails its page,
// which the connector offers again; after MaxAttempts the update becomes a dead
// letter, so that it cannot stop all input of a bot.
func (q *Queue) putGuarded(ctx context.Context, tx *store.Tx, u *unit, in *core.Inbound, lanes map[string]bool) (outcome string, err error) {
	key := in.Bot + "/" + in.UpdateID
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if err != nil {
			err = &putError{key, err}
		}
	}()
	if q.rejects.failures(key) < MaxAttempts {
		return q.putOne(ctx, tx, u, in, lanes)
	}
	failed, err := tx.Try(ctx, func() (err error) { outcome, err = q.putOne(ctx, tx, u, in, lanes); return err })
	if err != nil || failed == nil {
		return outcome, err
	}
	q.o.Log.ErrorContext(ctx, "an update could not be stored and is set aside", "update", key, "err", failed)
	tx.OnCommit(func() { q.o.Ring(core.TopicQueue) })
	return "malformed", insert(ctx, tx, in, row{state: "dead", err: core.CutRunes(failed.Error(), 500), keep: true})
}

// rejects counts the updates that failed their page. It is safe for concurrent
// use.
type rejects struct {
	mu      sync.Mutex
	updates map[string]int // update → failed Puts; at most maxRejects
}

func (r *rejects) failures(update string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.updates[update]
}

// note remembers which update failed its page, and forgets those of a page that
// was stored.
func (r *rejects) note(page []core.Inbound, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var bad *putError
	if errors.As(err, &bad) && !store.OutOfFiles(err) { // without a file descriptor it was not tried
		if r.updates == nil {
			r.updates = map[string]int{}
		}
		if _, known := r.updates[bad.update]; known || len(r.updates) < maxRejects {
			r.updates[bad.update]++
		}
		return
	}
	if err == nil && len(r.updates) > 0 {
		for i := range page {
			delete(r.updates, page[i].Bot+"/"+page[i].UpdateID)
		}
	}
}
