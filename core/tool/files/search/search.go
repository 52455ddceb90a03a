package search

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

// Limits of one Grep.
const (
	maxSearched = 8 << 20   // bytes of one file; larger ones are left out and counted
	maxTotal    = 512 << 20 // bytes of all
	maxText     = 30_000    // bytes that are shown
	maxShown    = 500       // bytes of one line
)

// A search gathers what Grep finds, file by file.
type search struct {
	t     *tool.Turn
	in    grepInput
	found newest // of mode files_with_matches
	buf   bytes.Buffer
	lines []string
	size  int // bytes of lines
	skip  int // lines still to leave out (offset)

	matches int
	total   int64
	large   int    // files left out
	full    string // why nothing more is shown; "" while there is room
	cut     string // why the search ended early
}

func newSearch(t *tool.Turn, in grepInput) *search {
	return &search{t: t, in: in, skip: in.Offset, found: newest{limit: min(in.head(), maxEntries) + in.Offset}}
}

// file searches one file. A file that cannot be opened or is not text is left out.
func (s *search) file(ctx context.Context, o place.Opener, h hit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, ok := s.load(o, h)
	if !ok {
		return nil
	}
	if s.total += int64(len(data)); s.total > maxTotal {
		s.cut = "the search ended after 512 MiB"
		return errEnough
	}
	text := split(data)
	hits, err := s.match(ctx, text)
	if err != nil || len(hits) == 0 {
		return err
	}
	s.matches++
	switch s.in.Mode {
	case modeFiles:
		s.found.add(h)
	case modeCount:
		s.put(place.Show(s.t, h.name) + ":" + strconv.Itoa(len(hits)))
	case modeContent:
		s.content(place.Show(s.t, h.name), text, hits)
	}
	if s.full != "" {
		return errEnough
	}
	return nil
}

// load returns a text file's content, until the next call.
func (s *search) load(o place.Opener, h hit) ([]byte, bool) {
	file, st, err := o.Open(h.at, 0)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	if !st.Mode().IsRegular() || place.Single(s.t, st) != nil {
		return nil, false
	}
	if st.Size() > maxSearched {
		s.large++
		return nil, false
	}
	s.buf.Reset()
	_, err = s.buf.ReadFrom(io.LimitReader(file, maxSearched))
	data := s.buf.Bytes()
	return data, err == nil && !place.Binary(data[:min(len(data), 8000)])
}

// A text is a file's content in lines.
type text struct {
	data []byte
	ends []int32 // behind each line, its end included
}

func split(data []byte) text {
	t := text{data, make([]int32, 0, bytes.Count(data, []byte("\n"))+1)}
	for at := 0; at < len(data); {
		n := bytes.IndexByte(data[at:], '\n') + 1
		if n == 0 {
			n = len(data) - at
		}
		at += n
		t.ends = append(t.ends, int32(at)) // at most maxSearched
	}
	return t
}

// begin returns where line n begins, from 0.
func (t text) begin(n int) int {
	if n == 0 {
		return 0
	}
	return int(t.ends[n-1])
}

// line returns line n without its end.
func (t text) line(n int) []byte {
	l := bytes.TrimSuffix(t.data[t.begin(n):t.ends[n]], []byte("\n"))
	return bytes.TrimSuffix(l, []byte("\r"))
}

// at returns the line that holds a byte.
func (t text) at(offset int) int {
	n, exact := slices.BinarySearch(t.ends, int32(offset))
	if exact {
		n++
	}
	return min(n, len(t.ends)-1)
}

