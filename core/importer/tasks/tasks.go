// Package tasks runs imports, which take longer than a request may, one at a time. The panel, the
// API and the command line start, follow and stop the same ones.
package tasks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/report"
	"gatehouse/core/jobs"
)

// An Importer imports what has a name or is open (importer.Importer).
type Importer interface {
	Run(ctx context.Context, name string, t foreign.Terms, entries io.Writer, progress func(*report.Report)) (report.Report, error)
	RunFile(ctx context.Context, f io.ReaderAt, name string, size int64, t foreign.Terms, entries io.Writer, progress func(*report.Report)) (report.Report, error)
}

// Options for New. All are needed.
type Options struct {
	Importer Importer
	Jobs     *jobs.Table
	Clock    core.Clock
	// Audit writes an audit entry.
	Audit func(ctx context.Context, by core.Actor, action, subject string, detail map[string]any) error
}

// maxKept bounds the imports that are remembered; the oldest makes room.
const maxKept = 20

// Tasks starts and follows imports. It is safe for concurrent use.
type Tasks struct {
	o Options

	mu  sync.Mutex
	all []*task // oldest first; at most maxKept
}

// A task is one import.
type task struct {
	id   string
	user int64 // whose it is
	stop context.CancelFunc

	mu      sync.Mutex
	state   report.State
	told    time.Time     // when changed was closed
	changed chan struct{} // closed when state has changed, every 200 ms at most but for the end
}

// New returns Tasks without an import.
func New(o Options) *Tasks { return &Tasks{o: o} }

// Start starts to import what o names for t and returns the import's id; core.Busy while another
// import runs.
func (t *Tasks) Start(ctx context.Context, o report.Order, terms foreign.Terms, by core.Actor) (string, error) {
	terms.DryRun, terms.Archive, terms.Again = o.DryRun, o.Archive, o.Again
	return t.start(ctx, terms, by, func(ctx context.Context, entries io.Writer, progress func(*report.Report)) (report.Report, error) {
		return t.o.Importer.Run(ctx, o.Path, terms, entries, progress)
	}, func() {})
}

// StartFile starts to import an uploaded file as Start does, and closes it in the end; also after an error.
func (t *Tasks) StartFile(ctx context.Context, f *os.File, name string, size int64, o report.Order, terms foreign.Terms, by core.Actor) (string, error) {
	terms.DryRun, terms.Archive, terms.Again = o.DryRun, o.Archive, o.Again
	id, err := t.start(ctx, terms, by, func(ctx context.Context, entries io.Writer, progress func(*report.Report)) (report.Report, error) {
		return t.o.Importer.RunFile(ctx, f, name, size, terms, entries, progress)
	}, func() { _ = f.Close() }) // it was only read
	if err != nil {
		_ = f.Close()
	}
	return id, err
}

type work func(ctx context.Context, entries io.Writer, progress func(*report.Report)) (report.Report, error)

func (t *Tasks) start(ctx context.Context, terms foreign.Terms, by core.Actor, do work, end func()) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.all {
		if k.now().State == report.Running {
			return "", core.Errorf(core.Busy, "an import is running: wait for its end, or stop it")
		}
	}
	k := &task{id: uuid.NewString(), user: terms.User, changed: make(chan struct{})}
	if err := t.o.Audit(ctx, by, "import.start", k.id, map[string]any{"dry_run": terms.DryRun}); err != nil {
		return "", err
	}
	k.state = report.State{ID: k.id, State: report.Running, Report: report.Report{DryRun: terms.DryRun, Faults: []report.Entry{}, Began: t.o.Clock.Now().UTC()}}
	stopped, stop := context.WithCancel(context.Background())
	k.stop = stop
	err := t.o.Jobs.Start(key(k.id), func(ctx context.Context, progress func(string)) (jobs.Result, error) {
		defer end()
		defer stop()
		ctx, cancel := context.WithCancel(ctx)
		defer context.AfterFunc(stopped, cancel)()
		return t.run(ctx, k, by, do, progress)
	})
	if err != nil {
		stop()
		return "", err
	}
	if t.all = append(t.all, k); len(t.all) > maxKept {
		t.all = t.all[1:]
	}
	return k.id, nil
}

func key(id string) string { return "import " + id }

