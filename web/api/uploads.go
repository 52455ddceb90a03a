package api

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/attach"
	"gatehouse/web"
)

// Bounds of what is attached, in bytes: all files of a message together, and
// the bodies they come in.
const (
	MaxAttached   = 32 << 20
	maxJSONUpload = MaxAttached/3*4 + 64<<10 + maxChatBody
	maxFormUpload = MaxAttached + 64<<10 + maxChatBody
)

// uploadTime is how long a body with attachments may take to arrive.
const uploadTime = 5 * time.Minute

// Files keep what comes with messages (*attach.Keeper).
type Files interface {
	Begin(ctx context.Context, user, most int64) (*attach.Incoming, error)
	Remove(files []core.File)
}

// A beginning makes room for a file of the caller's.
type beginning = func() (*attach.Incoming, error)

// An upload is the body of POST /api/chat, with its files kept in the vault.
type upload struct {
	chatRequest
	ignored []string
	sum     [32]byte // of the whole body
	files   []core.File
}

// receive reads the body, as JSON or as a form, and keeps its files as they
// come. After an error nothing is kept.
func (a *API) receive(w http.ResponseWriter, r *http.Request, user int64) (u upload, err error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := media == "multipart/form-data"
	if err != nil || !form && media != "application/json" && !(strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return u, web.Refuse(web.UnsupportedMedia, "the body must be application/json or multipart/form-data")
	}
	limit := int64(maxJSONUpload)
	if form {
		limit = maxFormUpload
	}
	if r.ContentLength > limit {
		return u, web.Refuse(web.TooLarge, fmt.Sprintf("the body is over %d bytes", limit))
	}
	if r.ContentLength < 0 || r.ContentLength > maxChatBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // at worst the usual one holds
	}
	body := http.MaxBytesReader(w, r.Body, limit)
	defer func() {
		if err != nil {
			a.Files.Remove(u.files)
			u.files = nil
		}
	}()
	begin := func() (*attach.Incoming, error) { return a.Files.Begin(r.Context(), user, 0) }
	if form {
		err = a.receiveForm(&u, begin, multipart.NewReader(body, params["boundary"]))
		return u, err
	}
	err = a.receiveJSON(&u, begin, body)
	return u, err
}

func (a *API) receiveJSON(u *upload, begin beginning, body io.Reader) error {
	s := &splitter{in: bufio.NewReaderSize(body, 32<<10), begin: begin}
	defer s.drop()
	if err := s.split(); err != nil {
		return err
	}
	raw := s.out.Bytes()
	req, ignored, err := parseChat(raw)
	if err != nil {
		return err
	}
	u.chatRequest, u.ignored = req, ignored
	sum := sha256.New()
	sum.Write(raw)
	for i, given := range req.Attachments {
		f, err := given.keep(s.aside)
		if err != nil {
			return refusedFile(i, err)
		}
		u.files = append(u.files, f)
	}
	for _, x := range s.aside {
		sum.Write(x.Sum())
	}
	sum.Sum(u.sum[:0])
	return nil
}

// An attachment is one of a JSON body's; data refers to the stored data.
type attachment struct{ name, kind, data string }

func (x *attachment) UnmarshalJSON(raw []byte) error {
	fields, err := fold(raw)
	if err != nil {
		return err
	}
	for name, dest := range map[string]*string{"name": &x.name, "filename": &x.name, "file_name": &x.name, "type": &x.kind, "mime_type": &x.kind, "media_type": &x.kind, "data": &x.data} {
		if value, there := fields[name]; there {
			if err := json.Unmarshal(value, dest); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *attachment) keep(asides []*aside) (core.File, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(x.data, "@"))
	if err != nil || n < 0 || n >= len(asides) {
		return core.File{}, core.Errorf(core.Invalid, "an attachment is an object with name and data, the file in base64; a path of a file in the vault is none")
	}
	if errors.Is(asides[n].err, errBase64) {
		return core.File{}, core.Errorf(core.Invalid, "%s is not base64", shownName(x.name))
	}
	return asides[n].Keep(x.name, x.kind)
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
		return fieldProblem(fault, fmt.Sprintf("attachments[%d]", i), core.TextOf(err))
	}
	return err
}

// maxFields bounds the parts of a form that are no files.
const maxFields = 256

// receiveForm reads a form: its fields are those of the JSON body (contexts may
// be there more than once), every part with a file name is an attachment.
func (a *API) receiveForm(u *upload, begin beginning, form *multipart.Reader) error {
	fields, sum, room := map[string]any{}, sha256.New(), maxChatBody
	for n := 0; ; {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return formFault(err)
		}
		if part.FileName() != "" {
			if err := a.receiveFile(u, begin, part, sum); err != nil {
				return err
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, int64(room)+1))
		if err != nil {
			return formFault(err)
		}
		if n, room = n+1, room-len(text); n > maxFields || room < 0 {
			return web.Refuse(web.TooLarge, fmt.Sprintf("the form holds more than %d fields or %d bytes apart from its files", maxFields, maxChatBody))
		}
		if err := addField(fields, snake(part.FormName()), string(text)); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	sum.Write(raw)
	sum.Sum(u.sum[:0])
	u.chatRequest, u.ignored, err = parseChat(raw)
	return err
}

func (a *API) receiveFile(u *upload, begin beginning, part *multipart.Part, sum io.Writer) error {
	if len(u.files) == attach.MaxFiles {
		return fieldProblem(web.TooLarge, "attachments", fmt.Sprintf("at most %d files may be attached", attach.MaxFiles))
	}
	f, content, err := keepPart(begin, part, len(u.files))
	if err != nil {
		return err
	}
	u.files = append(u.files, f)
	fmt.Fprintf(sum, "%q", part.FileName()) // in quotes: no name can pass for content. A hash never fails
	_, _ = sum.Write(content)
	return nil
}

// keepPart keeps the file of a form's part, which is the form's nth, counted
// from 0, and gives the sum of its content.
func keepPart(begin beginning, part *multipart.Part, n int) (f core.File, sum []byte, err error) {
	in, err := begin()
	if err != nil {
		return f, nil, err
	}
	defer in.Drop()
	if _, err := io.Copy(in, part); err != nil && !attach.Refused(err) {
		return f, nil, formFault(err)
	}
	f, err = in.Keep(part.FileName(), part.Header.Get("Content-Type"))
	if err != nil {
		return f, nil, refusedFile(n, err)
	}
	return f, in.Sum(), nil
}

// addField makes a form's field what it is in JSON.
func addField(fields map[string]any, name, text string) error {
	if name == "contexts" || name == "contexts[]" {
		list, _ := fields["contexts"].([]string)
		fields["contexts"] = append(list, text)
		return nil
	}
	if _, twice := fields[name]; twice {
		return fieldProblem(web.Invalid, name, "the field "+core.CutRunes(core.CleanName(name), 64)+" is there twice")
	}
	if name == "cancel_on_disconnect" {
		fields[name] = text == "true" || text == "1" || text == "on"
		return nil
	}
	fields[name] = text
	return nil
}

func formFault(err error) error { return web.BodyFault(err, "the body is not a valid form") }
