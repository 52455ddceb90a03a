package index

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/core/store"
	"gatehouse/core/transcript"
	"gatehouse/core/transcript/words"
)

// Limits of what one step inserts into the index.
const (
	maxStep = 256 << 10 // bytes of a transcript in one transaction of upkeep
	maxFill = 32 << 20  // bytes of transcripts in one Fill
	maxWalk = 256       // sessions that are checked in one statement of Fill
)

// noLine is the place of a session's title and tags in the index.
const noLine = -1

// Words returns what a conversation has that is not indexed yet; see
// transcript.Conversation.Words.
func (x *Index) Words(ctx context.Context, c *transcript.Conversation) transcript.Words {
	return c.Words(func() (from int64, err error) {
		err = x.db.Get(ctx, &from, `SELECT bytes FROM search_sessions WHERE session_id = $1`, c.Session().ID)
		if errors.Is(err, store.ErrNoRows) {
			err = nil
		}
		return from, err
	})
}

// A State is what the index has of a session. A caller that reads the session's row
// anyway joins search_sessions to it, which saves a statement.
type State struct {
	User  int64 `db:"user_id"` // the session's
	N     int64 `db:"n"`       // 0: the index does not know the session
	Bytes int64 `db:"bytes"`   // of its transcript that are indexed
}

// Add inserts a turn's text into the index. What another attempt has inserted is not
// inserted twice.
func (x *Index) Add(ctx context.Context, tx *store.Tx, id string, was State, w transcript.Words) (err error) {
	n := was.N
	switch {
	case w.File == "":
		return nil
	case n == 0 && w.From > 0: // the index has been emptied in the meantime
		_, err = x.number(ctx, tx, id)
		w.Docs = nil
	case n == 0:
		n, err = tx.Insert(ctx, `INSERT INTO search_sessions (session_id, file, bytes, behind) VALUES ($1, $2, $3, $4)`, id, w.File, w.To, w.Behind)
	case was.Bytes != w.From: // someone else was there: upkeep looks
		_, err = tx.Exec(ctx, `UPDATE search_sessions SET behind = 1 WHERE n = $1`, n)
		w.Docs = nil
	case w.Behind:
		_, err = tx.Exec(ctx, `UPDATE search_sessions SET file = $2, behind = 1 WHERE n = $1`, n, w.File)
	default:
		_, err = tx.Exec(ctx, `UPDATE search_sessions SET file = $2, bytes = $3 WHERE n = $1`, n, w.File, w.To)
	}
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return x.put(ctx, tx, n, was.User, w.Docs)
}

// put inserts docs of the session with number n.
func (x *Index) put(ctx context.Context, tx *store.Tx, n, user int64, docs []transcript.Doc) error {
	for _, d := range docs {
		if err := x.putOne(ctx, tx, n, user, d, ""); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) putOne(ctx context.Context, tx *store.Tx, n, user int64, d transcript.Doc, starts string) error {
	keys := tx.Words(indexKeys(n, user, d.Words, starts))
	row, err := tx.Insert(ctx, `INSERT INTO search_docs (n, at_byte, length) VALUES ($1, $2, $3)`, n, d.At, d.Length)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO search (rowid, words, starts, keys) VALUES ($1, $2, $3, $4)`, row, tx.Words(d.Words), tx.Words(starts), keys)
	}
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// indexKeys returns the column keys: the session's, and every term prefixed by its user,
// so that a search in one user's sessions reads only those.
func indexKeys(n, user int64, texts ...string) string {
	var b strings.Builder
	b.WriteString(sessionKey(n))
	for _, text := range texts {
		for word := range strings.FieldsSeq(text) {
			b.WriteString(" " + ownWord(user, word))
		}
	}
	return b.String()
}

// sessionKey and ownWord return terms of the column keys. The letter after the digits
// distinguishes user 7's "1x" from user 71's "x".
func sessionKey(n int64) string { return "s" + strconv.FormatInt(n, 10) }
func ownWord(user int64, word string) string {
	return "u" + strconv.FormatInt(user, 10) + "w" + word
}

// number returns the session's in the index. One that is new there is behind.
func (x *Index) number(ctx context.Context, tx *store.Tx, id string) (n int64, err error) {
	err = tx.Get(ctx, &n, `INSERT INTO search_sessions (session_id, behind) VALUES ($1, 1)
		ON CONFLICT (session_id) DO UPDATE SET session_id = excluded.session_id RETURNING n`, id)
	if err != nil {
		return 0, fmt.Errorf("search index: %w", err)
	}
	return n, nil
}

// SetHead inserts a session's title and tags into the index, in place of what was
// there.
func (x *Index) SetHead(ctx context.Context, tx *store.Tx, id string, h Head) error {
	n, err := x.number(ctx, tx, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM search_docs WHERE n = $1 AND at_byte = $2`, n, noLine); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	text := headText(h.Title, h.Tags)
	found := words.Index(text)
	if found == "" {
		return nil
	}
	return x.putOne(ctx, tx, n, h.User, transcript.Doc{At: noLine, Words: found}, words.Starts(text))
}

func headText(title string, tags []string) string {
	return strings.Join(append([]string{title}, tags...), "\n")
}
