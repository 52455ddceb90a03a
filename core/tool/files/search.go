package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core/tool"
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
func (s *search) file(ctx context.Context, f *files, h hit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, ok := s.load(f, h)
	if !ok {
		return nil
	}
	if s.total += int64(len(data)); s.total > maxTotal {
		s.cut = "the search ended after 512 MiB"
		return errEnough
	}
	lines := split(data)
	hits, err := s.match(ctx, data, lines)
	if err != nil || len(hits) == 0 {
		return err
	}
	s.matches++
	switch s.in.Mode {
	case modeFiles:
		s.found.add(h)
	case modeCount:
		s.put(show(s.t, h.name) + ":" + strconv.Itoa(len(hits)))
	case modeContent:
		s.content(show(s.t, h.name), data, lines, hits)
	}
	if s.full != "" {
		return errEnough
	}
	return nil
}

// load is a text file's content.
func (s *search) load(f *files, h hit) ([]byte, bool) {
	file, st, err := f.open(h.at, 0)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	if !st.Mode().IsRegular() || single(s.t, st) != nil {
		return nil, false
	}
	if st.Size() > maxSearched {
		s.large++
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(file, maxSearched))
	return data, err == nil && !binary(data[:min(len(data), 8000)])
}

// A span is a line of data without its end.
type span struct{ from, to int }

func split(data []byte) []span {
	lines := make([]span, 0, bytes.Count(data, []byte("\n"))+1)
	for at := 0; at < len(data); {
		n := bytes.IndexByte(data[at:], '\n')
		end, next := at+n, at+n+1
		if n < 0 {
			end, next = len(data), len(data)
		}
		if end > at && data[end-1] == '\r' {
			end--
		}
		lines = append(lines, span{at, end})
		at = next
	}
	return lines
}

// match is the numbers of the lines that match, from 0.
func (s *search) match(ctx context.Context, data []byte, lines []span) ([]int, error) {
	var hits []int
	if s.in.Multiline {
		last := -1
		for _, m := range s.in.re.FindAllIndex(data, maxEntries) {
			for n := lineAt(lines, m[0]); n < len(lines) && (lines[n].from < m[1] || lines[n].from == m[0]); n++ {
				if n > last {
					hits, last = append(hits, n), n
				}
			}
		}
		return hits, ctx.Err()
	}
	for n, l := range lines {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.in.re.Match(data[l.from:l.to]) {
			hits = append(hits, n)
		}
	}
	return hits, nil
}

// lineAt is the line that holds the byte at.
func lineAt(lines []span, at int) int {
	n, exact := slices.BinarySearchFunc(lines, at, func(l span, at int) int { return l.from - at })
	if !exact {
		n--
	}
	return n
}

// content puts the matching lines of one file with those around them.
func (s *search) content(name string, data []byte, lines []span, hits []int) {
	next := 0 // first line that was not shown yet
	for i, n := range hits {
		from, to := max(n-s.in.Before, next), min(n+s.in.After, len(lines)-1)
		if from > next && (s.in.Before > 0 || s.in.After > 0) && next > 0 {
			s.put("--")
		}
		if i+1 < len(hits) {
			to = min(to, hits[i+1]-1)
		}
		for l := from; l <= to && s.full == ""; l++ {
			s.line(name, l, l == n, data[lines[l].from:lines[l].to])
		}
		next = max(next, to+1)
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

// result is what the model reads. cut says why the walk ended early.
func (s *search) result(cut string) string {
	if s.in.Mode == modeFiles {
		for _, e := range s.found.sorted() {
			s.put(show(s.t, e.hit.name))
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
		fmt.Fprintf(&b, "(%d files over %d MiB were left out)\n", s.large, maxSearched>>20)
	}
	return b.String()
}
