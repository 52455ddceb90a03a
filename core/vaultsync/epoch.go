package vaultsync

import (
	"context"
	"crypto/rand"

	"gatehouse/core/store"
)

// epochKey is the metadata that names the epoch of the numbers of changes.
const epochKey = "sync_epoch"

// epoch returns what names the time in which numbers of changes mean the same: a database that
// is restored from a backup gives numbers of its backup's future again, in another epoch.
func (s *Store) epoch(ctx context.Context) (epoch string, err error) {
	if epoch, _, err = store.Metadata(ctx, s.o.DB, epochKey); err != nil || epoch != "" {
		return epoch, err
	}
	err = s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		if epoch, _, err = store.Metadata(ctx, tx, epochKey); err != nil || epoch != "" {
			return err
		}
		epoch = rand.Text()
		return store.SetMetadata(ctx, tx, epochKey, epoch)
	})
	return epoch, err
}

// AfterRestore begins another epoch: devices have cursors of changes that the restored database
// does not know.
func AfterRestore(ctx context.Context, tx *store.Tx) error {
	return store.SetMetadata(ctx, tx, epochKey, rand.Text())
}
