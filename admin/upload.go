package admin

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/web"
)

// Bounds of what comes with a message that is written here.
const (
	maxFiles   = attach.MaxFiles
	maxUpload  = 32 << 20 // bytes of all its files together
	maxUploads = 4        // at once
	uploadTime = 5 * time.Minute
	maxField   = maxSay*3 + 1<<10 // of a form with files; a line's end comes as two bytes
)

// Files keeps what comes with messages (*attach.Keeper).
type Files interface {
	Begin(ctx context.Context, user, most int64) (*attach.Incoming, error)
	Remove(files []core.File)
}

type formKey struct{}

// upload is a route for signed-in operators whose form may hold files. The
// form's first field is the session's token: nothing else of it is read before.
func (p *Panel) upload(pattern string, h web.Handler) {
	inside := p.signedIn(p.chosen(h))
	plain := web.Body(maxForm, inside)
	p.serve(pattern, func(w http.ResponseWriter, r *http.Request) error {
		media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if _, ok := principal(r); !ok || media != "multipart/form-data" {
			return plain(w, r)
		}
		if r.ContentLength > maxUpload+maxForm {
			return tooMuch()
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxUpload+maxForm)
		select {
		case p.uploads <- struct{}{}:
			defer func() { <-p.uploads }()
		default:
			return core.Errorf(core.Busy, "too many files are being sent at once; try again in a minute")
		}
		c := http.NewResponseController(w) // where it can't set them, the server's times hold
		_ = c.SetReadDeadline(time.Now().Add(uploadTime))
		_ = c.SetWriteDeadline(time.Now().Add(uploadTime + time.Minute))
		form, err := r.MultipartReader()
		if err != nil {
			return core.Errorf(core.Invalid, "the form can't be read")
		}
		r.Header.Del("X-CSRF-Token")
		if part, err := form.NextPart(); err == nil && part.FormName() == "csrf" {
			token, _ := io.ReadAll(io.LimitReader(part, 200))
			r.Header.Set("X-CSRF-Token", string(token))
		}
		return inside(w, r.WithContext(context.WithValue(r.Context(), formKey{}, form)))
	})
}

// saying reads what the operator wrote and keeps its files as they come. What
// was kept before an error is in it, too.
func (p *Panel) saying(r *http.Request) (Saying, error) {
	s := Saying{Session: r.PathValue("id")}
	if s.Session == "new" {
		s.Session = ""
	}
	form, ok := r.Context().Value(formKey{}).(*multipart.Reader)
	if !ok {
		s.Text, s.Agent, s.Model = words(r.PostFormValue("text")), r.PostFormValue("agent"), r.PostFormValue("model")
		return s, nil
	}
	fields := map[string]*string{"text": &s.Text, "agent": &s.Agent, "model": &s.Model}
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

func (p *Panel) keep(r *http.Request, s *Saying, part *multipart.Part) error {
	switch {
	case part.FileName() == "":
		return nil // none was chosen
	case p.o.Files == nil:
		return core.Errorf(core.Invalid, "files can't be attached here")
	case len(s.Files) == maxFiles:
		return core.Errorf(core.TooLarge, "at most %d files go with a message", maxFiles)
	}
	who, _ := principal(r)
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

// formFault says in words what is wrong with a form with files.
func formFault(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooMuch()
	}
	if core.KindOf(err) != core.Other {
		return err
	}
	if strings.HasPrefix(err.Error(), "multipart:") || errors.Is(err, io.ErrUnexpectedEOF) {
		return core.Errorf(core.Invalid, "the form can't be read")
	}
	return err
}

func tooMuch() error {
	return core.Errorf(core.TooLarge, "the files of a message are at most %s together", core.ByteSize(maxUpload))
}
