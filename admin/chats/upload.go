package chats

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"gatehouse/admin/page"
	"gatehouse/core"
	"gatehouse/core/attach"
)

// Bounds of what comes with a message that is written here.
const (
	maxFiles = attach.MaxFiles
	maxField = maxSay*3 + 1<<10 // of a form with files; a line's end comes as two bytes
)

// saying reads the operator's message and stores its files as they arrive. After
// an error it has the files that were stored before.
func (p *Pages) saying(r *http.Request) (Saying, error) {
	s := Saying{Session: r.PathValue("id")}
	if s.Session == "new" {
		s.Session = ""
	}
	form, ok := page.Parts(r)
	if !ok {
		s.Text, s.Agent, s.Model, s.Context = words(r.PostFormValue("text")), r.PostFormValue("agent"), r.PostFormValue("model"), r.PostFormValue("context")
		return s, nil
	}
	fields := map[string]*string{"text": &s.Text, "agent": &s.Agent, "model": &s.Model, "context": &s.Context}
	for range maxFiles + 16 {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			s.Text = words(s.Text)
			return s, nil
		}
		if err != nil {
			return s, formFault(err)
		}
		if part.FormName() == "file" {
			err = p.keep(r, &s, part)
		} else if to := fields[part.FormName()]; to != nil {
			var value []byte
			value, err = io.ReadAll(io.LimitReader(part, maxField))
			*to = string(value)
		}
		if err != nil {
			return s, formFault(err)
		}
	}
	return s, core.Errorf(core.TooLarge, "at most %d files go with a message", maxFiles)
}

func (p *Pages) keep(r *http.Request, s *Saying, part *multipart.Part) error {
	switch {
	case part.FileName() == "":
		return nil // none was chosen
	case p.o.Files == nil:
		return core.Errorf(core.Invalid, "files cannot be attached here")
	case len(s.Files) == maxFiles:
		return core.Errorf(core.TooLarge, "at most %d files go with a message", maxFiles)
	}
	who, _ := page.Principal(r)
	in, err := p.o.Files.Begin(r.Context(), who.User, 0)
	if err != nil {
		return err
	}
	defer in.Drop()
	if _, err := io.Copy(in, part); err != nil && !attach.Refused(err) {
		return err
	}
	f, err := in.Keep(part.FileName(), part.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	s.Files = append(s.Files, f)
	return nil
}

// formFault returns what is wrong with a form with files.
func formFault(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return page.TooMuch()
	}
	if core.KindOf(err) != core.Other {
		return err
	}
	if strings.HasPrefix(err.Error(), "multipart:") || errors.Is(err, io.ErrUnexpectedEOF) {
		return core.Errorf(core.Invalid, "the form cannot be read")
	}
	return err
}
