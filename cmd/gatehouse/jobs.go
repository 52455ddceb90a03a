package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"gatehouse/configs"
	"gatehouse/core"
)

// jobs are orders that take longer than a request may. An order that is repeated while
// it runs joins it and gets its progress.
type jobs struct {
	mu      sync.Mutex
	running map[string]*job // by name and what it is about; bounded by maxJobs
	wait    sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context
}

// maxJobs bounds the long orders at once.
const maxJobs = 8

// jobPatience is how long a request waits for a job before it reports how far it is.
const jobPatience = time.Second

type job struct {
	done chan struct{}
	res  result
	err  error

	mu   sync.Mutex
	tell string
}

func (j *job) say(text string) {
	j.mu.Lock()
	j.tell = text
	j.mu.Unlock()
}

func newJobs() *jobs {
	ctx, stop := context.WithCancel(context.Background())
	return &jobs{running: map[string]*job{}, ctx: ctx, stop: stop}
}

// Close ends what runs and waits for it.
func (s *jobs) Close() error {
	s.stop()
	s.wait.Wait()
	return nil
}

// do starts the job, or finds it, and returns its result, or Pending with its progress.
// A result is returned once.
func (s *jobs) do(ctx context.Context, key string, f func(ctx context.Context, tell func(string)) (result, error)) (result, error) {
	s.mu.Lock()
	j := s.running[key]
	if j == nil {
		if len(s.running) >= maxJobs {
			s.mu.Unlock()
			return result{}, core.Errorf(core.Busy, "%d long commands run already: try again when one has ended", maxJobs)
		}
		j = &job{done: make(chan struct{})}
		s.running[key] = j
		s.wait.Go(func() {
			defer close(j.done)
			j.res, j.err = f(s.ctx, j.say)
		})
	}
	s.mu.Unlock()
	wait := time.NewTimer(jobPatience)
	defer wait.Stop()
	select {
	case <-j.done:
		s.mu.Lock()
		if s.running[key] == j {
			delete(s.running, key)
		}
		s.mu.Unlock()
		return j.res, j.err
	case <-wait.C:
		j.mu.Lock()
		defer j.mu.Unlock()
		return result{Pending: true, Text: j.tell}, nil
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
}

// An office gives orders to the running server, or carries them out on the files
// when no one serves. Close it.
type office struct {
	p   *process
	cfg *configs.Config
	dir string
	a   *app // of the files, once they were opened
}

func newOffice(p *process) (*office, error) {
	cfg, err := configs.Load()
	if err != nil {
		return nil, err
	}
	dir, err := runtimeDir(cfg.VaultPath)
	return &office{p: p, cfg: cfg, dir: dir}, err
}

// Close closes the files.
func (q *office) Close() error {
	if q.a == nil {
		return nil
	}
	return q.a.Close()
}

func (q *office) ask(name string, o order) (result, error) {
	if q.a == nil {
		res, err := askServer(q.p.ctx, q.dir, name, o)
		if !errors.Is(err, errNobodyServes) {
			return res, err
		}
		if err := q.open(); err != nil {
			return result{}, err
		}
	}
	return q.a.orders()[name](q.p.ctx, o)
}

func (q *office) open() (err error) {
	if _, err := os.Stat(q.cfg.VaultPath); errors.Is(err, fs.ErrNotExist) {
		return core.Errorf(core.NotFound, "there is no vault at %s yet: 'gatehouse serve' makes it. GATEHOUSE_VAULT_PATH names another one, such as the demo's (~/%s)", q.cfg.VaultPath, demoFolder)
	}
	fmt.Fprintf(q.p.stderr, "No gateway runs on %s now, so this works on its files.\n", q.cfg.VaultPath)
	q.a, err = build(q.p.ctx, q.cfg, slog.New(slog.DiscardHandler), core.System{})
	return err
}

// long polls a job until it has ended, and shows progress on a terminal.
func (q *office) long(name string, o order) (result, error) {
	shown := false
	for {
		res, err := q.ask(name, o)
		if shown {
			fmt.Fprint(q.p.stderr, "\r\x1b[K")
		}
		if err != nil || !res.Pending {
			return res, err
		}
		if shown = q.p.tty && res.Text != ""; shown {
			fmt.Fprint(q.p.stderr, res.Text)
		}
	}
}
