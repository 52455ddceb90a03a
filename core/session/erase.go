package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"gatehouse/core/vault"
)

// Erase deletes the files of a session that the database knows no more, for
// good: transcripts with what lies beside them, the sidecar, and what an earlier
// deletion has put into the trash. It may be done again. Nothing may write to
// the session.
func (s *Store) Erase(id string) error {
	if !vault.ValidID(id) {
		return nil
	}
	s.cache.drop(id)
	s.still(id)
	files, err := s.vault.FindTranscripts(id)
	if err != nil {
		return fmt.Errorf("erase session: %w", err)
	}
	root := s.vault.Root()
	for _, name := range files {
		if err := root.RemoveAll(strings.TrimSuffix(name, ".jsonl")); err != nil { // sub-agents' transcripts
			return fmt.Errorf("erase session: %w", err)
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("erase session: %w", err)
		}
	}
	if err := root.Remove(sidecar{ID: id}.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("erase session: %w", err)
	}
	if err := s.vault.RemoveTrashed(id + ".jsonl"); err != nil {
		return fmt.Errorf("erase session: %w", err)
	}
	return nil
}

// erased stands where a forgotten person's words and the answers to them were.
const erased = "[erased: this person was forgotten]"

// Redact puts one sentence in the place of everything that the runs have
// written into a session in which others speak too, and keeps the rest as it
// is. It may be done again. Nothing may write to the session.
func (s *Store) Redact(id string, runs []string) error {
	if !vault.ValidID(id) || len(runs) == 0 {
		return nil
	}
	of := make(map[string]bool, len(runs))
	for _, r := range runs {
		of[r] = true
	}
	s.cache.drop(id)
	files, err := s.vault.FindTranscripts(id)
	if err != nil {
		return fmt.Errorf("redact session: %w", err)
	}
	for _, name := range files {
		if err := s.redact(name, of); err != nil {
			return fmt.Errorf("redact session: %w", err)
		}
	}
	s.cache.drop(id)
	return nil
}

func (s *Store) redact(name string, of map[string]bool) error {
	in, err := s.vault.Root().Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := s.vault.Draft(path.Dir(name))
	if err != nil {
		return err
	}
	defer out.Drop()
	changed := false
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if with, ok := redacted(line, of); ok {
			line, changed = with, true
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
		if err == io.EOF {
			break
		}
	}
	if !changed {
		return nil
	}
	return out.Keep(name)
}

// redacted is a run's line without its words; false for other lines. The line's
// place in the conversation stays.
func redacted(line []byte, of map[string]bool) ([]byte, bool) {
	var l vault.Line
	if json.Unmarshal(line, &l) != nil || !of[l.RequestID] || bytes.Contains(line, []byte(erased)) {
		return nil, false
	}
	role := "user"
	if l.Type == "assistant" {
		role = "assistant"
	}
	m := Message{Role: role, Blocks: []Block{{Type: "text", Text: erased}}}
	body, err := m.encode(l.UUID)
	if err != nil {
		return nil, false
	}
	l.Message = body
	b, err := json.Marshal(&l)
	return append(b, '\n'), err == nil
}
