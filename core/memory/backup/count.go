package backup

import (
	"cmp"
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
// Columns with an index are written where they change, which most turns do not.
func (s *Store) Count(ctx context.Context, tx *store.Tx, t handoff.Turn) error {
	if !s.o.Writes(t.Model) {
		return nil
	}
	var c struct {
		ID       string `db:"counter_id"`
		User     int64  `db:"user_id"`
		Tokens   int64  `db:"token_estimate"`
		Context  int64  `db:"context_tokens"`
		Messages int    `db:"message_count"`
		Began    string `db:"began_at"`
		Due      string `db:"due"`
		Retry    string `db:"retry_at"`
	}
	err := tx.Get(ctx, &c, `SELECT counter_id, user_id, token_estimate, context_tokens, message_count, began_at, due, retry_at
		FROM token_counters WHERE model_id = $1 AND conversation_id = $2`+tx.ForUpdate(), t.Model, t.Session)
	isNew := errors.Is(err, store.ErrNoRows)
	if err != nil && !isNew {
		return fmt.Errorf("counter of a turn: %w", err)
	}
	tokens, now := t.Estimate, core.Stamp(tx.Time())
	if c.Context > 0 && t.Context > c.Context {
		tokens = t.Context - c.Context
	}
	began := cmp.Or(c.Began, now)
	due := cmp.Or(c.Due, dueNow(c.Tokens+tokens, c.Messages+t.Messages, t.Window, began <= core.Stamp(tx.Time().Add(-gap))))
	if isNew {
		_, err = tx.Exec(ctx, `INSERT INTO token_counters (counter_id, model_id, conversation_id, user_id, bot, trust, token_estimate, context_tokens, window_tokens, message_count, began_at, updated_at, due)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12) ON CONFLICT (model_id, conversation_id) DO NOTHING`,
			uuid.NewString(), t.Model, t.Session, t.User, t.Bot, t.Trust, tokens, t.Context, t.Window, t.Messages, now, due)
	} else {
		_, err = tx.Exec(ctx, `UPDATE token_counters SET bot = $1, trust = $2, token_estimate = token_estimate + $3, context_tokens = $4, window_tokens = $5,
			message_count = message_count + $6, began_at = $7, updated_at = $8 WHERE counter_id = $9`, t.Bot, t.Trust, tokens, t.Context, t.Window, t.Messages, began, now, c.ID)
		if err == nil && (c.User != t.User || c.Due != due) {
			_, err = tx.Exec(ctx, `UPDATE token_counters SET user_id = $1, due = $2 WHERE counter_id = $3`, t.User, due, c.ID)
		}
	}
	if err != nil {
		return fmt.Errorf("count for backups: %w", err)
	}
	if due != "" && c.Retry <= now { // else Run looks when its pause has ended
		tx.OnCommit(s.Ring)
	}
	return nil
}

// dueNow returns the trigger of a backup of so much since the last one, "" for none. old is
// whether its first message is older than gap.
func dueNow(tokens int64, messages, window int, old bool) string {
	switch {
	case window > 0 && tokens*100 >= int64(window)*partOfWindow:
		return Threshold
	case messages >= manyMessages:
		return Count
	case messages >= fewMessages && old:
		return Gap
	}
	return ""
}

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
