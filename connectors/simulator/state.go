package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	saveEvery = time.Second
	// SkipAhead is by how much numbers that ascend go on after a run that did not
	// end cleanly: some may have been given out after the state was saved, fewer
	// than this at the pace of users.
	SkipAhead = 10_000
)

// Load reads the state file into v. False: there is none, the world is fresh.
func (s *Site) Load(v any) (bool, error) {
	if s.plan.StateFile == "" {
		return false, nil
	}
	b, err := os.ReadFile(s.plan.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("load simulator state: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("load simulator state %q: %w", s.plan.StateFile, err)
	}
	return true, nil
}

// Touch means that the state is another than before.
func (s *Site) Touch() { s.dirty.Store(true) }

// keep begins to keep the state.
func (s *Site) keep() error {
	if s.plan.StateFile == "" {
		return nil
	}
	s.loops.Go(s.saveLoop)
	if err := s.save(false); err != nil { // from here on a crash is not a clean end
		return errors.Join(err, s.Close())
	}
	return nil
}

func (s *Site) saveLoop() {
	for {
		select {
		case <-s.plan.Clock.After(saveEvery):
			if s.dirty.Swap(false) && s.save(false) != nil {
				s.dirty.Store(true) // a full disk: again in a second; Close reports it
			}
		case <-s.closing:
			return
		}
	}
}

// Save writes the state file, if there is one: by a temporary file and a
// rename, readable by its owner only. It also happens every second while
// something changes, and at Close; only the file that Close writes counts as clean.
func (s *Site) Save() error { return s.save(false) }

func (s *Site) save(clean bool) error {
	if s.plan.StateFile == "" {
		return nil
	}
	s.saving.Lock()
	defer s.saving.Unlock()
	b, err := s.plan.Snapshot(clean)
	if err != nil {
		return fmt.Errorf("save simulator state: %w", err)
	}
	temp := s.plan.StateFile + ".new"
	if err := os.WriteFile(temp, b, 0o600); err != nil {
		return fmt.Errorf("save simulator state: %w", err)
	}
	if err := os.Rename(temp, s.plan.StateFile); err != nil {
		return fmt.Errorf("save simulator state: %w", err)
	}
	return nil
}
