// Package chunk splits the texts of files into the passages that a search finds.
package chunk

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Chunk is a passage of a text.
type Chunk struct {
	Text string `db:"text"` // with the headings above it in front; valid UTF-8, not empty
	Line int    `db:"line"` // of the file, where the passage begins, from 1
}

// A Text is what is found of a file.
type Text struct {
	Title  string   // what the file calls itself, else its name
	Tags   []string // lower case, without "#"; at most 50
	Chunks []Chunk
}

// Sizes of passages. A token is taken for four bytes of UTF-8.
const (
	least    = 200 * 4 // bytes; shorter neighbours under one heading are joined
	most     = 400 * 4 // bytes of text
	mostCode = 3700    // bytes of a block of code, which stays whole up to here; with the headings 4,000
	maxPath  = 200     // bytes of the headings in front
	maxTitle = 200     // bytes
	maxTags  = 50
)

// Split splits the text of the file at name, by its extension: Markdown at headings,
// paragraphs, lists and blocks of code; HTML to what a browser would show; everything
// else at empty lines and line ends. Passages have 200 to 400 tokens where the text
// permits it. Bytes that are not UTF-8 are replaced, and control characters left out.
// It is linear in the text's length.
func Split(name, text string) Text {
	base := path.Base(name)
	ext := strings.ToLower(path.Ext(base))
	out := Text{Title: base}
	switch ext {
	case ".md", ".markdown":
		out = markdown(text)
	case ".html", ".htm":
		out = page(text)
	default:
		out.Chunks = join(paragraphs(clean(text), 1))
	}
	if out.Title == "" {
		out.Title = strings.TrimSuffix(base, path.Ext(base))
	}
	out.Title = cut(strings.Join(strings.Fields(clean(out.Title)), " "), maxTitle)
	return out
}

// clean returns s in UTF-8, with line ends "\n" and without other control characters.
func clean(s string) string {
	s = strings.TrimPrefix(strings.ToValidUTF8(s, "\ufffd"), "\ufeff")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r == '\u2028', r == '\u2029': // no line ends where lines are counted
			return ' '
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
}

// A piece is a block of a text.
type piece struct {
	text string
	line int
	path string // the headings above it
	code bool   // it stays whole
}

// join makes passages of pieces: what is short is joined with its neighbours under the
// same headings, what is long is split.
func join(pieces []piece) []Chunk {
	var out []Chunk
	var open piece // not yet a passage
	flush := func() {
		if text := trim(open.text); text != "" {
			if open.path != "" {
				text = open.path + "\n\n" + text
			}
			out = append(out, Chunk{Text: text, Line: open.line})
		}
		open = piece{}
	}
	for _, p := range pieces {
		for p.text != "" {
			part, rest := p, ""
			limit := most
			if p.code {
				limit = mostCode
			}
			if len(p.text) > limit {
				part.text, rest = p.text[:breakAt(p.text, limit)], p.text[breakAt(p.text, limit):]
			}
			if open.text != "" && (open.path != part.path || len(open.text) >= least || len(open.text)+len(part.text) > most) {
				flush()
			}
			if open.text == "" {
				open = part
			} else {
				open.text += "\n\n" + part.text
			}
			p.line += strings.Count(part.text, "\n")
			p.text = strings.TrimLeft(rest, " \t")
		}
	}
	flush()
	return out
}

// trim removes empty lines around s, and spaces at its end.
func trim(s string) string {
	s = strings.TrimRightFunc(s, unicode.IsSpace)
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// breakAt returns where s is split so that its first part has at most limit bytes: at
// the end of a line, of a sentence or of a word, in the part's second half if there is one.
func breakAt(s string, limit int) int {
	head := s[:limit]
	for _, end := range [...]string{"\n", ". ", "! ", "? ", "。", " "} {
		if i := strings.LastIndex(head, end); i >= limit/2 {
			return i + len(end)
		}
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return limit
}

// paragraphs returns what lies between empty lines. The text begins at the line first.
func paragraphs(text string, first int) []piece {
	var out []piece
	var b strings.Builder
	begin, line := first, first
	flush := func() {
		if b.Len() > 0 {
			out = append(out, piece{text: strings.TrimRight(b.String(), "\n"), line: begin})
			b.Reset()
		}
	}
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) == "" {
			flush()
		} else {
			if b.Len() == 0 {
				begin = line
			}
			b.WriteString(l)
		}
		line++
	}
	flush()
	return out
}

// cut returns the first n bytes of s, without a part of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
