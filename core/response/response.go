// Package response keeps what OpenAI's Responses API stores: what a client asked
// in one turn of a session and what was answered, so that it can be read again and
// gone on from. It owns the table responses.
package response

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Bounds of what is stored. Where a user's responses pass one of the first two, the
// oldest of them that are answered are deleted.
const (
	MaxRows  = 1000     // of one user
	MaxBytes = 64 << 20 // of one user, in requests and answers
	MaxOpen  = 64       // of one user, whose runs have not ended
	MaxAge   = 30 * 24 * time.Hour
)

// States of a response.
const (
	Open     = "open"     // its run has not ended, as far as is known
	Stopping = "stopping" // it was cancelled, and its run may not have ended yet
	Ended    = "ended"
)

// ErrTaken is of a response whose number in its session another one has.
var ErrTaken = errors.New("another response has this number in the session")

// A Row is one response.
type Row struct {
	ID, Run  string
	User     int64
	Session  string
	Number   int    // of the response in its session, from 1
	Previous string // the response that it goes on from; "" is none
	State    string
	Hidden   bool   // not to be read: its session is deleted after its run
	Body     string // the hash of a request with an Idempotency-Key; "" for one without
	Request  []byte
	Answer   []byte // nil while it is open
	Created  time.Time
}

type row struct {
	ID       string `db:"id"`
	Run      string `db:"run"`
	User     int64  `db:"user_id"`
	Session  string `db:"session_id"`
	Number   int    `db:"number"`
	Previous string `db:"previous"`
	State    string `db:"state"`
	Hidden   int    `db:"hidden"`
	Body     string `db:"body"`
	Request  string `db:"request"`
	Answer   string `db:"answer"`
	Created  string `db:"created"`
}

const columns = `id, run, user_id, session_id, number, previous, state, hidden, body, request, answer, created`

func (r *row) public() (Row, error) {
	at, err := core.ParseStamp(r.Created)
	out := Row{ID: r.ID, Run: r.Run, User: r.User, Session: r.Session, Number: r.Number, Previous: r.Previous, State: r.State, Hidden: r.Hidden != 0, Body: r.Body, Request: []byte(r.Request), Created: at}
	if r.Answer != "" {
		out.Answer = []byte(r.Answer)
	}
	return out, err
}

// A Store keeps responses. It is safe for concurrent use.
type Store struct {
	db    *store.DB
	clock core.Clock
}

// New returns the Store of db.
func New(db *store.DB, clock core.Clock) *Store { return &Store{db, clock} }

