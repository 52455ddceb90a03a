package upload

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"

	"gatehouse/core/attach"
	"gatehouse/web"
)

// Form reads a form: every part with a file name is stored as a file, add gets
// the name in snake_case and the text of the others.
func (b *Body) Form(add func(name, text string) error) error {
	for n, room := 0, b.limits.Fields; ; {
		part, err := b.form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return formFault(err)
		}
		if part.FileName() != "" {
			if err := b.keepPart(part); err != nil {
				return err
			}
			continue
		}
		text, err := io.ReadAll(io.LimitReader(part, int64(room)+1))
		if err != nil {
			return formFault(err)
		}
		if n, room = n+1, room-len(text); n > maxFields || room < 0 {
			return web.Refuse(web.TooLarge, fmt.Sprintf("the form holds more than %d fields or %d bytes apart from its files", maxFields, b.limits.Fields))
		}
		if err := add(web.SnakeCase(part.FormName()), string(text)); err != nil {
			return err
		}
	}
}

// keepPart stores the file of a form's part.
func (b *Body) keepPart(part *multipart.Part) error {
	if len(b.Files) == b.limits.Files {
		return b.limits.TooMany
	}
	in, err := b.begin()
	if err != nil {
		return err
	}
	defer in.Drop()
	if _, err := io.Copy(in, part); err != nil && !attach.Refused(err) {
		return formFault(err)
	}
	f, err := in.Keep(part.FileName(), part.Header.Get("Content-Type"))
	if err != nil {
		return refusedFile(len(b.Files), err)
	}
	b.Files = append(b.Files, f)
	fmt.Fprintf(b.named, "%q", part.FileName()) // in quotes: no name can pass for content. A hash never fails
	_, _ = b.named.Write(in.Sum())
	return nil
}

func formFault(err error) error { return web.BodyFault(err, "the body is not a valid form") }
