package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/memory/handoff"
	"gatehouse/core/store"
)

// Count adds a turn in the transaction that ends it. The provider's figures count: the
// growth of the request since the last turn; before there are two, the estimate does.
func (s *Store) Count(ctx context.Context, tx *store.Tx, t handoff.Turn) error {
	if !s.o.Writes(t.Model) {
		return nil
	}
	due := ""
	switch {
	case t.Window > 0 && t.Estimate*100 >= int64(t.Window)*partOfWindow:
		due = Threshold
	case t.Messages >= manyMessages:
		due = Count
	}
	// 70, 30 and 5 are partOfWindow, manyMessages and fewMessages.
	err := tx.Get(ctx, &due, `INSERT INTO token_counters AS c (counter_id, model_id, conversation_id, user_id, bot, trust, token_estimate, context_tokens, window_tokens, message_count, began_at, updated_at, due)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12)
		ON CONFLICT (model_id, conversation_id) DO UPDATE SET user_id = excluded.user_id, bot = excluded.bot, trust = excluded.trust,
			token_estimate = `+tokensNow+`, context_tokens = excluded.context_tokens, window_tokens = excluded.window_tokens,
			message_count = c.message_count + excluded.message_count, began_at = CASE WHEN c.began_at = '' THEN excluded.began_at ELSE c.began_at END, updated_at = excluded.updated_at,
			due = CASE WHEN c.due <> '' THEN c.due
				WHEN excluded.window_tokens > 0 AND (`+tokensNow+`) * 100 >= excluded.window_tokens * 70 THEN 'token_threshold'
				WHEN c.message_count + excluded.message_count >= 30 THEN 'message_count'
				WHEN c.message_count + excluded.message_count >= 5 AND c.began_at <> '' AND c.began_at <= $13 THEN 'time_gap' ELSE '' END
		RETURNING due`,
		uuid.NewString(), t.Model, t.Session, t.User, t.Bot, t.Trust, t.Estimate, t.Context, t.Window, t.Messages, core.Stamp(tx.Time()), due, core.Stamp(tx.Time().Add(-gap)))
	if err != nil {
		return fmt.Errorf("count for backups: %w", err)
	}
	if due != "" {
		tx.OnCommit(s.Ring)
	}
	return nil
}

// tokensNow is the tokens since the last backup with the turn that is counted.
const tokensNow = `c.token_estimate + CASE WHEN c.context_tokens > 0 AND excluded.context_tokens > c.context_tokens
				THEN excluded.context_tokens - c.context_tokens ELSE excluded.token_estimate END`

// A counter is a row of token_counters.
type counter struct {
	ID       string     `db:"counter_id"`
	Model    string     `db:"model_id"`
	Session  string     `db:"conversation_id"`
	User     int64      `db:"user_id"`
	Bot      string     `db:"bot"`
	Trust    core.Trust `db:"trust"`
	Tokens   int64      `db:"token_estimate"`
	Messages int        `db:"message_count"`
	Thread   int        `db:"thread_number"`
	Due      string     `db:"due"`
	Failures int        `db:"failures"`
	Last     string     `db:"last_backup_at"`
	Retry    string     `db:"retry_at"`
}

const counterFields = `counter_id, model_id, conversation_id, user_id, bot, trust, token_estimate, message_count, thread_number, due, failures, last_backup_at, retry_at`

func (s *Store) counter(ctx context.Context, q store.Queryer, session, model string) (c counter, found bool, err error) {
	err = q.Get(ctx, &c, `SELECT `+counterFields+` FROM token_counters WHERE conversation_id = $1 AND model_id = $2`, session, model)
	if errors.Is(err, store.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("counter of backups: %w", err)
	}
	return c, true, nil
}

// Pauses after failures, doubled with each.
const (
	firstPause = 5 * time.Minute
	lastPause  = 24 * time.Hour
)

// failed notes a failure, after which the backup waits.
func (s *Store) failed(ctx context.Context, c counter) error {
	pause := min(firstPause<<min(c.Failures, 16), lastPause)
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE token_counters SET failures = $1, retry_at = $2 WHERE counter_id = $3`, c.Failures+1, core.Stamp(tx.Time().Add(pause)), c.ID)
		return err
	})
}

// maxCoverage limits what Coverage returns.
const maxCoverage = 500

// Coverage returns how far backups cover the newest 500 conversations of a user, for each
// model that answered there; of user 0, those of all.
func (s *Store) Coverage(ctx context.Context, user int64) ([]Coverage, error) {
	var rows []counter
	err := s.o.DB.Select(ctx, &rows, `SELECT `+counterFields+` FROM token_counters WHERE $1 = 0 OR conversation_id IN (SELECT id FROM sessions WHERE user_id = $1)
		ORDER BY updated_at DESC, counter_id LIMIT $2`, user, maxCoverage)
	if err != nil {
		return nil, fmt.Errorf("coverage of backups: %w", err)
	}
	list := make([]Coverage, len(rows))
	for i, c := range rows {
		list[i] = Coverage{Session: c.Session, Model: c.Model, Messages: c.Messages, Tokens: c.Tokens, Thread: c.Thread,
			Covered: c.Messages == 0 && c.Last != "", Last: core.TimeOf(c.Last), Due: c.Due, Failures: c.Failures, Retry: core.TimeOf(c.Retry)}
	}
	return list, nil
}
