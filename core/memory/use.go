package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gatehouse/core"
	"gatehouse/core/memory/check"
	"gatehouse/core/memory/score"
	"gatehouse/core/store"
)

const (
	maxEmphasis   = 3
	calmsAfter    = 2 // answers in a row that follow lower the emphasis
	pruneBatch    = 500
	housekeeping  = time.Hour
	boundedEvents = time.Hour
)

// A Use is where corrections were in a prompt.
type Use struct {
	Run     string
	Session string
	Model   string
	Answer  string // that was given
	// Followed reports by id whether the answer followed a correction, where that was judged;
	// of others, checks decide.
	Followed  map[string]bool
	Rewritten []string // ids of those for which the answer was written again
}

// follows reports whether the answer follows c; known is false where no one can tell.
func (u *Use) follows(c *Correction) (follows, known bool) {
	if follows, known = u.Followed[c.ID]; known {
		return follows, true
	}
	checks := c.Checks()
	return len(check.Broken(checks, u.Answer)) == 0, len(checks) > 0
}

// Used records that corrections were used for an answer, and whether it followed those that
// can be checked, in the transaction that ends the run.
func (s *Store) Used(ctx context.Context, tx *store.Tx, all []Correction, u Use) error {
	for i := range all {
		c := all[i]
		if err := s.used(ctx, tx, &c, u); err != nil {
			return fmt.Errorf("record the use of a correction: %w", err)
		}
	}
	return nil
}

func (s *Store) used(ctx context.Context, tx *store.Tx, c *Correction, u Use) error {
	var was struct {
		Emphasis int `db:"emphasis"`
		Followed int `db:"followed"`
	}
	err := tx.Get(ctx, &was, `SELECT emphasis, followed FROM corrections WHERE correction_id = $1 AND user_id = $2`+tx.ForUpdate(), c.ID, c.User)
	if errors.Is(err, store.ErrNoRows) { // deleted since
		return nil
	}
	if err != nil {
		return err
	}
	now := Correction{Emphasis: was.Emphasis, Followed: was.Followed}
	rewritten := slices.Contains(u.Rewritten, c.ID)
	e := Event{Kind: EventUsed, Run: u.Run, Session: u.Session, Model: u.Model}
	if follows, known := u.follows(c); known {
		if e.Kind = EventFollowed; !follows {
			e.Kind = EventViolated
		}
		now.judge(follows && !rewritten) // by itself the model did not
	}
	_, err = tx.Exec(ctx, `UPDATE corrections SET uses = uses + 1, used_at = $1, emphasis = $2, followed = $3 WHERE correction_id = $4`, core.Stamp(tx.Time()), now.Emphasis, now.Followed, c.ID)
	if err != nil {
		return err
	}
	if now.Emphasis != was.Emphasis || min(now.Followed, 0) != min(was.Followed, 0) {
		s.changed(tx, c.User)
	}
	tx.OnCommit(func() {
		s.o.Metrics.used.Inc()
		if e.Kind != EventUsed {
			s.o.Metrics.checks.WithLabelValues(e.Kind).Inc()
		}
		if rewritten {
			s.o.Metrics.checks.WithLabelValues(EventRewritten).Inc()
		}
	})
	if rewritten {
		again := e
		again.Kind = EventRewritten
		if err := s.note(ctx, tx, c, again); err != nil {
			return err
		}
	}
	return s.note(ctx, tx, c, e)
}

// judge notes whether another answer follows c. The emphasis is the number of answers in a row
// that do not, at most maxEmphasis; it falls after calmsAfter in a row that do.
func (c *Correction) judge(follows bool) {
	if !follows {
		c.Followed = min(c.Followed, 0) - 1
		c.Emphasis = max(c.Emphasis, min(maxEmphasis, -c.Followed))
	} else if c.Followed = max(c.Followed, 0) + 1; c.Followed >= calmsAfter && c.Emphasis > 0 {
		c.Emphasis, c.Followed = c.Emphasis-1, 0
	}
}

