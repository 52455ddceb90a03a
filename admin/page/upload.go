package page

import (
	"context"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"time"

	"gatehouse/core"
	"gatehouse/web"
)

// MaxUpload bounds the files of one form, in bytes.
const MaxUpload = 32 << 20

const (
	maxUploads = 4 // at once
	uploadTime = 5 * time.Minute
)

type formKey struct{}

// Upload adds a route for signed-in operators whose form may hold files (Parts), at most
// MaxUpload bytes together and four at once. The form's first field is the session's
// token: nothing else of it is read before.
func (f *Frame) Upload(pattern string, h web.Handler) {
	f.UploadOf(pattern, MaxUpload, uploadTime, h)
}

// UploadOf is Upload for files of at most most bytes together, which arrive within the time.
func (f *Frame) UploadOf(pattern string, most int64, within time.Duration, h web.Handler) {
	inside := signedIn(f.chosen(h))
	plain := web.Body(maxForm, inside)
	f.serve(pattern, func(w http.ResponseWriter, r *http.Request) error {
		media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if _, ok := Principal(r); !ok || media != "multipart/form-data" {
			return plain(w, r)
		}
		if r.ContentLength > most+maxForm {
			return core.Errorf(core.TooLarge, "the files of a form are at most %s together", core.ByteSize(int(most)))
		}
		r.Body = http.MaxBytesReader(w, r.Body, most+maxForm)
		select {
		case f.uploads <- struct{}{}:
			defer func() { <-f.uploads }()
		default:
			return core.Errorf(core.Busy, "too many files are being sent at once; try again in a minute")
		}
		c := http.NewResponseController(w) // where it can't set them, the server's times hold
		_ = c.SetReadDeadline(time.Now().Add(within))
		_ = c.SetWriteDeadline(time.Now().Add(within + time.Minute))
		form, err := r.MultipartReader()
		if err != nil {
			return core.Errorf(core.Invalid, "the form cannot be read")
		}
		r.Header.Del("X-CSRF-Token")
		if part, err := form.NextPart(); err == nil && part.FormName() == "csrf" {
			token, _ := io.ReadAll(io.LimitReader(part, 200))
			r.Header.Set("X-CSRF-Token", string(token))
		}
		return inside(w, r.WithContext(context.WithValue(r.Context(), formKey{}, form)))
	})
}

// Parts returns the fields and files of an upload as they come in; false for a
// form without files.
func Parts(r *http.Request) (*multipart.Reader, bool) {
	form, ok := r.Context().Value(formKey{}).(*multipart.Reader)
	return form, ok
}

// TooMuch returns the error of an upload that is larger than MaxUpload.
func TooMuch() error {
	return core.Errorf(core.TooLarge, "the files of a message are at most %s together", core.ByteSize(MaxUpload))
}
