package session

import (
	"context"
	"fmt"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Lower sets a lower ceiling for every turn of a session; what runs in it above
// that ends. There is no way back up: core.Conflict where it is not above level.
func (s *Store) Lower(ctx context.Context, tx *store.Tx, id string, level core.Trust, by core.Actor) error {
	sess, err := s.ByID(ctx, tx, id)
	switch {
	case err != nil:
		return err
	case level == core.Stranger:
		return core.Errorf(core.Invalid, "the level is sandboxed or vault")
	case sess.TrustLevel <= level:
		return core.Errorf(core.Conflict, "this conversation is at %s already", sess.TrustLevel)
	}
	if _, err := tx.Exec(ctx, `UPDATE sessions SET trust_level = $2 WHERE id = $1`, id, level.String()); err != nil {
		return fmt.Errorf("lower session: %w", err)
	}
	if err := store.Audit(ctx, tx, by, "session.lower", id, map[string]any{"trust": level.String()}); err != nil {
		return fmt.Errorf("lower session: %w", err)
	}
	return s.keepCurrent(ctx, tx, id)
}
