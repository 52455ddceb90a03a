package upload

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	"gatehouse/core/attach"
)

// errBase64 is the fault of data that is not base64.
var errBase64 = errors.New("not base64")

const (
	dataURL = "data:"
	maxHead = 256 // bytes of a data: URL before the comma
)

// decode writes to w what the JSON string that begins in in has in base64: of
// the standard alphabet or that for URLs, padded or not, in one line or several,
// also as a data: URL. It reports whether the string is base64; when it is not,
// or w refuses the file, the rest of the string is skipped. Any other error of w
// and those of in end it.
func decode(w io.Writer, in *bufio.Reader) (valid bool, err error) {
	s := &symbols{in: in}
	_, err = io.Copy(w, base64.NewDecoder(base64.RawStdEncoding, s))
	_, corrupt := errors.AsType[base64.CorruptInputError](err)
	corrupt = corrupt || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errBase64)
	if s.fatal == nil && err != nil && !corrupt && !attach.Refused(err) {
		return false, err
	}
	for !s.closed && s.fatal == nil {
		_, _ = s.next()
	}
	return !corrupt, s.fatal
}

// symbols reads the base64 of a JSON string in the standard alphabet, without
// padding and blanks.
type symbols struct {
	in     *bufio.Reader
	begun  bool   // the head has been read
	head   []byte // read for the start of a data: URL, and none; at most len(dataURL)
	padded bool
	closed bool  // the closing quote has been read
	fatal  error // of in
}

// Read implements io.Reader.
func (s *symbols) Read(p []byte) (n int, err error) {
	if !s.begun {
		s.begun = true
		if err := s.readHead(); err != nil {
			return 0, err
		}
	}
	for n < len(p) {
		c, err := s.following()
		if err != nil {
			return n, err
		}
		switch c {
		case '\n', '\r', ' ', '\t':
			continue
		case '=':
			s.padded = true
			continue
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		if s.padded {
			return n, errBase64
		}
		p[n] = c
		n++
	}
	return n, nil
}

// following returns the next character: first those of the head.
func (s *symbols) following() (c byte, err error) {
	if len(s.head) > 0 {
		c, s.head = s.head[0], s.head[1:]
		return c, nil
	}
	return s.next()
}

// readHead skips the head of a data: URL; what is none is read again.
func (s *symbols) readHead() error {
	for len(s.head) < maxHead {
		if n := min(len(s.head), len(dataURL)); string(s.head[:n]) != dataURL[:n] {
			return nil
		}
		c, err := s.next()
		switch {
		case errors.Is(err, io.EOF) && len(s.head) >= len(dataURL):
			return errBase64
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c == ',' && len(s.head) >= len(dataURL):
			if !bytes.HasSuffix(s.head, []byte(";base64")) {
				return errBase64
			}
			s.head = nil
			return nil
		}
		s.head = append(s.head, c)
	}
	return errBase64
}

// next returns the next character of the string, 0 for an escape that encodes
// none of base64, or io.EOF after the closing quote.
func (s *symbols) next() (byte, error) {
	if s.closed {
		return 0, io.EOF
	}
	c, err := s.in.ReadByte()
	if c == '\\' && err == nil {
		c, err = s.escaped()
	} else if c == '"' && err == nil {
		s.closed = true
		return 0, io.EOF
	}
	if err != nil {
		s.fatal = bodyFault(err)
		return 0, s.fatal
	}
	return c, nil
}

// escaped returns the character that an escape encodes; 0 for one that is not in
// base64.
func (s *symbols) escaped() (byte, error) {
	c, err := s.in.ReadByte()
	if err != nil {
		return 0, err
	}
	switch c {
	case '/':
		return '/', nil
	case 'n', 'r', 't':
		return '\n', nil
	case 'u':
		var code [4]byte
		if _, err := io.ReadFull(s.in, code[:]); err != nil {
			return 0, err
		}
		var text string
		if json.Unmarshal([]byte(`"\u`+string(code[:])+`"`), &text) == nil && len(text) == 1 {
			return text[0], nil
		}
	}
	return 0, nil
}
