package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/tool"
)

// scratchName is how the names of scratch directories begin.
const scratchName = "gatehouse-scratch-"

// tidy deletes what an earlier gateway left in our own Temp when it died.
func (s *Shell) tidy() {
	if s.o.Temp == "" {
		return
	}
	entries, err := os.ReadDir(s.o.Temp)
	if err != nil {
		return // not made yet, or not ours: the first command reports it
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), scratchName) && e.IsDir() {
			_ = remove(filepath.Join(s.o.Temp, e.Name()))
		}
	}
}

// scratchOf returns the directory that is at /tmp for the commands of one run.
func (s *Shell) scratchOf(run string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir, ok := s.scratch[run]; ok {
		return dir, nil
	}
	if len(s.scratch) >= maxRuns {
		return "", core.Errorf(core.Busy, "too many runs use the shell at once: try again later")
	}
	dir, err := os.MkdirTemp(s.o.Temp, scratchName)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "home"), 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("scratch folder: %w", err)
	}
	s.scratch[run] = dir
	return dir, nil
}

// End deletes what the commands of one run left in /tmp and HOME. It is called
// once the run has ended; a run without a sandbox has nothing to delete.
func (s *Shell) End(run string) error {
	s.mu.Lock()
	dir, ok := s.scratch[run]
	delete(s.scratch, run)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return remove(dir)
}

// Close is End for every run.
func (s *Shell) Close() error {
	s.mu.Lock()
	all := s.scratch
	s.scratch = map[string]string{}
	s.mu.Unlock()
	var errs []error
	for _, dir := range all {
		errs = append(errs, remove(dir))
	}
	return errors.Join(errs...)
}

// remove deletes dir, also where a command took its own rights away or nested
// directories deeply.
func remove(dir string) error {
	up, err := beneath.OpenDir(filepath.Dir(dir))
	if err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	defer up.Close()
	if err := up.Remove(context.Background(), filepath.Base(dir)); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	return nil
}

// area names what a command of t may write.
func area(t *tool.Turn) string {
	if t.Trust == core.Sandboxed {
		return tool.Area(t.User)
	}
	return "."
}