// Blamed records that a correction changed the score of the model that it corrects.
func (s *Store) Blamed(ctx context.Context, tx *store.Tx, user int64, id string, delta int) error {
	if id == "" || delta == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE corrections SET score_delta = score_delta + $1 WHERE correction_id = $2 AND user_id = $3`, delta, id, user); err != nil {
		return fmt.Errorf("record what a correction changed: %w", err)
	}
	s.changed(tx, user)
	return nil
}

// Applied returns the ids of the corrections that were in the prompt of a run.
func (s *Store) Applied(ctx context.Context, run string) ([]string, error) {
	ids := []string{}
	err := s.o.DB.Select(ctx, &ids, `SELECT correction_id FROM correction_events WHERE run = $1 AND kind IN ('used', 'violated', 'followed') ORDER BY id LIMIT 200`, run)
	return ids, err
}

// Chores returns the housekeeping of the memory.
func (s *Store) Chores() []core.Chore {
	return []core.Chore{
		{Name: "memory_cards", Every: time.Minute, Run: s.expire},
		{Name: "memory_decay", Every: housekeeping, Run: s.decay},
		{Name: "memory_events", Every: boundedEvents, Run: s.boundEvents},
		{Name: "recovery_prompts", Every: recoveryLook, Run: s.oldRecovery},
	}
}

// expire deletes what was deleted too long ago to be undone, and what a card asked in
// vain; a conflict that no one decided keeps both.
func (s *Store) expire(ctx context.Context) (n int, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		all, err := s.rows(ctx, tx, `WHERE expires_at <> '' AND expires_at <= $1 ORDER BY expires_at LIMIT $2`, core.Stamp(tx.Time()), pruneBatch)
		if err != nil {
			return err
		}
		n = len(all)
		for i := range all {
			c := &all[i]
			if c.Status == Active || c.Status == Superseded {
				_, err = tx.Exec(ctx, `UPDATE corrections SET card = '', conflicts_with = '', expires_at = '' WHERE correction_id = $1`, c.ID)
			} else {
				err = s.remove(ctx, tx, c)
			}
			if err != nil {
				return err
			}
			s.changed(tx, c.User)
		}
		return nil
	})
	return n, err
}

// remove deletes a correction and its events.
func (s *Store) remove(ctx context.Context, tx *store.Tx, c *Correction) error {
	if _, err := tx.Exec(ctx, `DELETE FROM correction_events WHERE correction_id = $1`, c.ID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM corrections WHERE correction_id = $1`, c.ID); err != nil {
		return err
	}
	s.changed(tx, c.User)
	return s.invalidate(ctx, tx, c.User)
}

// decay deletes corrections of which too little is left. Pinned ones stay.
func (s *Store) decay(ctx context.Context) (n int, err error) {
	now := s.o.Clock.Now()
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		n = 0
		for _, class := range []score.Class{score.Slow, score.Fast} {
			all, err := s.rows(ctx, tx, `WHERE decay_class = $1 AND updated_at < $2 AND pinned = 0 ORDER BY updated_at LIMIT $3`, string(class), core.Stamp(now.Add(-score.PrunedAfter(class))), pruneBatch)
			if err != nil {
				return err
			}
			for i := range all {
				if err := s.remove(ctx, tx, &all[i]); err != nil {
					return err
				}
			}
			n += len(all)
		}
		return nil
	})
	return n, err
}

// boundEvents keeps the newest maxUses events of each correction.
func (s *Store) boundEvents(ctx context.Context) (n int, err error) {
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		n = 0
		var many []string
		if err := tx.Select(ctx, &many, `SELECT correction_id FROM correction_events GROUP BY correction_id HAVING count(*) > $1 LIMIT 100`, maxUses); err != nil {
			return err
		}
		for _, id := range many {
			gone, err := tx.Exec(ctx, `DELETE FROM correction_events WHERE correction_id = $1 AND id <= (SELECT min(id) FROM (SELECT id FROM correction_events WHERE correction_id = $1 ORDER BY id DESC LIMIT $2) AS kept) - 1`, id, maxUses)
			if err != nil {
				return err
			}
			n += int(gone)
		}
		return nil
	})
	return n, err
}
