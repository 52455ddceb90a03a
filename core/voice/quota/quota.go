// Package quota limits how much speech is transcribed for a user on a day.
package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/voice"
)

// keep is how long the figures of a day are kept.
const keep = 31 * 24 * time.Hour

// A Store counts in the table voice_used. It is safe for concurrent use.
type Store struct {
	db    *store.DB
	clock core.Clock
	limit time.Duration
}

// New returns a Store with a limit for each user and day (UTC); 0 is none.
func New(db *store.DB, clock core.Clock, limit time.Duration) *Store { return &Store{db, clock, limit} }

func (s *Store) day() string { return s.clock.Now().UTC().Format(time.DateOnly) }

// Used returns how much was transcribed for the user today.
func (s *Store) Used(ctx context.Context, user int64) (time.Duration, error) {
	var millis int64
	err := s.db.Get(ctx, &millis, `SELECT millis FROM voice_used WHERE user_id = $1 AND day = $2`, user, s.day())
	if errors.Is(err, store.ErrNoRows) {
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("transcribed today: %w", err)
	}
	return time.Duration(millis) * time.Millisecond, nil
}

// Check returns voice.ErrQuota if nothing is left to the user today.
func (s *Store) Check(ctx context.Context, user int64) error {
	if s.limit <= 0 {
		return nil
	}
	used, err := s.Used(ctx, user)
	if err == nil && used >= s.limit {
		err = voice.ErrQuota
	}
	return err
}

// Limit returns how much may be transcribed for a user on a day; 0 is no limit.
func (s *Store) Limit() time.Duration { return max(0, s.limit) }

// Add counts what was transcribed. A segment that is begun is finished, so a user may pass the
// limit by those that are transcribed at that moment.
func (s *Store) Add(ctx context.Context, user int64, d time.Duration) error {
	return s.add(ctx, user, s.day(), d.Milliseconds())
}

func (s *Store) add(ctx context.Context, user int64, day string, millis int64) error {
	err := s.db.TxSoon(ctx, func(tx *store.Tx) error { return plus(ctx, tx, user, day, millis) })
	if err != nil {
		return fmt.Errorf("count what was transcribed: %w", err)
	}
	return nil
}

func plus(ctx context.Context, tx *store.Tx, user int64, day string, millis int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO voice_used (user_id, day, millis) VALUES ($1, $2, $3)
		ON CONFLICT (user_id, day) DO UPDATE SET millis = voice_used.millis + excluded.millis`, user, day, millis)
	return err
}

// Tables returns the tables with data of users.
func (s *Store) Tables() []string { return []string{"voice_used"} }

// Forget deletes the rows of a user.
func (s *Store) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `DELETE FROM voice_used WHERE user_id = $1`, r.User)
	return err
}

// Merge adds one user's rows to those of another.
func (s *Store) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	var rows []struct {
		Day    string `db:"day"`
		Millis int64  `db:"millis"`
	}
	if err := tx.Select(ctx, &rows, `SELECT day, millis FROM voice_used WHERE user_id = $1`, from); err != nil {
		return err
	}
	for _, r := range rows {
		if err := plus(ctx, tx, to, r.Day, r.Millis); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM voice_used WHERE user_id = $1`, from)
	return err
}

// Exports returns the statements of an export.
func (s *Store) Exports() []store.Export {
	return []store.Export{{Name: "voice_used", Query: `SELECT day, millis FROM voice_used WHERE user_id = $1 ORDER BY day LIMIT $2`}}
}

// Chores returns the housekeeping.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{{Name: "transcribed_days", Every: 24 * time.Hour, Run: func(ctx context.Context) (n int, err error) {
		err = s.db.Tx(ctx, func(tx *store.Tx) error {
			gone, err := tx.Exec(ctx, `DELETE FROM voice_used WHERE day < $1`, s.clock.Now().UTC().Add(-keep).Format(time.DateOnly))
			n = int(gone)
			return err
		})
		return n, err
	}}}
}
