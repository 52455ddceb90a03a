package quote

import (
	"strings"
	"unicode/utf8"
)

// passages returns the paragraphs of d with at least one of the stems. The score is the
// number of different stems, plus the share of matching terms (below 1).
func (d *document) passages(path string, stems []string) []Passage {
	if !mayHit(d.folded, stems) {
		return nil
	}
	var out []Passage
	title, section, titled := uint32(0), uint32(0), false // stems in the file's first heading, and in the last
	for p := range d.paragraphs() {
		if n := len(p.headings); n > 0 {
			section = count(p.headings[n-1], stems).found
			if !titled {
				title, titled = count(p.headings[0], stems).found, true
			}
		}
		body := count(p.body, stems)
		found := body.found | section | title
		if found == 0 {
			continue
		}
		text, line := excerpt(p, body.first)
		distinct := ones(found)
		density := float64(body.hits) / float64(body.words+8) // +8: three terms are not a dense paragraph
		out = append(out, Passage{Path: path, Line: line, Text: text, Score: float64(distinct) + density})
	}
	return out
}

// mayHit is a quick check of lower-case text, most of which matches no term.
func mayHit(folded string, stems []string) bool {
	for _, s := range stems {
		if strings.Contains(folded, s) {
			return true
		}
	}
	return false
}

// A paragraph is a run of lines without blank ones, with the heading lines
// right above it.
type paragraph struct {
	headings []string // the texts of those lines
	lead     string   // the lines themselves, with blank ones between
	body     string
	line     int // of the first line, lead included
	body1    int // of the body's first line
}

// paragraphs goes through d. Front matter (between --- lines at the very top) is no
// paragraph.
func (d *document) paragraphs() func(yield func(paragraph) bool) {
	return func(yield func(paragraph) bool) {
		var p paragraph
		front, n := false, 0
		flush := func() bool {
			if p.body == "" {
				return true
			}
			done := p
			p = paragraph{}
			return yield(done)
		}
		for line := range strings.Lines(d.text) {
			n++
			trimmed := strings.TrimRight(line, "\r\n \t")
			if n == 1 && trimmed == "---" && strings.Contains(d.text, "\n---") {
				front = true
				continue
			}
			if front {
				front = trimmed != "---"
				continue
			}
			title, isHeading := heading(trimmed)
			switch {
			case isHeading:
				if !flush() {
					return
				}
				p.addHeading(title, line, n)
			case strings.TrimSpace(trimmed) == "":
				if !flush() {
					return
				}
				p.addBlank()
			default:
				p.addLine(line, n)
			}
		}
		flush()
	}
}

func (p *paragraph) addHeading(title, line string, n int) {
	if p.line == 0 {
		p.line = n
	}
	p.headings = append(p.headings, title)
	p.lead += line
}

func (p *paragraph) addBlank() {
	if p.lead != "" && !strings.HasSuffix(p.lead, "\n\n") {
		p.lead += "\n"
	}
}

func (p *paragraph) addLine(line string, n int) {
	if p.line == 0 {
		p.line = n
	}
	if p.body == "" {
		p.body1 = n
	}
	p.body += line
}

// hits reports which stems a text holds.
type hits struct {
	found uint32 // bit i: stem i
	hits  int    // terms that match
	words int    // in all; only counted where something hits
	first int    // byte offset of the first hit, -1 without
}

// count compares term by term.
func count(text string, stems []string) hits {
	h := hits{first: -1}
	if !mayHit(strings.ToLower(text), stems) {
		return h
	}
	at := 0
	for _, f := range fields(text) {
		h.words++
		if i := strings.Index(text[at:], f); i >= 0 {
			at += i
		}
		s := stem(strings.ToLower(f))
		for i, want := range stems {
			if s == want {
				h.found |= 1 << i
				h.hits++
				if h.first < 0 {
					h.first = at
				}
			}
		}
	}
	return h
}

func ones(bits uint32) (n int) {
	for ; bits != 0; bits &= bits - 1 {
		n++
	}
	return n
}

// excerpt returns what is quoted of p, at most 500 bytes, and its line: from the
// top, or, where the first hit is further down, from shortly before it. first is the
// hit's place in the body, -1 for hits in the lead alone.
func excerpt(p paragraph, first int) (text string, line int) {
	whole := strings.TrimRight(p.lead+p.body, "\r\n \t")
	if first < 0 || len(p.lead)+first < maxQuote-100 {
		return cut(whole, maxQuote), p.line
	}
	from := max(0, first-100)
	for from < first && !utf8.RuneStart(p.body[from]) {
		from++
	}
	if i := strings.IndexAny(p.body[from:first], " \n"); i >= 0 {
		from += i + 1
	}
	line = p.body1 + strings.Count(p.body[:from], "\n")
	if from == 0 {
		return cut(strings.TrimRight(p.body, "\r\n \t"), maxQuote), line
	}
	return "…" + cut(strings.TrimRight(p.body[from:], "\r\n \t"), maxQuote-len("…")), line
}