// match returns the numbers of the lines that match, from 0, at most maxEntries. It
// checks ctx often enough that no pattern and no file holds it up for long.
func (s *search) match(ctx context.Context, t text) (hits []int, err error) {
	if s.in.Multiline {
		return s.across(ctx, t)
	}
	work := 0
	for n := 0; n < len(t.ends) && len(hits) < maxEntries; n++ {
		line := t.line(n)
		if work += 64 + min(len(line), longLine); work > 1<<16 {
			if work = 0; ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		var ok bool
		if len(line) > longLine {
			ok = s.in.re.MatchReader(&runes{ctx: ctx, data: line})
		} else {
			ok = s.in.re.Match(line)
		}
		if ok {
			hits = append(hits, n)
		}
	}
	return hits, ctx.Err()
}

// across returns match for patterns that go over line ends. After a match it goes on
// with the line behind it.
func (s *search) across(ctx context.Context, t text) (hits []int, err error) {
	for n := 0; n < len(t.ends) && len(hits) < maxEntries && ctx.Err() == nil; {
		from := t.begin(n)
		m := s.in.re.FindReaderIndex(&runes{ctx: ctx, data: t.data[from:]})
		if m == nil {
			break
		}
		last := t.at(from + max(m[0], m[1]-1))
		for n = t.at(from + m[0]); n <= last; n++ {
			hits = append(hits, n)
		}
	}
	return hits, ctx.Err()
}

// longLine is how many bytes an expression may check without being asked
// whether it is still wanted.
const longLine = 16 << 10

// runes reads data for an expression, and ends with ctx.
type runes struct {
	ctx  context.Context
	data []byte
	n    int
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.n++; len(r.data) == 0 || r.n%1024 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRune(r.data)
	r.data = r.data[size:]
	return c, size, nil
}

// content writes the matching lines of one file with those around them.
func (s *search) content(name string, t text, hits []int) {
	next := 0 // first line that was not shown yet
	for i, n := range hits {
		from, to := max(n-s.in.Before, next), min(n+s.in.After, len(t.ends)-1)
		if from > next && (s.in.Before > 0 || s.in.After > 0) && next > 0 {
			s.put("--")
		}
		if i+1 < len(hits) {
			to = min(to, hits[i+1]-1)
		}
		for l := from; l <= to && s.full == ""; l++ {
			s.line(name, l, l == n, t.line(l))
		}
		if next = max(next, to+1); s.full != "" {
			return
		}
	}
}

func (s *search) line(name string, n int, match bool, text []byte) {
	mark := "-"
	if match {
		mark = ":"
	}
	cut := ""
	if len(text) > maxShown {
		text, cut = text[:maxShown], "…"
	}
	number := ""
	if s.in.Numbers == nil || *s.in.Numbers {
		number = strconv.Itoa(n+1) + mark
	}
	s.put(name + mark + number + strings.ToValidUTF8(string(text), "\uFFFD") + cut)
}

// put adds a line of output while there is room.
func (s *search) put(line string) {
	switch {
	case s.full != "":
	case s.skip > 0:
		s.skip--
	case len(s.lines) >= s.in.head():
		s.full = fmt.Sprintf("only the first %d are shown; go on with offset %d", s.in.head(), s.in.Offset+s.in.head())
	case s.size+len(line) > maxText:
		s.full = fmt.Sprintf("only the first %d are shown; go on with offset %d", len(s.lines), s.in.Offset+len(s.lines))
	default:
		s.lines = append(s.lines, line)
		s.size += len(line) + 1
	}
}

// result returns what the model reads. cut explains why the walk ended early.
func (s *search) result(cut string) string {
	if s.in.Mode == modeFiles {
		for _, e := range s.found.sorted() {
			s.put(place.Show(s.t, e.hit.name))
		}
		if s.full == "" && s.found.count > s.found.limit {
			s.full = fmt.Sprintf("only the first %d are shown; go on with offset %d", s.in.head(), s.found.limit)
		}
	}
	var b strings.Builder
	if s.matches == 0 {
		b.WriteString("Nothing matches.\n")
	}
	for _, l := range s.lines {
		b.WriteString(l + "\n")
	}
	for _, why := range []string{s.full, s.cut, cut} {
		if why != "" {
			fmt.Fprintf(&b, "(%s)\n", why)
		}
	}
	if s.large > 0 {
		fmt.Fprintf(&b, "(files over %d MiB that were left out: %d)\n", maxSearched>>20, s.large)
	}
	return b.String()
}
