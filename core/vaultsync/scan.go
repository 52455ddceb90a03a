package vaultsync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/journal/dayfile"
	"gatehouse/core/store"
	"gatehouse/core/vaultsync/merge"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// scan brings the table up to date with the files below dir. The caller has s.scans.
func (s *Store) scan(ctx context.Context, dir string) error {
	tree, err := s.tree()
	if err != nil {
		return err
	}
	defer tree.Top.Close()
	c := &comparison{Store: s, ctx: ctx, tree: tree, below: dir, rows: s.rows(dir, "")}
	walked, err := tree.Walk(ctx, dir, enter, wire.Synced, c)
	if err != nil && walked != nil && context.Cause(ctx) != nil { // the next scan goes on from there
		c.ctx = context.WithoutCancel(ctx)
		return errors.Join(err, c.flush())
	}
	if err != nil {
		return fmt.Errorf("scan the vault: %w", err)
	}
	s.sweep(tree, walked.Temps)
	s.metrics.hashed.Add(float64(walked.Hashed))
	return c.end()
}

// enter reports whether a directory has files that are synced.
func enter(name string) bool {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	return len(name) < wire.MaxPath && wire.EnterDir(parts[:last], parts[last])
}

// entriesOf returns the entries of a day file as JSON, "" for another file.
func entriesOf(tree place.Tree, f place.Found) string {
	if !isDay(f.Name) || f.Size > merge.MaxSize {
		return ""
	}
	data, err := tree.Read(f.Name, merge.MaxSize)
	if err != nil || wire.Hash(data) != f.Hash {
		return ""
	}
	_, sections := dayfile.Split(data)
	var list []wire.Entry
	for i := range sections[:min(len(sections), merge.MaxEntries)] {
		if sections[i].ID != "" {
			list = append(list, wire.Entry{ID: sections[i].ID, Hash: "sha256-96:" + sections[i].Version()})
		}
	}
	if list == nil {
		return ""
	}
	text, _ := json.Marshal(list) // strings only
	return string(text)
}

// isDay reports whether a file is Markdown of a journal, which is merged entry by entry.
func isDay(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) > 2 && parts[0] == core.GuestsDir {
		parts = parts[2:]
	}
	return len(parts) > 1 && parts[0] == "Daily" && parts[1] != ".agents" && strings.EqualFold(path.Ext(name), ".md")
}

// write stores changed rows. Those without a number are changes of the content.
func (s *Store) write(ctx context.Context, tx *store.Tx, part []row) error {
	part = slices.Clone(part)
	var last int64
	if err := tx.Get(ctx, &last, `SELECT coalesce(max(seq), 0) FROM sync_files`); err != nil {
		return err
	}
	pruned, err := s.pruned(ctx, tx)
	if err != nil {
		return err
	}
	last = max(last, pruned) // a number is not given twice
	for i := range part {
		r := &part[i]
		if r.Seq == 0 {
			last++
			r.Seq = last
			if r.known {
				if err := note(ctx, tx, r.Path, present(*r), itself); err != nil {
					return err
				}
			}
		}
		_, err := tx.Exec(ctx, `INSERT INTO sync_files (path, hash, size, modified, mark, entries, seq, deleted) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, size = excluded.size, modified = excluded.modified, mark = excluded.mark,
				entries = excluded.entries, seq = excluded.seq, deleted = excluded.deleted`,
			r.Path, r.Hash, r.Size, r.Modified, r.Mark, r.Entries, r.Seq, r.Deleted)
		if err != nil {
			return fmt.Errorf("store synced files: %w", err)
		}
	}
	return nil
}

// record brings the row of one file up to date, so that a later scan notices when it is
// deleted.
func (s *Store) record(ctx context.Context, tree place.Tree, name string) error {
	s.scans.Lock()
	defer s.scans.Unlock()
	hash, size, err := tree.Hash(name)
	if errors.Is(err, place.ErrInWay) {
		hash, err = "", nil
	}
	if err != nil {
		return err
	}
	r := row{Path: name, Hash: hash, Size: size, Modified: s.o.Clock.Now().UnixNano()}
	if hash != "" {
		r.Entries = entriesOf(tree, place.Found{Name: name, Hash: hash, Size: size})
	}
	return s.o.DB.TxSoon(ctx, func(tx *store.Tx) error {
		var was row
		err := tx.Get(ctx, &was, `SELECT path, hash, mark, entries, deleted, size, modified, seq FROM sync_files WHERE path = $1`, name)
		now := r
		switch {
		case err != nil && !errors.Is(err, store.ErrNoRows):
			return err
		case err != nil && hash == "", err == nil && present(was) == hash:
			return nil
		case hash == "":
			now = was
			now.Seq, now.Deleted = 0, core.Stamp(tx.Time())
		}
		return s.write(ctx, tx, []row{now})
	})
}

// present returns the content that a row records, "" for none.
func present(r row) string {
	if r.Deleted != "" {
		return ""
	}
	return r.Hash
}

// sweep removes what crashes have left.
func (s *Store) sweep(tree place.Tree, temps []string) {
	for _, name := range temps {
		kept, err := tree.Sweep(name, func(n int) string {
			return wire.ConflictName("recovered.md", "server", s.o.Clock.Now(), n)
		})
		if err != nil || kept != "" {
			s.o.Log.Warn("a temporary file that a crash has left was looked at", "file", name, "kept_as", kept, "err", err)
		}
	}
}
