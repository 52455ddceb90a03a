package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// lastEvents is how many events end a run: done, aborted or error, and message_stop.
const lastEvents = 2

// How many runs one transaction of Prune cuts the events of, and deletes.
const (
	pruneBatch = 200
	dropBatch  = 1000
)

// An endedRun is a run as Prune walks over them, by their end.
type endedRun struct {
	Ended string `db:"ended"`
	ID    string `db:"id"`
}

// Prune deletes the events of runs that ended more than an hour ago, except the last two, which
// report how the run ended and are deleted after 48 hours, and rows of runs that ended more
// than 90 days ago. It returns how many rows it deleted or cut.
func (s *Store) Prune(ctx context.Context) (int, error) {
	s.pruning.Lock()
	defer s.pruning.Unlock()
	total := 0
	for _, step := range []func(context.Context, time.Time) (n int, more bool, err error){s.dropEnds, s.cutEvents, s.dropRuns} {
		for more := true; more; {
			n, again, err := step(ctx, s.clock.Now())
			if total, more = total+n, again; err != nil {
				return total, fmt.Errorf("prune runs: %w", err)
			}
		}
	}
	return total, nil
}

// dropEnds deletes all events of runs whose end is not kept any more.
func (s *Store) dropEnds(ctx context.Context, now time.Time) (n int, more bool, err error) {
	var ids []string
	err = s.db.Select(ctx, &ids, `SELECT DISTINCT e.run FROM run_events e JOIN runs r ON r.id = e.run WHERE r.ended <> '' AND r.ended < $1 LIMIT $2`, core.Stamp(now.Add(-keepEnd)), pruneBatch)
	if err != nil || len(ids) == 0 {
		return 0, false, err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		n = 0
		for _, id := range ids {
			deleted, err := tx.Exec(ctx, `DELETE FROM run_events WHERE run IN (SELECT id FROM runs WHERE id = $1 AND ended <> '')`, id)
			if err != nil {
				return err
			}
			n += int(deleted)
		}
		return nil
	})
	return n, n > 0, err
}

// cutEvents deletes all but the last events of the next runs, by their end.
func (s *Store) cutEvents(ctx context.Context, now time.Time) (n int, more bool, err error) {
	var next []endedRun
	from := max(s.pruned.Ended, core.Stamp(now.Add(-keepEnd)))
	err = s.db.Select(ctx, &next, `SELECT ended, id FROM runs WHERE ended <> '' AND ended >= $1 AND (ended, id) > ($1, $2) AND ended < $3 ORDER BY ended, id LIMIT $4`,
		from, s.pruned.ID, core.Stamp(now.Add(-keepEvents)), pruneBatch)
	if err != nil || len(next) == 0 {
		return 0, false, err
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		n = 0
		for _, run := range next {
			changed, err := cut(ctx, tx, run)
			if err != nil {
				return err
			}
			n += changed
		}
		return nil
	})
	if err == nil {
		s.pruned = next[len(next)-1]
	}
	return n, err == nil, err
}

// cut deletes all but the last events of a run, unless it has been taken up again, and returns
// how many rows that changed.
func cut(ctx context.Context, tx *store.Tx, run endedRun) (int, error) {
	var last struct {
		Attempt int    `db:"attempt"`
		N       int    `db:"n"`
		Data    string `db:"data"`
	}
	err := tx.Get(ctx, &last, `SELECT attempt, n, data FROM run_events WHERE run IN (SELECT id FROM runs WHERE id = $1 AND ended = $2) ORDER BY attempt DESC, n DESC LIMIT 1`, run.ID, run.Ended)
	if errors.Is(err, store.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := tx.Exec(ctx, `DELETE FROM run_events WHERE run = $1 AND (attempt <> $2 OR n <> $3)`, run.ID, last.Attempt, last.N)
	if err != nil {
		return 0, err
	}
	if lines := bytes.Split([]byte(last.Data), []byte("\n")); len(lines) > lastEvents {
		end := bytes.Join(lines[len(lines)-lastEvents:], []byte("\n"))
		if _, err := tx.Exec(ctx, `UPDATE run_events SET data = $1 WHERE run = $2 AND attempt = $3 AND n = $4`, string(end), run.ID, last.Attempt, last.N); err != nil {
			return 0, err
		}
		n++
	}
	return int(n), nil
}

// dropRuns deletes rows of runs.
func (s *Store) dropRuns(ctx context.Context, now time.Time) (int, bool, error) {
	var n int64
	err := s.db.Tx(ctx, func(tx *store.Tx) (err error) {
		n, err = tx.Exec(ctx, `DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE ended <> '' AND ended < $1 LIMIT $2)`, core.Stamp(now.Add(-keepRun)), dropBatch)
		return err
	})
	return int(n), n > 0, err
}
