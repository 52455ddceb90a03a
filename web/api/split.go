package api

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/web"
)

// maxDepth bounds how deep a body may be nested; ours is three deep.
const maxDepth = 64

// A splitter copies a JSON body and stores the data of attachments, which may be
// large, as it is read: the copy has "@0", "@1" … in their place. It does not
// validate the JSON: the reader of the copy does.
type splitter struct {
	in    *bufio.Reader
	out   bytes.Buffer // at most maxChatBody
	begin func() (*attach.Incoming, error)
	aside []*aside // at most attach.MaxFiles
	open  []level  // at most maxDepth
}

// A level is an object or a list that is open.
type level struct {
	list bool
	name string // of the member that is being read
	key  bool   // a member's name is next
}

// An aside is the data of one attachment.
type aside struct {
	*attach.Incoming
	err error // the data is no base64
}

// split reads all of the body.
func (s *splitter) split() error {
	for {
		c, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bodyFault(err)
		}
		if c == '"' {
			err = s.text()
		} else {
			err = s.mark(c)
		}
		if err != nil {
			return err
		}
	}
}

// mark copies a character outside of strings.
func (s *splitter) mark(c byte) error {
	switch c {
	case '{', '[':
		if len(s.open) == maxDepth {
			return core.Errorf(core.Invalid, "the body is nested more than %d deep", maxDepth)
		}
		s.open = append(s.open, level{list: c == '[', key: c == '{'})
	case '}', ']':
		s.open = s.open[:max(0, len(s.open)-1)]
	case ',', ':':
		if n := len(s.open); n > 0 && !s.open[n-1].list {
			s.open[n-1].key = c == ','
		}
	}
	return s.copy(c)
}

func (s *splitter) copy(b ...byte) error {
	if s.out.Len()+len(b) > maxChatBody {
		return web.Refuse(web.TooLarge, fmt.Sprintf("the body is over %d bytes without what is attached", maxChatBody))
	}
	s.out.Write(b)
	return nil
}

// text copies a string, or stores it as an attachment. Its first quote has been
// read.
func (s *splitter) text() error {
	if s.isData() {
		return s.data()
	}
	from := s.out.Len()
	if err := s.copy('"'); err != nil {
		return err
	}
	for escaped := false; ; {
		c, err := s.in.ReadByte()
		if err != nil {
			return bodyFault(err)
		}
		if err := s.copy(c); err != nil {
			return err
		}
		if c == '"' && !escaped {
			break
		}
		escaped = c == '\\' && !escaped
	}
	if n := len(s.open); n > 0 && s.open[n-1].key {
		var name string
		_ = json.Unmarshal(s.out.Bytes()[from:], &name) // an invalid name is unknown

		s.open[n-1].name = snake(name)
	}
	return nil
}

// isData reports whether the string that begins is attachments[].data.
func (s *splitter) isData() bool {
	o := s.open
	return len(o) == 3 && !o[0].list && !o[0].key && o[0].name == "attachments" && o[1].list && !o[2].list && !o[2].key && o[2].name == "data"
}

func (s *splitter) data() error {
	if len(s.aside) == attach.MaxFiles {
		return fieldProblem(web.TooLarge, "attachments", fmt.Sprintf("at most %d files may be attached", attach.MaxFiles))
	}
	in, err := s.begin()
	if err != nil {
		return err
	}
	a := &aside{Incoming: in}
	s.aside = append(s.aside, a)
	if err := s.copy([]byte(fmt.Sprintf(`"@%d"`, len(s.aside)-1))...); err != nil {
		return err
	}
	d := decoder{to: in}
	for {
		c, err := s.in.ReadByte()
		switch {
		case err != nil:
			return bodyFault(err)
		case c == '"':
			a.err = d.end()
			return s.hard(a.err)
		case c == '\\':
			if c, err = s.escaped(); err != nil {
				return bodyFault(err)
			}
		}
		d.add(c)
		if err := s.hard(d.err); err != nil {
			return err
		}
	}
}

// hard returns err if the fault is ours (a full disk) and not the client's.
func (s *splitter) hard(err error) error {
	if err == nil || errors.Is(err, errBase64) || attach.Refused(err) {
		return nil
	}
	return err
}

// escaped returns the character that an escape encodes; 0 for one that is not in
// base64.
func (s *splitter) escaped() (byte, error) {
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

// drop removes the attachments that were not kept.
func (s *splitter) drop() {
	for _, a := range s.aside {
		a.Drop()
	}
}

func bodyFault(err error) error { return web.BodyFault(err, "the body is not valid JSON") }

var errBase64 = errors.New("not base64")

// A decoder turns base64 of any kind (standard or for URLs, padded or not, in
// lines or not, also as a data: URL) into bytes as it comes. After an error it
// takes no more.
type decoder struct {
	to    io.Writer
	state byte       // what is expected: 0 anything, 'h' the rest of a data: URL's head, 'b' base64
	head  []byte     // at most maxHead
	buf   [4096]byte // symbols; a multiple of four fit
	n     int
	pad   bool
	err   error
}

const (
	dataURL = "data:"
	maxHead = 256
)

func (d *decoder) add(c byte) {
	switch {
	case d.err != nil:
	case d.state == 'b':
		d.symbol(c)
	case d.state == 'h' && c == ',':
		d.state = 'b'
		if !bytes.HasSuffix(d.head, []byte(";base64")) {
			d.err = errBase64
		}
	case len(d.head) == maxHead:
		d.err = errBase64
	default:
		d.head = append(d.head, c)
		if d.state == 'h' {
			return
		}
		if string(d.head) == dataURL {
			d.state = 'h'
		} else if !strings.HasPrefix(dataURL, string(d.head)) {
			d.body()
		}
	}
}

// body takes what was read so far for base64.
func (d *decoder) body() {
	d.state = 'b'
	for _, c := range d.head {
		d.symbol(c)
	}
}

func (d *decoder) symbol(c byte) {
	switch c {
	case '\n', '\r', ' ', '\t':
		return
	case '=':
		d.pad = true
		return
	case '-':
		c = '+'
	case '_':
		c = '/'
	}
	if d.pad && d.err == nil {
		d.err = errBase64
	}
	if d.err != nil {
		return
	}
	d.buf[d.n] = c
	if d.n++; d.n == len(d.buf) {
		d.flush()
	}
}

func (d *decoder) flush() {
	var bin [3 * 4096 / 4]byte
	n, err := base64.RawStdEncoding.Decode(bin[:], d.buf[:d.n])
	d.n = 0
	if err != nil {
		d.err = errBase64
		return
	}
	if _, err := d.to.Write(bin[:n]); err != nil {
		d.err = err
	}
}

// end decodes the rest and returns what was wrong.
func (d *decoder) end() error {
	switch d.state {
	case 0:
		d.body()
	case 'h':
		d.err = errBase64
	}
	if d.err == nil && d.n > 0 {
		d.flush()
	}
	return d.err
}
