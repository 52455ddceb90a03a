package vaultsync

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/journal/dayfile"
	"gatehouse/core/store"
	"gatehouse/core/vaultsync/merge"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// batch is how many rows a transaction writes.
const batch = 500

// scan brings the table up to date with the files below dir and returns its rows.
func (s *Store) scan(ctx context.Context, dir string) (map[string]row, error) {
	s.scans.Lock()
	defer s.scans.Unlock()
	rows, err := s.rows(ctx, dir)
	if err != nil {
		return nil, err
	}
	tree, err := s.tree()
	if err != nil {
		return nil, err
	}
	defer tree.Top.Close()
	found, err := tree.Scan(ctx, dir, enter, wire.Synced, func(name string) place.Found {
		r := rows[name]
		if r.Deleted != "" {
			return place.Found{}
		}
		return place.Found{Hash: r.Hash, Mark: r.Mark}
	})
	if err != nil && found != nil && context.Cause(ctx) != nil { // the next scan goes on from there
		return nil, errors.Join(err, s.store(context.WithoutCancel(ctx), rows, s.fresh(tree, rows, found)))
	}
	if err != nil {
		return nil, fmt.Errorf("scan the vault: %w", err)
	}
	s.sweep(tree, found.Temps)
	changed, err := s.changes(tree, rows, found)
	if err != nil {
		return nil, err
	}
	s.metrics.hashed.Add(float64(found.Hashed))
	return rows, s.store(ctx, rows, changed)
}

