package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/session/words"
	"gatehouse/core/store"
	"gatehouse/core/vault"
)

// Bounds of what one step puts into the index.
const (
	maxNew  = 1 << 20   // bytes of a transcript in a turn's end; more is upkeep's
	maxStep = 256 << 10 // bytes of a transcript in one transaction of upkeep
	maxFill = 32 << 20  // bytes of transcripts in one Fill
	maxWalk = 256       // sessions that are looked at in one statement of Fill
	maxText = 256 << 10 // bytes of one message that are searched
	maxRaw  = 16 << 20  // the longest line that is read
)

// noLine is the place of a session's title and tags in the index.
const noLine = -1

// Words are what a transcript holds that the index does not know yet. The zero
// value is nothing.
type Words struct {
	file     string
	from, to int64
	docs     []doc
	behind   bool // upkeep has to do the rest
}

// A doc is one message for the index.
type doc struct {
	at, length int64 // of its line in the file
	words      string
}

// Words reads what the conversation has that cannot be found yet, the present
// run's lines among it; at most 1 MB, the rest is left to Fill. What cannot be
// read is left to it too.
func (c *Conversation) Words(ctx context.Context) (w Words) {
	defer func() { c.tail.listed, c.tail.upTo = !w.behind, w.to }()
	if t := &c.tail; t.listed && t.info != nil && c.said.are(t.upTo, t.info.Size()) {
		return Words{file: c.name, from: t.upTo, to: c.said.to, docs: c.said.docs}
	}
	w = Words{file: c.name}
	st, err := c.s.vault.Stat(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return Words{}
	}
	if err == nil {
		err = c.s.db.Get(ctx, &w.from, `SELECT bytes FROM search_sessions WHERE session_id = $1`, c.sess.ID)
		if errors.Is(err, store.ErrNoRows) {
			err = nil
		}
	}
	if err == nil && st.Size()-w.from > maxNew || err == nil && st.Size() < w.from {
		w.to, w.behind = w.from, true
		return w
	}
	if err == nil {
		w.docs, w.to, err = c.s.scan(c.name, w.from, maxNew)
	}
	if err != nil {
		c.s.log.Warn("what was said cannot be found yet", "session", c.sess.ID, "err", err)
		w.docs, w.to, w.behind = nil, w.from, true
	}
	return w
}

// scan reads the messages of the lines that begin in the most bytes behind
// from. A last line without its end is left for later.
func (s *Store) scan(name string, from, most int64) (docs []doc, to int64, err error) {
	f, err := s.vault.Root().Open(name)
	if err != nil {
		return nil, from, fmt.Errorf("read transcript: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil, from, errors.Join(err, core.Errorf(core.Invalid, "the transcript is not a plain file"))
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return nil, from, fmt.Errorf("read transcript: %w", err)
	}
	r := bufio.NewReaderSize(f, int(min(max(st.Size()-from, 512), 64<<10)))
	for to = from; to-from < most; {
		raw, n, err := readLine(r)
		if err != nil {
			return docs, to, err
		}
		if n == 0 {
			break
		}
		if text, _ := messageOf(raw); text != "" {
			docs = appendDoc(docs, to, n, text)
		}
		to += n
	}
	return docs, to, nil
}

// readLine reads one whole line and says how long it is; 0 at the end. Of one
// longer than maxRaw nothing is kept.
func readLine(r *bufio.Reader) (raw []byte, n int64, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		n += int64(len(piece))
		if n <= maxRaw {
			raw = append(raw, piece...)
		} else {
			raw = nil
		}
		switch {
		case err == nil:
			return raw, n, nil
		case errors.Is(err, io.EOF):
			return nil, 0, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, 0, fmt.Errorf("read transcript: %w", err)
		}
	}
}

// messageOf is what a line says that is searched, and the line: words of a
// person or the model, no side chain's and no summary's.
func messageOf(raw []byte) (text string, l vault.Line) {
	if !bytes.Contains(raw, []byte(`"text"`)) && !bytes.Contains(raw, []byte(`"content":"`)) {
		return "", l
	}
	var m struct {
		vault.Line
		Summary bool `json:"isCompactSummary"`
		Meta    bool `json:"isMeta"`
	}
	if json.Unmarshal(raw, &m) != nil || m.UUID == "" || m.IsSidechain || m.Summary || m.Meta {
		return "", l
	}
	msg, ok := decode(&m.Line)
	if !ok {
		return "", l
	}
	return msg.searched(), m.Line
}