// Add stores an open response and returns it with its time. It is core.Busy when
// too many of the user's are open, ErrTaken where its number is not free. The
// commit does not wait for the disk: that of the turn, which follows, does.
func (s *Store) Add(ctx context.Context, r Row) (Row, error) {
	r.State = Open
	err := s.db.TxSoon(ctx, func(tx *store.Tx) error {
		r.Created = tx.Time().UTC()
		var open int
		if err := tx.Get(ctx, &open, `SELECT (SELECT count(*) FROM responses WHERE user_id = $1 AND state = 'open')
			+ (SELECT count(*) FROM responses WHERE user_id = $1 AND state = 'stopping' AND (state <> 'ended' OR hidden = 1))`, r.User); err != nil { // the terms of the indexes
			return err
		}
		if open >= MaxOpen {
			return core.Errorf(core.Busy, "%d responses are open: wait for one of them, or cancel it", open)
		}
		n, err := tx.Exec(ctx, `INSERT INTO responses (id, run, user_id, session_id, number, previous, state, hidden, request, bytes, created, body)
			VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
			r.ID, r.Run, r.User, r.Session, r.Number, r.Previous, flag(r.Hidden), string(r.Request), len(r.Request), core.Stamp(r.Created), r.Body)
		if err == nil && n == 0 {
			err = ErrTaken
		}
		if err != nil {
			return err
		}
		return trim(ctx, tx, r.User)
	})
	if err != nil && core.KindOf(err) != core.Busy && !errors.Is(err, ErrTaken) {
		err = fmt.Errorf("store response: %w", err)
	}
	return r, err
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// trim deletes the user's oldest responses above the bounds.
func trim(ctx context.Context, tx *store.Tx, user int64) error {
	var sum struct {
		Rows  int   `db:"n"`
		Bytes int64 `db:"size"`
	}
	if err := tx.Get(ctx, &sum, `SELECT count(*) AS n, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS size FROM responses WHERE user_id = $1`, user); err != nil {
		return err
	}
	if sum.Rows <= MaxRows && sum.Bytes <= MaxBytes {
		return nil
	}
	var old []struct {
		ID    string `db:"id"`
		Bytes int64  `db:"bytes"`
	}
	if err := tx.Select(ctx, &old, `SELECT id, bytes FROM responses WHERE user_id = $1 AND state = 'ended' AND hidden <> 1 ORDER BY created, id`, user); err != nil {
		return err
	}
	for _, o := range old {
		if sum.Rows <= MaxRows && sum.Bytes <= MaxBytes {
			break
		}
		if _, err := tx.Exec(ctx, `DELETE FROM responses WHERE id = $1`, o.ID); err != nil {
			return err
		}
		sum.Rows, sum.Bytes = sum.Rows-1, sum.Bytes-o.Bytes
	}
	return nil
}

// Get returns a user's response, or core.NotFound, also for one that is hidden.
func (s *Store) Get(ctx context.Context, user int64, id string) (Row, error) {
	return s.one(ctx, `SELECT `+columns+` FROM responses WHERE id = $1 AND user_id = $2 AND hidden = 0`, id, user)
}

// Repeated returns a user's response, also one that is hidden, or core.NotFound.
func (s *Store) Repeated(ctx context.Context, user int64, id string) (Row, error) {
	return s.one(ctx, `SELECT `+columns+` FROM responses WHERE id = $1 AND user_id = $2`, id, user)
}

// Hidden returns a response that is not to be read and not settled, or core.NotFound.
func (s *Store) Hidden(ctx context.Context, id string) (Row, error) {
	return s.one(ctx, `SELECT `+columns+` FROM responses WHERE id = $1 AND hidden = 1`, id)
}

// Has reports whether a response of this run is stored.
func (s *Store) Has(ctx context.Context, run string) (bool, error) {
	var found bool
	err := s.db.Get(ctx, &found, `SELECT EXISTS (SELECT 1 FROM responses WHERE run = $1)`, run)
	return found, err
}

// Pending returns up to limit responses of all users about which something is to be
// done, without their texts: their runs had not ended, or they are hidden.
func (s *Store) Pending(ctx context.Context, limit int) ([]Row, error) {
	return s.list(ctx, `SELECT id, run, user_id, session_id, number, previous, state, hidden, body, '' AS request, '' AS answer, created FROM responses WHERE state <> 'ended' OR hidden = 1 ORDER BY created LIMIT $1`, limit)
}

func (s *Store) one(ctx context.Context, query string, args ...any) (Row, error) {
	rows, err := s.list(ctx, query, args...)
	if err == nil && len(rows) == 0 {
		err = core.Errorf(core.NotFound, "no such response")
	}
	if err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

func (s *Store) list(ctx context.Context, query string, args ...any) ([]Row, error) {
	var rows []row
	if err := s.db.Select(ctx, &rows, query, args...); err != nil {
		return nil, fmt.Errorf("read responses: %w", err)
	}
	out := make([]Row, len(rows))
	for i := range rows {
		var err error
		if out[i], err = rows[i].public(); err != nil {
			return nil, fmt.Errorf("response %s: %w", rows[i].ID, err)
		}
	}
	return out, nil
}

// End stores the answer of a response that is open, and false for any other. Where
// the commit is lost with the power, the response is open again.
func (s *Store) End(ctx context.Context, id string, answer []byte) (bool, error) {
	return s.change(ctx, `UPDATE responses SET state = 'ended', answer = $2, bytes = bytes + $3 WHERE id = $1 AND state = 'open'`, id, string(answer), len(answer))
}

// Stop stores the answer of an open response that is cancelled, and false for any
// other. Its run is to be stopped until Stopped is called.
func (s *Store) Stop(ctx context.Context, id string, answer []byte) (bool, error) {
	return s.change(ctx, `UPDATE responses SET state = 'stopping', answer = $2, bytes = bytes + $3 WHERE id = $1 AND state = 'open'`, id, string(answer), len(answer))
}

// Stopped notes that the run of a cancelled response has ended.
func (s *Store) Stopped(ctx context.Context, id string) error {
	_, err := s.change(ctx, `UPDATE responses SET state = 'ended' WHERE id = $1 AND state = 'stopping'`, id)
	return err
}

// Hide makes a user's response one that is not to be read, without its texts, and has
// its run stopped; false where there is none.
func (s *Store) Hide(ctx context.Context, user int64, id string) (found bool, err error) {
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE responses SET hidden = 1, state = CASE WHEN state = 'open' THEN 'stopping' ELSE state END, request = '', answer = '', bytes = 0
			WHERE id = $1 AND user_id = $2 AND hidden = 0`, id, user)
		found = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("delete response: %w", err)
	}
	return found, nil
}

// Alone reports whether every response of the session is hidden and ended, and returns
// the highest number, which is the count of its responses so far.
func (s *Store) Alone(ctx context.Context, session string) (alone bool, number int, err error) {
	var of struct {
		Others int `db:"others"`
		Number int `db:"number"`
	}
	err = s.db.Get(ctx, &of, `SELECT count(CASE WHEN hidden = 0 OR state <> 'ended' THEN 1 END) AS others, coalesce(max(number), 0) AS number FROM responses WHERE session_id = $1`, session)
	return of.Others == 0, of.Number, err
}

// Settled notes that nothing is left to do for a hidden response whose session goes
// on: only its number is kept.
func (s *Store) Settled(ctx context.Context, id string) error {
	_, err := s.change(ctx, `UPDATE responses SET hidden = 2 WHERE id = $1 AND hidden = 1`, id)
	return err
}

// Drop deletes a response whose turn was not taken.
func (s *Store) Drop(ctx context.Context, id string) error {
	_, err := s.change(ctx, `DELETE FROM responses WHERE id = $1`, id)
	return err
}

func (s *Store) change(ctx context.Context, query string, args ...any) (changed bool, err error) {
	err = s.db.TxSoon(ctx, func(tx *store.Tx) error {
		n, err := tx.Exec(ctx, query, args...)
		changed = n > 0
		return err
	})
	if err != nil {
		return false, fmt.Errorf("change response: %w", err)
	}
	return changed, nil
}
