package document

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/search"
	"gatehouse/core/index/vector"
	"gatehouse/core/store"
)

// How many chunks one transaction inserts or deletes: it takes some three milliseconds
// of the database's one writer, for which messages wait.
const (
	step     = 16
	shedStep = 64
)

// Put replaces all that is indexed of the document. One without chunks, as with Fault, is
// found by its title and path (but a file of a journal whose entries have it all), and one
// of a user that is not known is removed. Large
// documents take several transactions; until the last the row of the document has no hash,
// so that a client that compares hashes uploads it again.
func (s *Store) Put(ctx context.Context, d Document) error {
	if d.Journal && d.entry == "" {
		if err := s.putEntries(ctx, &d); err != nil {
			return fmt.Errorf("index %q: %w", d.Path, err)
		}
	}
	return s.put(ctx, d)
}

// put is Put for one content.
func (s *Store) put(ctx context.Context, d Document) error {
	if err := s.merge(ctx); err != nil {
		return fmt.Errorf("index: merge: %w", err)
	}
	id := d.id()
	kept, err := s.embedded(ctx, id)
	if err != nil {
		return fmt.Errorf("index %q: %w", d.Path, err)
	}
	if len(d.Chunks) == 0 && !d.blank() {
		d.Chunks = []chunk.Chunk{{Line: 1}} // it is found by its title and path
	}
	small := len(d.Chunks) <= step // as most are: all in one transaction
	for more := true; more; {
		err := s.db.TxSoon(ctx, func(tx *store.Tx) (err error) { // what a power cut undoes is found out again
			owned, err := d.owned(ctx, tx, s.known)
			if err != nil {
				return err
			}
			which := `content_id = $1 AND field = 'content'`
			if !owned {
				which = `content_id = $1`
			}
			if more, err = deleteChunks(ctx, tx, which, id); err != nil {
				return err
			}
			if !owned {
				_, gone := tx.Exec(ctx, `DELETE FROM index_manifest WHERE content_id = $1`, id)
				return errors.Join(err, gone)
			}
			if more || !small {
				return d.manifest(ctx, tx, id, "")
			}
			if err := d.insert(ctx, tx, id, 0, d.Chunks, s.usable(kept)); err != nil {
				return err
			}
			return d.manifest(ctx, tx, id, d.Hash)
		})
		if err != nil {
			return fmt.Errorf("index %q: %w", d.Path, err)
		}
	}
	for from := 0; !small && from < len(d.Chunks); from += step {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		part := d.Chunks[from:min(from+step, len(d.Chunks))]
		err := s.db.TxSoon(ctx, func(tx *store.Tx) error {
			owned, err := d.owned(ctx, tx, s.known)
			if err == nil && owned {
				err = d.insert(ctx, tx, id, from, part, s.usable(kept))
			}
			if err == nil && owned && from+len(part) == len(d.Chunks) {
				err = d.manifest(ctx, tx, id, d.Hash)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("index %q: %w", d.Path, err)
		}
	}
	return nil
}

// owned reports whether the document is of no guest, or of one that is stored: what is
// forgotten of a user is not indexed again from a file that was read before.
func (d *Document) owned(ctx context.Context, tx *store.Tx, known Known) (bool, error) {
	user := guestOf(d.Path)
	if user == 0 {
		return true, nil
	}
	return known(ctx, tx, user)
}

func (d *Document) manifest(ctx context.Context, tx *store.Tx, id, hash string) error {
	if hash != "" {
		if err := d.renew(ctx, tx, id); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO index_manifest (content_id, content_hash, title, indexed_at, chunk_count, source_path, metadata, area, open, size, modified, fault, changed, content_type, part)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
		ON CONFLICT (content_id) DO UPDATE SET content_hash = excluded.content_hash, title = excluded.title, indexed_at = excluded.indexed_at, chunk_count = excluded.chunk_count,
			source_path = excluded.source_path, metadata = excluded.metadata, area = excluded.area, open = excluded.open, size = excluded.size, modified = excluded.modified, fault = excluded.fault, changed = excluded.changed, content_type = excluded.content_type`,
		id, hash, d.Title, core.Stamp(tx.Time()), d.passages(), d.Path, d.metadata(), areaOf(d.Path), d.Open, d.Size, stampOf(d.Modified), d.Fault, stampOf(d.Changed), d.kind(), d.entry != "")
	return err
}

func (d *Document) insert(ctx context.Context, tx *store.Tx, id string, from int, part []chunk.Chunk, kept embeddings) error {
	words, now := d.folded(), core.Stamp(tx.Time())
	var near []vector.Entry
	for i, c := range part {
		was := kept.of(d.Title, c.Text)
		n, err := tx.Insert(ctx, `INSERT INTO chunks (id, content_id, content_type, chunk_index, chunk_text, embedding, created_at, line, embedder) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			"chunk:"+id+":content:"+strconv.Itoa(from+i), id, d.kind(), from+i, c.Text, was.Vector, now, c.Line, was.Model)
		if err == nil {
			err = words.put(ctx, tx, n, c.Text)
		}
		if v, bad := vector.Decode(was.Vector); err == nil && bad == nil && len(v) > 0 {
			near = append(near, vector.Entry{N: n, Key: nearKey(guestOf(d.Path), d.Open), Vector: v})
		}
		if err != nil {
			return err
		}
	}
	return vector.Put(ctx, tx, kept.model, near)
}

// passages returns how many chunks have text.
func (d *Document) passages() (n int) {
	for _, c := range d.Chunks {
		if c.Text != "" {
			n++
		}
	}
	return n
}

// Mark changes what the index knows about a document whose content is the same. It
// is core.NotFound when the index does not have it.
func (s *Store) Mark(ctx context.Context, f File) error {
	id := ID(f.Path)
	var was struct {
		Title    string `db:"title"`
		Metadata string `db:"metadata"`
		Open     bool   `db:"open"`
		Type     string `db:"content_type"`
	}
	err := s.db.Get(ctx, &was, `SELECT coalesce(title, '') AS title, coalesce(metadata, '') AS metadata, open, content_type FROM index_manifest WHERE content_id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return core.Errorf(core.NotFound, "%s is not in the index", f.Path)
	}
	if err == nil && was.Open != f.Open { // the keys of all its passages change
		d := Document{File: f, Title: was.Title, Tags: tagsOf(was.Metadata), Journal: was.Type == search.Journal}
		if err := s.reopenEntries(ctx, d); err != nil {
			return err
		}
		return s.reopen(ctx, d)
	}
	if err == nil {
		err = s.db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE index_manifest SET size = $2, modified = $3, content_hash = $4, changed = $5, indexed_at = $6 WHERE content_id = $1`, id, f.Size, stampOf(f.Modified), f.Hash, stampOf(f.Changed), core.Stamp(tx.Time()))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("index %q: %w", f.Path, err)
	}
	return nil
}

