package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gatehouse/core"
)

// staged returns the entries of the tree.
func (r *restoring) staged() (names []string, err error) {
	entries, err := os.ReadDir(r.tree())
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// finish moves the tree's entries to their places. It may be called again.
func (r *restoring) finish(state restoreState) error {
	if state.Over != "" {
		if err := r.moveOut(state); err != nil {
			return err
		}
	}
	for _, name := range state.Names {
		from, to := filepath.Join(r.tree(), name), filepath.Join(r.vault, name)
		if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue // moved before a crash
		}
		if state.Over != "" {
			if err := setAside(to, state.Over); err != nil {
				return err
			}
		}
		if err := os.Rename(from, to); err != nil {
			return fmt.Errorf("finish the restore: %w", err)
		}
	}
	if r.to.Server != nil {
		if err := r.importDatabase(); err != nil {
			return fmt.Errorf("finish the restore: %w", err)
		}
	} else if !r.inside() {
		if err := r.moveDatabase(state); err != nil {
			return fmt.Errorf("finish the restore: %w", err)
		}
		if err := core.SyncDir(filepath.Dir(r.db)); err != nil {
			return err
		}
	}
	if err := core.SyncDir(r.vault); err != nil {
		return err
	}
	if state.Over != "" {
		return r.finishOver(state)
	}
	return errors.Join(os.RemoveAll(r.work), core.SyncDir(r.vault))
}

// moveDatabase moves the prepared database to its place outside the vault.
func (r *restoring) moveDatabase(state restoreState) error {
	if _, err := os.Lstat(r.stagedDB()); errors.Is(err, fs.ErrNotExist) {
		return nil // moved before a crash
	}
	if state.Over != "" { // SQLite would play the log of the old one into it
		for _, suffix := range []string{"-wal", "-shm", "-journal"} {
			if err := os.Remove(r.db + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return os.Rename(r.stagedDB(), r.db)
}

func (r *restoring) stateFile() string { return filepath.Join(r.work, "state.json") }

func (r *restoring) readState() (state restoreState, ok bool) {
	b, err := os.ReadFile(r.stateFile())
	return state, err == nil && json.Unmarshal(b, &state) == nil
}

// writeState replaces the state file in one step and syncs it.
func (r *restoring) writeState(state restoreState) error {
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(r.stateFile()+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), r.stateFile()); err != nil {
		return err
	}
	return core.SyncDir(r.work)
}

// CheckFinished returns core.Conflict while a restore into the vault is incomplete.
func CheckFinished(vault string) error {
	r := newRestoring(Target{Vault: vault}, nil)
	if _, err := os.Lstat(r.work); err != nil {
		return nil
	}
	state, _ := r.readState()
	return unfinished(vault, state)
}

func unfinished(vault string, state restoreState) error {
	if state.Over != "" {
		return core.Errorf(core.Conflict, "a restore over the vault %s, begun in the panel, is running or was interrupted: 'gatehouse serve' with the same settings (GATEHOUSE_BACKUP_PATH) finishes or undoes it", vault)
	}
	return core.Errorf(core.Conflict, "a restore into the vault %s was not finished: run 'gatehouse restore FILE' again", vault)
}
