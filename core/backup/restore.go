package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gatehouse/core"
	"gatehouse/core/backup/archive"
	"gatehouse/core/queue/maintenance"
	"gatehouse/core/store"
)

// restoreDir is the directory in the vault in which a restore works. While it
// exists the vault is incomplete, and CheckFinished returns an error.
const restoreDir = ".gatehouse-restore"

// A Target is where a backup is restored to.
type Target struct {
	Vault    string // its directory, missing or empty
	Database string // the file of SQLite, which must not exist, or the address of Server
	Server   Server // nil: Database is a file
	Space    int64  // the most bytes that are unpacked; 0: no limit
	// Settle sets aside what the restored database would have done a second time.
	Settle func(ctx context.Context, db *store.DB, tx *store.Tx) (maintenance.Restored, error)
	// Keys returns the ids of the keys with which columns of the restored database are
	// encrypted. An error ends the restore. nil: none are.
	Keys func(ctx context.Context, q store.Queryer) ([]string, error)
	Over *Over // replaces what is there; nil: vault and database must not exist
}

// Restored describes what was restored.
type Restored struct {
	archive.About
	archive.Total
	maintenance.Restored
	Left []string `json:"left_out"`
	Keys []string `json:"content_keys"` // ids of the keys of encrypted columns, which no backup has
}

// A restoreState is the file state.json of a restore: after a crash an incomplete
// tree is removed and a complete one is moved into place.
type restoreState struct {
	Moving bool     `json:"moving"`          // the tree is whole and on the disk
	Names  []string `json:"names,omitempty"` // its entries
	Report Restored `json:"report"`
	// Database is where it goes: without it there, the rest would be complete.
	Database string `json:"database,omitempty"`

	Over string   `json:"over,omitempty"` // Over.ID
	Old  []string `json:"old,omitempty"`  // the vault's entries that are replaced
	Keep []string `json:"keep,omitempty"` // their names that stay
}

// A restoring is one restore.
type restoring struct {
	to    Target
	vault string // links resolved
	work  string // the directory restoreDir
	db    string // the database's place, links resolved
	lock  *os.File
	count counter
	keep  []string // of what is replaced
}

// Restore restores the archive file. It compares every checksum before it writes
// anything, and does nothing where the vault has files or the database exists,
// unless to.Over replaces them. After an interruption it is called again with the
// same archive (Resume: with Over). progress, which may be nil, is called as the
// work goes on.
func Restore(ctx context.Context, to Target, file string, progress Progress) (Restored, error) {
	if err := onFile(to.Database, to.Server); err != nil {
		return Restored{}, err
	}
	r := newRestoring(to, progress)
	in, err := openArchive(file)
	if err != nil {
		return Restored{}, err
	}
	defer in.Close()
	if to.Over != nil {
		err = r.mayReplace(ctx)
	} else if err = r.mayBegin(); err == nil {
		err = r.serverReady(ctx)
	}
	if err != nil {
		return Restored{}, err
	}
	about, total, err := r.check(ctx, in)
	if err != nil {
		return Restored{}, err
	}
	if to.Over != nil { // nothing of an earlier one is of use
		err = os.RemoveAll(r.work)
	}
	if err = errors.Join(err, r.begin()); err != nil {
		return Restored{}, err
	}
	defer func() { _ = r.lock.Close() }()
	report := Restored{About: about, Total: total, Left: []string{}}
	if state, ok := r.readState(); ok && state.Moving {
		if state.Report.ID != total.ID {
			return report, core.Errorf(core.Conflict, "the restore of another backup (of %s) was interrupted here when all was there already: run it again with that one, or begin in an empty folder", state.Report.CreatedAt.Format("2006-01-02 15:04"))
		}
		if state.Database != "" && state.Database != to.Database {
			return report, core.Errorf(core.Conflict, "this restore was begun with the database %s: run it again with GATEHOUSE_DATABASE_URL set to that", state.Database)
		}
		return state.Report, r.finish(state)
	}
	state, err := r.prepare(ctx, in, &report)
	if err != nil {
		return report, errors.Join(err, r.discard())
	}
	return report, r.finish(state)
}

