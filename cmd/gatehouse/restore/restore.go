// Package restore replaces what a running gateway has by one of its backups, for the
// panel: the backup is checked, ten seconds pass in which the restore can be cancelled,
// the gateway stops, what is there is backed up, the backup takes its place, and the
// program starts again in the same process.
package restore

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"gatehouse/admin/settings"
	"gatehouse/configs"
	"gatehouse/core"
	"gatehouse/core/backup"
	"gatehouse/core/backup/directory"
	"gatehouse/core/store"
)

// grace is how long a restore can be cancelled.
const grace = 10 * time.Second

// Options of New. All are needed.
type Options struct {
	Config  *configs.Config // as given
	Source  func() backup.Source
	Backups *directory.Directory
	DB      *store.DB
	Clock   core.Clock
	Log     *slog.Logger
	Changed func() // called after each change of the state
}

// Restores is the one restore that may be under way, and the outcome of the last one.
// It is safe for concurrent use. Close it.
type Restores struct {
	o    Options
	addr string // that was asked for: Config has the one that is listened on
	ctx  context.Context
	end  context.CancelFunc
	wait sync.WaitGroup

	mu     sync.Mutex
	now    settings.Restoring
	until  time.Time          // when the wait ends
	cancel context.CancelFunc // of the restore that is checked or waits; nil: there is none
	stop   context.CancelFunc // of the gateway; nil: it cannot be started again
	due    *record
}

// New returns the restores of a gateway, with the outcome of the last one.
func New(o Options) *Restores {
	r := &Restores{o: o, addr: o.Config.Addr}
	r.ctx, r.end = context.WithCancel(context.Background())
	rec, err := read(o.Config.BackupDir())
	switch {
	case err != nil:
		o.Log.Warn("the outcome of the last restore is not known", "err", err)
	case rec != nil:
		r.now = settings.Restoring{State: rec.State, Backup: rec.Backup, Of: rec.Of, Reason: rec.Reason, Before: rec.Before, Messages: rec.Messages, Sends: rec.Sends}
	}
	return r
}

// Close ends a restore that was not begun.
func (r *Restores) Close() error {
	r.end()
	r.wait.Wait()
	return nil
}

// Until returns a context for the gateway that ends with ctx, or when a restore is
// due, which due reports. Until it is called no restore can be asked for.
func (r *Restores) Until(ctx context.Context) (until context.Context, due func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, r.stop = context.WithCancel(ctx)
	return until, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.due != nil && ctx.Err() == nil
	}
}

// Restore returns the state.
func (r *Restores) Restore() settings.Restoring {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now
	if now.State == settings.RestoreWaits {
		now.Left = int(max(0, r.until.Sub(r.o.Clock.Now()).Round(time.Second)/time.Second))
	}
	return now
}

// BeginRestore checks the backup called name, waits, and then has the gateway stop and
// Run restore it. Only the owner may: everyone's access is then as it was. It writes
// an audit entry.
func (r *Restores) BeginRestore(ctx context.Context, name string, by core.Actor) error {
	if by.User != core.Operator {
		return core.Errorf(core.Denied, "only the owner can restore a backup: it also has the owner's account as it was then")
	}
	if job, ok := r.o.Backups.State(); ok && job.Running {
		return core.Errorf(core.Conflict, "a backup is being made: restore one when it is complete")
	}
	file, err := r.o.Backups.File(ctx, name)
	if err != nil {
		return err
	}
	at := r.o.Clock.Now()
	rec := &record{ID: rand.Text(), State: running, Backup: name, Of: file.At, By: by, At: at}
	if err := r.begin(rec); err != nil {
		return err
	}
	if err := r.o.DB.Audit(ctx, by, "backup.restore_begin", name, nil); err != nil {
		r.set(settings.Restoring{})
		return err
	}
	work, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	r.cancel = cancel
	r.mu.Unlock()
	r.wait.Go(func() { r.prepare(work, rec, file.Path) })
	return nil
}

// begin makes rec the restore that is under way.
func (r *Restores) begin(rec *record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stop == nil:
		return core.Errorf(core.Conflict, "this gateway cannot start itself again: stop it, and use 'gatehouse restore' with an empty vault")
	case r.now.Busy():
		return core.Errorf(core.Conflict, "the restore of %s has begun already", r.now.Backup)
	}
	r.now = settings.Restoring{State: settings.RestoreChecks, Backup: rec.Backup, Of: rec.Of}
	return forget(r.o.Config.BackupDir()) // the outcome of the last one
}

func (r *Restores) set(now settings.Restoring) {
	r.mu.Lock()
	r.now, r.cancel = now, nil
	r.mu.Unlock()
	r.o.Changed()
}

// prepare checks the backup, waits, and has the gateway stop.
func (r *Restores) prepare(ctx context.Context, rec *record, file string) {
	if err := r.check(ctx, rec, file); err != nil {
		if ctx.Err() == nil {
			r.o.Log.Warn("a backup cannot be restored", "backup", rec.Backup, "err", err)
			r.set(settings.Restoring{State: settings.RestoreFailed, Backup: rec.Backup, Of: rec.Of, Reason: reasonOf(err)})
		}
		return
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	r.mu.Lock()
	r.now.State, r.now.Tell, r.until = settings.RestoreWaits, "", r.o.Clock.Now().Add(grace)
	r.mu.Unlock()
	r.o.Changed()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	rec.Before = directory.NameBefore(r.o.Clock.Now())
	if err := rec.write(r.o.Config.BackupDir()); err != nil {
		r.o.Log.Error("a restore cannot begin", "backup", rec.Backup, "err", err)
		r.set(settings.Restoring{State: settings.RestoreFailed, Backup: rec.Backup, Of: rec.Of, Reason: reasonOf(err)})
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() != nil { // cancelled just now
		_ = forget(r.o.Config.BackupDir()) // else the next start reports that it was interrupted
		return
	}
	r.now.State, r.cancel, r.due = settings.RestoreStops, nil, rec
	r.stop()
}

// check verifies the archive, and that it can replace what is there.
func (r *Restores) check(ctx context.Context, rec *record, file string) error {
	meter := backup.NewMeter("verified", func(text string) {
		r.mu.Lock()
		r.now.Tell = text
		r.mu.Unlock()
	})
	_, err := backup.Check(ctx, target(r.o.Config, rec, r.o.Source()), file, meter.Show)
	return err
}

// CancelRestore ends a restore that has not begun, or returns core.Conflict. It writes
// an audit entry.
func (r *Restores) CancelRestore(ctx context.Context, by core.Actor) error {
	r.mu.Lock()
	name, cancel := r.now.Backup, r.cancel
	if cancel != nil {
		cancel()
		r.now, r.cancel = settings.Restoring{}, nil
	}
	r.mu.Unlock()
	if cancel == nil {
		return core.Errorf(core.Conflict, "there is no restore that can be cancelled")
	}
	r.o.Changed()
	return r.o.DB.Audit(ctx, by, "backup.restore_cancel", name, nil)
}

// DismissRestore forgets the outcome of the last restore.
func (r *Restores) DismissRestore() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now.Busy() {
		return core.Errorf(core.Conflict, "the restore of %s has begun already", r.now.Backup)
	}
	r.now = settings.Restoring{}
	return forget(r.o.Config.BackupDir())
}
