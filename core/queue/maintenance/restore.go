package maintenance

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Restored counts what AfterRestore has left to the operator.
type Restored struct {
	Sends    int `json:"sends"`    // replies in progress: unknown now
	Messages int `json:"messages"` // messages that waited for their answer: dead letters now
}

// Errors of the rows that a restore leaves to the operator.
const (
	restoredSend    = "it was on its way when the backup was made; it may have arrived since"
	restoredMessage = "it waited when the backup was made; it may have been answered since"
)

// AfterRestore makes a restored database safe to serve. Work that was open in the
// backup may have been done since, so none of it is repeated automatically:
// replies get an unknown outcome and messages become dead letters, for the
// operator to send or retry. Messages held with pairing requests stay held.
// Cursors with a name that begins with one of cursors are deleted, for platforms that
// would deliver answered messages again. The caller has the only connection. Call
// SkipNumbers, too.
func AfterRestore(ctx context.Context, tx *store.Tx, cursors ...string) (r Restored, err error) {
	for _, s := range []struct {
		n     *int
		query string
		args  []any
	}{
		// A preview whose deletion (see outbox.PreviewKey) was open stays beside its answer.
		{nil, `UPDATE outbox SET state = 'sent', error = '', sent_at = created_at WHERE state IN ('ready', 'sending') AND key LIKE 'preview:%'`, nil},
		{&r.Sends, `UPDATE outbox SET state = 'unknown', error = $1 WHERE state IN ('ready', 'sending')`, []any{restoredSend}},
		{&r.Messages, `UPDATE inbox SET state = 'dead', error = $1 WHERE state IN ('ready', 'limited') AND bot <> $2 AND kind IN ('message', 'command', 'answer')`, []any{restoredMessage, core.APIBot}},
		// HTTP clients have gone, and a button can be pressed again.
		{nil, `UPDATE inbox SET state = 'refused', payload = NULL, error = $1 WHERE state IN ('ready', 'limited')`, []any{restoredMessage}},
		{nil, `UPDATE lane SET owner = '', pending = 0, preview = '', not_before = '' WHERE pending = 1 OR owner <> '' OR preview <> ''`, nil},
	} {
		n, err := tx.Exec(ctx, s.query, s.args...)
		if err != nil {
			return r, fmt.Errorf("after restore: %w", err)
		}
		if s.n != nil {
			*s.n = int(n)
		}
	}
	for _, prefix := range cursors {
		if prefix == "" {
			return r, errors.New("after restore: an empty prefix")
		}
		if _, err := tx.Exec(ctx, `DELETE FROM cursors WHERE substr(name, 1, length($1)) = $1`, prefix); err != nil {
			return r, fmt.Errorf("after restore: %w", err)
		}
	}
	return r, nil
}

// skipped is how many numbers of rows may have been given since a backup was made.
const skipped = 1_000_000

// SkipNumbers has the next messages and replies of a restored database get numbers that
// none had since the backup: chats still have buttons with those, and platforms
// may take a reply under such a number for a repeat. server reports whether the database is
// on a server.
func SkipNumbers(ctx context.Context, tx *store.Tx, server bool) (err error) {
	for _, table := range []string{"inbox", "outbox"} {
		if server {
			var next int64
			err = tx.Get(ctx, &next, `SELECT setval(pg_get_serial_sequence($1, 'seq'), $2 + coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'seq')::regclass), 0))`, table, skipped)
		} else if _, err = tx.Exec(ctx, `INSERT INTO sqlite_sequence (name, seq) SELECT $1, 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = $1)`, table); err == nil {
			_, err = tx.Exec(ctx, `UPDATE sqlite_sequence SET seq = seq + $1 WHERE name = $2`, skipped, table)
		}
		if err != nil {
			return fmt.Errorf("skip numbers of %s: %w", table, err)
		}
	}
	return nil
}
