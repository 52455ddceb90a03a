package files

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	_ "image/gif" // the sizes of pictures
	_ "image/jpeg"
	_ "image/png"
	"io"
	"io/fs"
	"regexp"

	"gatehouse/core"
	"gatehouse/core/tool"
)

// What models take: https://docs.claude.com/en/docs/build-with-claude/vision
// (5 MB per picture as base64, 8,000 pixels each way) and
// https://docs.claude.com/en/docs/build-with-claude/pdf-support (100 pages; the
// whole request 32 MB).
const (
	maxPicture  = 3_750_000 // bytes; base64 makes 5 MB of it
	maxPixels   = 8000      // each way
	maxDocument = 10 << 20  // bytes
	maxPages    = 100
	maxStreams  = 2000 // packed parts of a document that are looked into
)

// pictures are the types that models check.
var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func picture(r io.Reader, st fs.FileInfo, kind, name string) (tool.Result, error) {
	data, err := whole(r, st, maxPicture, "picture")
	if err != nil {
		return tool.Result{}, err
	}
	size := ""
	if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil {
		if c.Width > maxPixels || c.Height > maxPixels {
			return tool.Result{}, core.Errorf(core.TooLarge, "the picture has %d × %d pixels, and models take at most %d each way", c.Width, c.Height, maxPixels)
		}
		size = fmt.Sprintf(", %d × %d pixels", c.Width, c.Height)
	} else if kind != "image/webp" { // the library has no webp
		return tool.Result{}, core.Errorf(core.Invalid, "the picture is damaged (%s)", kind)
	}
	return tool.Result{
		Text:  fmt.Sprintf("(a picture: %s%s, %d bytes)", kind, size, len(data)),
		Media: []core.Media{{Type: kind, Name: core.CleanName(name), Data: data}},
	}, nil
}

func document(r io.Reader, st fs.FileInfo, name string) (tool.Result, error) {
	data, err := whole(r, st, maxDocument, "document")
	if err != nil {
		return tool.Result{}, err
	}
	n := pages(data)
	if n > maxPages {
		return tool.Result{}, core.Errorf(core.TooLarge, "the document has %d pages, and models take at most %d", n, maxPages)
	}
	return tool.Result{
		Text:  fmt.Sprintf("(a PDF document: %d bytes)", len(data)),
		Media: []core.Media{{Type: "application/pdf", Name: core.CleanName(name), Data: data}},
	}, nil
}

// whole reads all of a file that may hold at most limit bytes.
func whole(r io.Reader, st fs.FileInfo, limit int64, what string) ([]byte, error) {
	if st.Size() > limit {
		return nil, core.Errorf(core.TooLarge, "the %s has %d bytes, and at most %d are read", what, st.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = core.Errorf(core.TooLarge, "the %s is larger than %d bytes", what, limit)
	}
	return data, err
}

var (
	pdfPage   = regexp.MustCompile(`/Type\s*/Page[^s\w]`)
	pdfPacked = regexp.MustCompile(`/Type\s*/ObjStm\b[^>]*>>\s*stream\r?\n`)
)

// pages counts the pages that a PDF names, also in packed object streams (ISO
// 32000-1, 7.5.7). Pages of older versions that the file still holds count too:
// one page too many is refused here, one too few would be refused by every
// later request of the conversation.
func pages(data []byte) int {
	n := len(pdfPage.FindAllIndex(data, -1))
	room := int64(4 * maxDocument) // bytes that are unpacked, in all
	for _, at := range pdfPacked.FindAllIndex(data, maxStreams) {
		z, err := zlib.NewReader(bytes.NewReader(data[at[1]:]))
		if err != nil {
			continue
		}
		plain, _ := io.ReadAll(io.LimitReader(z, room)) // what could be unpacked counts
		room -= int64(len(plain))
		n += len(pdfPage.FindAllIndex(append(plain, ' '), -1))
	}
	return n
}
