package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/index"
	"gatehouse/core/store"
	"gatehouse/core/transcript"
)

// A Finish is what a turn changes in its session's row.
type Finish struct {
	Messages int    // of user and assistant, to add
	Model    string // "" keeps the old one
	Title    string // the turn's text; its first line becomes the title of a session without one
	At       time.Time
	Words    transcript.Words // what can be found from now on; see Store.Words
}

// sessionWas is what Finish has to know of a session.
type sessionWas struct {
	index.State
	Untitled bool `db:"untitled"`
}

// Finish writes a turn's end. A session that is gone is no error.
func (s *Store) Finish(ctx context.Context, tx *store.Tx, id string, f Finish) error {
	var was sessionWas
	err := tx.Get(ctx, &was, `SELECT s.user_id, CASE WHEN s.title_source = 'default' AND coalesce(s.title, '') = '' THEN 1 ELSE 0 END AS untitled,
			CASE WHEN w.content_id IS NULL THEN 0 ELSE 1 END AS known, coalesce(w.source_path, '') AS file, coalesce(w.size, 0) AS bytes
		FROM sessions s LEFT JOIN index_manifest w ON w.content_id = s.id WHERE s.id = $1`, id)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE sessions SET message_count = message_count + $2, last_accessed = $3,
			model = CASE WHEN $4 = '' THEN model ELSE $4 END WHERE id = $1`, id, f.Messages, core.Stamp(f.At), f.Model)
	}
	if err != nil {
		return fmt.Errorf("finish session: %w", err)
	}
	if err := s.Add(ctx, tx, id, was.State, f.Words); err != nil {
		return err
	}
	title := Title(f.Title)
	if !was.Untitled || title == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE sessions SET title = $2 WHERE id = $1`, id, title); err != nil {
		return fmt.Errorf("title session: %w", err)
	}
	if err := s.indexHead(ctx, tx, id); err != nil {
		return err
	}
	return s.keepCurrent(ctx, tx, id)
}

// maxTitle is in characters.
const maxTitle = 60

// Title returns a title for a message: its first non-empty line, without control
// characters, at most 60 characters, cut at a space.
func Title(text string) string {
	var line string
	for l := range strings.Lines(text) {
		if len(l) > 4*4*maxTitle { // more than enough, of a line that may be a megabyte
			l = strings.ToValidUTF8(l[:4*4*maxTitle], "")
		}
		if line = transcript.OneLine(l); line != "" {
			break
		}
	}
	if utf8.RuneCountInString(line) <= maxTitle {
		return line
	}
	cut := string([]rune(line)[:maxTitle-1])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRightFunc(cut, unicode.IsSpace) + "…"
}
