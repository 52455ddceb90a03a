package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"gatehouse/core"
)

// Bounds of one conversation of an export.
const (
	maxElement = 16 << 20 // bytes of its JSON
	maxDepth   = 200      // arrays and objects in each other
	maxItems   = 250_000  // elements of all its arrays: each takes more memory than text
)

// A splitter reads the elements of an export's array one at a time. It reads brackets and
// strings alone, so it needs memory for one element, of at most maxElement bytes, and none for
// what is larger, nested deeper or has more items; such an element is a fault and the next one is read.
type splitter struct {
	in     *bufio.Reader
	buf    []byte
	inside bool // of the array
	done   bool
	n      int // bytes read, to see ctx now and then
	ctx    context.Context
}

func newSplitter(ctx context.Context, r io.Reader) *splitter {
	return &splitter{in: bufio.NewReaderSize(r, 64<<10), ctx: ctx}
}

// errBroken is the fault of a file that cannot be read further.
var errBroken = core.Errorf(core.Invalid, "the file is not valid JSON here: what follows cannot be read")

// next returns the JSON of the next element, which is valid until the next call, or io.EOF. fault is why
// this one is left out; err ends the file.
func (s *splitter) next() (raw []byte, fault, err error) {
	if s.done {
		return nil, nil, io.EOF
	}
	s.buf = s.buf[:0]
	if !s.inside {
		return s.begin()
	}
	c, err := s.skip()
	if err == nil && c == ',' {
		c, err = s.skip()
	}
	switch {
	case errors.Is(err, io.EOF):
		s.done = true
		return nil, nil, core.Errorf(core.Invalid, "the file ends in the middle: it is not complete")
	case err != nil:
		return nil, nil, err
	case c == ']':
		s.done = true
		return nil, nil, io.EOF
	}
	fault, err = s.value(c, nil)
	return s.buf, fault, err
}

// begin reads up to the first element: of an array, of the array "conversations" or "chats" in an object,
// or the object itself.
func (s *splitter) begin() (raw []byte, fault, err error) {
	if head, _ := s.in.Peek(3); bytes.Equal(head, []byte("\ufeff")) {
		_, _ = s.in.Discard(3)
	}
	c, err := s.skip()
	switch {
	case errors.Is(err, io.EOF):
		return nil, nil, core.Errorf(core.Invalid, "the file is empty")
	case err != nil:
		return nil, nil, err
	case c == '[':
		s.inside = true
		c, err = s.skip()
		if err == nil && c == ']' {
			s.done = true
			return nil, nil, io.EOF
		}
		if err == nil {
			fault, err = s.value(c, nil)
		}
		return s.buf, fault, s.whole(err)
	case c != '{':
		return nil, nil, core.Errorf(core.Invalid, "the file is no JSON of conversations")
	}
	found := false
	fault, err = s.value(c, func(key []byte) bool {
		found = bytes.Equal(key, []byte(`"conversations"`)) || bytes.Equal(key, []byte(`"chats"`))
		return found
	})
	if found && err == nil {
		s.inside = true
		s.buf = s.buf[:0]
		if c, err = s.skip(); err == nil && c == ']' {
			s.done = true
			return nil, nil, io.EOF
		}
		if err == nil {
			fault, err = s.value(c, nil)
		}
		return s.buf, fault, s.whole(err)
	}
	s.done = true
	return s.buf, fault, s.whole(err)
}

// whole returns err as the fault of a file that ends too early.
func (s *splitter) whole(err error) error {
	if errors.Is(err, io.EOF) {
		s.done = true
		return core.Errorf(core.Invalid, "the file ends in the middle: it is not complete")
	}
	return err
}

// skip returns the next byte that is no white space.
func (s *splitter) skip() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		if err != nil || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c, err
		}
	}
}

// value reads the value that begins with c into the buffer. stop is asked about the keys of an
// object whose value is an array; where it returns true, value returns behind that array's bracket.
func (s *splitter) value(c byte, stop func(key []byte) bool) (fault, err error) {
	depth, keep := 0, true
	key := 0 // where the last string at depth one begins in the buffer; 0: none
	var colon bool
	var array [maxDepth + 1]bool // by depth
	items := 0
	put := func(c byte) {
		if !keep {
			return
		}
		if len(s.buf) >= maxElement {
			keep, s.buf, fault = false, s.buf[:0], core.Errorf(core.TooLarge, "it is larger than %s", core.ByteSize(maxElement))
			return
		}
		if len(s.buf) == cap(s.buf) {
			s.grow()
		}
		s.buf = append(s.buf, c)
	}
	for ; ; c, err = s.in.ReadByte() {
		if err != nil {
			return fault, s.whole(err)
		}
		if s.n++; s.n&(1<<16-1) == 0 {
			if err := s.ctx.Err(); err != nil {
				return fault, err
			}
		}
		switch c {
		case '"':
			at := len(s.buf)
			if err := s.text(put); err != nil {
				return fault, s.whole(err)
			}
			if depth == 1 && keep {
				key, colon = at, false
			}
			if depth == 0 {
				return fault, nil
			}
			continue
		case ':':
			colon = depth == 1
		case '{', '[':
			if depth == 1 && stop != nil && c == '[' && colon && key > 0 && keep && stop(bytes.TrimRight(s.buf[key:], " :\n\r\t")) {
				return nil, nil
			}
			if depth++; depth > maxDepth && keep {
				keep, s.buf, fault = false, s.buf[:0], core.Errorf(core.Invalid, "it is nested deeper than %d levels", maxDepth)
			}
			if keep {
				array[depth] = c == '['
			}
			colon = false
		case '}', ']':
			if depth--; depth <= 0 {
				if depth < 0 {
					return fault, errBroken
				}
				put(c)
				return fault, nil
			}
		case ',':
			if depth == 0 { // behind a number or a name
				return fault, s.in.UnreadByte()
			}
			if colon = false; keep && array[depth] {
				if items++; items > maxItems {
					keep, s.buf, fault = false, s.buf[:0], core.Errorf(core.TooLarge, "its lists have more than %d elements", maxItems)
				}
			}
		default:
			if depth == 0 && len(s.buf) > 64 {
				return fault, errBroken
			}
		}
		put(c)
		if depth == 0 {
			if next, _ := s.in.Peek(1); len(next) == 1 && (next[0] == ']' || next[0] == ',' || next[0] == '}') {
				return fault, nil
			}
		}
	}
}

// text reads a string up to its closing quote; the first one was read.
func (s *splitter) text(put func(byte)) error {
	put('"')
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return err
		}
		if s.n++; s.n&(1<<16-1) == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		put(c)
		if c == '"' {
			return nil
		}
		if c == '\\' {
			if c, err = s.in.ReadByte(); err != nil {
				return err
			}
			put(c)
		}
	}
}

// grow makes room in the buffer. Behind 1 MB it becomes as large as it ever will, because what it was
// before is garbage; memory that is not written to is not used.
func (s *splitter) grow() {
	size := max(64<<10, 4*len(s.buf))
	if size > 1<<20 {
		size = maxElement
	}
	next := make([]byte, len(s.buf), size)
	copy(next, s.buf)
	s.buf = next
}
