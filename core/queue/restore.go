package queue

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Restored is what AfterRestore has set aside.
type Restored struct {
	Sends    int `json:"sends"`    // replies that were on their way: unknown now
	Messages int `json:"messages"` // messages that waited for their answer: dead letters now
}

// Why something stands in the panel's queue after a restore.
const (
	restoredSend    = "it was on its way when the backup was made; it may have arrived since"
	restoredMessage = "it waited when the backup was made; it may have been answered since"
)

// AfterRestore makes a database that was put back from a backup safe to serve:
// what was open then may have been done since, so none of it is done by itself.
// Replies are unknown and messages are dead letters; a person looks and has them
// sent or tried again. What strangers wrote stays with their requests. Positions
// in a platform's stream under a name that begins with one of cursors are
// forgotten, for platforms that would tell again what was answered since.
// Nobody else may have the database open.
func AfterRestore(ctx context.Context, tx *store.Tx, cursors ...string) (r Restored, err error) {
	for _, s := range []struct {
		n     *int
		query string
		args  []any
	}{
		{&r.Sends, `UPDATE outbox SET state = 'unknown', error = $1 WHERE state IN ('ready', 'sending')`, []any{restoredSend}},
		{&r.Messages, `UPDATE inbox SET state = 'dead', error = $1 WHERE state IN ('ready', 'limited') AND bot <> $2 AND kind IN ('message', 'command', 'answer')`, []any{restoredMessage, core.APIBot}},
		// Nobody waits for a request over HTTP any more, and a button is pressed again.
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
