package api

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/web"
)

// An order to send, while it is read.
type unaskedBody struct {
	Unasked
	ignored []string
	begin   beginning
}

// readUnasked reads the message to send, as JSON or as a form, and stores its
// files. After an error no file is left.
func (a *API) readUnasked(w http.ResponseWriter, r *http.Request, user int64) (m unaskedBody, err error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := media == "multipart/form-data"
	if err != nil || !form && media != "application/json" {
		return m, web.Refuse(web.UnsupportedMedia, "the body must be application/json or multipart/form-data")
	}
	if r.ContentLength > maxJSONUpload {
		return m, web.Refuse(web.TooLarge, fmt.Sprintf("the body is over %d bytes", maxJSONUpload))
	}
	if r.ContentLength < 0 || r.ContentLength > maxSendBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // at worst the usual one holds
	}
	m.begin = func() (*attach.Incoming, error) { return a.Files.Begin(r.Context(), user, 0) }
	body := http.MaxBytesReader(w, r.Body, maxJSONUpload)
	if form {
		err = m.form(multipart.NewReader(body, params["boundary"]))
	} else {
		err = m.json(body)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		a.Files.Remove(m.Files)
	}
	return m, err
}

func (m *unaskedBody) json(body io.Reader) error {
	s := &splitter{in: bufio.NewReaderSize(body, 32<<10), begin: m.begin}
	defer s.drop()
	if err := s.split(); err != nil {
		return err
	}
	fields, err := fold(s.out.Bytes())
	if err != nil {
		return err
	}
	var given []json.RawMessage
	into := map[string]any{"chat": &m.Chat, "text": &m.Text, "attachments": &given}
	for name, value := range fields {
		dest, known := into[name]
		switch {
		case !known:
			m.ignored = append(m.ignored, name)
		case json.Unmarshal(value, dest) != nil:
			return fieldProblem(web.Invalid, name, "the field "+name+" is not valid")
		}
	}
	slices.Sort(m.ignored)
	for i, raw := range given {
		if err := m.attached(i, raw, s.aside); err != nil {
			return err
		}
	}
	return nil
}

// attached reads one of attachments: a path in the vault, or a file.
func (m *unaskedBody) attached(i int, raw json.RawMessage, asides []*aside) error {
	var path string
	if json.Unmarshal(raw, &path) == nil && raw[0] == '"' {
		m.Attachments = append(m.Attachments, path)
		return nil
	}
	var x attachment
	if json.Unmarshal(raw, &x) != nil {
		return fieldProblem(web.Invalid, "attachments", "the field attachments must be a list of paths in the vault, or of objects with name and data")
	}
	f, err := x.keep(asides)
	if err != nil {
		return refusedFile(i, err)
	}
	m.Files = append(m.Files, f)
	return nil
}

// form reads chat, text and attachments (paths, once for each); every part with
// a file name is a file.
func (m *unaskedBody) form(form *multipart.Reader) error {
	for n, room := 0, maxSendBody; ; n++ {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return formFault(err)
		}
		if n > maxFields {
			return web.Refuse(web.TooLarge, fmt.Sprintf("the form has more than %d parts", maxFields))
		}
		if part.FileName() != "" {
			if err := m.file(part); err != nil {
				return err
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, int64(room)+1))
		if err != nil {
			return formFault(err)
		}
		if room -= len(text); room < 0 {
			return web.Refuse(web.TooLarge, fmt.Sprintf("the form holds more than %d bytes apart from its files", maxSendBody))
		}
		if err := m.field(snake(part.FormName()), string(text)); err != nil {
			return err
		}
	}
}

func (m *unaskedBody) field(name, text string) error {
	dest := map[string]*string{"chat": &m.Chat, "text": &m.Text}[name]
	switch {
	case name == "attachments" || name == "attachments[]":
		m.Attachments = append(m.Attachments, text)
	case dest == nil:
		m.ignored = append(m.ignored, name)
	case *dest != "":
		return fieldProblem(web.Invalid, name, "the field "+name+" is there twice")
	default:
		*dest = text
	}
	return nil
}

func (m *unaskedBody) file(part *multipart.Part) error {
	if len(m.Files) == MaxSendFiles {
		return tooManyToSend()
	}
	f, _, err := keepPart(m.begin, part, len(m.Files))
	if err != nil {
		return err
	}
	m.Files = append(m.Files, f)
	return nil
}

func tooManyToSend() error {
	return fieldProblem(web.Invalid, "attachments", fmt.Sprintf("at most %d files go with a message, each a file sent along or a path in the vault", MaxSendFiles))
}

func (m *unaskedBody) check() error {
	long := slices.ContainsFunc(m.Attachments, func(f string) bool { return f == "" || len(f) > 1024 })
	switch {
	case len(m.Attachments)+len(m.Files) > MaxSendFiles || long:
		return tooManyToSend()
	case m.Chat == "" || len(m.Chat) > 128:
		return fieldProblem(web.Invalid, "chat", "the field chat must name a chat, in at most 128 bytes")
	case strings.TrimSpace(m.Text) == "" && len(m.Attachments)+len(m.Files) == 0:
		return fieldProblem(web.Invalid, "text", "the field text is missing or empty")
	case len(m.Text) > MaxMessage:
		return fieldProblem(web.TooLarge, "text", fmt.Sprintf("the field text is over %d bytes", MaxMessage))
	}
	total := int64(0)
	for _, f := range m.Files {
		total += f.Size
	}
	if total > MaxAttached {
		return fieldProblem(web.TooLarge, "attachments", "the files are over "+core.ByteSize(MaxAttached)+" together")
	}
	return nil
}
