// Package guests moves the folder of a guest in the vault when their account is linked to
// another user's.
package guests

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// movesKey, with a user's number, is metadata: that user's folder is to be moved into that of the
// user that the value names.
const movesKey = "guest-folder:"

// Folders takes part in the linking of two users.
type Folders struct {
	DB    *store.DB
	Vault *vault.Vault
	Log   *slog.Logger
}

// Tables returns none: the folders are in the vault.
func (Folders) Tables() []string { return nil }

// Merge moves one guest's folder into another's, once that is committed; what a crash or an
// error leaves the housekeeping does.
func (f Folders) Merge(ctx context.Context, tx *store.Tx, from, to int64) error {
	tx.OnCommit(func() {
		if err := f.move(context.WithoutCancel(ctx), from, to); err != nil {
			f.Log.Error("the folder of a linked account stays where it is; it is tried again", "folder", core.GuestDir(from), "err", err)
		}
	})
	return store.SetMetadata(ctx, tx, movesKey+strconv.FormatInt(from, 10), strconv.FormatInt(to, 10))
}

// Chores returns the housekeeping.
func (f Folders) Chores() []core.Chore {
	return []core.Chore{{Name: "linked_folders", Every: time.Minute, Run: f.finish}}
}

// finish does the moves that are noted, and returns how many notes there were.
func (f Folders) finish(ctx context.Context) (n int, err error) {
	notes, err := store.MetadataLike(ctx, f.DB, movesKey)
	for key, value := range notes {
		from, bad1 := strconv.ParseInt(strings.TrimPrefix(key, movesKey), 10, 64)
		to, bad2 := strconv.ParseInt(value, 10, 64)
		if err := errors.Join(bad1, bad2); err != nil {
			return n, fmt.Errorf("read the note of a link: %w", err)
		}
		if err := f.move(ctx, from, to); err != nil {
			return n, err
		}
		if err := f.DB.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, key) }); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}

// move moves a folder, and what is in the trash of it, to where the remaining user can reach
// it and where it is deleted with them. If they were forgotten since, it is deleted.
func (f Folders) move(ctx context.Context, from, to int64) error {
	var exists bool
	if err := f.DB.Get(ctx, &exists, `SELECT EXISTS (SELECT 1 FROM users WHERE id = $1)`, to); err != nil {
		return err
	}
	root, old, new := f.Vault.Root(), core.GuestDir(from), core.GuestDir(to)
	if !exists {
		return errors.Join(f.Vault.RemoveAll(old), f.Vault.RemoveTrashedOf(from))
	}
	if err := f.Vault.GiveTrashed(from, to); err != nil {
		return err
	}
	if _, err := root.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := root.MkdirAll(new, 0o700); err != nil {
		return err
	}
	return root.Rename(old, fmt.Sprintf("%s/linked-%d", new, from))
}
