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
// user that the value names, or with the value forgotten to be deleted.
const (
	movesKey  = "guest-folder:"
	forgotten = "0"
)

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
	if err := f.change(ctx, tx, from, strconv.FormatInt(to, 10)); err != nil {
		return err
	}
	tx.OnCommit(func() {
		if err := f.move(from, to); err != nil {
			f.Log.Error("the folder of a linked account stays where it is; it is tried again", "folder", core.GuestDir(from), "err", err)
		}
	})
	return store.SetMetadata(ctx, tx, movesKey+strconv.FormatInt(from, 10), strconv.FormatInt(to, 10))
}

// Forget has the folders deleted that are still to be moved into the user's.
func (f Folders) Forget(ctx context.Context, tx *store.Tx, r *core.Removal) error {
	if !r.Last || r.User <= core.Operator {
		return nil
	}
	return f.change(ctx, tx, r.User, forgotten)
}

// change gives the moves into a user's folder another end.
func (f Folders) change(ctx context.Context, tx *store.Tx, user int64, to string) error {
	notes, err := store.MetadataLike(ctx, tx, movesKey)
	for key, value := range notes {
		if value != strconv.FormatInt(user, 10) {
			continue
		}
		if err := store.SetMetadata(ctx, tx, key, to); err != nil {
			return err
		}
	}
	return err
}

// Chores returns the housekeeping.
func (f Folders) Chores() []core.Chore {
	return []core.Chore{{Name: "linked_folders", Every: time.Minute, Run: f.finish}}
}

// finish does the moves that are noted, and returns how many notes there were.
func (f Folders) finish(ctx context.Context) (n int, err error) {
	notes, err := store.MetadataLike(ctx, f.DB, movesKey)
	if err != nil {
		return 0, err
	}
	var errs []error // one that cannot be moved stops no other
	for key, value := range notes {
		from, bad1 := strconv.ParseInt(strings.TrimPrefix(key, movesKey), 10, 64)
		to, bad2 := strconv.ParseInt(value, 10, 64)
		if err := errors.Join(bad1, bad2); err != nil {
			errs = append(errs, fmt.Errorf("read the note of a link: %w", err))
			continue
		}
		err := f.move(from, to)
		if err == nil {
			err = f.DB.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, key) })
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the folder %s: %w", core.GuestDir(from), err))
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

// move moves a folder, and what is in the trash of it, to where the remaining user can reach
// it and where it is deleted with them; with no user it deletes them.
func (f Folders) move(from, to int64) error {
	root, old, next := f.Vault.Root(), core.GuestDir(from), core.GuestDir(to)
	if to == 0 {
		return errors.Join(f.Vault.RemoveAll(old), f.Vault.RemoveTrashedOf(from))
	}
	if err := f.Vault.GiveTrashed(from, to); err != nil {
		return err
	}
	if _, err := root.Lstat(old); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := root.MkdirAll(next, 0o700); err != nil {
		return err
	}
	free := fmt.Sprintf("%s/linked-%d", next, from)
	for n := 2; n < 100; n++ { // the first one's own run may have made the folder again
		if _, err := root.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			break
		}
		free = fmt.Sprintf("%s/linked-%d-%d", next, from, n)
	}
	return root.Rename(old, free)
}
