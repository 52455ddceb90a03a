// Package directory keeps the backups that the panel makes: it lists, makes and
// deletes them.
package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/jobs"
	"gatehouse/core/store"
)

// job is the key of the one backup that is made at a time.
const job = "backup"

// fileName matches the name of a backup: its time, in UTC, and whether it was made
// before another one was restored.
var fileName = core.Pattern(`^(gatehouse-\d{8}-\d{6})(-before-restore)?\.tar\.gz$`)

const (
	layout    = "gatehouse-20060102-150405"
	suffix    = ".tar.gz"
	before    = "-before-restore"
	maxListed = 200 // the newest
)

// A File is one backup.
type File struct {
	Name, Path string
	Size       int64
	At         time.Time
	SHA256     string // "" where its checksum was not stored
	Before     bool   // it was made before another one was restored
}

// Options of New. All are needed.
type Options struct {
	Path    string // of the directory; made with the first backup
	Setting string // that names the directory, for users
	DB      *store.DB
	Jobs    *jobs.Table
	Clock   core.Clock
	Source  func() backup.Source // of a backup that begins now
}

// A Directory lists, makes, reads and deletes backups. It is safe for
// concurrent use.
type Directory struct{ o Options }

// New returns the directory; it need not exist.
func New(o Options) *Directory { return &Directory{o} }

// State returns the state of the backup that is being made or was made last, and
// whether there is one.
func (d *Directory) State() (jobs.State, bool) { return d.o.Jobs.State(job) }

// Backup starts to make a backup unless one is being made. It writes an audit
// entry.
func (d *Directory) Backup(ctx context.Context, by core.Actor) error {
	if err := os.MkdirAll(d.o.Path, 0o700); err != nil {
		return core.Errorf(core.Invalid, "backups cannot be kept in %s: %s. Name another directory in %s", d.o.Path, reasonOf(err), d.o.Setting)
	}
	name := d.o.Clock.Now().UTC().Format(layout) + suffix
	if err := d.o.DB.Audit(ctx, by, "backup.make", name, nil); err != nil {
		return err
	}
	return d.o.Jobs.Start(job, func(ctx context.Context, progress func(string)) (jobs.Result, error) {
		file := filepath.Join(d.o.Path, name)
		report, err := backup.Make(ctx, d.o.Source(), file, backup.NewMeter("backing up", progress).Show)
		if err != nil {
			return jobs.Result{}, err
		}
		progress("reading it again for its checksum")
		if err := backup.WriteSum(ctx, file); err != nil {
			return jobs.Result{}, err
		}
		lines := []string{fmt.Sprintf("%d files and the database are in %s (%s).", report.Files, name, backup.SizeText(report.Size))}
		for _, left := range report.Left {
			lines = append(lines, "Not in it: "+left)
		}
		if note := report.KeyNote(); note != "" {
			lines = append(lines, note)
		}
		if report.Misses > 0 {
			lines = append(lines, fmt.Sprintf("%d files or folders cannot be in a backup: rename them, and make another one.", report.Misses))
		}
		for _, missed := range report.Missed {
			lines = append(lines, "Missing: "+missed)
		}
		return jobs.Result{Lines: lines, Size: report.Size}, nil
	})
}

// reasonOf returns the system's error, without the path.
func reasonOf(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Backups returns the backups, the newest first.
func (d *Directory) Backups(context.Context) ([]File, error) {
	entries, err := os.ReadDir(d.o.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var out []File
	for _, e := range slices.Backward(entries) { // by name, which is by time
		m := fileName().FindStringSubmatch(e.Name())
		if m == nil || !e.Type().IsRegular() || len(out) == maxListed {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue // deleted since
		}
		at, err := time.Parse(layout, m[1])
		if err != nil {
			continue
		}
		path := filepath.Join(d.o.Path, e.Name())
		out = append(out, File{Name: e.Name(), Path: path, Size: st.Size(), At: at, SHA256: backup.ReadSum(path), Before: m[2] != ""})
	}
	return out, nil
}

// Open returns a backup and when it was made, or core.NotFound. It writes an
// audit entry.
func (d *Directory) Open(ctx context.Context, name string, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	if !fileName().MatchString(name) {
		return nil, time.Time{}, noBackup()
	}
	f, err := os.OpenFile(filepath.Join(d.o.Path, name), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, noBackup()
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("open backup: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = noBackup()
	}
	if err == nil {
		err = d.o.DB.Audit(ctx, by, "backup.download", name, nil)
	}
	if err != nil {
		return nil, time.Time{}, errors.Join(err, f.Close())
	}
	return f, st.ModTime(), nil
}

// File returns a backup, or core.NotFound.
func (d *Directory) File(ctx context.Context, name string) (File, error) {
	list, err := d.Backups(ctx)
	if err != nil {
		return File{}, err
	}
	if i := slices.IndexFunc(list, func(f File) bool { return f.Name == name }); i >= 0 {
		return list[i], nil
	}
	return File{}, noBackup()
}

// NameBefore returns the name of the backup of what a restore replaces at the time
// at.
func NameBefore(at time.Time) string { return at.UTC().Format(layout) + before + suffix }

// Record is the name of the file in the directory about the restore of a backup.
const Record = "restore.json"

func noBackup() error { return core.Errorf(core.NotFound, "there is no such backup any more") }

// Remove deletes a backup, or returns core.NotFound. It writes an audit entry.
func (d *Directory) Remove(ctx context.Context, name string, by core.Actor) error {
	if !fileName().MatchString(name) {
		return noBackup()
	}
	file := filepath.Join(d.o.Path, name)
	err := os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		return noBackup()
	}
	if err != nil {
		return fmt.Errorf("delete backup: %w", err)
	}
	if err := os.Remove(file + backup.SumSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete backup: %w", err)
	}
	return d.o.DB.Audit(ctx, by, "backup.delete", name, nil)
}

// Within returns the directory or, where it contains the directory root, the
// backups in it and the Record.
func Within(dir, root string) []string {
	in, err := filepath.Rel(dir, root)
	if err != nil || !filepath.IsLocal(in) {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	files := []string{filepath.Join(dir, Record)}
	for _, e := range entries {
		if fileName().MatchString(e.Name()) && len(files) < maxListed {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files
}
