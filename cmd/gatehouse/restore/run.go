package restore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gatehouse/cmd/gatehouse/backups"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/vault"
)

// target returns where rec's backup is restored to, over source.
func target(cfg *configs.Config, rec *record, source backup.Source) backup.Target {
	to := backups.Target(cfg, rec.By, rec.Backup, rec.Before)
	to.Over = &backup.Over{ID: rec.ID, Source: source, Done: func(report backup.Restored) error {
		rec.State, rec.Messages, rec.Sends = done, report.Messages, report.Sends
		return rec.write(cfg.BackupDir())
	}}
	return to
}

// Run restores the backup that is due: what is there is backed up, then replaced. It
// is called when everything of the gateway is closed, and returns how the gateway is
// started again, or nil once ctx has ended. What fails changes nothing and is shown
// after the start.
func (r *Restores) Run(ctx context.Context) *Restart {
	rec, dir := r.due, r.o.Config.BackupDir()
	log := r.o.Log.With("backup", rec.Backup)
	log.Info("restoring a backup", "before", rec.Before)
	err := r.replace(ctx, rec)
	switch {
	case err == nil:
		log.Info("the backup is restored: the gateway starts again")
	case backup.CheckFinished(r.o.Config.VaultPath) != nil:
		log.Error("the restore could not be finished: the next start tries it again", "err", err)
	default:
		log.Error("the backup is not restored, nothing is changed: the gateway starts again", "err", err)
		if ctx.Err() != nil {
			err = core.Errorf(core.Conflict, "the gateway was stopped meanwhile")
		}
		if err := rec.fail(dir, err); err != nil {
			log.Error("the outcome of the restore could not be noted", "err", err)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	again := &Restart{}
	if strings.HasSuffix(r.addr, ":0") || r.o.Config.Source("ADDR") == configs.SourceDemo { // any free port: it stays the one that browsers know
		again.env = append(again.env, configs.Prefix+"_ADDR="+r.o.Config.Addr)
	}
	return again
}

func (r *Restores) replace(ctx context.Context, rec *record) (err error) {
	v, err := vault.Open(r.o.Config.VaultPath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.Lock(true); err != nil {
		return err
	}
	source, dir := r.o.Source(), r.o.Config.BackupDir()
	before := filepath.Join(dir, rec.Before)
	if _, err := backup.Make(ctx, source, before, nil); err != nil {
		return fmt.Errorf("back up what is there: %w", err)
	}
	if err := backup.WriteSum(ctx, before); err != nil {
		return fmt.Errorf("back up what is there: %w", err)
	}
	_, err = backup.Restore(ctx, target(r.o.Config, rec, source), filepath.Join(dir, rec.Backup), nil)
	return err
}

// fail notes why nothing was changed, and deletes the backup of it.
func (r *record) fail(dir string, why error) error {
	r.State, r.Reason = failed, reasonOf(why)
	for _, suffix := range []string{"", backup.SumSuffix} { // first: a full disk has room again
		_ = os.Remove(filepath.Join(dir, r.Before) + suffix)
	}
	return r.write(dir)
}

// reasonOf returns an error for the operator.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return "the disk is full: it needs room for a backup of what is there, and for what is restored"
	case core.KindOf(err) != core.Other:
		return core.TextOf(err)
	}
	return err.Error()
}

// Resume finishes or undoes the restore that was interrupted when the gateway was
// killed. It is called before the vault is opened.
func Resume(cfg *configs.Config, log *slog.Logger) error {
	dir := cfg.BackupDir()
	rec, err := read(dir)
	if rec == nil || err != nil {
		return err
	}
	found, complete, err := backup.Resume(target(cfg, rec, backup.Source{}))
	switch {
	case err != nil && backup.CheckFinished(cfg.VaultPath) != nil:
		return err
	case err != nil:
		return rec.fail(dir, err)
	case complete:
		log.Info("a restore was interrupted and is finished now", "backup", rec.Backup)
	case rec.State == running:
		return rec.interrupted(cfg, found, log)
	}
	return nil
}

// interrupted notes that the restore was ended before it changed anything, unless
// another gateway works on it. found: it had begun.
func (r *record) interrupted(cfg *configs.Config, found bool, log *slog.Logger) (err error) {
	v, err := vault.Open(cfg.VaultPath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.Lock(true); err != nil {
		return err
	}
	log.Warn("a restore was interrupted and has changed nothing", "backup", r.Backup, "begun", found)
	return r.fail(cfg.BackupDir(), core.Errorf(core.Conflict, "the gateway was ended before it was complete"))
}

// A Restart is how a gateway starts again.
type Restart struct{ env []string }

// Exec starts this program again in place of this process, with its arguments and the
// environment env. It returns only if that fails.
func (s *Restart) Exec(env []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if _, err := os.Stat(self); err != nil { // it was deleted: the file is still open
		self = "/proc/self/exe"
	}
	// Of two values of a variable the first is used. A demo that began empty goes on with what was restored.
	args := slices.DeleteFunc(slices.Clone(os.Args), func(a string) bool { return strings.HasPrefix(a, "--fresh") })
	return fmt.Errorf("start again: %w", syscall.Exec(self, args, slices.Concat(s.env, env)))
}
