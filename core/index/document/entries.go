package document

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatehouse/core/index/chunk"
	"gatehouse/core/store"
)

// An Entry is a part of a journal's file that is a content of its own.
type Entry struct {
	ID     string // content id: its para-ID
	Title  string
	Tags   []string // without "#", lower case
	Chunks []chunk.Chunk
	Hash   string    // of its text, title and place; the same hash is not indexed again
	At     time.Time // when it was written, by the file
}

// putEntries brings the entries of a journal's file into the index, those that changed
// alone. One whose id is an entry of another user's file stays a passage of d. An id that
// another file of the same user had goes to this one, as it was moved, and the other file
// is read again by the next pass.
func (s *Store) putEntries(ctx context.Context, d *Document) error {
	stay := map[string]bool{}
	for _, e := range d.Entries {
		was, err := s.holder(ctx, e.ID)
		if err != nil {
			return err
		}
		if was.Path != "" && was.Area != areaOf(d.Path) {
			d.Chunks = append(d.Chunks, e.Chunks...)
			continue
		}
		if stay[e.ID] = true; was.Path == d.Path && was.Hash == e.Hash && was.Open == d.Open {
			continue
		}
		part := Document{File: d.File, Title: e.Title, Tags: e.Tags, Chunks: e.Chunks, Journal: true, entry: e.ID}
		part.Hash, part.Modified, part.Size, part.Changed = e.Hash, e.At, 0, time.Time{}
		if err := s.moved(ctx, was.Path, d.Path); err != nil {
			return err
		}
		if err := s.put(ctx, part); err != nil {
			return err
		}
	}
	return s.removeEntries(ctx, d.Path, stay)
}

// A held is what the index has of an entry.
type held struct {
	Path string `db:"source_path"` // "" when it has none
	Area string `db:"area"`
	Hash string `db:"content_hash"`
	Open bool   `db:"open"`
}

func (s *Store) holder(ctx context.Context, id string) (h held, err error) {
	err = s.db.Get(ctx, &h, `SELECT source_path, area, content_hash, open FROM index_manifest WHERE content_id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		err = nil
	}
	return h, err
}

// moved has the file was read again, as one of its entries is now in another.
func (s *Store) moved(ctx context.Context, was, now string) error {
	if was == "" || was == now {
		return nil
	}
	return s.db.Tx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE index_manifest SET content_hash = '' WHERE part = 0 AND source_path = $1`, was)
		return err
	})
}

// reread has the file of an entry read again.
const reread = `UPDATE index_manifest SET content_hash = '' WHERE part = 0 AND source_path = (SELECT source_path FROM index_manifest WHERE content_id = $1 AND part = 1)`

// removeEntries deletes the entries of a file except some.
func (s *Store) removeEntries(ctx context.Context, path string, except map[string]bool) error {
	ids, err := s.entries(ctx, path)
	for _, id := range ids {
		if err == nil && !except[id] {
			err = s.remove(ctx, id)
		}
	}
	return err
}

// entries returns the ids of a file's entries. A file has at most 20 MB.
func (s *Store) entries(ctx context.Context, path string) (ids []string, err error) {
	err = s.db.Select(ctx, &ids, `SELECT content_id FROM index_manifest WHERE part = 1 AND source_path = $1 AND content_type <> 'session' ORDER BY content_id`, path)
	return ids, err
}

// reopenEntries indexes the entries of a file again from their stored passages, with d.Open.
func (s *Store) reopenEntries(ctx context.Context, d Document) error {
	ids, err := s.entries(ctx, d.Path)
	if err != nil {
		return fmt.Errorf("index %q: %w", d.Path, err)
	}
	for _, id := range ids {
		var was struct {
			Title    string `db:"title"`
			Metadata string `db:"metadata"`
			Hash     string `db:"content_hash"`
			Modified string `db:"modified"`
		}
		if err := s.db.Get(ctx, &was, `SELECT coalesce(title, '') AS title, coalesce(metadata, '') AS metadata, content_hash, modified FROM index_manifest WHERE content_id = $1`, id); err != nil {
			return fmt.Errorf("index %q: %w", d.Path, err)
		}
		part := Document{File: File{Path: d.Path, Open: d.Open, Hash: was.Hash, Modified: timeOf(was.Modified)}, Title: was.Title, Tags: tagsOf(was.Metadata), Journal: true, entry: id}
		if err := s.reopen(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
