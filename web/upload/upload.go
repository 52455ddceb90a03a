// Package upload reads bodies that carry files, as JSON with base64 or as
// multipart forms, and stores the files as they arrive. Memory stays bounded by
// what is not a file.
package upload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
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

// MaxFiles bounds all files of a body together, in bytes.
const MaxFiles = 32 << 20

// MaxText bounds what is not a file in a JSON body, in bytes. It may be larger
// than its texts, since JSON may write a character with six bytes.
const MaxText = 2 << 20

// MaxJSON and MaxForm bound bodies with files, in bytes.
const (
	MaxJSON = MaxFiles/3*4 + 64<<10 + MaxText
	MaxForm = MaxFiles + 64<<10 + MaxText
)

// maxFields bounds the parts of a form that are no files.
const maxFields = 256

// uploadTime is how long a body with files may take to arrive.
const uploadTime = 5 * time.Minute

// Files stores files (*attach.Keeper).
type Files interface {
	Begin(ctx context.Context, user, most int64) (*attach.Incoming, error)
	Remove(files []core.File)
}

// Limits bound one kind of body, in bytes.
type Limits struct {
	Fields  int   // all fields of a form that are no files; a larger body may take longer to arrive
	JSON    int64 // a whole JSON body
	Form    int64 // a whole form
	AnyJSON bool  // also the media types application/…+json
	Files   int   // files of a form
	TooMany error // for more files
}

// A Reader reads bodies and stores their files.
type Reader struct{ files Files }

// New returns a Reader that stores in files.
func New(files Files) *Reader { return &Reader{files: files} }

// A Body is a request's body while it is read. Its owner calls Close.
type Body struct {
	Files []core.File // stored so far

	reader *Reader
	limits Limits
	begin  func() (*attach.Incoming, error)
	in     io.Reader
	form   *multipart.Reader // nil: the body is JSON
	aside  []*aside          // of JSON; at most attach.MaxFiles
	named  hash.Hash         // of a form's files, with their names
}

// Open begins to read the body of r for user, who will own the files. It
// refuses another media type and a body that is too large.
func (u *Reader) Open(w http.ResponseWriter, r *http.Request, user int64, limits Limits) (*Body, error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := media == "multipart/form-data"
	if err != nil || !form && media != "application/json" && !(limits.AnyJSON && strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")) {
		return nil, web.Refuse(web.UnsupportedMedia, "the body must be application/json or multipart/form-data")
	}
	limit := limits.JSON
	if form {
		limit = limits.Form
	}
	if r.ContentLength > limit {
		return nil, web.Refuse(web.TooLarge, fmt.Sprintf("the body is over %d bytes", limit))
	}
	if r.ContentLength < 0 || r.ContentLength > int64(limits.Fields) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // at worst the usual one holds
	}
	b := &Body{reader: u, limits: limits, in: http.MaxBytesReader(w, r.Body, limit), named: sha256.New()}
	b.begin = func() (*attach.Incoming, error) { return u.files.Begin(r.Context(), user, 0) }
	if form {
		b.form = multipart.NewReader(b.in, params["boundary"])
	}
	return b, nil
}

// IsForm reports whether the body is a form, to be read with Form, and not JSON.
func (b *Body) IsForm() bool { return b.form != nil }

// Sum returns a hash of the body's content: of its files, and of raw, which is
// the rest as JSON.
func (b *Body) Sum(raw []byte) (sum [32]byte) {
	all := b.named
	all.Write(raw)
	for _, a := range b.aside {
		all.Write(a.Sum())
	}
	all.Sum(sum[:0])
	return sum
}

// Close removes what was stored and is in no file of Files, and after an error
// the Files too.
func (b *Body) Close(err error) {
	for _, a := range b.aside {
		a.Drop()
	}
	if err != nil {
		b.reader.files.Remove(b.Files)
		b.Files = nil
	}
}