// reopen indexes a document again from its stored passages.
func (s *Store) reopen(ctx context.Context, d Document) error {
	err := s.db.Select(ctx, &d.Chunks, `SELECT chunk_text AS text, line FROM chunks WHERE content_id = $1 AND field = 'content' ORDER BY chunk_index`, d.id())
	if err != nil {
		return fmt.Errorf("index %q: %w", d.Path, err)
	}
	return s.put(ctx, d)
}

// Remove deletes what is indexed of the documents at paths.
func (s *Store) Remove(ctx context.Context, paths []string) error {
	for _, name := range paths {
		err := s.removeEntries(ctx, name, nil)
		if err == nil {
			err = s.remove(ctx, ID(name))
		}
		if err != nil {
			return fmt.Errorf("index: remove %q: %w", name, err)
		}
	}
	return nil
}

// remove deletes a content.
func (s *Store) remove(ctx context.Context, id string) error {
	return s.delete(ctx, `content_id = $1`, id, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM index_manifest WHERE content_id = $1`, id)
		return err
	})
}

// Clear deletes everything that is indexed but conversations; the next pass over the vault indexes it
// again.
func (s *Store) Clear(ctx context.Context) error {
	err := s.delete(ctx, `n > $1 AND content_type <> 'session'`, int64(0), nil)
	for more := true; more && err == nil; {
		err = s.db.Tx(ctx, func(tx *store.Tx) error {
			n, err := tx.Exec(ctx, `DELETE FROM index_manifest WHERE content_id IN (SELECT content_id FROM index_manifest WHERE content_type <> 'session' LIMIT 1000)`)
			more = n > 0
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("index: clear: %w", err)
	}
	return nil
}

// delete deletes the chunks that meet a condition in short transactions, the last of
// which calls also.
func (s *Store) delete(ctx context.Context, where string, arg any, also func(context.Context, *store.Tx) error) error {
	for more := true; more; {
		err := s.db.Tx(ctx, func(tx *store.Tx) (err error) {
			if more, err = deleteChunks(ctx, tx, where, arg); err == nil && !more && also != nil {
				err = also(ctx, tx)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteChunks deletes up to shedStep chunks that meet a condition, and reports whether
// there may be more.
func deleteChunks(ctx context.Context, tx *store.Tx, where string, arg any) (more bool, err error) {
	var gone []int64
	err = tx.Select(ctx, &gone, `SELECT n FROM chunks WHERE `+where+` LIMIT `+strconv.Itoa(shedStep), arg)
	if err != nil || len(gone) == 0 {
		return false, err
	}
	if err := vector.Drop(ctx, tx, gone); err != nil {
		return false, err
	}
	args := make([]any, shedStep)
	for i := range args {
		args[i] = gone[min(i, len(gone)-1)] // the last several times: the text of the statement is the same for any number
	}
	_, err = tx.Exec(ctx, deleteByNumber, args...)
	return len(gone) == shedStep, err
}

var deleteByNumber = `DELETE FROM chunks WHERE n IN (` + placeholders(shedStep) + `)`

// placeholders returns "$1,$2" and so on.
func placeholders(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "$" + strconv.Itoa(i+1)
	}
	return strings.Join(out, ",")
}

// list returns numbers as a list of SQL.
func list(numbers []int64) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}
