package session

import (
	"context"
	"fmt"
)

// maxContexts bounds what one session is about.
const maxContexts = 100

// Contexts returns the directories and files of the vault that the session id is about,
// as they were added; the first 100.
func (s *Store) Contexts(ctx context.Context, id string) (paths []string, err error) {
	err = s.db.Select(ctx, &paths, `SELECT folder_path FROM session_contexts WHERE session_id = $1 ORDER BY added_at, folder_path LIMIT 100`, id) // maxContexts
	if err != nil {
		return nil, fmt.Errorf("contexts of session: %w", err)
	}
	return paths, nil
}
