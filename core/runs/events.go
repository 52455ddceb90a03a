package runs

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Times of the event store.
const (
	flushEvery = 250 * time.Millisecond
	keepEvents = time.Hour      // after a run's end
	keepEnd    = 48 * time.Hour // as long as a repeat of the request is recognised
	keepRun    = 90 * 24 * time.Hour
)

// A Piece is one event of a run on its way to storage.
type Piece struct {
	N    int
	Data []byte // JSON, one line
}

// A Source is a run in progress whose events are stored as they come.
type Source interface {
	// Durable sets the function that the source calls when many pieces wait to be stored.
	Durable(hurry func())
	Unstored() []Piece // published and not yet stored, in order
	Stored(n int)
}

// A Store reads and writes runs and run_events: one flusher per node writes all runs'
// pieces every 250 ms, a row per run and flush, so that a reader can come back after a
// restart.
type Store struct {
	db    *store.DB
	clock core.Clock

	bell  chan struct{} // a run is live
	hurry chan struct{} // one has much to store

	mu   sync.Mutex
	live map[runKey]*source // bounded by the queue's slots

	pruning sync.Mutex
	pruned  endedRun // the last run whose events Prune has cut
}

type runKey struct {
	run     string
	attempt int
}

type source struct {
	Source
	from time.Time // first flush
}

// New returns a Store over db. Run flushes its events.
func New(db *store.DB, clock core.Clock) *Store {
	return &Store{db: db, clock: clock, live: map[runKey]*source{}, bell: make(chan struct{}, 1), hurry: make(chan struct{}, 1)}
}

// Watch stores src's pieces from now on; with lazy only once the run has lasted
// longer than one flush or has many pieces: most turns of chats end before and
// store nothing.
func (s *Store) Watch(run string, attempt int, src Source, lazy bool) {
	from := s.clock.Now()
	if lazy {
		from = from.Add(flushEvery)
	}
	s.mu.Lock()
	s.live[runKey{run, attempt}] = &source{src, from}
	s.mu.Unlock()
	src.Durable(func() { s.soon(runKey{run, attempt}) })
	ring(s.bell)
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// soon stores a run's pieces before the next flush is due.
func (s *Store) soon(k runKey) {
	s.mu.Lock()
	if src := s.live[k]; src != nil {
		src.from = time.Time{}
	}
	s.mu.Unlock()
	ring(s.hurry)
}

// Unwatch ends Watch.
func (s *Store) Unwatch(run string, attempt int) {
	s.mu.Lock()
	delete(s.live, runKey{run, attempt})
	s.mu.Unlock()
}

// Run flushes until ctx ends. While no run is live it sleeps.
func (s *Store) Run(ctx context.Context, report func(error)) {
	for {
		s.mu.Lock()
		n := len(s.live)
		s.mu.Unlock()
		if n == 0 {
			select {
			case <-ctx.Done():
				return
			case <-s.bell:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.clock.After(flushEvery):
		case <-s.hurry:
		}
		if err := s.flush(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

func (s *Store) flush(ctx context.Context) error {
	now := s.clock.Now()
	type batch struct {
		key    runKey
		source Source
		pieces []Piece
	}
	var batches []batch
	s.mu.Lock()
	for k, src := range s.live {
		if !now.Before(src.from) {
			batches = append(batches, batch{k, src, nil})
		}
	}
	s.mu.Unlock()
	work := batches[:0]
	for _, b := range batches {
		if b.pieces = b.source.Unstored(); len(b.pieces) > 0 {
			work = append(work, b)
		}
	}
	if len(work) == 0 {
		return nil
	}
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		for _, b := range work {
			if err := s.Append(ctx, tx, b.key.run, b.key.attempt, b.pieces); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, b := range work {
		b.source.Stored(b.pieces[len(b.pieces)-1].N)
	}
	return nil
}

// Append stores pieces of a run as one row.
func (s *Store) Append(ctx context.Context, tx *store.Tx, run string, attempt int, pieces []Piece) error {
	if len(pieces) == 0 {
		return nil
	}
	var data bytes.Buffer
	for i, p := range pieces {
		if i > 0 {
			data.WriteByte('\n')
		}
		data.Write(p.Data)
	}
	_, err := tx.Exec(ctx, `INSERT INTO run_events (run, attempt, n, data) VALUES ($1, $2, $3, $4)
		ON CONFLICT (run, attempt, n) DO UPDATE SET data = excluded.data`, run, attempt, pieces[len(pieces)-1].N, data.String())
	return err
}

// Load returns a run's stored events after number n, in order.
func (s *Store) Load(ctx context.Context, run string, attempt, n int) ([]Piece, error) {
	var rows []struct {
		N    int    `db:"n"`
		Data string `db:"data"`
	}
	err := s.db.Select(ctx, &rows, `SELECT n, data FROM run_events WHERE run = $1 AND attempt = $2 AND n > $3 ORDER BY n`, run, attempt, n)
	if err != nil {
		return nil, err
	}
	var out []Piece
	for _, r := range rows {
		lines := bytes.Split([]byte(r.Data), []byte("\n"))
		for i, line := range lines {
			if num := r.N - len(lines) + 1 + i; num > n && (len(out) == 0 || num > out[len(out)-1].N) {
				out = append(out, Piece{num, line})
			}
		}
	}
	return out, nil
}

// Latest returns the newest stored attempt of a run, 0 without any. gone is then the attempt of a
// run that has ended, whose events have been deleted or never were stored; else 0.
func (s *Store) Latest(ctx context.Context, run string) (stored, gone int, err error) {
	var r struct {
		Stored int `db:"stored"`
		Ended  int `db:"ended"`
	} // of one moment: the end of a run may be stored with its events meanwhile
	err = s.db.Get(ctx, &r, `SELECT coalesce((SELECT max(attempt) FROM run_events WHERE run = $1), 0) AS stored,
		coalesce((SELECT attempt FROM runs WHERE id = $1 AND state <> 'running'), 0) AS ended`, run)
	if r.Stored == 0 {
		gone = r.Ended
	}
	return r.Stored, gone, err
}

// A Row is one row of runs.
type Row struct {
	ID, Session, State string
	Attempt            int
	User               int64
}

// ByRun returns the run's row, or core.NotFound.
func (s *Store) ByRun(ctx context.Context, run string) (Row, error) {
	return s.one(ctx, `SELECT id, session_id, state, attempt, user_id FROM runs WHERE id = $1`, run)
}

// LatestOf returns the newest run of a session, or core.NotFound.
func (s *Store) LatestOf(ctx context.Context, session string) (Row, error) {
	return s.one(ctx, `SELECT id, session_id, state, attempt, user_id FROM runs WHERE session_id = $1 ORDER BY started DESC LIMIT 1`, session)
}

// CountOf returns how many runs a session has.
func (s *Store) CountOf(ctx context.Context, session string) (n int, err error) {
	err = s.db.Get(ctx, &n, `SELECT count(*) FROM runs WHERE session_id = $1`, session)
	return n, err
}

func (s *Store) one(ctx context.Context, query, arg string) (Row, error) {
	var r struct {
		ID      string `db:"id"`
		Session string `db:"session_id"`
		State   string `db:"state"`
		Attempt int    `db:"attempt"`
		User    int64  `db:"user_id"`
	}
	err := s.db.Get(ctx, &r, query, arg)
	if errors.Is(err, store.ErrNoRows) {
		return Row{}, core.Errorf(core.NotFound, "no such run")
	}
	return Row{ID: r.ID, Session: r.Session, State: r.State, Attempt: r.Attempt, User: r.User}, err
}
