package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"gatehouse/core"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/store"
)

const (
	pruneTime = 30 * time.Second   // of one Prune; the next goes on
	keysKept  = 7 * 24 * time.Hour // of Drafts that were never settled
)

// Prune forgets the ids of entries that no file has any more, 60 days after they were
// registered and their file was changed, and the keys of drafts that are a week old. It
// returns how many that were. An id that comes back with a file is registered again.
func (s *Store) Prune(ctx context.Context) (n int, err error) {
	s.pass.mu.Lock()
	defer s.pass.mu.Unlock()
	now := s.o.Clock.Now()
	err = s.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		gone, err := tx.Exec(ctx, `DELETE FROM metadata WHERE key LIKE 'journal:%' AND updated_at < $1`, core.Stamp(now.Add(-keysKept)))
		n = int(gone)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("prune keys of the journal: %w", err)
	}
	old := now.Add(-forgottenFor)
	for !s.late(now.Add(pruneTime)) {
		files, err := s.o.Rows.Paths(ctx, s.o.DB, entry.Journal, old, s.pass.after)
		if err != nil || len(files) == 0 {
			s.pass.after = ""
			return n, err
		}
		for _, name := range files {
			dropped, err := s.pruneFile(ctx, name, old)
			if n += dropped; err != nil {
				return n, err
			}
			if s.pass.after = name; s.late(now.Add(pruneTime)) {
				break
			}
		}
	}
	return n, nil
}

// pruneFile forgets the ids that are older than old and that the file name lacks, unless
// it was changed since.
func (s *Store) pruneFile(ctx context.Context, name string, old time.Time) (n int, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	info, err := s.o.Vault.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && info.ModTime().After(old) {
		return 0, nil
	}
	has := s.entriesOf(name)
	have, err := s.o.IDs.At(ctx, s.o.DB, name, entry.Journal)
	if err != nil {
		return 0, err
	}
	var gone []string
	for _, e := range have {
		if e.Created.Before(old) && !has(e.ID) {
			gone = append(gone, e.ID)
		}
	}
	return len(gone), s.inBatches(ctx, len(gone), func(tx *store.Tx, from, to int) error {
		return s.o.Rows.Drop(ctx, tx, gone[from:to])
	})
}
