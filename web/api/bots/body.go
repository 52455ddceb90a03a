package bots

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/web"
	"gatehouse/web/upload"
)

// An unaskedBody is the body of POST /api/bots/{bot}/messages.
type unaskedBody struct {
	Unasked
	ignored []string
}

var sendBody = upload.Limits{Fields: maxSendBody, JSON: upload.MaxJSON, Form: upload.MaxJSON, Files: MaxSendFiles, TooMany: tooManyToSend()}

// readUnasked reads the message to send, as JSON or as a form, and stores its
// files. After an error none is left.
func (a *API) readUnasked(w http.ResponseWriter, r *http.Request, user int64) (m unaskedBody, err error) {
	b, err := a.uploads.Open(w, r, user, sendBody)
	if err != nil {
		return m, err
	}
	defer func() {
		b.Close(err)
		m.Files = b.Files
	}()
	if b.IsForm() {
		err = b.Form(m.field)
	} else {
		err = m.json(b)
	}
	if err != nil {
		return m, err
	}
	m.Files = b.Files
	err = m.check()
	return m, err
}

func (m *unaskedBody) json(b *upload.Body) error {
	raw, err := b.JSON()
	if err != nil {
		return err
	}
	all, err := web.FieldsOf(raw)
	if err != nil {
		return err
	}
	var given []json.RawMessage
	into := map[string]any{"chat": &m.Chat, "text": &m.Text, "attachments": &given}
	for name, value := range all {
		dest, known := into[name]
		switch {
		case !known:
			m.ignored = append(m.ignored, name)
		case json.Unmarshal(value, dest) != nil:
			return web.FieldProblem(web.Invalid, name, "the field "+name+" is not valid")
		}
	}
	slices.Sort(m.ignored)
	for i, raw := range given {
		if err := m.attached(b, i, raw); err != nil {
			return err
		}
	}
	return nil
}

// attached reads one of attachments: a path in the vault, or a file.
func (m *unaskedBody) attached(b *upload.Body, i int, raw json.RawMessage) error {
	var path string
	if json.Unmarshal(raw, &path) == nil && raw[0] == '"' {
		m.Attachments = append(m.Attachments, path)
		return nil
	}
	var x upload.Attachment
	if json.Unmarshal(raw, &x) != nil {
		return web.FieldProblem(web.Invalid, "attachments", "the field attachments must be a list of paths in the vault, or of objects with name and data")
	}
	return b.Keep(i, x)
}

// field takes a form's field: chat, text and attachments (paths, once for each).
func (m *unaskedBody) field(name, text string) error {
	dest := map[string]*string{"chat": &m.Chat, "text": &m.Text}[name]
	switch {
	case name == "attachments" || name == "attachments[]":
		m.Attachments = append(m.Attachments, text)
	case dest == nil:
		m.ignored = append(m.ignored, name)
	case *dest != "":
		return web.FieldProblem(web.Invalid, name, "the field "+name+" is there twice")
	default:
		*dest = text
	}
	return nil
}

func tooManyToSend() error {
	return web.FieldProblem(web.Invalid, "attachments", fmt.Sprintf("at most %d files go with a message, each a file sent along or a path in the vault", MaxSendFiles))
}

func (m *unaskedBody) check() error {
	long := slices.ContainsFunc(m.Attachments, func(f string) bool { return f == "" || len(f) > 1024 })
	switch {
	case len(m.Attachments)+len(m.Files) > MaxSendFiles || long:
		return tooManyToSend()
	case m.Chat == "" || len(m.Chat) > 128:
		return web.FieldProblem(web.Invalid, "chat", "the field chat must name a chat, in at most 128 bytes")
	case strings.TrimSpace(m.Text) == "" && len(m.Attachments)+len(m.Files) == 0:
		return web.FieldProblem(web.Invalid, "text", "the field text is missing or empty")
	case len(m.Text) > MaxText:
		return web.FieldProblem(web.TooLarge, "text", fmt.Sprintf("the field text is over %d bytes", MaxText))
	}
	total := int64(0)
	for _, f := range m.Files {
		total += f.Size
	}
	if total > upload.MaxFiles {
		return web.FieldProblem(web.TooLarge, "attachments", "the files are over "+core.ByteSize(upload.MaxFiles)+" together")
	}
	return nil
}