// prepare extracts everything and notes, on the disk, that it is whole.
func (r *restoring) prepare(ctx context.Context, in *os.File, report *Restored) (state restoreState, err error) {
	if r.to.Over != nil {
		if err := r.writeState(restoreState{Over: r.to.Over.ID}); err != nil {
			return state, err
		}
	}
	if err := r.stage(ctx, in, report); err != nil {
		return state, err
	}
	state = restoreState{Moving: true, Report: *report, Database: r.to.Database}
	if err := r.over(&state); err != nil {
		return state, err
	}
	if state.Names, err = r.staged(); err != nil {
		return state, err
	}
	return state, r.writeState(state)
}

func newRestoring(to Target, progress Progress) *restoring {
	r := &restoring{to: to, vault: to.Vault, db: to.Database, count: counter{report: progress}}
	if real, err := filepath.EvalSymlinks(r.vault); err == nil {
		r.vault = real
	}
	r.work = filepath.Join(r.vault, restoreDir)
	return r
}

func openArchive(file string) (*os.File, error) {
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, core.Errorf(core.NotFound, "there is no file %s: name the archive that 'gatehouse backup' or the panel wrote", file)
	}
	if err != nil {
		return nil, err
	}
	if st, err := in.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, core.Errorf(core.Invalid, "%s is not a file", file), in.Close())
	}
	return in, nil
}

// mayBegin returns an error if the vault has other files, or the database exists.
func (r *restoring) mayBegin() error {
	_, err := os.Lstat(r.work)
	again := err == nil
	entries, err := os.ReadDir(r.vault)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	allowed := []string{restoreDir, "lost+found"}
	if state, ok := r.readState(); ok && state.Over != "" {
		return unfinished(r.vault, state)
	} else if ok && state.Moving {
		allowed = append(allowed, state.Names...)
	}
	for _, e := range entries {
		if !slices.Contains(allowed, e.Name()) {
			return core.Errorf(core.Conflict, "the vault %s is not empty (%s is in it): restore into an empty or new directory (GATEHOUSE_VAULT_PATH sets it), or let the gateway replace what is there: in the panel, Settings, Backups, Restore", r.vault, core.CleanName(e.Name()))
		}
	}
	if again || r.inside() {
		return nil
	}
	// SQLite would play the log of another database into the restored one.
	for _, name := range []string{r.db, r.db + "-wal", r.db + "-journal"} {
		if _, err := os.Lstat(name); err == nil {
			return core.Errorf(core.Conflict, "there is a database at %s already: move %s away, or name another place (GATEHOUSE_DATABASE_URL)", r.db, name)
		}
	}
	return nil
}

// inside reports whether the database is in the vault.
func (r *restoring) inside() bool {
	_, in := r.dbName()
	return in
}

