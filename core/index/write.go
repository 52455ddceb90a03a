package index

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/words"
)

// Limits of what one step inserts into the index.
const (
	maxStep = 8 << 10  // bytes of a transcript in one transaction of upkeep
	maxFill = 32 << 20 // bytes of transcripts in one Fill
	maxWalk = 256      // sessions that are checked in one statement of Fill
)

// noLine is the place of a session's title and tags in the index.
const noLine = -1

// Words returns what a conversation has that is not indexed yet; see
// transcript.Conversation.Words.
func (x *Index) Words(ctx context.Context, c *transcript.Conversation) transcript.Words {
	return c.Words(func() (from int64, err error) {
		err = x.db.Get(ctx, &from, `SELECT size FROM index_manifest WHERE content_id = $1 AND content_type = 'session'`, c.Session().ID)
		if errors.Is(err, store.ErrNoRows) {
			err = nil
		}
		return from, err
	})
}

// A State is what the index has of a session. A caller that reads the session's row
// anyway joins index_manifest to it, which saves a statement.
type State struct {
	User  int64  `db:"user_id"` // the session's
	Known bool   `db:"known"`   // the index has it
	File  string `db:"file"`
	Bytes int64  `db:"bytes"` // of its transcript that are indexed
}

// Add inserts a turn's text into the index. What another attempt has inserted is not
// inserted twice.
func (x *Index) Add(ctx context.Context, tx *store.Tx, id string, was State, w transcript.Words) (err error) {
	const found = `, behind = CASE WHEN behind = 2 THEN 1 ELSE behind END` // by the turn, before upkeep
	switch {
	case w.File == "":
		return nil
	case !was.Known && w.From > 0: // the index has been emptied in the meantime
		err = x.Expect(ctx, tx, id)
		w.Docs = nil
	case !was.Known:
		late := 0
		if w.Behind {
			late = behind
		}
		err = x.expect(ctx, tx, id, w.File, w.To, late, tx.Time())
	case was.Bytes != w.From: // someone else was there: upkeep looks
		err = x.Behind(ctx, tx, id)
		w.Docs = nil
	case w.Behind:
		err = x.set(ctx, tx, `source_path = $2, behind = 1`, id, w.File)
	case was.File == w.File:
		err = x.set(ctx, tx, `size = $2`+found, id, w.To)
	default:
		err = x.set(ctx, tx, `source_path = $2, size = $3`+found, id, w.File, w.To)
	}
	if err != nil {
		return err
	}
	x.parts.Add(1)
	return x.put(ctx, tx, id, was.User, w.Docs, 0)
}

// put inserts docs of a session. from is the number of the first row, where it is not the
// database's to choose; 0: it is.
func (x *Index) put(ctx context.Context, tx *store.Tx, id string, user int64, docs []transcript.Doc, from int64) error {
	for _, d := range docs {
		if err := x.putOne(ctx, tx, id, user, d, "", from); err != nil {
			return err
		}
		if from != 0 {
			from += rowsOf(d)
		}
	}
	return nil
}

// rowsOf returns how many rows of chunks docs have: one for each piece.
func rowsOf(docs ...transcript.Doc) (n int64) {
	for _, d := range docs {
		n += int64(max(1, d.Pieces))
	}
	return n
}

// Fields of a session's chunks.
const (
	ofMessage = "content"
	ofHead    = "title" // title and tags
)

func (x *Index) putOne(ctx context.Context, tx *store.Tx, id string, user int64, d transcript.Doc, starts string, from int64) error {
	field, at := ofMessage, d.At
	if d.At == noLine {
		field, at = ofHead, 0
	}
	first, err := int64(0), error(nil)
	for piece := range rowsOf(d) {
		args := []any{"chunk:" + id + ":" + field + ":" + strconv.FormatInt(at+piece, 10), id, field, at + piece, core.Stamp(tx.Time()), d.Length, piece}
		n := from + piece
		if from != 0 {
			_, err = tx.Exec(ctx, `INSERT INTO chunks (id, content_id, content_type, field, chunk_index, chunk_text, created_at, length, piece, n) VALUES ($1, $2, 'session', $3, $4, '', $5, $6, $7, $8)`, append(args, n)...)
		} else {
			n, err = tx.Insert(ctx, `INSERT INTO chunks (id, content_id, content_type, field, chunk_index, chunk_text, created_at, length, piece) VALUES ($1, $2, 'session', $3, $4, '', $5, $6, $7)`, args...)
		}
		if err != nil {
			return fmt.Errorf("search index: %w", err)
		}
		if piece == 0 {
			first = n
		}
	}
	keys := tx.Words(indexKeys(id, user, d.Words, starts))
	if _, err = tx.Exec(ctx, `INSERT INTO session_words (rowid, words, starts, keys) VALUES ($1, $2, $3, $4)`, first, tx.Words(d.Words), tx.Words(starts), keys); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// indexKeys returns the column keys: the session's, and every term prefixed by its user,
// so that a search in one user's sessions reads only those.
func indexKeys(id string, user int64, texts ...string) string {
	var b strings.Builder
	b.WriteString(sessionKey(id))
	for _, text := range texts {
		for word := range strings.FieldsSeq(text) {
			b.WriteString(" " + ownWord(user, word))
		}
	}
	return b.String()
}

// sessionKey and ownWord return terms of the column keys. The letter after the digits
// distinguishes user 7's "1x" from user 71's "x".
func sessionKey(id string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return "s" + strconv.FormatUint(h.Sum64(), 36)
}

func ownWord(user int64, word string) string {
	return "u" + strconv.FormatInt(user, 10) + "w" + word
}

// SetHead inserts a session's title and tags into the index, in place of what was
// there.
func (x *Index) SetHead(ctx context.Context, tx *store.Tx, id string, h Head) error {
	if err := x.Expect(ctx, tx, id); err != nil {
		return err
	}
	return x.setHead(ctx, tx, id, h, 0)
}

// setHead is SetHead with the number of the row, as for put.
func (x *Index) setHead(ctx context.Context, tx *store.Tx, id string, h Head, from int64) error {
	if _, err := x.dropFrom(ctx, tx, id, ofHead, 1); err != nil { // no field's name is behind it
		return err
	}
	text := headText(h.Title, h.Tags)
	found := words.Index(text)
	if found == "" {
		return nil
	}
	return x.putOne(ctx, tx, id, h.User, transcript.Doc{At: noLine, Words: found}, words.Starts(text), from)
}

func headText(title string, tags []string) string {
	return strings.Join(append([]string{title}, tags...), "\n")
}