// searched is what of a message's words can be searched for.
func (m *Message) searched() string {
	text := m.text()
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

func appendDoc(docs []doc, at, length int64, text string) []doc {
	if w := words.Index(text); w != "" {
		docs = append(docs, doc{at, length, w})
	}
	return docs
}

// spoken are the docs of the lines that one conversation has appended, so that
// they need not be read again.
type spoken struct {
	from, to int64 // the part of the file that they are of
	docs     []doc
	scan     bool // it is not known where they stand: the file says
}

func (s *spoken) add(from, to int64, messages []Message) {
	if s.to == 0 {
		s.from, s.to = from, from
	}
	switch {
	case len(messages) == 0:
		return
	case len(messages) > 1 || s.to != from:
		s.scan = true
		return
	}
	s.to = to
	if text := messages[0].searched(); text != "" {
		s.docs = appendDoc(s.docs, from, to-from, text)
	}
}

// are reports whether these are all lines between two places of the file.
func (s *spoken) are(from, to int64) bool {
	return !s.scan && s.to > 0 && s.from == from && s.to == to && to-from <= maxNew
}

// found puts a turn's words into the index. What another attempt has put there
// already is not put there twice.
func (s *Store) found(ctx context.Context, tx *store.Tx, id string, was sessionWas, w Words) (err error) {
	n := was.N
	switch {
	case w.file == "":
		return nil
	case n == 0 && w.from > 0: // the index has been emptied meanwhile
		_, err = s.number(ctx, tx, id)
		w.docs = nil
	case n == 0:
		n, err = tx.Insert(ctx, `INSERT INTO search_sessions (session_id, file, bytes, behind) VALUES ($1, $2, $3, $4)`, id, w.file, w.to, w.behind)
	case was.Bytes != w.from: // somebody else was there: upkeep looks
		_, err = tx.Exec(ctx, `UPDATE search_sessions SET behind = 1 WHERE n = $1`, n)
		w.docs = nil
	case w.behind:
		_, err = tx.Exec(ctx, `UPDATE search_sessions SET file = $2, behind = 1 WHERE n = $1`, n, w.file)
	default:
		_, err = tx.Exec(ctx, `UPDATE search_sessions SET file = $2, bytes = $3 WHERE n = $1`, n, w.file, w.to)
	}
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return s.put(ctx, tx, n, was.User, w.docs)
}

// put inserts docs of the session with number n.
func (s *Store) put(ctx context.Context, tx *store.Tx, n, user int64, docs []doc) error {
	for _, d := range docs {
		if err := s.putOne(ctx, tx, n, user, d, ""); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) putOne(ctx context.Context, tx *store.Tx, n, user int64, d doc, starts string) error {
	keys := tx.Words(indexKeys(n, user, d.words, starts))
	row, err := tx.Insert(ctx, `INSERT INTO search_docs (n, at_byte, length) VALUES ($1, $2, $3)`, n, d.at, d.length)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO search (rowid, words, starts, keys) VALUES ($1, $2, $3, $4)`, row, tx.Words(d.words), tx.Words(starts), keys)
	}
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

// indexKeys is the column keys: the session's, and every word again as its
// person's own, so that a search in one person's sessions reads nobody else's.
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

// sessionKey and ownWord are words of the column keys. The letter behind the
// digits keeps user 7's "1x" from being user 71's "x".
func sessionKey(n int64) string { return "s" + strconv.FormatInt(n, 10) }
func ownWord(user int64, word string) string {
	return "u" + strconv.FormatInt(user, 10) + "w" + word
}

// number is the session's in the index. One that is new there is behind.
func (s *Store) number(ctx context.Context, tx *store.Tx, id string) (n int64, err error) {
	err = tx.Get(ctx, &n, `INSERT INTO search_sessions (session_id, behind) VALUES ($1, 1)
		ON CONFLICT (session_id) DO UPDATE SET session_id = excluded.session_id RETURNING n`, id)
	if err != nil {
		return 0, fmt.Errorf("search index: %w", err)
	}
	return n, nil
}

// head puts a session's title and tags into the index, in place of what was there.
func (s *Store) head(ctx context.Context, tx *store.Tx, id string) error {
	n, err := s.number(ctx, tx, id)
	if err != nil {
		return err
	}
	d, err := s.Detail(ctx, tx, id)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM search_docs WHERE n = $1 AND at_byte = $2`, n, noLine); err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	text := headText(d.Title, d.Tags)
	found := words.Index(text)
	if found == "" {
		return nil
	}
	return s.putOne(ctx, tx, n, d.User, doc{noLine, 0, found}, words.Starts(text))
}

func headText(title string, tags []string) string {
	return strings.Join(append([]string{title}, tags...), "\n")
}
