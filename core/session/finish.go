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
	"gatehouse/core/store"
)

// A Finish is what a turn changes in its session's row.
type Finish struct {
	Messages int    // of user and assistant, to add
	Model    string // "" keeps the old one
	Title    string // the turn's text; its first line becomes the title of a session without one
	At       time.Time
	Words    Words // what can be found from now on; see Conversation.Words
}

// Finish writes a turn's end. A session that is gone is no error.
func (s *Store) Finish(ctx context.Context, tx *store.Tx, id string, f Finish) error {
	var was struct {
		User     int64 `db:"user_id"`
		Untitled bool  `db:"untitled"`
	}
	err := tx.Get(ctx, &was, `UPDATE sessions SET message_count = message_count + $2, last_accessed = $3,
			model = CASE WHEN $4 = '' THEN model ELSE $4 END
		WHERE id = $1 RETURNING user_id,
			CASE WHEN title_source = 'default' AND coalesce(title, '') = '' THEN 1 ELSE 0 END AS untitled`,
		id, f.Messages, core.Stamp(f.At), f.Model)
	if errors.Is(err, store.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("finish session: %w", err)
	}
	if err := s.found(ctx, tx, id, was.User, f.Words); err != nil {
		return err
	}
	title := Title(f.Title)
	if !was.Untitled || title == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE sessions SET title = $2 WHERE id = $1`, id, title); err != nil {
		return fmt.Errorf("title session: %w", err)
	}
	if err := s.head(ctx, tx, id); err != nil {
		return err
	}
	return s.keepCurrent(ctx, tx, id)
}

// maxTitle is in characters.
const maxTitle = 60

// Title makes a title of a message: its first line with words, without control
// characters, at most 60 characters, cut at a word.
func Title(text string) string {
	var line string
	for l := range strings.Lines(text) {
		if len(l) > 4*4*maxTitle { // more than enough, of a line that may be a megabyte
			l = strings.ToValidUTF8(l[:4*4*maxTitle], "")
		}
		if line = clean(l); line != "" {
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

// clean folds white space and drops control, format and broken characters.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
