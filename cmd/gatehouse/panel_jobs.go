package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
)

const (
	// maxPanelJobs limits the finished orders that the panel shows.
	maxPanelJobs = 20
	// keepOutcome is how long it reports it, and keeps what was made.
	keepOutcome = time.Hour
)

// panelJobs are the long orders that the panel gave. They run as the command
// line's do; here is kept how each is, since no one waits for the answer.
type panelJobs struct {
	of    *jobs
	clock core.Clock
	ring  func(topics ...string)

	mu  sync.Mutex
	all map[string]*panelJob // by the job's key; at most maxPanelJobs
}

type panelJob struct {
	page.Job
	file *os.File // that it made, without a name on the disk; nil: none
}

func (j *panelJob) close() {
	if j.file != nil {
		_ = j.file.Close() // it was only read
	}
}

func newPanelJobs(of *jobs, clock core.Clock, ring func(topics ...string)) *panelJobs {
	return &panelJobs{of: of, clock: clock, ring: ring, all: map[string]*panelJob{}}
}

// An outcome is what came of a job, for the panel.
type outcome struct {
	said []string
	file *os.File
	size int64
}

// begin starts a job, unless it runs. report reports what came of it.
func (s *panelJobs) begin(key string, work func(ctx context.Context, tell func(string)) (result, error), report func(result) outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.all[key]; j != nil && j.Running {
		return nil
	}
	if err := s.room(key); err != nil {
		return err
	}
	j := &panelJob{Job: page.Job{Running: true}}
	s.all[key] = j
	s.of.wait.Go(func() {
		res, err := s.follow(key, j, work)
		s.ended(j, res, err, report)
	})
	return nil
}

// room makes place for one more; s.mu is held.
func (s *panelJobs) room(key string) error {
	if j := s.all[key]; j != nil {
		j.close()
		delete(s.all, key)
	}
	s.sweep()
	for len(s.all) >= maxPanelJobs {
		oldest := ""
		for k, j := range s.all {
			if !j.Running && (oldest == "" || j.At.Before(s.all[oldest].At)) {
				oldest = k
			}
		}
		if oldest == "" {
			return core.Errorf(core.Busy, "%d long orders run already: try again when one has ended", maxPanelJobs)
		}
		s.all[oldest].close()
		delete(s.all, oldest)
	}
	return nil
}

// sweep forgets old outcomes; s.mu is held.
func (s *panelJobs) sweep() {
	for k, j := range s.all {
		if !j.Running && s.clock.Now().Sub(j.At) > keepOutcome {
			j.close()
			delete(s.all, k)
		}
	}
}

// follow waits for the job's end, and records its progress.
func (s *panelJobs) follow(key string, j *panelJob, work func(ctx context.Context, tell func(string)) (result, error)) (result, error) {
	for {
		res, err := s.of.do(s.of.ctx, key, work)
		if err != nil || !res.Pending {
			return res, err
		}
		s.mu.Lock()
		j.Tell = res.Text
		s.mu.Unlock()
	}
}

func (s *panelJobs) ended(j *panelJob, res result, err error, report func(result) outcome) {
	var out outcome
	if err == nil {
		out = report(res)
	}
	s.mu.Lock()
	j.Running, j.At = false, s.clock.Now()
	switch {
	case core.KindOf(err) != core.Other:
		j.Error = core.TextOf(err)
	case err != nil:
		j.Error = "That failed through an internal error. See the log."
	}
	j.Said, j.file, j.Size = out.said, out.file, out.size
	s.mu.Unlock()
	s.ring("people", "settings")
}

// look returns how a job is.
func (s *panelJobs) look(key string) (page.Job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	j := s.all[key]
	if j == nil {
		return page.Job{}, false
	}
	return j.Job, true
}

// drop forgets the outcome of a job that has ended.
func (s *panelJobs) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.all[key]; j != nil && !j.Running {
		j.close()
		delete(s.all, key)
	}
}

// made returns the file that a job has made, for one reader.
func (s *panelJobs) made(key string) (*os.File, page.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	j := s.all[key]
	if j == nil || j.file == nil {
		return nil, page.Job{}, core.Errorf(core.NotFound, "there is no such file any more: have it made again")
	}
	return j.file, j.Job, nil
}

// prune is for upkeep: outcomes go after an hour, and what was made with them.
func (s *panelJobs) prune(context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.all)
	s.sweep()
	return n - len(s.all), nil
}

// Close gives up what was made; the jobs have ended before.
func (s *panelJobs) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, j := range s.all {
		j.close()
		delete(s.all, k)
	}
	return nil
}

// unnamed returns a new file that has no name, so that nothing of it is left when it
// is closed, or the program ends in whatever way.
func unnamed() (*os.File, error) {
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
