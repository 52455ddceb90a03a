package store_test

import (
	"errors"
	"testing"

	"gatehouse/core/store"
	"gatehouse/core/store/storetest"
)

func TestWhatIsTriedFailsAloneInItsTransaction(t *testing.T) {
	ctx := t.Context()
	db := storetest.Open(t, nil)
	said := ""
	err := db.Tx(ctx, func(tx *store.Tx) error {
		if err := store.SetMetadata(ctx, tx, "kept", "1"); err != nil {
			return err
		}
		for _, end := range []func() error{
			func() error { return errors.New("no") },
			func() error { panic("no") },
		} {
			failed, err := tx.Try(ctx, func() error {
				tx.OnCommit(func() { said += "undone " })
				if err := store.SetMetadata(ctx, tx, "undone", "1"); err != nil {
					return err
				}
				return end()
			})
			if failed == nil || err != nil {
				t.Errorf("failed %v, err %v", failed, err)
			}
		}
		failed, err := tx.Try(ctx, func() error {
			tx.OnCommit(func() { said += "done" })
			return store.SetMetadata(ctx, tx, "done", "1")
		})
		return errors.Join(failed, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	if err := db.Select(ctx, &keys, `SELECT key FROM metadata WHERE key IN ('kept', 'undone', 'done') ORDER BY key`); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 || keys[0] != "done" || keys[1] != "kept" || said != "done" {
		t.Errorf("kept %v, said %q", keys, said)
	}
}
