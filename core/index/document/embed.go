package document

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/index/search"
	"gatehouse/core/index/vector"
	"gatehouse/core/store"
)

// A Passage is a chunk as a model embeds it.
type Passage struct {
	N        int64  `db:"n"`
	Content  string `db:"content_id"`
	Type     string `db:"content_type"`
	Path     string `db:"source_path"` // of the document or transcript, relative to the vault
	Title    string `db:"title"`
	Text     string `db:"chunk_text"` // of a conversation: the caller's to set
	Embedder int64  `db:"embedder"`   // the model that has read it, 0 for none
	Created  string `db:"created_at"`

	Field  string `db:"field"` // of a conversation: where its text is
	Index  int64  `db:"chunk_index"`
	Length int64  `db:"length"`
	Piece  int    `db:"piece"`
}

// Embedded is what a model has to read of a passage: the text, and the document's title
// where the text does not begin with it.
func (p Passage) Embedded() string {
	if p.Title == "" || strings.HasPrefix(p.Text, p.Title) {
		return p.Text
	}
	return p.Title + "\n\n" + p.Text
}

// Pending returns at most limit passages, also of conversations, that the model has not embedded, those that
// were indexed first at first.
func (s *Store) Pending(ctx context.Context, model int64, limit int) ([]Passage, error) {
	return s.PendingAfter(ctx, model, Passage{}, limit)
}

// PendingAfter returns those of Pending that follow a passage which it has returned.
func (s *Store) PendingAfter(ctx context.Context, model int64, after Passage, limit int) (list []Passage, err error) {
	from := after.N
	if from == 0 {
		from = math.MinInt64 // conversations have also lower ones
	}
	for _, where := range [...]string{"c.embedder < $1", "c.embedder > $1"} { // each has an index
		var more []Passage
		err := s.db.Select(ctx, &more, `SELECT c.n, c.content_id, c.content_type, c.chunk_text, c.embedder, c.created_at, c.field, c.chunk_index, c.length, c.piece, coalesce(m.source_path, '') AS source_path, coalesce(m.title, '') AS title
			FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id WHERE `+where+` AND (c.embedder, c.n) > ($2, $3) ORDER BY c.embedder, c.n LIMIT `+strconv.Itoa(limit-len(list)), model, after.Embedder, from)
		if err != nil {
			return nil, fmt.Errorf("index: passages to embed: %w", err)
		}
		if list = append(list, more...); len(list) == limit {
			break
		}
	}
	return list, nil
}

// Embedded returns how many passages the model has read, of all.
func (s *Store) Embedded(ctx context.Context, model int64) (done, all int64, err error) {
	var n struct {
		Done int64 `db:"done"`
		All  int64 `db:"total"`
	}
	err = s.db.Get(ctx, &n, `SELECT (SELECT count(*) FROM chunks WHERE embedder = $1) AS done, (SELECT count(*) FROM chunks) AS total`, model)
	if err != nil {
		return 0, 0, fmt.Errorf("index: count embeddings: %w", err)
	}
	return n.Done, n.All, nil
}

// Embed stores a model's vectors of passages; a passage without one is not pending any
// more and not found by its meaning. What has changed since Pending is passed over.
func (s *Store) Embed(ctx context.Context, model int64, list []Passage, vectors [][]float32) error {
	for from := 0; from < len(list); from += step {
		to := min(from+step, len(list))
		err := s.db.Tx(ctx, func(tx *store.Tx) error { return embed(ctx, tx, model, list[from:to], vectors[from:to]) })
		if err != nil {
			return fmt.Errorf("index: embed: %w", err)
		}
	}
	return nil
}

func embed(ctx context.Context, tx *store.Tx, model int64, list []Passage, vectors [][]float32) error {
	var near []vector.Entry
	for i, p := range list {
		v, ok := vector.Normal(vectors[i])
		if !ok && vectors[i] != nil {
			return errors.New("a vector is zero or not finite")
		}
		stored := p.Text
		if p.Type == search.Session {
			stored = "" // it is in the transcript
		}
		n, err := tx.Exec(ctx, `UPDATE chunks SET embedding = $1, embedder = $2 WHERE n = $3 AND content_id = $4 AND chunk_text = $5 AND created_at = $6`, vector.Encode(v), model, p.N, p.Content, stored, p.Created)
		if err != nil {
			return err
		}
		if n == 0 || v == nil {
			continue
		}
		key, err := p.key(ctx, tx)
		if err != nil {
			return err
		}
		near = append(near, vector.Entry{N: p.N, Key: key, Vector: v})
	}
	return vector.Put(ctx, tx, model, near)
}

// key returns what the search by meaning knows of the passage's content.
func (p Passage) key(ctx context.Context, tx *store.Tx) (uint64, error) {
	if p.Type == search.Session {
		var s struct {
			User  int64      `db:"user_id"`
			Trust core.Trust `db:"trust_level"`
		}
		err := tx.Get(ctx, &s, `SELECT user_id, trust_level FROM sessions WHERE id = $1`, p.Content)
		if errors.Is(err, store.ErrNoRows) {
			err = nil // it is being deleted: no one's
		}
		return sessionKey(s.User, s.Trust), err
	}
	var doc struct {
		Path string `db:"source_path"`
		Open bool   `db:"open"`
	}
	err := tx.Get(ctx, &doc, `SELECT source_path, open FROM index_manifest WHERE content_id = $1`, p.Content)
	return nearKey(guestOf(doc.Path), doc.Open), err
}

