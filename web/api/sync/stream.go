package sync

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/vaultsync"
	"gatehouse/core/vaultsync/wire"
	"gatehouse/web"
)

// Parts of a stream: the description of a file, and behind it its content.
const (
	metaPart    = "meta"
	contentPart = "content"
)

// push serves POST /api/sync/push: a stream of files, or JSON.
func (a *API) push(w http.ResponseWriter, r *http.Request, c caller) error {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	r.Body = body{move(c.line, r.Body), r.Body}
	switch {
	case err == nil && media == "multipart/form-data":
		return a.pushStream(w, r, c, multipart.NewReader(http.MaxBytesReader(w, r.Body, wire.MaxBody), params["boundary"]))
	case err == nil && media == "application/json":
		return a.pushJSON(w, r, c)
	}
	return web.Refuse(web.UnsupportedMedia, "the body must be multipart/form-data with parts meta and content, or application/json")
}

func (a *API) pushStream(w http.ResponseWriter, r *http.Request, c caller, form *multipart.Reader) error {
	device, out := r.URL.Query().Get("device"), newResult()
	for n := 0; ; n++ {
		if err := c.line.allow(perFile); err != nil {
			return a.interrupted(r, c, device, "sync.push", out, err)
		}
		meta, content, err := next(form)
		if err == io.EOF { // of the form: a body that was cut off wraps it
			break
		}
		if err == nil && n == wire.MaxBatch {
			err = counted(n + 1)
		}
		if err != nil {
			return a.interrupted(r, c, device, "sync.push", out, err)
		}
		sent := &wire.Tracked{R: content}
		done, err := a.o.Files.Push(r.Context(), c.Area, vaultsync.Sent{Root: r.URL.Query().Get("root"), Meta: meta, Device: device}, sent)
		if sent.Err != nil {
			err = web.BodyFault(sent.Err, "the content of a file cannot be read")
			return a.interrupted(r, c, device, "sync.push", out, err)
		}
		if err := out.add(meta.Path, done, err); err != nil {
			return a.interrupted(r, c, device, "sync.push", out, err)
		}
	}
	return a.answer(w, r, c, device, "sync.push", out)
}

// interrupted notes what was done before an error, and returns that.
func (a *API) interrupted(r *http.Request, c caller, device, action string, out *result, err error) error {
	if len(out.Files) == 0 {
		return err
	}
	return errors.Join(err, a.o.Did(context.WithoutCancel(r.Context()), c.by, device, action, out.Files))
}

// next returns the next file of a stream; io.EOF at its end.
func next(form *multipart.Reader) (meta wire.Meta, content io.Reader, err error) {
	part, err := form.NextPart()
	if err == io.EOF {
		return meta, nil, err
	}
	if err != nil {
		return meta, nil, web.BodyFault(err, "the form cannot be read")
	}
	if part.FormName() != metaPart {
		return meta, nil, web.Refuse(web.Invalid, "the form must have a part meta before each part content")
	}
	text, err := io.ReadAll(io.LimitReader(part, maxMeta))
	if err != nil {
		return meta, nil, web.BodyFault(err, "the form cannot be read")
	}
	if json.Unmarshal(text, &meta) != nil || meta.Path == "" {
		return meta, nil, web.Refuse(web.Invalid, "a part meta is no JSON with a path")
	}
	part, err = form.NextPart()
	if err == nil && part.FormName() != contentPart || errors.Is(err, io.EOF) {
		return meta, nil, web.Refuse(web.Invalid, "the form must have a part content behind each part meta")
	}
	if err != nil {
		return meta, nil, web.BodyFault(err, "the form cannot be read")
	}
	return meta, part, nil
}

// pushJSON takes {root, files: [{path, content, is_binary, base_hash}]}.
func (a *API) pushJSON(w http.ResponseWriter, r *http.Request, c caller) error {
	var o order
	if err := c.line.allow(perFile); err != nil {
		return err
	}
	if err := read(w, r, maxJSON, &o); err != nil {
		return err
	}
	if err := counted(len(o.Files)); err != nil {
		return err
	}
	out := newResult()
	for _, f := range o.Files {
		if err := c.line.open(); err != nil {
			return a.interrupted(r, c, o.Device, "sync.push", out, err)
		}
		data, err := contentOf(f)
		var done wire.Done
		if err == nil {
			f.Hash = ""
			done, err = a.o.Files.Push(r.Context(), c.Area, vaultsync.Sent{Root: o.Root, Meta: f, Device: o.Device}, bytes.NewReader(data))
		}
		if err := out.add(f.Path, done, err); err != nil {
			return a.interrupted(r, c, o.Device, "sync.push", out, err)
		}
	}
	return a.answer(w, r, c, o.Device, "sync.push", out)
}

