package document

import (
	"context"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/store/fulltext"
	"gatehouse/core/transcript/words"
)

// Tables of words. The rows of guestWords are those that readers below trust vault may
// find, with forReader's tokens.
const (
	ownerWords = "document_words"
	guestWords = "guest_words"
)

// A folded is what all passages of a document are found by.
type folded struct{ title, keys, reader string }

func (d *Document) folded() folded {
	title := words.Index(d.Title + "\n" + strings.ReplaceAll(d.Path, "/", "\n"))
	return folded{title, d.tagKeys(), d.reader()}
}

// put inserts the words of a passage.
func (f folded) put(ctx context.Context, tx *store.Tx, n int64, text string) error {
	text = words.Index(text)
	_, err := tx.Exec(ctx, `INSERT INTO document_words (rowid, title, words, keys) VALUES ($1, $2, $3, $4)`, n, tx.Words(f.title), tx.Words(text), tx.Words(f.keys))
	if err != nil || f.reader == "" {
		return err
	}
	own := func(tokens string) string { return tx.Words(forReader(f.reader, tokens)) }
	_, err = tx.Exec(ctx, `INSERT INTO guest_words (rowid, title, words, keys) VALUES ($1, $2, $3, $4)`, n, own(f.title), own(text), tx.Words(f.reader+" "+forReader(f.reader, f.keys)))
	return err
}

// How the indexes of words are merged: after so many puts, so many pages at a time, which
// takes some three milliseconds of the database's one writer.
const (
	putsBetween = 16
	mergePages  = 64
)

// merge merges what puts have added to the indexes of words: many small parts make
// searches slow.
func (s *Store) merge(ctx context.Context) error {
	if s.puts.Add(1)%putsBetween != 0 {
		return nil
	}
	for _, table := range [...]string{ownerWords, guestWords} {
		for more := true; more; {
			var err error
			if more, err = s.db.MergeSome(ctx, table, mergePages); err != nil {
				return err
			}
			if more {
				s.pause(ctx)
			}
		}
	}
	return nil
}

// all reports whether the reader may find every document.
func (l *lookup) all() bool { return l.r.Trust >= core.Vault }

// table returns where words are looked for. What readers below trust vault find, and how long
// that takes, depends on no row that they may not read; its order on none of the owner's, and of
// other guests' on how many they are and how long, which the rank reads of the whole table.
func (l *lookup) table() string {
	if l.all() {
		return ownerWords
	}
	return guestWords
}

// readers returns the keys of the rows that a reader below trust vault may find.
func (l *lookup) readers() []string {
	if l.r.User > 0 {
		return []string{guestKey(l.r.User), openKey}
	}
	return []string{openKey}
}

// term returns the condition that a row has tokens next to each other, in one of columns.
func (l *lookup) term(columns []string, tokens ...string) fulltext.Term {
	t := fulltext.Term{Columns: columns, Words: tokens, Alone: true}
	if !l.all() {
		t.Words = nil
		for _, key := range l.readers() {
			t.Any = append(t.Any, forReader(key, strings.Join(tokens, " ")))
		}
	}
	return t
}

// word and tag are terms of a search.
func (l *lookup) word(tokens []string) fulltext.Term { return l.term(columns, tokens...) }
func (l *lookup) tag(tag string) fulltext.Term       { return l.term(keys, tagKey(tag)) }

// without returns the term of a word that a row must not have.
func (l *lookup) without(tokens []string) fulltext.Term {
	t := l.word(tokens)
	t.Not = true
	return t
}

// rights returns the term that all rows have which a reader below trust vault may find;
// none for others. The terms of words and tags imply it.
func (l *lookup) rights() []fulltext.Term {
	if l.all() {
		return nil
	}
	return []fulltext.Term{{Columns: keys, Any: l.readers()}}
}

// Columns of the tables of words.
var (
	columns = []string{"title", "words"}
	keys    = []string{"keys"}
)
