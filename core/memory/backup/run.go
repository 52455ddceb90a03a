package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core"
	"gatehouse/core/memory/allowance"
	"gatehouse/core/store"
)

// Timing of Run.
const (
	poll          = time.Minute // looks for backups whose pause has ended
	firstCoverage = time.Minute // after the start
	coverageEvery = 6 * time.Hour
	perPass       = 20
	recent        = 30 * 24 * time.Hour // conversations that coverage includes
)

// Run writes the backups that are due, one at a time, and those of conversations without
// one, until ctx ends.
func (s *Store) Run(ctx context.Context) {
	coverage := s.o.Clock.After(firstCoverage)
	for {
		if _, err := s.Pass(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.Error("context backups", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.bell:
		case <-s.o.Clock.After(poll):
		case <-coverage:
			if _, err := s.Cover(ctx); err != nil && ctx.Err() == nil {
				s.o.Log.Error("coverage of context backups", "err", err)
			}
			coverage = s.o.Clock.After(coverageEvery)
		}
	}
}

// Pass writes up to 20 backups that are due, and returns how many it wrote. A failure of a
// model lets that backup wait and is no error.
func (s *Store) Pass(ctx context.Context) (n int, err error) {
	var due []counter
	err = s.o.DB.Select(ctx, &due, `SELECT `+counterFields+` FROM token_counters WHERE due <> '' AND retry_at <= $1 ORDER BY updated_at, counter_id LIMIT $2`,
		core.Stamp(s.o.Clock.Now()), perPass)
	if err != nil {
		return 0, fmt.Errorf("backups that are due: %w", err)
	}
	for _, c := range due {
		_, _, err := s.once(ctx, c, c.Due, false)
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		if err == nil {
			n++
		}
	}
	return n, nil
}

// once writes one backup, unless it is being written, and notes how it ended.
func (s *Store) once(ctx context.Context, c counter, trigger string, background bool) (Backup, int64, error) {
	key := c.Session + "|" + c.Model
	if !s.enter(key) {
		return Backup{}, 0, core.Errorf(core.Conflict, "a backup of this conversation is being written")
	}
	defer s.leave(key)
	b, spent, err := s.write(ctx, c, trigger, background)
	switch {
	case err == nil:
		s.written.WithLabelValues(trigger, "written").Inc()
		s.o.Log.Debug("context backup", "session", c.Session, "model", c.Model, "trigger", trigger, "thread", b.Thread)
		return b, spent, nil
	case ctx.Err() != nil:
		return b, spent, err
	case errors.Is(err, ErrNothing):
		return b, spent, errors.Join(err, s.settle(ctx, c))
	}
	s.written.WithLabelValues(trigger, "failed").Inc()
	s.o.Log.Info("no context backup was written", "session", c.Session, "model", c.Model, "trigger", trigger, "failures", c.Failures+1, "err", err)
	return b, spent, errors.Join(err, s.failed(ctx, c))
}

// settle clears what c is due for, and what it has counted: there was nothing to write.
func (s *Store) settle(ctx context.Context, c counter) error {
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE token_counters SET due = '', message_count = CASE WHEN message_count > $2 THEN message_count - $2 ELSE 0 END,
			began_at = CASE WHEN message_count > $2 THEN began_at ELSE '' END WHERE counter_id = $1`, c.ID, c.Messages)
		return err
	})
}

func (s *Store) enter(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight[key] || len(s.flight) >= maxFlight {
		return false
	}
	s.flight[key] = true
	return true
}

func (s *Store) leave(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flight, key)
}

// Write writes a backup of a conversation now, by the model that answered there last or by
// the one that is named. It returns core.NotFound where that has not answered there,
// ErrNothing without anything new, and core.Conflict while one is being written.
func (s *Store) Write(ctx context.Context, session, model string) (Backup, error) {
	var c counter
	err := s.o.DB.Get(ctx, &c, `SELECT `+counterFields+` FROM token_counters WHERE conversation_id = $1 AND ($2 = '' OR model_id = $2) ORDER BY updated_at DESC, counter_id LIMIT 1`, session, model)
	if errors.Is(err, store.ErrNoRows) {
		return Backup{}, core.Errorf(core.NotFound, "no such model has answered in this conversation since backups are written")
	}
	if err != nil {
		return Backup{}, fmt.Errorf("backup by hand: %w", err)
	}
	b, _, err := s.once(ctx, c, Manual, false)
	if err != nil && core.KindOf(err) == core.Other && ctx.Err() == nil {
		return b, &core.Error{Kind: core.Busy, Text: "the model wrote no backup; see the log, and try again later", Err: err}
	}
	return b, err
}

// Cover writes backups of conversations of the last 30 days in which at least five messages
// are not covered, the newest first, by the models that answered there, as long as the
// day's budget of tokens lasts. It returns how many it wrote.
func (s *Store) Cover(ctx context.Context) (n int, err error) {
	day := allowance.Day{DB: s.o.DB, Clock: s.o.Clock, Tokens: s.o.Budget}
	if s.o.Budget() <= 0 {
		return 0, nil
	}
	var stale []counter
	now := s.o.Clock.Now()
	err = s.o.DB.Select(ctx, &stale, `SELECT `+counterFields+` FROM token_counters c WHERE message_count >= $1 AND retry_at <= $2 AND updated_at >= $3
			AND EXISTS (SELECT 1 FROM sessions s WHERE s.id = c.conversation_id AND s.archived = 0)
		ORDER BY updated_at DESC, counter_id LIMIT $4`, fewMessages, core.Stamp(now), core.Stamp(now.Add(-recent)), perPass)
	if err != nil {
		return 0, fmt.Errorf("conversations without backup: %w", err)
	}
	for _, c := range stale {
		left, err := day.Left(ctx, allowance.Who{})
		if err != nil {
			return n, err
		}
		if left == 0 {
			s.o.Log.Info("the day's tokens for context backups are used", "tokens", s.o.Budget(), "setting", "MEMORY_BUDGET")
			return n, nil
		}
		_, took, err := s.once(ctx, c, Stale, true)
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		if err == nil {
			n++
		}
		if err := s.o.DB.Tx(ctx, func(tx *store.Tx) error { return day.Spend(ctx, tx, allowance.Who{}, took) }); err != nil {
			return n, err
		}
	}
	return n, nil
}
