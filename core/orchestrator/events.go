package orchestrator

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
	keepEvents = time.Hour // after a run's end
)

// A Piece is one event of a run on its way to storage.
type Piece struct {
	N    int
	Data []byte // JSON, one line
}

// A Source is a run in progress whose events are stored as they come.
type Source interface {
	Unstored() []Piece // published and not yet stored, in order
	Stored(n int)
}

// Events is the table run_events: one flusher per node writes all runs' pieces
// every 250 ms, a row per run and flush, so that a reader can come back after
// a restart.
type Events struct {
	db    *store.DB
	clock core.Clock

	mu   sync.Mutex
	live map[runKey]*source // bounded by the queue's slots
	bell chan struct{}
}

type runKey struct {
	run     string
	attempt int
}

type source struct {
	Source
	from time.Time // first flush
}

// NewEvents is Events over db; Run flushes.
func NewEvents(db *store.DB, clock core.Clock) *Events {
	return &Events{db: db, clock: clock, live: map[runKey]*source{}, bell: make(chan struct{}, 1)}
}

// Watch has s stored from now on; with lazy only once the run has lasted
// longer than one flush (most chat turns are over by then and store nothing).
func (e *Events) Watch(run string, attempt int, s Source, lazy bool) {
	from := e.clock.Now()
	if lazy {
		from = from.Add(flushEvery)
	}
	e.mu.Lock()
	e.live[runKey{run, attempt}] = &source{s, from}
	e.mu.Unlock()
	select {
	case e.bell <- struct{}{}:
	default:
	}
}

// Unwatch ends it.
func (e *Events) Unwatch(run string, attempt int) {
	e.mu.Lock()
	delete(e.live, runKey{run, attempt})
	e.mu.Unlock()
}

// Run flushes until ctx ends. While no run is live it sleeps.
func (e *Events) Run(ctx context.Context, report func(error)) {
	for {
		e.mu.Lock()
		n := len(e.live)
		e.mu.Unlock()
		if n == 0 {
			select {
			case <-ctx.Done():
				return
			case <-e.bell:
			}
		}
		if !core.Sleep(ctx, e.clock, flushEvery) {
			return
		}
		if err := e.flush(ctx); err != nil && ctx.Err() == nil {
			report(err)
		}
	}
}

