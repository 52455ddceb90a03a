package restore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup/directory"
)

// States of a record.
const (
	running = "running" // the gateway stops for it, or was killed while it restored
	done    = "done"
	failed  = "failed" // nothing was changed
)

// A record is the file about the last restore. It is in the directory of backups:
// the vault is replaced, and agents may write in it.
type record struct {
	ID       string     `json:"id"` // random
	State    string     `json:"state"`
	Backup   string     `json:"backup"` // its name
	Of       time.Time  `json:"of"`     // when it was made
	By       core.Actor `json:"by"`
	At       time.Time  `json:"at"`     // when it was asked for
	Before   string     `json:"before"` // name of the backup of what was there
	Reason   string     `json:"reason,omitempty"`
	Messages int        `json:"messages,omitempty"` // in progress when the backup was made
	Sends    int        `json:"sends,omitempty"`
}

// recordSize is the size of a record's file in bytes: it is filled up with blanks,
// so that the outcome fits in its place when the disk is full. maxReason bounds the
// reason in it.
const (
	recordSize = 4096
	maxReason  = 1000
)

// read returns the record in dir; nil if there is none.
func read(dir string) (*record, error) {
	b, err := os.ReadFile(filepath.Join(dir, directory.Record))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var rec record
	if err == nil {
		err = json.Unmarshal(b, &rec)
	}
	if err != nil {
		return nil, fmt.Errorf("record of the last restore: %w", err)
	}
	return &rec, nil
}

// due is how long after it was asked for a restore may take to lock the vault.
const due = 2 * time.Minute

// Runs reports whether a gateway stops for a restore and is about to lock the vault for it.
func Runs(cfg *configs.Config, now time.Time) bool {
	rec, err := read(cfg.BackupDir())
	return err == nil && rec != nil && rec.State == running && now.Sub(rec.At).Abs() < due
}

// write replaces the record in dir in one step, or overwrites it on a full disk.
func (r *record) write(dir string) error {
	r.Reason = core.CutRunes(r.Reason, maxReason)
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b = append(b, bytes.Repeat([]byte(" "), max(0, recordSize-1-len(b)))...)
	b = append(b, '\n')
	file := filepath.Join(dir, directory.Record)
	if err = writeFile(file+".new", b); err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		_ = os.Remove(file + ".new")
		return errors.Join(overwrite(file, b), err)
	}
	return core.SyncDir(dir)
}

func writeFile(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// overwrite writes b over a file of the same size.
func overwrite(name string, b []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// forget deletes the record in dir.
func forget(dir string) error {
	if err := os.Remove(filepath.Join(dir, directory.Record)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record of the last restore: %w", err)
	}
	return nil
}
