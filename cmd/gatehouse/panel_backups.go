package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"gatehouse/admin/page"
	"gatehouse/admin/settings"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/store"
)

// backupJob is the key of the one backup that the panel makes at a time.
const backupJob = "backup"

// backupName is what a backup of the panel is called: its moment, in UTC.
var backupName = regexp.MustCompile(`^gatehouse-\d{8}-\d{6}\.tar\.gz$`)

const (
	backupLayout = "gatehouse-20060102-150405.tar.gz"
	maxBackups   = 200 // that are listed, the newest first
)

// backupsView is the backups that the panel makes, in the directory BACKUP_PATH.
type backupsView struct{ a *app }

func (v backupsView) dir() string { return v.a.cfg.BackupDir() }

// Job returns how the backup is that is being made, or was.
func (v backupsView) Job() (page.Job, bool) { return v.a.panelJobs.look(backupJob) }

// Backup begins one.
func (v backupsView) Backup(ctx context.Context, by core.Actor) error {
	if err := os.MkdirAll(v.dir(), 0o700); err != nil {
		return core.Errorf(core.Invalid, "backups cannot be kept in %s: %s. Name another directory in %s_BACKUP_PATH", v.dir(), reasonOf(err), configs.Prefix)
	}
	name := v.a.clock.Now().UTC().Format(backupLayout)
	if err := v.audit(ctx, by, "backup.make", name); err != nil {
		return err
	}
	var report backup.Report
	return v.a.panelJobs.begin(backupJob, func(ctx context.Context, tell func(string)) (result, error) {
		show := &progress{what: "backing up", print: tell}
		file := filepath.Join(v.dir(), name)
		var err error
		if report, err = backup.Make(ctx, backupSource(v.a.settings.Now(), v.a.cfg.EnvFile()), file, show.show); err != nil {
			return result{}, err
		}
		tell("reading it again for its checksum")
		return result{}, backup.WriteSum(ctx, file)
	}, func(result) outcome {
		said := []string{fmt.Sprintf("%d files and the database are in %s (%s).", report.Files, name, sizeText(report.Size))}
		for _, left := range report.Left {
			said = append(said, "Not in it: "+left)
		}
		return outcome{said: said, size: report.Size}
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

// Backups returns those that are there, the newest first.
func (v backupsView) Backups(context.Context) ([]settings.BackupFile, error) {
	entries, err := os.ReadDir(v.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list backups: %w", err)
	}
	var out []settings.BackupFile
	for _, e := range slices.Backward(entries) { // by name, which is by time
		if !backupName.MatchString(e.Name()) || !e.Type().IsRegular() || len(out) == maxBackups {
			continue
		}
		st, err := e.Info()
		if err != nil {
			continue // gone since
		}
		at, err := time.Parse(backupLayout, e.Name())
		if err != nil {
			continue
		}
		out = append(out, settings.BackupFile{Name: e.Name(), Path: filepath.Join(v.dir(), e.Name()), Size: st.Size(), At: at, SHA256: backup.ReadSum(filepath.Join(v.dir(), e.Name()))})
	}
	return out, nil
}

// OpenBackup gives one to a reader.
func (v backupsView) OpenBackup(ctx context.Context, name string, by core.Actor) (io.ReadSeekCloser, time.Time, error) {
	if !backupName.MatchString(name) {
		return nil, time.Time{}, noBackup()
	}
	f, err := os.OpenFile(filepath.Join(v.dir(), name), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
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
		err = v.audit(ctx, by, "backup.download", name)
	}
	if err != nil {
		return nil, time.Time{}, errors.Join(err, f.Close())
	}
	return f, st.ModTime(), nil
}

func noBackup() error { return core.Errorf(core.NotFound, "there is no such backup any more") }

// RemoveBackup deletes one.
func (v backupsView) RemoveBackup(ctx context.Context, name string, by core.Actor) error {
	if !backupName.MatchString(name) {
		return noBackup()
	}
	file := filepath.Join(v.dir(), name)
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
	return v.audit(ctx, by, "backup.delete", name)
}

func (v backupsView) audit(ctx context.Context, by core.Actor, action, name string) error {
	return v.a.db.Tx(ctx, func(tx *store.Tx) error { return store.Audit(ctx, tx, by, action, name, nil) })
}