func (e *Events) flush(ctx context.Context) error {
	now := e.clock.Now()
	type batch struct {
		key    runKey
		source Source
		pieces []Piece
	}
	var batches []batch
	e.mu.Lock()
	for k, s := range e.live {
		if !now.Before(s.from) {
			batches = append(batches, batch{k, s, nil})
		}
	}
	e.mu.Unlock()
	work := batches[:0]
	for _, b := range batches {
		if b.pieces = b.source.Unstored(); len(b.pieces) > 0 {
			work = append(work, b)
		}
	}
	if len(work) == 0 {
		return nil
	}
	err := e.db.Tx(ctx, func(tx *store.Tx) error {
		for _, b := range work {
			if err := e.Store(ctx, tx, b.key.run, b.key.attempt, b.pieces); err != nil {
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

// Store writes pieces of a run as one row.
func (e *Events) Store(ctx context.Context, tx *store.Tx, run string, attempt int, pieces []Piece) error {
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

// Refused writes the end of a run that was not let begin: its row and its only
// events.
func (e *Events) Refused(ctx context.Context, tx *store.Tx, r RunRow, code string, last []core.Event) error {
	now := core.Stamp(tx.Time())
	_, err := tx.Exec(ctx, `INSERT INTO runs (id, session_id, attempt, state, bot, chat, user_id, started, ended, error) VALUES ($1, $2, $3, 'error', $4, $2, $5, $6, $6, $7)
		ON CONFLICT (id) DO UPDATE SET state = 'error', ended = excluded.ended, error = excluded.error`,
		r.ID, r.Session, r.Attempt, core.APIBot, r.User, now, code)
	if err != nil {
		return err
	}
	pieces := make([]Piece, len(last))
	for i, ev := range last {
		data, err := core.EncodeEvent(ev)
		if err != nil {
			return err
		}
		pieces[i] = Piece{N: i + 1, Data: data}
	}
	return e.Store(ctx, tx, r.ID, r.Attempt, pieces)
}

// Abandon ends a run that will have no result, so that nobody waits for it and
// its events do not stay for ever. One that has not begun, or has an end, is left.
func (e *Events) Abandon(ctx context.Context, tx *store.Tx, run string) error {
	var r struct {
		Session string `db:"session_id"`
		Attempt int    `db:"attempt"`
	}
	err := tx.Get(ctx, &r, `UPDATE runs SET state = 'error', ended = $1, error = 'given_up' WHERE id = $2 AND state = 'running' RETURNING session_id, attempt`,
		core.Stamp(tx.Time()), run)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	var n int
	if err := tx.Get(ctx, &n, `SELECT coalesce(max(n), 0) FROM run_events WHERE run = $1 AND attempt = $2`, run, r.Attempt); err != nil {
		return err
	}
	failed, err := core.EncodeEvent(core.Failed{Code: "internal", Message: "The gateway could not answer this.", SessionID: r.Session})
	if err != nil {
		return err
	}
	stop, err := core.EncodeEvent(core.MessageStop{})
	if err != nil {
		return err
	}
	return e.Store(ctx, tx, run, r.Attempt, []Piece{{n + 1, failed}, {n + 2, stop}})
}

// Load reads a run's stored events after number n, in order.
func (e *Events) Load(ctx context.Context, run string, attempt, n int) ([]Piece, error) {
	var rows []struct {
		N    int    `db:"n"`
		Data string `db:"data"`
	}
	err := e.db.Select(ctx, &rows, `SELECT n, data FROM run_events WHERE run = $1 AND attempt = $2 AND n > $3 ORDER BY n`, run, attempt, n)
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

// Latest is the newest stored attempt of a run, 0 without any.
func (e *Events) Latest(ctx context.Context, run string) (int, error) {
	var n int
	err := e.db.Get(ctx, &n, `SELECT attempt FROM run_events WHERE run = $1 ORDER BY attempt DESC LIMIT 1`, run)
	if errors.Is(err, store.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// A RunRow is one row of runs.
type RunRow struct {
	ID, Session, State string
	Attempt            int
	User               int64
}

// ByRun is the run's row; core.NotFound without one.
func (e *Events) ByRun(ctx context.Context, run string) (RunRow, error) {
	return e.one(ctx, `SELECT id, session_id, state, attempt, user_id FROM runs WHERE id = $1`, run)
}

// LatestOf is the newest run of a session; core.NotFound without one.
func (e *Events) LatestOf(ctx context.Context, session string) (RunRow, error) {
	return e.one(ctx, `SELECT id, session_id, state, attempt, user_id FROM runs WHERE session_id = $1 ORDER BY started DESC LIMIT 1`, session)
}

func (e *Events) one(ctx context.Context, query, arg string) (RunRow, error) {
	var r struct {
		ID      string `db:"id"`
		Session string `db:"session_id"`
		State   string `db:"state"`
		Attempt int    `db:"attempt"`
		User    int64  `db:"user_id"`
	}
	err := e.db.Get(ctx, &r, query, arg)
	if errors.Is(err, store.ErrNoRows) {
		return RunRow{}, core.Errorf(core.NotFound, "no such run")
	}
	return RunRow{ID: r.ID, Session: r.Session, State: r.State, Attempt: r.Attempt, User: r.User}, err
}

// Prune removes the events of runs that ended more than an hour ago, and
// finished run rows older than 90 days. It returns how many rows went.
func (e *Events) Prune(ctx context.Context) (int, error) {
	total := 0
	for _, q := range []struct {
		text   string
		before time.Duration
	}{
		{`DELETE FROM run_events WHERE run IN (SELECT DISTINCT e.run FROM run_events e JOIN runs r ON r.id = e.run WHERE r.ended <> '' AND r.ended < $1 LIMIT 200)`, keepEvents},
		{`DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE ended <> '' AND ended < $1 LIMIT 1000)`, 90 * 24 * time.Hour},
	} {
		for {
			var n int64
			err := e.db.Tx(ctx, func(tx *store.Tx) (err error) {
				n, err = tx.Exec(ctx, q.text, core.Stamp(e.clock.Now().Add(-q.before)))
				return err
			})
			if err != nil {
				return total, err
			}
			if total += int(n); n == 0 {
				break
			}
		}
	}
	return total, nil
}
