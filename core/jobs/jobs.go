// Package jobs runs what takes longer than a request may. Jobs are known by a
// key; the panel and the command line start, follow and join the same ones.
package jobs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"gatehouse/core"
)

const (
	// maxRunning limits the jobs that run at the same time.
	maxRunning = 8
	// maxKept limits the jobs in the table; the oldest outcome makes room.
	maxKept = 20
	// keepOutcome is how long an outcome, and the file that it has, is kept.
	keepOutcome = time.Hour
)

// A Result is what a job returns.
type Result struct {
	Lines []string // for users
	Value any      // for programs
	// File is closed by the table, one hour after the end at the latest. It
	// should have no name, so that nothing is left of it then (Unnamed).
	File *os.File
	Size int64 // of the file
}

// A State is how a job is.
type State struct {
	Running  bool
	Progress string // while it runs
	Result   Result // of a job that has ended without an error
	Err      error
	At       time.Time // when it ended
}

// A Work does a job until it is done or ctx ends. It reports its progress as
// text for users.
type Work func(ctx context.Context, progress func(string)) (Result, error)

// Options of New. Clock is needed.
type Options struct {
	Clock core.Clock
	Log   *slog.Logger // nil: none
	Ended func()       // called after each job; nil: nothing
}

// A Table holds the jobs that run and, for an hour, what came of those that
// ended. It is safe for concurrent use.
type Table struct {
	o    Options
	ctx  context.Context
	stop context.CancelFunc
	wait sync.WaitGroup

	mu  sync.Mutex
	all map[string]*job // at most maxKept
}

type job struct {
	State
	done chan struct{}
}

func (j *job) close() {
	if j.Result.File != nil {
		_ = j.Result.File.Close() // it was only read
	}
}

// New returns an empty table. Close it.
func New(o Options) *Table {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Ended == nil {
		o.Ended = func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Table{o: o, ctx: ctx, stop: stop, all: map[string]*job{}}
}

// Close ends the jobs, waits for them, and closes their files.
func (t *Table) Close() error {
	t.stop()
	t.wait.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, j := range t.all {
		j.close()
		delete(t.all, key)
	}
	return nil
}

// Start starts the job unless one with its key is running. The outcome of an
// earlier one is dropped. It returns core.Busy where too many run.
func (t *Table) Start(key string, work Work) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.all[key]; j != nil {
		if j.Running {
			return nil
		}
		j.close()
		delete(t.all, key)
	}
	if err := t.makeRoom(); err != nil {
		return err
	}
	j := &job{State: State{Running: true}, done: make(chan struct{})}
	t.all[key] = j
	t.wait.Go(func() {
		res, err := work(t.ctx, func(text string) {
			t.mu.Lock()
			j.Progress = text
			t.mu.Unlock()
		})
		if err != nil && core.KindOf(err) == core.Other && t.ctx.Err() == nil {
			t.o.Log.Error("job failed", "job", key, "err", err)
		}
		t.mu.Lock()
		j.State = State{Result: res, Err: err, At: t.o.Clock.Now()}
		t.mu.Unlock()
		close(j.done)
		t.o.Ended()
	})
	return nil
}

// makeRoom makes room for one more job; t.mu is held.
func (t *Table) makeRoom() error {
	t.sweep()
	running, oldest := 0, ""
	for key, j := range t.all {
		if j.Running {
			running++
		} else if oldest == "" || j.At.Before(t.all[oldest].At) {
			oldest = key
		}
	}
	if running >= maxRunning {
		return core.Errorf(core.Busy, "%d long commands run already: try again when one has ended", maxRunning)
	}
	if len(t.all) >= maxKept {
		t.all[oldest].close()
		delete(t.all, oldest)
	}
	return nil
}

// sweep drops outcomes that are too old; t.mu is held.
func (t *Table) sweep() {
	for key, j := range t.all {
		if !j.Running && t.o.Clock.Now().Sub(j.At) > keepOutcome {
			j.close()
			delete(t.all, key)
		}
	}
}

// State returns how the job is, and whether there is one.
func (t *Table) State(key string) (State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	j := t.all[key]
	if j == nil {
		return State{}, false
	}
	return j.State, true
}

// Wait waits until the job has ended, for at most the time of patience, and
// returns its state, or core.NotFound where there is none.
func (t *Table) Wait(ctx context.Context, key string, patience time.Duration) (State, error) {
	t.mu.Lock()
	j := t.all[key]
	t.mu.Unlock()
	if j == nil {
		return State{}, core.Errorf(core.NotFound, "there is no such job any more")
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-j.done:
	case <-timer.C:
	case <-ctx.Done():
		return State{}, context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return j.State, nil
}

// Drop drops the outcome of a job that has ended.
func (t *Table) Drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.all[key]; j != nil && !j.Running {
		j.close()
		delete(t.all, key)
	}
}

// Open returns a reader of the file that a job has made, and when that ended; or
// core.NotFound. The reader ends with an error when the table drops the outcome.
func (t *Table) Open(key string) (io.ReadSeekCloser, time.Time, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	j := t.all[key]
	if j == nil || j.Result.File == nil {
		return nil, time.Time{}, core.Errorf(core.NotFound, "there is no such file any more: have it made again")
	}
	return section{io.NewSectionReader(j.Result.File, 0, j.Result.Size)}, j.At, nil
}

// A section is a reader of a file that the table closes.
type section struct{ *io.SectionReader }

func (section) Close() error { return nil }

// Prune drops outcomes older than an hour and returns how many.
func (t *Table) Prune(context.Context) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.all)
	t.sweep()
	return n - len(t.all), nil
}

// Unnamed returns a new file that has no name, so that nothing is left of it when
// it is closed or the process ends.
func Unnamed() (*os.File, error) {
	f, err := os.CreateTemp("", "gatehouse-*")
	if err != nil {
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("temporary file: %w", err)
	}
	return f, nil
}
