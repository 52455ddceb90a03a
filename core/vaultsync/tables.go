package vaultsync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
)

// Tables forgets and moves what is known of the files in users' directories. The files
// themselves are removed by others.
type Tables struct{ Store *Store }

// Tables returns the tables that keep data of users.
func (Tables) Tables() []string { return []string{"sync_files", "sync_versions"} }

// Forget removes what is known of the user's files, and the contents that are kept.
func (t Tables) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if r.User <= core.Operator {
		return nil
	}
	if r.Last {
		return t.drop(ctx, tx, r.User)
	}
	if err := t.passed(ctx, tx, r.User); err != nil {
		return err
	}
	for _, table := range []string{"sync_files", "sync_versions"} {
		if r.Rows == 0 {
			return nil
		}
		n, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE path IN (SELECT path FROM `+table+` WHERE substr(path, 1, length($1)) = $1 LIMIT $2)`, core.GuestDir(r.User)+"/", max(1, r.Rows/notedPer))
		if err != nil {
			return fmt.Errorf("forget synced files: %w", err)
		}
		r.Removed(int(n), n > 0)
	}
	return nil
}

// Merge removes what is known of the directory that becomes a part of another's: the next
// scan finds its files there.
func (t Tables) Merge(ctx context.Context, tx *store.Tx, from, _ int64) error {
	if from <= core.Operator {
		return nil
	}
	return t.drop(ctx, tx, from)
}

// passed has the cursors that devices have stay behind those of later changes, when rows of
// a user are removed.
func (t Tables) passed(ctx context.Context, tx *store.Tx, user int64) error {
	var last int64
	err := tx.Get(ctx, &last, `SELECT coalesce(max(seq), 0) FROM sync_files WHERE substr(path, 1, length($1)) = $1`, core.GuestDir(user)+"/")
	if err != nil || last == 0 {
		return err
	}
	return t.Store.prune(ctx, tx, last)
}

func (t Tables) drop(ctx context.Context, tx *store.Tx, user int64) error {
	if err := t.passed(ctx, tx, user); err != nil {
		return err
	}
	for _, table := range []string{"sync_files", "sync_versions"} {
		if _, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE substr(path, 1, length($1)) = $1`, core.GuestDir(user)+"/"); err != nil {
			return fmt.Errorf("forget synced files: %w", err)
		}
	}
	tx.OnCommit(func() {
		err := t.Store.o.Vault.RemoveAll(path.Join(versionsDir, strconv.FormatInt(user, 10)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Store.o.Log.Warn("kept contents of a removed user's files are removed later", "err", err)
		}
	})
	return nil
}

// Chores returns the housekeeping.
func (t Tables) Chores() []core.Chore {
	return []core.Chore{{Name: "sync_versions", Every: time.Hour, Run: t.Store.Prune}}
}
