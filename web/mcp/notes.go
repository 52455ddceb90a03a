package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
)

// maxNote bounds a file that is read, in bytes.
const maxNote = 8 << 20

type noteIn struct {
	Path string `json:"path" jsonschema:"path in the vault, such as Notes/Garden.md"`
	Line int    `json:"line,omitempty" jsonschema:"the first line to read; 1 by default"`
}

func (s *Server) readNote(_ context.Context, c *call, in noteIn) (string, any, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(in.Path, "./"), "/")
	text, err := s.note(c.caller, name)
	if err != nil {
		return "", nil, err
	}
	if text == "" {
		return "The file " + line(name, 300) + " is empty.\n", nil, nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first := max(in.Line, 1)
	if first > len(lines) {
		return "", nil, core.Errorf(core.Invalid, "the file has %d lines: line must not be above that", len(lines))
	}
	part, last := partOf(lines, first)
	result := quoted(fmt.Sprintf("the file %s, lines %d to %d of %d", line(name, 300), first, last, len(lines)), part)
	if last < len(lines) {
		result += fmt.Sprintf("Read on with line %d.\n", last+1)
	}
	return result, nil, nil
}

// partOf returns the lines that fit in a result, from number first on, and the number of
// the last. A line that does not fit alone is cut.
func partOf(lines []string, first int) (text string, last int) {
	var b strings.Builder
	for n, room := first, maxText; n <= len(lines); n++ {
		l := lines[n-1]
		size := len(l) + 1
		if size > room {
			if n > first {
				break
			}
			fmt.Fprintf(&b, "%s\n(the rest of line %d is left out: it has %d bytes)\n", core.CutRunes(l, maxText), n, size-1)
			return b.String(), n
		}
		b.WriteString(l + "\n")
		room, last = room-size, n
	}
	return b.String(), last
}

// note returns the text of a file that the caller may read.
func (s *Server) note(c *caller, name string) (string, error) {
	none := core.Errorf(core.NotFound, "there is no such file, or it is not open to this key: search finds those that are")
	if !fs.ValidPath(name) || name == "." || !s.o.MayRead(c.Trust, c.User, name) {
		return "", none
	}
	f, err := s.o.Files.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("read a note: %w", err)
	}
	if err != nil { // it is gone, or its name goes through a link
		return "", none
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("read a note: %w", err)
	case info.IsDir():
		return "", core.Errorf(core.Invalid, "this is a folder: search with folder finds files in it")
	case !info.Mode().IsRegular():
		return "", none
	case info.Size() > maxNote:
		return "", core.Errorf(core.TooLarge, "the file is over %s: search finds passages of it", core.ByteSize(maxNote))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return "", fmt.Errorf("read a note: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) || bytes.ContainsRune(data, 0) {
		return "", core.Errorf(core.Invalid, "this is not a text file: search finds passages of PDF documents")
	}
	return strings.ReplaceAll(string(data), "\r\n", "\n"), nil
}
