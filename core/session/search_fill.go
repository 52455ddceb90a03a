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
	"slices"
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

// walked is the key under which Fill notes how far it has looked for sessions
// that the index does not know: a session's id, or walkedAll.
const (
	walked    = "search.walked"
	walkedAll = "*"
)

// Fill brings the index up to date where turns alone do not: sessions that were
// there before it, were imported, or whose transcripts were changed by others.
// It says how many it has looked at; 0 when nothing is left. One call reads at
// most 32 MB of transcripts, in small transactions. Call it from upkeep.
func (s *Store) Fill(ctx context.Context) (int, error) {
	done := 0
	for size := int64(0); size < maxFill; {
		var n []int64
		err := s.db.Select(ctx, &n, `SELECT n FROM search_sessions WHERE behind = 1 ORDER BY n LIMIT $1`, maxWalk)
		if err != nil {
			return done, fmt.Errorf("fill search index: %w", err)
		}
		if len(n) == 0 {
			if more, err := s.walk(ctx); err != nil || !more {
				return done, err
			}
			continue
		}
		for _, n := range n {
			read, err := s.catchUp(ctx, n)
			if err != nil {
				return done, err
			}
			done++
			if size += read + 1<<10; size >= maxFill {
				break
			}
		}
	}
	return done, nil
}

// walk notes the next sessions that the index does not know, and says whether
// there may be any.
func (s *Store) walk(ctx context.Context) (more bool, err error) {
	if last, _, err := store.Metadata(ctx, s.db, walked); err != nil || last == walkedAll {
		return false, err // without a write, every minute
	}
	err = s.db.Tx(ctx, func(tx *store.Tx) error {
		more = false
		last, _, err := store.Metadata(ctx, tx, walked)
		if err != nil || last == walkedAll {
			return err
		}
		var ids []string
		if err := tx.Select(ctx, &ids, `SELECT id FROM sessions WHERE id > $1 ORDER BY id LIMIT $2`, last, maxWalk); err != nil {
			return err
		}
		for _, id := range ids {
			_, err := tx.Exec(ctx, `INSERT INTO search_sessions (session_id, behind) VALUES ($1, 1) ON CONFLICT (session_id) DO NOTHING`, id)
			if err != nil {
				return err
			}
		}
		if more = len(ids) > 0; !more {
			return store.SetMetadata(ctx, tx, walked, walkedAll)
		}
		return store.SetMetadata(ctx, tx, walked, ids[len(ids)-1])
	})
	if err != nil {
		return false, fmt.Errorf("fill search index: %w", err)
	}
	return more, nil
}

// emptyStep bounds the rows that are taken out of the index in one transaction.
const emptyStep = 5000

// emptyIndex forgets what the index has, and has Fill begin again.
func (s *Store) emptyIndex(ctx context.Context) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.EmptyWords(ctx), store.DeleteMetadata(ctx, tx, walked))
	})
	for _, q := range [...]string{
		`DELETE FROM search_docs WHERE id IN (SELECT id FROM search_docs ORDER BY id LIMIT $1)`,
		`DELETE FROM search_sessions WHERE n IN (SELECT n FROM search_sessions ORDER BY n LIMIT $1)`,
	} {
		for n := int64(1); n > 0 && err == nil; {
			err = s.db.Tx(ctx, func(tx *store.Tx) (err error) { n, err = tx.Exec(ctx, q, emptyStep); return err })
		}
	}
	if err != nil {
		return fmt.Errorf("empty search index: %w", err)
	}
	return nil
}

// PurgeWords takes the words of deleted sessions out of the database's file,
// where nothing finds them any more but a look at its bytes might. It writes
// the index anew in one transaction.
func (s *Store) PurgeWords(ctx context.Context) error {
	return s.db.Tx(ctx, func(tx *store.Tx) error { return tx.MergeWords(ctx) })
}

// lag is a session that the index is behind of.
type lag struct {
	ID    string `db:"session_id"`
	User  int64  `db:"user_id"`
	File  string `db:"file"`
	Bytes int64  `db:"bytes"`
}

// catchUp puts what is missing of the session with number n into the index and
// says how many bytes it has read.
func (s *Store) catchUp(ctx context.Context, n int64) (read int64, err error) {
	var l lag
	err = s.db.Get(ctx, &l, `SELECT w.session_id, s.user_id, w.file, w.bytes FROM search_sessions w JOIN sessions s ON s.id = w.session_id WHERE w.n = $1`, n)
	if errors.Is(err, store.ErrNoRows) {
		return 0, nil // deleted meanwhile
	}
	if err != nil {
		return 0, fmt.Errorf("fill search index: %w", err)
	}
	file, size := s.fileOf(l)
	for first := true; ; first = false {
		anew := size < l.Bytes // another file than the one that was read
		if anew {
			l.Bytes = 0
		}
		docs, to, err := s.scanStep(file, l.Bytes)
		if err != nil { // a file that cannot be read is not tried for ever: the next turn does
			s.log.Warn("what was said cannot be found", "session", l.ID, "err", err)
			docs, to, size = nil, l.Bytes, 0
		}
		whole := to >= size || to == l.Bytes
		if err := s.caught(ctx, n, l, file, docs, to, first, anew || l.Bytes == 0, whole); err != nil {
			return read, err
		}
		read += to - l.Bytes
		if l.Bytes = to; whole {
			return read, nil
		}
	}
}

func (s *Store) scanStep(file string, from int64) ([]doc, int64, error) {
	if file == "" {
		return nil, from, nil
	}
	return s.scan(file, from, maxStep)
}

// caught is one transaction of catchUp: anew takes out what there is first.
func (s *Store) caught(ctx context.Context, n int64, l lag, file string, docs []doc, to int64, first, anew, whole bool) error {
	err := s.db.Tx(ctx, func(tx *store.Tx) error {
		var now int64
		err := tx.Get(ctx, &now, `SELECT bytes FROM search_sessions WHERE n = $1`, n)
		if errors.Is(err, store.ErrNoRows) {
			return nil
		}
		if err == nil && now != l.Bytes && !(anew && first) {
			return nil // a turn was faster; the row is still behind
		}
		if err == nil && anew {
			_, err = tx.Exec(ctx, `DELETE FROM search_docs WHERE n = $1 AND at_byte <> $2`, n, noLine)
		}
		if err == nil {
			err = s.put(ctx, tx, n, l.User, docs)
		}
		if err == nil && first {
			err = s.head(ctx, tx, l.ID)
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE search_sessions SET file = $2, bytes = $3, behind = $4 WHERE n = $1`, n, file, to, !whole)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("fill search index: %w", err)
	}
	return ctx.Err()
}

// fileOf is where a session's transcript is, "" without one, and its size.
func (s *Store) fileOf(l lag) (string, int64) {
	names := []string{l.File}
	if sess, err := s.ByID(context.Background(), s.db, l.ID); err == nil {
		if d, err := s.vault.Dir(s.rebase(sess)); err == nil {
			if name, err := s.vault.Transcript(d.Path, l.ID); err == nil {
				names = append(names, name)
			}
		}
	}
	for _, name := range slices.Compact(names) {
		if st, err := s.vault.Stat(name); name != "" && err == nil && st.Mode().IsRegular() {
			return name, st.Size()
		}
	}
	found, err := s.vault.FindTranscripts(l.ID)
	if err != nil || len(found) == 0 {
		return "", 0
	}
	if st, err := s.vault.Stat(found[0]); err == nil {
		return found[0], st.Size()
	}
	return "", 0
}
