// Package backup writes the database and the vault into one archive, and
// restores them from it. The gateway may serve while a backup is made; a restore
// needs an empty vault. The archive's format is package archive's.
package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gatehouse/core"
	"gatehouse/core/backup/archive"
	"gatehouse/core/beneath"
	"gatehouse/core/vault"
)

// A Source is what a backup is made of.
type Source struct {
	Vault    string            // its directory
	Database string            // the file of SQLite, or the address of Server
	Server   Server            // nil: Database is a file
	Program  string            // the version that makes the backup
	Without  map[string]string // files that are left out: the reason by path; Make adds its own
	KeyFile  string            // the key file of encrypted columns, which is outside the vault; "": none yet
}

// Make writes an archive of the database and the vault to file, which must not
// exist and must be outside the vault. It writes file.part and renames it once
// it is complete and on the disk. progress, which may be nil, is called as the
// work goes on.
func Make(ctx context.Context, src Source, file string, progress Progress) (report Report, err error) {
	if err := onFile(src.Database, src.Server); err != nil {
		return report, err
	}
	_, _ = Sweep(src.Vault) // what cannot be deleted now is tried again at the next start
	b, err := newMaking(src, file, progress)
	if err != nil {
		return report, err
	}
	defer func() {
		err = errors.Join(err, b.close())
	}()
	if err := b.record(); err != nil {
		return report, err
	}
	report = Report{File: b.file, CreatedAt: time.Now().UTC().Truncate(time.Second), Left: []string{}, Missed: []string{}, KeyFile: src.KeyFile}
	b.report = &report
	dbCopy := b.file + ".part.db"
	if err := removeCopy(dbCopy); err != nil {
		return report, err
	}
	defer func() { _ = removeCopy(dbCopy) }()
	if report.Schema, err = src.copyDatabase(ctx, dbCopy); err != nil {
		return report, err
	}
	if b.out, err = archive.NewWriter(b.part, archive.About{Program: src.Program, CreatedAt: report.CreatedAt, Schema: report.Schema}); err != nil {
		return report, err
	}
	if err := b.database(ctx, dbCopy); err != nil {
		return report, err
	}
	if err := b.vault(ctx); err != nil {
		return report, err
	}
	if report.Total, err = b.out.Close(); err != nil {
		return report, err
	}
	report.Size, err = b.finish()
	return report, err
}

// A making is a backup that is being made.
type making struct {
	file   string // absolute
	part   *os.File
	root   *os.Root
	path   string // of the vault, links resolved
	out    *archive.Writer
	skip   map[string]string // by name in the vault: why it is left out
	count  counter
	report *Report
	note   string // the name of the note about it in the vault
	done   bool

	// A listing reads no file and writes nothing: it notes what is left out.
	listing bool
	kept    []string // at most maxKept and one more
}

func newMaking(src Source, file string, progress Progress) (*making, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	b := &making{file: abs, count: counter{report: progress}}
	if b.path, err = filepath.EvalSymlinks(src.Vault); errors.Is(err, fs.ErrNotExist) {
		return nil, core.Errorf(core.NotFound, "there is no vault at %s", src.Vault)
	} else if err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, core.Errorf(core.NotFound, "there is no directory %s: make it first, or name another", filepath.Dir(abs))
	} else if err != nil {
		return nil, err
	}
	b.file = filepath.Join(dir, filepath.Base(abs))
	if _, in := b.inVault(b.file); in {
		return nil, core.Errorf(core.Invalid, "%s is in the vault: write the backup elsewhere, best on another disk", b.file)
	}
	if _, err := os.Lstat(b.file); err == nil {
		return nil, core.Errorf(core.Conflict, "%s already exists", b.file)
	}
	if b.root, err = os.OpenRoot(b.path); err != nil {
		return nil, err
	}
	b.skip = b.leftOut(src)
	if b.part, err = openPart(b.file + ".part"); err != nil {
		return nil, errors.Join(err, b.root.Close())
	}
	return b, nil
}

// openPart opens and locks the file of the unfinished archive. It overwrites what
// a crash has left.
func openPart(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(core.Errorf(core.Conflict, "another backup is writing %s now", name), f.Close())
	}
	return f, errors.Join(f.Chmod(0o600), f.Truncate(0))
}

// inVault returns path as a name in the vault, and whether it is in it.
func (b *making) inVault(path string) (string, bool) {
	rel, err := filepath.Rel(b.path, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// leftOut returns the names in the vault that the backup leaves out, with the
// reason; "" is not reported.
func (b *making) leftOut(src Source) map[string]string {
	skip := map[string]string{
		".parachute/lock": "", ".parachute/sends": "", pendingDir: "", restoreDir: "",
		".parachute/versions":       "", // devices bring what they have; only merges know less
		".claude/.credentials.json": "Claude Code's login; log in again on the other machine",
	}
	add := func(path, why string) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if name, in := b.inVault(path); in && path != "" {
			skip[name] = why
		}
	}
	db := src.Database
	if real, err := filepath.EvalSymlinks(filepath.Dir(db)); err == nil {
		db = filepath.Join(real, filepath.Base(db))
	}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		add(db+suffix, "")
	}
	for path, why := range src.Without {
		add(path, why)
	}
	return skip
}