func contentOf(f wire.Meta) ([]byte, error) {
	switch {
	case f.Content == nil:
		return nil, core.Errorf(core.Invalid, "content is missing")
	case !f.IsBinary:
		return []byte(*f.Content), nil
	}
	data, err := base64.StdEncoding.DecodeString(*f.Content)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "content is not base64")
	}
	return data, nil
}

// pull serves POST /api/sync/pull: a stream for who accepts multipart/mixed, else JSON.
func (a *API) pull(w http.ResponseWriter, r *http.Request, c caller) error {
	var p wire.Pull
	if err := read(w, r, maxOrder, &p); err != nil {
		return err
	}
	if err := counted(len(p.Paths)); err != nil {
		return err
	}
	if strings.Contains(r.Header.Get("Accept"), "multipart/mixed") {
		return a.pullStream(w, r, c, p)
	}
	return a.pullJSON(w, r, c, p)
}

func (a *API) pullStream(w http.ResponseWriter, r *http.Request, c caller, p wire.Pull) error {
	form := multipart.NewWriter(w)
	w.Header().Set("Content-Type", "multipart/mixed; boundary="+form.Boundary())
	w.Header().Set("Cache-Control", "no-store")
	for _, path := range p.Paths {
		if err := c.line.allow(perFile); err != nil {
			return err
		}
		if err := a.stream(form, r, c, p.Root, path); err != nil {
			return err // the stream has no end, by which the client notices
		}
	}
	return form.Close()
}

func (a *API) stream(form *multipart.Writer, r *http.Request, c caller, root, path string) error {
	f, err := a.o.Files.Open(r.Context(), c.Area, root, path)
	if err != nil {
		if core.KindOf(err) == core.Other {
			return err
		}
		return writePart(form, metaPart, wire.Meta{Path: path, Error: core.TextOf(err), Missing: core.KindOf(err) == core.NotFound}, nil)
	}
	defer f.Close()
	return writePart(form, metaPart, f.Meta, move(c.line, io.LimitReader(f, f.Size)))
}

// writePart writes the description of a file, and its content unless that is nil.
func writePart(form *multipart.Writer, name string, meta wire.Meta, content io.Reader) error {
	text, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	part, err := form.CreatePart(header(name, "application/json"))
	if err == nil {
		_, err = part.Write(text)
	}
	if err != nil || content == nil {
		return err
	}
	if part, err = form.CreatePart(header(contentPart, "application/octet-stream")); err == nil {
		_, err = io.Copy(part, content)
	}
	return err
}

func header(name, media string) textproto.MIMEHeader {
	return textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + name + `"`}, "Content-Type": {media}}
}

// pullJSON answers with the contents in JSON, in base64 where they are no text.
func (a *API) pullJSON(w http.ResponseWriter, r *http.Request, c caller, p wire.Pull) error {
	out := struct {
		Files  []wire.Meta `json:"files"`
		Errors []string    `json:"errors"`
	}{[]wire.Meta{}, []string{}}
	left := int64(maxJSON)
	for _, path := range p.Paths {
		if err := c.line.open(); err != nil {
			return err
		}
		f, err := a.inJSON(r, c, p.Root, path, left)
		if core.KindOf(err) == core.Other && err != nil {
			return err
		}
		if err != nil {
			out.Errors = append(out.Errors, core.CutRunes(path, 200)+": "+core.TextOf(err))
			continue
		}
		out.Files, left = append(out.Files, f), left-int64(len(*f.Content))
	}
	return web.WriteJSON(w, http.StatusOK, out)
}

func (a *API) inJSON(r *http.Request, c caller, root, path string, left int64) (wire.Meta, error) {
	f, err := a.o.Files.Open(r.Context(), c.Area, root, path)
	if err != nil {
		return wire.Meta{}, err
	}
	defer f.Close()
	if f.Size > left/2 { // base64 is longer
		return wire.Meta{}, core.Errorf(core.TooLarge, "the answer would be too large: ask for it alone, or with Accept: multipart/mixed")
	}
	data, err := io.ReadAll(io.LimitReader(f, f.Size))
	if err != nil {
		return wire.Meta{}, err
	}
	text := string(data)
	if f.IsBinary = !utf8.Valid(data) || vaultsync.Binary(path); f.IsBinary {
		text = base64.StdEncoding.EncodeToString(data)
	}
	f.Content = &text
	return f.Meta, nil
}
