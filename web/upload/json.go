package upload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/web"
)

// maxDepth bounds how deep a body may be nested; ours is three deep.
const maxDepth = 64

// An extractor copies a JSON body and stores the data of attachments as it
// reads: the copy has "@0", "@1" … in their place. It does not validate the
// JSON: the reader of the copy does. encoding/json and jsontext keep a whole
// string in memory before they return it, which costs 93 MB for the largest body.
type extractor struct {
	in    *bufio.Reader
	out   bytes.Buffer // at most MaxText
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
	valid bool // the data is base64
}

// extract reads all of the body.
func (s *extractor) extract() error {
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
func (s *extractor) mark(c byte) error {
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

func (s *extractor) copy(b ...byte) error {
	if s.out.Len()+len(b) > MaxText {
		return web.Refuse(web.TooLarge, fmt.Sprintf("the body is over %d bytes without what is attached", MaxText))
	}
	s.out.Write(b)
	return nil
}

// text copies a string, or stores it as an attachment. Its first quote has been
// read.
func (s *extractor) text() error {
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

		s.open[n-1].name = web.SnakeCase(name)
	}
	return nil
}

// isData reports whether the string that begins is attachments[].data.
func (s *extractor) isData() bool {
	o := s.open
	return len(o) == 3 && !o[0].list && !o[0].key && o[0].name == "attachments" && o[1].list && !o[2].list && !o[2].key && o[2].name == "data"
}

func (s *extractor) data() error {
	if len(s.aside) == attach.MaxFiles {
		return web.FieldProblem(web.TooLarge, "attachments", fmt.Sprintf("at most %d files may be attached", attach.MaxFiles))
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
	a.valid, err = decode(in, s.in)
	return err
}

func bodyFault(err error) error { return web.BodyFault(err, "the body is not valid JSON") }

// JSON reads a JSON body and returns it with "@0", "@1" … in place of the data of
// its attachments, for Keep.
func (b *Body) JSON() (raw []byte, err error) {
	s := &extractor{in: bufio.NewReaderSize(b.in, 32<<10), begin: b.begin}
	err = s.extract()
	b.aside = s.aside
	return s.out.Bytes(), err
}

// An Attachment is one of a JSON body's.
type Attachment struct{ name, kind, data string }

// UnmarshalJSON implements json.Unmarshaler.
func (x *Attachment) UnmarshalJSON(raw []byte) error {
	given, err := web.FieldsOf(raw)
	if err != nil {
		return err
	}
	for name, dest := range map[string]*string{"name": &x.name, "filename": &x.name, "file_name": &x.name, "type": &x.kind, "mime_type": &x.kind, "media_type": &x.kind, "data": &x.data} {
		if value, there := given[name]; there {
			if err := json.Unmarshal(value, dest); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keep stores x, which is at index i of the body's attachments, and appends it to
// Files.
func (b *Body) Keep(i int, x Attachment) error {
	f, err := b.keep(x)
	if err != nil {
		return refusedFile(i, err)
	}
	b.Files = append(b.Files, f)
	return nil
}

func (b *Body) keep(x Attachment) (core.File, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(x.data, "@"))
	if err != nil || n < 0 || n >= len(b.aside) {
		return core.File{}, core.Errorf(core.Invalid, "an attachment is an object with name and data, the file in base64; a path of a file in the vault is none")
	}
	if !b.aside[n].valid {
		return core.File{}, core.Errorf(core.Invalid, "%s is not base64", shownName(x.name))
	}
	return b.aside[n].Keep(x.name, x.kind)
}

func shownName(name string) string {
	if name = core.CleanName(name); name == "" {
		return "the file"
	}
	return name
}

// refusedFile returns which file was refused, and why.
func refusedFile(i int, err error) error {
	if _, full := errors.AsType[*attach.Full](err); full {
		return err // it names its own problem
	}
	faults := map[core.Kind]web.Fault{core.TooLarge: web.TooLarge, core.Invalid: web.Invalid}
	if fault, ok := faults[core.KindOf(err)]; ok {
		return web.FieldProblem(fault, fmt.Sprintf("attachments[%d]", i), core.TextOf(err))
	}
	return err
}