// ofSession is a bit that keys of conversations have, and those of documents do not.
const ofSession = 1 << 62

// sessionKey is what the search by meaning knows of a conversation: its owner, and its
// trust when it was embedded.
func sessionKey(user int64, trust core.Trust) uint64 {
	return ofSession | uint64(user)<<2 | uint64(trust)&3
}

// OfSession returns what a key of vector.Search.May knows of a conversation; false for that
// of a document.
func OfSession(key uint64) (user int64, trust core.Trust, ok bool) {
	key, ok = key&^ofSession, key&ofSession != 0
	return int64(key >> 2), core.Trust(key & 3), ok
}

// Begin prepares for a model: the vectors of others are removed, and the passages that it
// has stored without a vector are pending again.
func (s *Store) Begin(ctx context.Context, model int64) error {
	if err := s.DropVectors(ctx, model); err != nil {
		return err
	}
	for after := int64(math.MinInt64); ; {
		var list []int64
		err := s.db.Select(ctx, &list, `SELECT n FROM chunks WHERE embedder = $1 AND embedding IS NULL AND n > $2 ORDER BY n LIMIT `+strconv.Itoa(shedStep), model, after)
		if err == nil && len(list) > 0 {
			err = s.db.Tx(ctx, func(tx *store.Tx) error {
				for _, n := range list {
					if _, err := tx.Exec(ctx, `UPDATE chunks SET embedder = 0 WHERE n = $1 AND embedder = $2 AND embedding IS NULL`, n, model); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			return fmt.Errorf("index: begin to embed: %w", err)
		}
		if len(list) < shedStep {
			return nil
		}
		after = list[len(list)-1]
	}
}

// DropVectors removes the vectors of all models but one, 0 for none: those of earlier
// models cannot be compared. From then on Put keeps those of that model alone. Passages
// keep what the model has to read. What was removed stays in free pages of the database's
// file until they are used again or the file is rewritten.
func (s *Store) DropVectors(ctx context.Context, except int64) error {
	s.model.Store(except) // first: a Put that runs keeps none after the last is removed
	for n := int64(shedStep); except == 0 && n == shedStep; {
		err := s.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = tx.Exec(ctx, `UPDATE chunks SET embedding = NULL, embedder = 0 WHERE n IN (SELECT n FROM chunks WHERE embedder > 0 LIMIT `+strconv.Itoa(shedStep)+`)`)
			return err
		})
		if err != nil {
			return fmt.Errorf("index: drop vectors: %w", err)
		}
	}
	for n := shedStep; n == shedStep; {
		err := s.db.Tx(ctx, func(tx *store.Tx) (err error) {
			n, err = vector.Clear(ctx, tx, except, shedStep)
			return err
		})
		if err != nil {
			return fmt.Errorf("index: drop vectors: %w", err)
		}
	}
	return nil
}

// usable returns embeddings if they are of the current model.
func (s *Store) usable(kept embeddings) embeddings {
	if model := s.model.Load(); model != anyModel && kept.model != model {
		return embeddings{}
	}
	return kept
}

// maxKept limits the passages of a document whose embeddings are kept when it changes;
// longer documents are embedded again.
const maxKept = 256

// embeddings are those that a document has, of the model that made the latest.
type embeddings struct {
	model  int64
	byText map[string][]byte // at most maxKept
}

type embedding struct {
	Text   string `db:"chunk_text"`
	Title  string `db:"title"`
	Vector []byte `db:"embedding"`
	Model  int64  `db:"embedder"`
}

// embedded returns the embeddings of a document, which its passages with the same text
// keep: a model is asked about what has changed alone.
func (s *Store) embedded(ctx context.Context, id string) (kept embeddings, err error) {
	var rows []embedding
	err = s.db.Select(ctx, &rows, `SELECT c.chunk_text, coalesce(m.title, '') AS title, c.embedding, c.embedder FROM chunks c JOIN index_manifest m ON m.content_id = c.content_id
		WHERE c.content_id = $1 AND c.embedder > 0 AND c.embedding IS NOT NULL ORDER BY c.embedder DESC LIMIT `+strconv.Itoa(maxKept), id)
	for _, r := range rows {
		if kept.byText == nil {
			kept = embeddings{r.Model, map[string][]byte{}}
		}
		if r.Model == kept.model {
			kept.byText[Passage{Title: r.Title, Text: r.Text}.Embedded()] = r.Vector
		}
	}
	return kept, err
}

// of returns the embedding of a passage; without one it is pending.
func (e embeddings) of(title, text string) embedding {
	if v := e.byText[Passage{Title: title, Text: text}.Embedded()]; len(v) > 0 {
		return embedding{Vector: v, Model: e.model}
	}
	return embedding{}
}

// nearKey is what the search by meaning knows of a document: the guest in whose
// directory it is, 0 for none, and whether all guests may read it.
func nearKey(guest int64, open bool) uint64 {
	key := uint64(guest) << 1
	if open {
		key |= 1
	}
	return key
}