// store writes changed rows, and into rows.
func (s *Store) store(ctx context.Context, rows map[string]row, changed []row) error {
	for part := range slices.Chunk(changed, batch) {
		var stored []row
		err := s.o.DB.TxSoon(ctx, func(tx *store.Tx) (err error) {
			stored, err = s.write(ctx, tx, part, rows)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range stored {
			rows[r.Path] = r
		}
	}
	return nil
}

// enter reports whether a directory has files that are synced.
func enter(name string) bool {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	return len(name) < wire.MaxPath && wire.EnterDir(parts[:last], parts[last])
}

// changes returns the rows that differ from what a scan found.
func (s *Store) changes(tree place.Tree, rows map[string]row, found *place.Scan) (changed []row, err error) {
	live, gone := 0, 0
	for name, r := range rows {
		if r.Deleted != "" {
			continue
		}
		live++
		if _, there := found.Files[name]; !there && !found.Unknown(name) {
			gone++
			r.Deleted, r.Seq = core.Stamp(s.o.Clock.Now()), 0
			changed = append(changed, r)
		}
	}
	if live == gone && gone >= suddenly {
		return nil, core.Errorf(core.Busy, "all %d synced files of the folder have vanished at once: nothing is synced until its files are back, or new ones are there", gone)
	}
	changed = append(changed, s.fresh(tree, rows, found)...)
	slices.SortFunc(changed, func(a, b row) int { return strings.Compare(a.Path, b.Path) })
	return changed, nil
}

// fresh returns the rows of files that a scan found, where they differ.
func (s *Store) fresh(tree place.Tree, rows map[string]row, found *place.Scan) (changed []row) {
	for name, f := range found.Files {
		r, known := rows[name]
		if known && r.Deleted == "" && r.Hash == f.Hash {
			if r.Mark != f.Mark { // only read again
				r.Mark, r.Size, r.Modified = f.Mark, f.Size, f.Modified.UnixNano()
				changed = append(changed, r)
			}
			continue
		}
		changed = append(changed, row{Path: name, Hash: f.Hash, Mark: f.Mark, Size: f.Size, Modified: f.Modified.UnixNano(), Entries: entriesOf(tree, f)})
	}
	return changed
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

// write stores changed rows and returns them with the numbers of their changes. Those
// without a number are changes of the content.
func (s *Store) write(ctx context.Context, tx *store.Tx, part []row, before map[string]row) ([]row, error) {
	part = slices.Clone(part)
	var last int64
	if err := tx.Get(ctx, &last, `SELECT coalesce(max(seq), 0) FROM sync_files`); err != nil {
		return nil, err
	}
	pruned, err := s.pruned(ctx, tx)
	if err != nil {
		return nil, err
	}
	last = max(last, pruned) // a number is not given twice
	for i := range part {
		r := &part[i]
		if r.Seq == 0 {
			last++
			r.Seq = last
			if _, known := before[r.Path]; known {
				if err := note(ctx, tx, r.Path, present(*r), itself); err != nil {
					return nil, err
				}
			}
		}
		_, err := tx.Exec(ctx, `INSERT INTO sync_files (path, hash, size, modified, mark, entries, seq, deleted) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (path) DO UPDATE SET hash = excluded.hash, size = excluded.size, modified = excluded.modified, mark = excluded.mark,
				entries = excluded.entries, seq = excluded.seq, deleted = excluded.deleted`,
			r.Path, r.Hash, r.Size, r.Modified, r.Mark, r.Entries, r.Seq, r.Deleted)
		if err != nil {
			return nil, fmt.Errorf("store synced files: %w", err)
		}
	}
	return part, nil
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
		_, err = s.write(ctx, tx, []row{now}, nil)
		return err
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

// A Query limits a listing.
type Query struct {
	Root    string
	Pattern string // of the last element of paths (path.Match); "": all
	Binary  bool   // include files that are no text, by their names
	Date    string // only files of this date: an element of the path begins with it; "": all
	Since   string // a cursor: only changes since it; "": all
}

// List returns the files of an area. Changes since a cursor that is not known are all
// files.
func (s *Store) List(ctx context.Context, a Area, q Query) (wire.Listing, error) {
	if a.User <= 0 || a.Trust == core.Stranger {
		return wire.Listing{}, core.Errorf(core.Denied, "only users with access have files to sync")
	}
	if _, err := path.Match(q.Pattern, ""); err != nil {
		return wire.Listing{}, core.Errorf(core.Invalid, "the pattern %q is not valid: write one such as *.md", core.CutRunes(q.Pattern, 60))
	}
	root := path.Join(a.Dir(), path.Clean("/" + q.Root)[1:])
	rows, err := s.scan(ctx, a.Dir())
	if err != nil {
		return wire.Listing{}, err
	}
	last := int64(0)
	for _, r := range rows {
		last = max(last, r.Seq)
	}
	since, err := strconv.ParseInt(q.Since, 10, 64)
	pruned, fault := s.pruned(ctx, s.o.DB)
	if fault != nil {
		return wire.Listing{}, fault
	}
	last = max(last, pruned)
	complete := err != nil || since < pruned || since > last
	l := wire.Listing{Root: strings.TrimPrefix(root, "."), Files: []wire.File{}, Deleted: []wire.File{}, Complete: complete, Cursor: strconv.FormatInt(last, 10),
		GeneratedAt: s.o.Clock.Now().UTC().Format(time.RFC3339)}
	hashes := map[string]string{} // at most wire.MaxFiles
	for name, r := range rows {
		rel, below := relative(root, name)
		if !below || !q.wants(rel) || !a.May(a.Trust, a.User, name, false) {
			continue
		}
		if r.Deleted == "" {
			hashes[rel] = r.Hash
		}
		if !complete && r.Seq <= since {
			continue
		}
		f := wire.File{Path: rel, Hash: r.Hash, Size: r.Size, Modified: float64(r.Modified/1e6) / 1e3}
		if r.Entries != "" {
			_ = json.Unmarshal([]byte(r.Entries), &f.Entries) // as it was written
		}
		if r.Deleted != "" {
			l.Deleted = append(l.Deleted, f)
		} else {
			l.Files = append(l.Files, f)
		}
	}
	byPath := func(a, b wire.File) int { return strings.Compare(a.Path, b.Path) }
	slices.SortFunc(l.Files, byPath)
	slices.SortFunc(l.Deleted, byPath)
	l.Digest = wire.Digest(hashes)
	return l, nil
}

// relative returns name below root.
func relative(root, name string) (string, bool) {
	if root == "." {
		return name, true
	}
	return strings.CutPrefix(name, root+"/")
}

// wants reports whether a listing has a file.
func (q Query) wants(name string) bool {
	if ok, _ := path.Match(q.Pattern, path.Base(name)); q.Pattern != "" && !ok {
		return false
	}
	if !q.Binary && Binary(name) {
		return false
	}
	return q.Date == "" || slices.ContainsFunc(strings.Split(name, "/"), func(p string) bool { return strings.HasPrefix(p, q.Date) })
}

// binaries are the ends of names of files that are no text.
var binaries = []string{".wav", ".mp3", ".m4a", ".ogg", ".opus", ".flac", ".mp4", ".mov", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".pdf", ".zip"}

// Binary reports whether a file is no text, by its name.
func Binary(name string) bool { return slices.Contains(binaries, strings.ToLower(path.Ext(name))) }