// database adds the copy.
func (b *making) database(ctx context.Context, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return b.add(ctx, archive.Entry{Name: DatabaseEntry, Kind: archive.File, Size: st.Size(), Mode: 0o600, Time: b.report.CreatedAt}, f)
}

// DatabaseEntry is the database's name in an archive.
const DatabaseEntry = archive.Database + "sessions.db"

// add writes one entry and reports the progress.
func (b *making) add(ctx context.Context, e archive.Entry, body io.Reader) error {
	if err := context.Cause(ctx); err != nil || b.listing {
		return err
	}
	if body != nil {
		body = &reader{ctx: ctx, r: body, count: &b.count}
	}
	b.count.entry()
	return b.out.Add(e, body)
}

// vault adds every file, directory and link of the vault.
func (b *making) vault(ctx context.Context) error {
	files := beneath.FS(b.root)
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if name == "." && err == nil {
			return nil
		}
		if why := archive.Unstorable(name); why != "" {
			return b.miss(name, why, d)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since its directory was read
		}
		if b.replaced(name, err) {
			return nil
		}
		if errors.Is(err, fs.ErrPermission) {
			return core.Errorf(core.Denied, "%s in the vault cannot be read by this user: run the backup as the gateway's user", name)
		}
		if err != nil {
			return err
		}
		if why, out := b.skip[name]; out || vault.IsTemporary(name) || isDatabaseCopy(name, b.skip) {
			b.left(name, why)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		err = b.entry(ctx, files, name, d)
		switch {
		case b.replaced(name, err):
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrPermission):
			return core.Errorf(core.Denied, "%s in the vault cannot be read by this user: run the backup as the gateway's user", name)
		case errors.Is(err, archive.ErrShort):
			return core.Errorf(core.Busy, "%s in the vault became shorter while it was read: try again", name)
		}
		return err
	})
}

// isDatabaseCopy reports whether name is a copy of a database in the vault that
// was kept before a migration.
func isDatabaseCopy(name string, skip map[string]string) bool {
	before, _, ok := strings.Cut(name, ".db.v")
	if !ok || !strings.HasSuffix(name, ".bak") && !strings.HasSuffix(name, ".part") {
		return false
	}
	_, ours := skip[before+".db"]
	return ours
}

// maxWhole is the largest file, in bytes, that is read before it is added: its
// size may change until then.
const maxWhole = 4 << 20

// replaced leaves out what a link or something else took the place of after its
// directory was read: who may write that directory must not stop the backup.
func (b *making) replaced(name string, err error) bool {
	if !beneath.Replaced(err) {
		return false
	}
	b.left(name, "it was replaced while the backup was made")
	return true
}

func (b *making) entry(ctx context.Context, files fs.FS, name string, d fs.DirEntry) error {
	st, err := d.Info()
	if err != nil {
		return err
	}
	e := archive.Entry{Name: archive.Vault + name, Mode: st.Mode().Perm(), Time: st.ModTime()}
	switch {
	case st.IsDir():
		e.Kind = archive.Folder
		return b.add(ctx, e, nil)
	case st.Mode().Type() == fs.ModeSymlink:
		e.Kind = archive.Link
		if e.Target, err = fs.ReadLink(files, name); err != nil {
			return err
		}
		if !archive.Inside(e.Name, e.Target) {
			b.left(name, "a link that leads out of the vault")
			return nil
		}
		return b.add(ctx, e, nil)
	case !st.Mode().IsRegular():
		b.left(name, "it is not a regular file")
		return nil
	case b.listing:
		return context.Cause(ctx)
	}
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if st, err = f.Stat(); err != nil || !st.Mode().IsRegular() {
		return err
	}
	e.Kind, e.Size, e.Time = archive.File, st.Size(), st.ModTime()
	if e.Size > maxWhole {
		return b.add(ctx, e, f)
	}
	body, err := io.ReadAll(io.LimitReader(f, maxWhole))
	if err != nil {
		return err
	}
	e.Size = int64(len(body))
	return b.add(ctx, e, bytes.NewReader(body))
}

// finish syncs the archive and renames it to its name, which must still be free.
func (b *making) finish() (size int64, err error) {
	if err := b.part.Sync(); err != nil {
		return 0, err
	}
	st, err := b.part.Stat()
	if err != nil {
		return 0, err
	}
	if err := os.Link(b.part.Name(), b.file); errors.Is(err, fs.ErrExist) {
		return 0, core.Errorf(core.Conflict, "%s already exists", b.file)
	} else if err != nil { // a file system without hard links
		if err := os.Rename(b.part.Name(), b.file); err != nil {
			return 0, err
		}
	}
	b.done = true
	return st.Size(), core.SyncDir(filepath.Dir(b.file))
}

// close removes the unfinished file and closes what is open.
func (b *making) close() error {
	err := os.Remove(b.part.Name())
	if errors.Is(err, fs.ErrNotExist) && b.done {
		err = nil
	}
	if b.note != "" {
		err = errors.Join(err, b.root.Remove(b.note))
	}
	return errors.Join(err, b.part.Close(), b.root.Close())
}
