package document

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/store"
)

// Content is the field with a document's own text. Other fields hold what clients add to
// it, such as a summary; they stay while the document is indexed.
const Content = "content"

// Limits of Chunks and Add.
const (
	MaxChunks = 100  // of one call, and that clients may add to one document
	MaxText   = 4000 // bytes of one
	MaxField  = 32   // bytes of a field's name
)

// A Stored is a chunk with its place.
type Stored struct {
	ID       string `db:"id"` // chunk:<content id>:<field>:<index>
	Field    string `db:"field"`
	Index    int    `db:"chunk_index"`
	Text     string `db:"chunk_text"`
	Line     int    `db:"line"`       // of the file, from 1; of added ones 1
	Created  string `db:"created_at"` // as core.Stamp
	Embedded bool   `db:"embedded"`   // a model has read it
}

// Chunks returns chunks of a content, of one field or of all for "", in the order of
// field and index, behind the chunk with the id after, at most limit (up to 100). It is
// core.NotFound for a content that the index does not have, and for a conversation.
func (s *Store) Chunks(ctx context.Context, content, field, after string, limit int) (list []Stored, err error) {
	if limit < 1 || limit > MaxChunks {
		return nil, core.Errorf(core.Invalid, "the limit is a number from 1 to %d", MaxChunks)
	}
	if err := has(ctx, s.db, content); err != nil {
		return nil, err
	}
	at := Stored{Index: -1}
	if after != "" {
		err := s.db.Get(ctx, &at, `SELECT field, chunk_index FROM chunks WHERE id = $1 AND content_id = $2`, after, content)
		if errors.Is(err, store.ErrNoRows) {
			return nil, core.Errorf(core.Invalid, "the chunk to continue behind is gone: begin again without it")
		}
		if err != nil {
			return nil, fmt.Errorf("index: chunks: %w", err)
		}
	}
	err = s.db.Select(ctx, &list, fmt.Sprintf(`SELECT id, field, chunk_index, chunk_text, line, created_at, CASE WHEN embedding IS NULL THEN 0 ELSE 1 END AS embedded FROM chunks
		WHERE content_id = $1 AND ($2 = '' OR field = $2) AND (field > $3 OR field = $3 AND chunk_index > $4) ORDER BY field, chunk_index LIMIT %d`, limit), content, field, at.Field, at.Index)
	if err != nil {
		return nil, fmt.Errorf("index: chunks: %w", err)
	}
	return list, nil
}

// Path returns where a content's file is in the vault; core.NotFound for a content that
// the index does not have.
func (s *Store) Path(ctx context.Context, content string) (string, error) {
	d, err := known(ctx, s.db, content)
	if err != nil {
		return "", err
	}
	return d.Path, nil
}

func has(ctx context.Context, q store.Queryer, content string) error {
	var n int
	err := q.Get(ctx, &n, `SELECT count(*) FROM index_manifest WHERE content_id = $1 AND content_type <> 'session'`, content)
	if err == nil && n == 0 {
		return core.Errorf(core.NotFound, "the index has no content %q", core.CutRunes(content, 100))
	}
	return err
}

// Add inserts chunks of fields other than Content, or replaces those with the same field
// and index; all or none. They are found as passages of the document, by its readers.
func (s *Store) Add(ctx context.Context, content string, list []Stored) error {
	if len(list) == 0 || len(list) > MaxChunks {
		return core.Errorf(core.Invalid, "a call adds 1 to %d chunks", MaxChunks)
	}
	for _, c := range list {
		switch {
		case c.Field == Content:
			return core.Errorf(core.Invalid, "the field %q is the document's own text: change the file", Content)
		case !isField(c.Field):
			return core.Errorf(core.Invalid, "a field's name has 1 to %d lower-case letters, digits and underscores", MaxField)
		case c.Index < 0 || c.Index >= MaxChunks:
			return core.Errorf(core.Invalid, "an index is a number from 0 to %d", MaxChunks-1)
		case c.Text == "" || len(c.Text) > MaxText:
			return core.Errorf(core.Invalid, "a chunk has 1 to %d bytes of text", MaxText)
		}
	}
	return s.db.Tx(ctx, func(tx *store.Tx) error {
		d, err := known(ctx, tx, content)
		if err != nil {
			return err
		}
		for _, c := range list {
			if _, err := deleteChunks(ctx, tx, `id = $1`, c.id(content)); err != nil {
				return err
			}
			if err := d.add(ctx, tx, content, c); err != nil {
				return err
			}
		}
		var n int
		if err := tx.Get(ctx, &n, `SELECT count(*) FROM chunks WHERE content_id = $1 AND field <> 'content'`, content); err != nil {
			return err
		}
		if n > MaxChunks {
			return core.Errorf(core.Invalid, "clients may add %d chunks to one document", MaxChunks)
		}
		return nil
	})
}

func isField(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' {
			return false
		}
	}
	return name != "" && len(name) <= MaxField
}

func (c Stored) id(content string) string {
	return "chunk:" + content + ":" + c.Field + ":" + strconv.Itoa(c.Index)
}

// known returns the document with a content id, without its chunks.
func known(ctx context.Context, q store.Queryer, content string) (*Document, error) {
	var was struct {
		Title    string `db:"title"`
		Path     string `db:"source_path"`
		Metadata string `db:"metadata"`
		Open     bool   `db:"open"`
		Type     string `db:"content_type"`
	}
	err := q.Get(ctx, &was, `SELECT coalesce(title, '') AS title, coalesce(source_path, '') AS source_path, coalesce(metadata, '') AS metadata, open, content_type FROM index_manifest WHERE content_id = $1 AND content_type <> 'session'`, content)
	if errors.Is(err, store.ErrNoRows) {
		return nil, core.Errorf(core.NotFound, "the index has no content %q", core.CutRunes(content, 100))
	}
	return &Document{File: File{Path: was.Path, Open: was.Open}, Title: was.Title, Tags: tagsOf(was.Metadata), Journal: was.Type == search.Journal}, err
}

// add inserts a chunk of a field that clients fill.
func (d *Document) add(ctx context.Context, tx *store.Tx, content string, c Stored) error {
	n, err := tx.Insert(ctx, `INSERT INTO chunks (id, content_id, content_type, field, chunk_index, chunk_text, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		c.id(content), content, d.kind(), c.Field, c.Index, c.Text, core.Stamp(tx.Time()))
	if err == nil {
		err = d.folded().put(ctx, tx, n, c.Text)
	}
	return err
}

// renew inserts what clients have added to a document again, with the title, tags and
// rights that it has now.
func (d *Document) renew(ctx context.Context, tx *store.Tx, content string) error {
	var list []Stored
	err := tx.Select(ctx, &list, `SELECT id, field, chunk_index, chunk_text FROM chunks WHERE content_id = $1 AND field <> 'content' ORDER BY n`, content)
	for _, c := range list {
		if _, err := deleteChunks(ctx, tx, `id = $1`, c.ID); err != nil {
			return err
		}
		if err := d.add(ctx, tx, content, c); err != nil {
			return err
		}
	}
	return err
}

// Purge deletes all chunks of a content, those that clients have added too. The next pass
// over the vault indexes its file again.
func (s *Store) Purge(ctx context.Context, content string) error {
	if err := has(ctx, s.db, content); err != nil {
		return err
	}
	err := s.delete(ctx, `content_id = $1`, content, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE index_manifest SET content_hash = '', chunk_count = 0 WHERE content_id = $1`, content)
		if err == nil { // an entry is read with its file
			_, err = tx.Exec(ctx, reread, content)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("index: purge: %w", err)
	}
	return nil
}