// dbName returns the database's name in the vault, and whether it is in it.
func (r *restoring) dbName() (string, bool) {
	if r.to.Server != nil {
		return "", false
	}
	for _, base := range []string{r.vault, r.to.Vault} {
		if rel, err := filepath.Rel(base, r.db); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// check reads the whole archive and verifies its checksums.
func (r *restoring) check(ctx context.Context, in *os.File) (archive.About, archive.Total, error) {
	limits := archive.Limits{Schema: store.Newest(), Bytes: r.to.Space}
	database := false
	about, total, err := archive.Read(ctx, &reader{ctx: ctx, r: in, count: &r.count}, limits, func(e archive.Entry, _ io.Reader) error {
		r.count.entry()
		if e.Name == DatabaseEntry && e.Kind == archive.File {
			database = true
		} else if !strings.HasPrefix(e.Name, archive.Vault) {
			return core.Errorf(core.Invalid, "the archive holds an unknown entry: %s", core.CleanName(e.Name))
		}
		return r.ours(e.Name)
	})
	if err == nil && !database {
		err = core.Errorf(core.Invalid, "the archive holds no database")
	}
	return about, total, err
}

// ours returns an error for an entry at the place of the restore or the database.
func (r *restoring) ours(name string) error {
	rel := strings.TrimPrefix(name, archive.Vault)
	if rel == name {
		return nil
	}
	if rel == restoreDir || strings.HasPrefix(rel, restoreDir+"/") {
		return core.Errorf(core.Invalid, "the archive is damaged: it holds %s", restoreDir)
	}
	if db, in := r.dbName(); in && (rel == db || rel == db+"-wal" || rel == db+"-shm" || rel == db+"-journal") {
		return core.Errorf(core.Conflict, "the database's place is a file of the vault in this backup (%s): name another one (GATEHOUSE_DATABASE_URL)", rel)
	}
	return nil
}

// begin creates and locks the directory of the restore.
func (r *restoring) begin() error {
	if err := os.MkdirAll(r.work, 0o700); err != nil {
		return err
	}
	var err error
	if r.lock, err = os.OpenFile(filepath.Join(r.work, "lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(r.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(core.Errorf(core.Conflict, "another restore works on %s now", r.vault), r.lock.Close())
	}
	return nil
}

func (r *restoring) tree() string { return filepath.Join(r.work, "tree") }

// stagedDB returns the path where the database is prepared: in the tree, or next
// to its destination.
func (r *restoring) stagedDB() string {
	if name, in := r.dbName(); in {
		return filepath.Join(r.tree(), name)
	}
	if r.to.Server != nil {
		return filepath.Join(r.work, "database.db")
	}
	return r.db + ".restore"
}

// clear removes what an interrupted restore has left.
func (r *restoring) clear() error {
	errs := []error{os.RemoveAll(r.tree())}
	if !r.inside() {
		errs = append(errs, removeCopy(r.stagedDB()))
	}
	return errors.Join(errs...)
}

// discard removes all of the restore: the vault is as empty as before.
func (r *restoring) discard() error {
	return errors.Join(r.clear(), os.RemoveAll(r.work))
}

// stage extracts everything into the tree and prepares the database.
func (r *restoring) stage(ctx context.Context, in *os.File, report *Restored) error {
	if err := r.clear(); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(r.tree(), 0o700), os.MkdirAll(filepath.Dir(r.stagedDB()), 0o700)); err != nil {
		return err
	}
	root, err := os.OpenRoot(r.tree())
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	tree := archive.NewTree(root)
	about, total, err := archive.Read(ctx, &reader{ctx: ctx, r: in, count: &r.count}, archive.Limits{Bytes: report.Bytes}, func(e archive.Entry, body io.Reader) error {
		r.count.entry()
		if e.Name == DatabaseEntry {
			return writeNew(r.stagedDB(), body)
		}
		return tree.Put(e, body)
	})
	if err == nil && (total != report.Total || !about.CreatedAt.Equal(report.CreatedAt)) {
		err = core.Errorf(core.Conflict, "the archive was changed while it was restored: try again")
	}
	if err != nil {
		return err
	}
	if err := r.settle(ctx, report); err != nil {
		return err
	}
	if err := tree.Finish(); err != nil {
		return err
	}
	report.Left = append(report.Left, tree.Left...)
	syscall.Sync() // all of it is on the disk before it is called whole
	return nil
}

// writeNew creates a file, which must not exist.
func writeNew(name string, body io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return errors.Join(err, f.Close())
}

// settle migrates the staged database and calls Settle in one transaction.
func (r *restoring) settle(ctx context.Context, report *Restored) (err error) {
	db, err := store.Open(ctx, r.stagedDB(), store.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Tx(ctx, func(tx *store.Tx) (err error) {
		if report.Keys = []string{}; r.to.Keys != nil {
			keys, err := r.to.Keys(ctx, tx)
			if err != nil {
				return err
			}
			report.Keys = append(report.Keys, keys...)
		}
		report.Restored, err = r.to.Settle(ctx, db, tx)
		return err
	})
}
