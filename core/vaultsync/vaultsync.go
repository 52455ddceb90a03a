// Package vaultsync keeps the server's side of a vault that several devices have copies
// of. It lists files with their hashes, merges what devices send with what was changed
// since, and remembers what was deleted. Nothing that either side wrote is lost: what
// cannot be merged is kept as a file of its own.
//
// Files are written as by any other program: in one step, and only while they have the
// content that was decided on.
package vaultsync

import (
	"cmp"
	"context"
	"log/slog"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vault"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// Limits.
const (
	maxTries    = 20                    // of a write to a file that others change
	tombstones  = 7 * 24 * time.Hour    // that deletions are remembered
	keptPerFile = 3                     // contents of a file, next to the present one
	notedPer    = 32                    // rows of a file in sync_versions
	maxKept     = 1 << 30               // bytes of all contents that are kept
	maxGuests   = 128 << 20             // bytes of contents of guests that are added between two runs of Prune
	staleTemp   = time.Hour             // before a temporary file of any writer is what a crash left
	coarse      = 20 * time.Millisecond // by which times of files are behind the clock
	suddenly    = 10                    // files that do not vanish all at once
)

// Options for New. All are needed but Room, Registry, Deletions and Step.
type Options struct {
	DB    *store.DB
	Vault *vault.Vault
	Clock core.Clock
	Log   *slog.Logger
	// Room refuses a change of the file name that would take a user's directory beyond its
	// limits (files.Room).
	Room     func(ctx context.Context, user int64, name string, isNew bool, grows int64) error
	Registry prometheus.Registerer
	// Deletions is how many deletions are remembered, the newest; 0: wire.MaxFiles.
	Deletions int
	// Step is called before each step that a crash may come before, in tests.
	Step func(what string)
}

// A Store is the server's side. It is safe for concurrent use.
type Store struct {
	o       Options
	scans   sync.Mutex
	locks   core.FileLocks
	metrics *metrics
	meant   meant
	guests  atomic.Int64 // bytes of contents of guests since Prune ran; at most maxGuests
	begun   time.Time    // what was being written before is not any more
}

// New returns a Store.
func New(o Options) *Store {
	if o.Room == nil {
		o.Room = func(context.Context, int64, string, bool, int64) error { return nil }
	}
	o.Deletions = cmp.Or(o.Deletions, wire.MaxFiles)
	return &Store{o: o, metrics: newMetrics(o.Registry), begun: time.Now().Add(-coarse)}
}

// An Area is what a caller may sync.
type Area struct {
	User  int64
	Trust core.Trust
	// May reports whether the user may read a file of the vault, or write it.
	May func(trust core.Trust, user int64, name string, write bool) bool
}

// Dir returns the directory of the area, relative to the vault: the vault itself for its
// owner at trust vault and above, else the user's own directory.
func (a Area) Dir() string {
	if a.User == core.Operator && a.Trust >= core.Vault {
		return "."
	}
	return core.GuestDir(a.User)
}

// in returns the file of the vault that a path names, below root in the area.
func (a Area) in(root, name string) (string, error) {
	full := path.Join(a.Dir(), root, name)
	if a.User <= 0 || a.Trust == core.Stranger {
		return "", core.Errorf(core.Denied, "only users with access have files to sync")
	}
	if root != "" && strings.Contains("/"+root+"/", "/../") || !wire.Synced(name) && !wire.Synced(path.Join(root, name)) || !wire.Synced(full) {
		return "", core.Errorf(core.Denied, "%q is not synced: it is no valid path, or is hidden, a database or a lock", core.CutRunes(name, 100))
	}
	if _, below := relative(a.Dir(), full); !below || !a.May(a.Trust, a.User, full, false) {
		return "", core.Errorf(core.Denied, "%q is not open to this key", core.CutRunes(name, 100))
	}
	return full, nil
}

// writable is in for a file that is changed.
func (a Area) writable(root, name string) (string, error) {
	full, err := a.in(root, name)
	if err == nil && !a.May(a.Trust, a.User, full, true) {
		err = core.Errorf(core.Denied, "%q commands the gateway or its agents: a key at trust full may change it", core.CutRunes(name, 100))
	}
	return full, err
}

// tree returns the vault's files. The caller closes Top.
func (s *Store) tree() (place.Tree, error) {
	top, err := s.o.Vault.Beneath()
	return place.Tree{Top: top, Stale: s.stale, Step: s.o.Step}, err
}

// stale reports whether a temporary file is left of a gateway that was killed: of one
// that ended before this one began, as a vault has one gateway.
func (s *Store) stale(changed time.Time) bool {
	return changed.Before(s.begun) || time.Since(changed) >= staleTemp
}

// A row is a row of sync_files.
type row struct {
	Path, Hash, Mark, Entries, Deleted string
	Size, Modified, Seq                int64
	known                              bool // it was read from the table
}

// prunedKey is the metadata that has the last change of which the deletion was forgotten.
const prunedKey = "sync_pruned"

// pruned returns the last change that cursors before it may not have seen.
func (s *Store) pruned(ctx context.Context, q store.Queryer) (int64, error) {
	text, _, err := store.Metadata(ctx, q, prunedKey)
	if err != nil || text == "" {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// prune notes that rows of changes up to last are removed.
func (s *Store) prune(ctx context.Context, tx *store.Tx, last int64) error {
	was, err := s.pruned(ctx, tx)
	if err != nil || was >= last {
		return err
	}
	return store.SetMetadata(ctx, tx, prunedKey, strconv.FormatInt(last, 10))
}
