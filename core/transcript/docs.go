package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"gatehouse/core"
	"gatehouse/core/transcript/lines"
	"gatehouse/core/transcript/words"
	"gatehouse/core/vault"
)

const (
	maxNew  = 1 << 20   // bytes of a transcript that are indexed at the end of a turn
	maxText = 256 << 10 // bytes of one message that are searched
	maxRaw  = 16 << 20  // the longest line that is read
)

// Words are the parts of a transcript that are not indexed yet. The zero value is none.
type Words struct {
	File     string // the transcript in the vault; "" for none
	From, To int64  // the part of the file that Docs cover
	Docs     []Doc
	Behind   bool // the rest is left to upkeep
}

// A Doc is one message for the search index.
type Doc struct {
	At, Length int64 // of its line in the file
	Words      string
	Pieces     int // see Pieces
}

// Words returns what the conversation has that is not indexed, the current run's lines
// included. indexed returns up to which byte the transcript is indexed. More than 1 MB,
// and what cannot be read, is left to upkeep.
func (c *Conversation) Words(indexed func() (from int64, err error)) (w Words) {
	defer func() { c.tail.listed, c.tail.upTo = !w.Behind, w.To }()
	if t := &c.tail; t.listed && t.Info != nil && c.said.are(t.upTo, t.Info.Size()) {
		return Words{File: c.name, From: t.upTo, To: c.said.to, Docs: c.said.docs}
	}
	w = Words{File: c.name}
	st, err := c.s.vault.Stat(c.name)
	if errors.Is(err, fs.ErrNotExist) {
		return Words{}
	}
	if err == nil {
		w.From, err = indexed()
	}
	if err == nil && st.Size()-w.From > maxNew || err == nil && st.Size() < w.From {
		w.To, w.Behind = w.From, true
		return w
	}
	if err == nil {
		w.Docs, w.To, err = c.s.Scan(c.name, w.From, maxNew)
	}
	if err != nil {
		c.s.log.Warn("messages cannot be searched yet", "session", c.sess.ID, "err", err)
		w.Docs, w.To, w.Behind = nil, w.From, true
	}
	return w
}

// Scan reads the messages of the lines that begin in the most bytes behind
// from. A last line without its end is left for later.
func (s *Files) Scan(name string, from, most int64) (docs []Doc, to int64, err error) {
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
		raw, n, err := ReadLine(r)
		if err != nil {
			return docs, to, err
		}
		if n == 0 {
			break
		}
		if text, _ := Searched(raw); text != "" {
			docs = appendDoc(docs, to, n, text)
		}
		to += n
	}
	return docs, to, nil
}

// ReadLine reads one whole line and returns how long it is; 0 at the end. Of one
// longer than maxRaw nothing is kept.
func ReadLine(r *bufio.Reader) (raw []byte, n int64, err error) {
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

// Searched returns the searchable text of a line, and the line: what a user or the model
// wrote, without side chains and summaries.
func Searched(raw []byte) (text string, l vault.Line) {
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
	msg, ok := lines.Decode(&m.Line)
	if !ok {
		return "", l
	}
	return searched(&msg), m.Line
}

// searched returns what of a message's text can be searched for.
func searched(m *Message) string {
	text := m.ShownText()
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	return text
}

func appendDoc(docs []Doc, at, length int64, text string) []Doc {
	if w := words.Index(text); w != "" {
		docs = append(docs, Doc{At: at, Length: length, Words: w, Pieces: len(lines.Pieces(text))})
	}
	return docs
}

// spoken are the docs of the lines that one conversation has appended, so that
// they need not be read again.
type spoken struct {
	from, to int64 // the part of the file that they are of
	docs     []Doc
	scan     bool // their place is unknown: read the file
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
	if text := searched(&messages[0]); text != "" {
		s.docs = appendDoc(s.docs, from, to-from, text)
	}
}

// skip notes that the part of the file between two places holds nothing to search for.
func (s *spoken) skip(from, to int64) {
	switch {
	case s.to == 0:
		s.from, s.to = from, to
	case s.to == from:
		s.to = to
	default:
		s.scan = true
	}
}

// are reports whether these are all lines between two places of the file.
func (s *spoken) are(from, to int64) bool {
	return !s.scan && s.to > 0 && s.from == from && s.to == to && to-from <= maxNew
}

// Session returns the session of the transcript c.
func (c *Conversation) Session() Session { return c.sess }
