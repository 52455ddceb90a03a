package session

import (
	"context"
	"fmt"

	"gatehouse/core/store"
)

// LeaveProject takes all sessions out of a project.
func (s *Store) LeaveProject(ctx context.Context, tx *store.Tx, project string) error {
	var ids []string
	if err := tx.Select(ctx, &ids, `SELECT id FROM sessions WHERE project_id = $1 ORDER BY id`, project); err != nil {
		return fmt.Errorf("sessions of a project: %w", err)
	}
	if _, err := tx.Exec(ctx, `UPDATE sessions SET project_id = NULL WHERE project_id = $1`, project); err != nil {
		return fmt.Errorf("leave project: %w", err)
	}
	for _, id := range ids {
		if err := s.keepCurrent(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}
