package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// maxDue bounds what Due lists.
const maxDue = 5000

// Due returns sessions that are archived and were not used for this many days, the
// longest unused first, at most 5,000. Fewer than one day is core.Invalid.
func (s *Store) Due(ctx context.Context, days int) (ids []string, err error) {
	if days < 1 {
		return nil, core.Errorf(core.Invalid, "the number of days must be at least 1")
	}
	err = s.db.Select(ctx, &ids, `SELECT id FROM sessions WHERE archived = 1 AND last_accessed < $1 ORDER BY last_accessed, id LIMIT $2`,
		core.Stamp(s.clock.Now().AddDate(0, 0, -days)), maxDue)
	if err != nil {
		return nil, fmt.Errorf("clean up sessions: %w", err)
	}
	return ids, nil
}

// Cleanup deletes those of ids that are still Due, as Delete does, and reports how
// many. before, which may be nil, is asked for each: it does what belongs to a
// session's end elsewhere, and core.Conflict of its keeps this one.
func (s *Store) Cleanup(ctx context.Context, tx *store.Tx, ids []string, days int, by core.Actor, before func(ctx context.Context, tx *store.Tx, id string) error) (n int, err error) {
	for _, id := range ids {
		var due bool
		err := tx.Get(ctx, &due, `SELECT EXISTS (SELECT 1 FROM sessions WHERE id = $1 AND archived = 1 AND last_accessed < $2)`, id, core.Stamp(tx.Time().AddDate(0, 0, -days)))
		if err != nil {
			return 0, fmt.Errorf("clean up sessions: %w", err)
		}
		if due && before != nil {
			err = before(ctx, tx, id)
		}
		if !due || core.KindOf(err) == core.Conflict {
			continue
		}
		if err != nil {
			return 0, err
		}
		if err := s.Delete(ctx, tx, id, by); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// Count returns how many sessions the filter chooses; its search, limit, offset and
// cursor do not matter. It reads an entry for each session of the user, or,
// with All, of everyone: it is for figures, not for every page.
func (s *Store) Count(ctx context.Context, f Filter) (n int, err error) {
	f.Search = ""
	if err := f.check(); err != nil {
		return 0, err
	}
	if err := f.weigh(ctx, s.db); err != nil {
		return 0, err
	}
	var c store.Conditions
	f.choose(&c)
	query := `SELECT count(*) FROM sessions s`
	if len(c.Where) > 0 {
		query += ` WHERE ` + strings.Join(c.Where, " AND ")
	}
	if err := s.db.Get(ctx, &n, query, c.Args...); err != nil {
		return 0, fmt.Errorf("count sessions: %w", err)
	}
	return n, nil
}

// maxTouched limits the sessions with an opening that Touched has not written yet;
// further ones keep their place in lists.
const maxTouched = 4096

// Touch notes that a user has opened a session. Touched moves it in lists.
func (s *Store) Touch(id string) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.opened[id]; ok || len(s.opened) < maxTouched {
		s.opened[id] = now
	}
}

// Touched writes when sessions were last opened, in one transaction, and returns their
// number. Call it from upkeep.

func (s *Store) Touched(ctx context.Context) (int, error) {
	s.mu.Lock()
	opened := s.opened
	s.opened = map[string]time.Time{}
	s.mu.Unlock()
	if len(opened) == 0 {
		return 0, nil
	}
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		for _, id := range slices.Sorted(maps.Keys(opened)) {
			if _, err := tx.Exec(ctx, `UPDATE sessions SET last_accessed = $2 WHERE id = $1 AND last_accessed < $2`, id, core.Stamp(opened[id])); err != nil {
				return fmt.Errorf("touch sessions: %w", err)
			}
		}
		return nil
	})
	return len(opened), err
}

// maxNumbered is how many sessions one transaction of Number gives an id.
const maxNumbered = 500

// Number gives sessions without a para-ID one, at most 500, and returns how many it
// gave. It is upkeep's: a message costs nothing for it, and sessions that were
// imported or restored get theirs too.
func (s *Store) Number(ctx context.Context) (int, error) {
	if s.paraID == nil {
		return 0, nil
	}
	const unnumbered = `SELECT id, user_id FROM sessions WHERE para_id = '' LIMIT $1`
	type session struct {
		ID   string `db:"id"`
		User int64  `db:"user_id"`
	}
	var due []session
	if err := s.db.Select(ctx, &due, unnumbered, 1); err != nil || len(due) == 0 {
		return 0, err
	}
	err := s.db.TxSoon(ctx, func(tx *store.Tx) error {
		due = []session{}
		if err := tx.Select(ctx, &due, unnumbered, maxNumbered); err != nil {
			return fmt.Errorf("number sessions: %w", err)
		}
		for _, d := range due {
			id, err := s.paraID(ctx, tx, d.ID, d.User)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE sessions SET para_id = $2 WHERE id = $1 AND para_id = ''`, d.ID, id); err != nil {
				return fmt.Errorf("number sessions: %w", err)
			}
		}
		return nil
	})
	return len(due), err
}
