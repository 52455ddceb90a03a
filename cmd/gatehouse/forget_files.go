package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/store"
)

func noteErasure(ctx context.Context, tx *store.Tx, todo erasure) error {
	b, err := json.Marshal(todo)
	if err != nil {
		return err
	}
	return store.SetMetadata(ctx, tx, erasureKey+uuid.NewString(), string(b))
}

// finishForgetting does in the vault what is left of every forgetting, and says
// how many it has ended. A group that is being answered is left for later.
func (a *app) finishForgetting(ctx context.Context, f *forgotten) (ended int, err error) {
	keys, err := store.MetadataLike(ctx, a.db, erasureKey)
	if err != nil {
		return 0, err
	}
	for key, value := range keys {
		var todo erasure
		if err := json.Unmarshal([]byte(value), &todo); err != nil {
			return ended, fmt.Errorf("what is left of a forgetting: %w", err)
		}
		busy, err := a.erase(ctx, todo, f)
		if err != nil {
			return ended, err
		}
		if busy {
			f.Left = append(f.Left, "A group is being answered just now; the person's turns there are blanked within minutes.")
			continue
		}
		if err := a.db.Tx(ctx, func(tx *store.Tx) error { return store.DeleteMetadata(ctx, tx, key) }); err != nil {
			return ended, err
		}
		ended++
	}
	return ended, nil
}

// erase deletes what an erasure names. It may be done again.
func (a *app) erase(ctx context.Context, todo erasure, f *forgotten) (busy bool, err error) {
	root := a.vault.Root()
	if todo.User > core.Operator {
		if err := root.RemoveAll("Guests/" + strconv.FormatInt(todo.User, 10)); err != nil {
			return false, fmt.Errorf("erase the person's folder: %w", err)
		}
	}
	for _, name := range todo.Files {
		err := root.Remove(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("erase a file: %w", err)
		}
		if err == nil {
			f.Files++
		}
	}
	for _, id := range todo.Sessions {
		if err := a.sessions.Erase(id); err != nil {
			return false, err
		}
		f.Sessions++
	}
	for id, runs := range todo.Turns {
		still, err := a.blank(ctx, id, runs)
		if err != nil {
			return false, err
		}
		if busy = busy || still; !still {
			f.Turns += len(runs)
		}
	}
	return busy, nil
}

// blank redacts runs of a session that others speak in, where nobody is being
// answered. In the transaction no run can be claimed.
func (a *app) blank(ctx context.Context, id string, runs []string) (busy bool, err error) {
	err = a.db.Tx(ctx, func(tx *store.Tx) error {
		busy = false
		for _, run := range a.bus.Active() {
			if busy = run.Session == id; busy {
				return nil
			}
		}
		if err := a.events.ForgetSession(ctx, tx, id); err != nil {
			return err
		}
		if err := a.sessions.Redact(id, runs); err != nil {
			return err
		}
		if err := a.sessions.Reword(ctx, tx, id); core.KindOf(err) != core.NotFound {
			return err
		}
		return nil // deleted meanwhile
	})
	return busy, err
}

// forgetPages has nothing stay in the database's file.
func (a *app) forgetPages(ctx context.Context, f *forgotten) (err error) {
	most := int64(maxCompact)
	if !a.serving.Load() {
		most = 0
	}
	if err := a.sessions.PurgeWords(ctx); err != nil {
		return err
	}
	if f.Compacted, err = a.db.Compact(ctx, most); err != nil {
		return err
	}
	if !f.Compacted {
		f.Left = append(f.Left, "The database is too large to be written anew while the gateway serves, so free pages of its file may still hold traces: stop the gateway and run the same command again.")
	}
	copies, err := filepath.Glob(a.cfg.DatabasePath() + ".v*.bak")
	for _, c := range copies {
		f.Left = append(f.Left, "A copy of the database from before an upgrade may still hold the person; delete it when you no longer need it: "+c)
	}
	return err
}
