package session

import (
	"context"
	"fmt"

	"gatehouse/core/store"
)

// maxContexts bounds what one session is about.
const maxContexts = 100

// Contexts returns the directories and files of the vault that the session id is about,
// as they were added; the first 100. Most sessions have none, which is recalled.
func (s *Store) Contexts(ctx context.Context, tx *store.Tx, id string) (paths []string, err error) {
	some, err := store.Recall[bool](ctx, tx, `SELECT EXISTS (SELECT 1 FROM session_contexts WHERE session_id = $1)`, id)
	if err == nil && some {
		err = tx.Select(ctx, &paths, `SELECT folder_path FROM session_contexts WHERE session_id = $1 ORDER BY added_at, folder_path LIMIT 100`, id) // maxContexts
	}
	if err != nil {
		return nil, fmt.Errorf("contexts of session: %w", err)
	}
	return paths, nil
}