// run runs the import and returns the file of its entries.
func (t *Tasks) run(ctx context.Context, k *task, by core.Actor, do work, progress func(string)) (jobs.Result, error) {
	f, err := jobs.Unnamed()
	if err != nil {
		k.set(report.State{ID: k.id, State: report.Failed, Error: core.TextOf(err)}, t.o.Clock.Now())
		return jobs.Result{}, err
	}
	buf := bufio.NewWriterSize(f, 64<<10)
	r, err := do(ctx, buf, func(r *report.Report) {
		k.set(report.State{ID: k.id, State: report.Running, Report: *r}, t.o.Clock.Now()) // faults are only added behind those that a reader has
		progress(Line(r))
	})
	err = errors.Join(err, buf.Flush())
	var size int64
	if st, serr := f.Stat(); serr == nil {
		size = st.Size()
	}
	detail := map[string]any{"added": r.Added, "updated": r.Updated, "failed": r.Failed, "stopped": r.Stopped, "dry_run": r.DryRun}
	if aerr := t.o.Audit(context.WithoutCancel(ctx), by, "import.end", k.id, detail); err == nil {
		err = aerr
	}
	s := report.State{ID: k.id, State: report.Done, Report: r, HasFile: size > 0}
	if err != nil {
		s.State, s.Error = report.Failed, core.TextOf(err)
	}
	k.set(s, t.o.Clock.Now())
	if err != nil && size == 0 {
		return jobs.Result{}, errors.Join(err, f.Close())
	}
	return jobs.Result{File: f, Size: size, Value: s}, nil
}

// Line returns the progress as a line for a terminal.
func Line(r *report.Report) string {
	percent := ""
	if r.Size > 0 {
		percent = fmt.Sprintf(" (%d %%)", min(100, r.Read*100/r.Size))
	}
	return fmt.Sprintf("%d conversations, %s of %s%s", r.Seen(), bytesOf(r.Read), bytesOf(r.Size), percent)
}

func bytesOf(n int64) string { return core.ByteSize(int(n)) }

func (k *task) now() report.State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

// pause is the shortest time between two notices of progress.
const pause = 200 * time.Millisecond

func (k *task) set(s report.State, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = s
	if s.State == report.Running && now.Sub(k.told) < pause {
		return
	}
	k.told = now
	close(k.changed)
	k.changed = make(chan struct{})
}

func (t *Tasks) find(id string) (*task, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.all {
		if k.id == id {
			return k, nil
		}
	}
	return nil, core.Errorf(core.NotFound, "there is no such import any more: start it again, it goes on where it ended")
}

// State returns how an import is; core.NotFound of one that is not remembered any more, such as after
// a restart.
func (t *Tasks) State(id string) (report.State, error) {
	k, err := t.find(id)
	if err != nil {
		return report.State{}, err
	}
	return k.now(), nil
}

// Next returns the state of an import that follows one that was returned before, when it has changed, has ended, or
// after the time of patience.
func (t *Tasks) Next(ctx context.Context, id string, patience time.Duration) (report.State, error) {
	k, err := t.find(id)
	if err != nil {
		return report.State{}, err
	}
	k.mu.Lock()
	now, changed := k.state, k.changed
	k.mu.Unlock()
	if now.State != report.Running {
		return now, nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return now, context.Cause(ctx)
	}
	return k.now(), nil
}

// Stop stops an import behind the conversation that it is at. One that has ended is left as it is.
func (t *Tasks) Stop(ctx context.Context, id string, by core.Actor) error {
	k, err := t.find(id)
	if err == nil {
		err = t.o.Audit(ctx, by, "import.stop", id, nil)
	}
	if err == nil {
		k.stop()
	}
	return err
}

// AbortUser stops the user's imports, whichever bot is named; Busy reports when they have ended.
func (t *Tasks) AbortUser(_ string, user int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.all {
		if k.user == user {
			k.stop()
		}
	}
}

// Busy reports whether an import of the user's runs.
func (t *Tasks) Busy(user int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.all, func(k *task) bool { return k.user == user && k.now().State == report.Running })
}

// List returns the imports that are remembered, newest first.
func (t *Tasks) List() []report.State {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := make([]report.State, 0, len(t.all))
	for _, k := range slices.Backward(t.all) {
		list = append(list, k.now())
	}
	return list
}

// Entries opens the entries of an import that has ended, as lines of JSON (report.Entry); core.NotFound an hour
// after its end.
func (t *Tasks) Entries(id string) (io.ReadSeekCloser, time.Time, error) {
	if _, err := t.find(id); err != nil {
		return nil, time.Time{}, err
	}
	return t.o.Jobs.Open(key(id))
}
