package ledger

import (
	"context"

	"gatehouse/core/store"
)

// Save is SaveAll of one stage.
func (s *Store) Save(ctx context.Context, st Stage) error {
	return s.SaveAll(ctx, []Stage{st}, func(context.Context, *store.Tx) error { return nil })
}
