// Package integrity notices that the database's file is gone, was replaced, truncated or
// damaged. It reads; what to do is in its errors.
package integrity

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"gatehouse/core"
)

// Remedy is what an operator can do about a lost or damaged database.
const Remedy = "stop the gateway, move the file away, then restore a backup ('gatehouse restore FILE', into an empty vault) or rebuild the list of conversations from the vault ('gatehouse reindex')"

// header begins each SQLite database.
const header = "SQLite format 3\x00"

// A Watch compares the file of an open database with the one that was opened. It is safe
// for concurrent use. A nil one, of a database that is no file, finds nothing.
type Watch struct {
	path  string
	clock core.Clock
	first fs.FileInfo

	mu      sync.Mutex
	damaged error // by Full
}

// Begin returns a watch of the database at path, which is open.
func Begin(path string, clock core.Clock) (*Watch, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("watch the database: %w", err)
	}
	return &Watch{path: path, clock: clock, first: st}, nil
}

// How often, and how long apart, a file that seems too short is read again: a checkpoint
// writes the size before the pages.
const (
	shortLooks = 4
	shortPause = 150 * time.Millisecond
)

// Look checks the file, which costs no more than reading its header, and what the last
// Full found.
func (w *Watch) Look(ctx context.Context) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	damaged := w.damaged
	w.mu.Unlock()
	if damaged != nil {
		return damaged
	}
	st, err := os.Stat(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return core.Errorf(core.Busy, "the database %s was deleted or moved while the gateway runs: what it stores is lost when it stops. Put the file back and restart, or %s", w.path, Remedy)
	case err != nil:
		return fmt.Errorf("the database %s: %w", w.path, err)
	case !os.SameFile(st, w.first):
		return core.Errorf(core.Busy, "the database %s was replaced by another file while the gateway runs: what it stores is lost when it stops. Restart to use the other file, or %s", w.path, Remedy)
	}
	for look := 1; ; look++ {
		short, err := check(w.path)
		if err != nil {
			return err
		}
		if !short {
			return nil
		}
		if look == shortLooks {
			return core.Errorf(core.Busy, "the database %s was truncated: %s", w.path, Remedy)
		}
		if !core.Sleep(ctx, w.clock, shortPause) {
			return nil // not known in this time; the next check knows
		}
	}
}

// check reads the header: an error if it is none, short if the file ends before the pages
// that the header counts.
func check(path string) (short bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("the database %s: %w", path, err)
	}
	defer f.Close()
	var head [100]byte
	if _, err := io.ReadFull(f, head[:]); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("the database %s: %w", path, err)
	}
	if string(head[:len(header)]) != header {
		return false, core.Errorf(core.Busy, "the file %s is no database any more, its header is overwritten: %s", path, Remedy)
	}
	st, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("the database %s: %w", path, err)
	}
	size := int64(binary.BigEndian.Uint16(head[16:]))
	if size == 1 {
		size = 65536
	}
	return st.Size() < size*int64(binary.BigEndian.Uint32(head[28:])), nil
}

// Full checks the whole database and keeps a fault for Look. It reads every page, next to
// all else; ctx bounds it.
func (w *Watch) Full(ctx context.Context) error {
	if w == nil {
		return nil
	}
	err := Full(ctx, w.path)
	if core.KindOf(err) == core.Invalid {
		w.mu.Lock()
		w.damaged = err
		w.mu.Unlock()
	}
	return err
}

// fullTime limits the Full of a chore.
const fullTime = 10 * time.Minute

// Chores are the checks of the database while a program has it open.
func (w *Watch) Chores() []core.Chore {
	return []core.Chore{
		{Name: "database_file", Every: time.Minute, Run: func(ctx context.Context) (int, error) { return 0, w.Look(ctx) }},
		{Name: "database_check", Every: 24 * time.Hour, Run: func(ctx context.Context) (int, error) {
			limited, cancel := context.WithTimeout(ctx, fullTime)
			defer cancel()
			if err := w.Full(limited); core.KindOf(err) == core.Invalid || limited.Err() == nil {
				return 0, err
			}
			return 0, nil // a database that takes longer is checked by doctor
		}},
	}
}

// Before checks the file at path before it is opened, for at most the time of ctx. A
// missing or empty file is none. done is false if the time was too short for all of it.
func Before(ctx context.Context, path string) (done bool, err error) {
	if st, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && st.Size() == 0 {
		return true, nil
	}
	err = run(ctx, path, "quick_check")
	if err != nil && ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// Full checks every page and index of the database at path. An error of kind
// core.Invalid means that it is damaged.
func Full(ctx context.Context, path string) error { return run(ctx, path, "integrity_check") }

// maxFaults bounds what SQLite reports.
const maxFaults = 20

func run(ctx context.Context, path, pragma string) error {
	q := url.Values{"mode": {"ro"}, "_busy_timeout": {"5000"}}
	db, err := sql.Open("sqlite3", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path)}).String()+"?"+q.Encode())
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, fmt.Sprintf("PRAGMA %s(%d)", pragma, maxFaults))
	if err != nil {
		return judged(ctx, path, err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return judged(ctx, path, err)
		}
		if line != "ok" && !harmless(line) {
			return damage(path, line)
		}
	}
	return judged(ctx, path, rows.Err())
}

// harmless reports whether a line is about values that a table does not want, which older
// programs wrote, or about the search index, which can be filled again.
func harmless(line string) bool {
	for _, text := range []string{"NULL value in ", "CHECK constraint failed", "for FTS5 table", "TEXT value in ", "NUMERIC value in "} {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// judged separates damage from other errors.
func judged(ctx context.Context, path string, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	for _, text := range []string{"malformed", "not a database", "disk image", "file is encrypted"} {
		if strings.Contains(err.Error(), text) {
			return damage(path, err.Error())
		}
	}
	return fmt.Errorf("check the database %s: %w", path, err)
}

func damage(path, what string) error {
	return core.Errorf(core.Invalid, "the database %s is damaged (%s): %s", path, core.CutRunes(strings.Join(strings.Fields(what), " "), 200), Remedy)
}
