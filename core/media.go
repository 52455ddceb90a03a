package core

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
)

// Media is a picture or a document on its way to a model.
type Media struct {
	Type string `json:"type"`           // "image/png", "image/jpeg", "image/gif", "image/webp" or "application/pdf"
	Name string `json:"name,omitempty"` // file name, cleaned; hostile text
	Data []byte `json:"data"`
}

// Kinds of media, as models name them.
const (
	ImageMedia    = "image"
	DocumentMedia = "document"
)

// Kind returns what m is to a model, ImageMedia or DocumentMedia, and the MIME type of
// its bytes; "" for everything else. Providers refuse a whole request with a picture of
// the wrong type, so the bytes decide and not Type.
func (m *Media) Kind() (kind, mime string) {
	switch mime = http.DetectContentType(m.Data); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return ImageMedia, mime
	}
	head := m.Data[:min(len(m.Data), 1024)] // where readers look for it
	if bytes.Contains(head, []byte("%PDF-")) {
		return DocumentMedia, "application/pdf"
	}
	return "", ""
}

// LeftOut returns the line of text that represents m where it is not given to a
// model, or not kept: name, type, size and why.
func (m *Media) LeftOut(why string) string {
	name := "an attachment"
	if n := CleanName(m.Name); n != "" {
		name = strconv.Quote(n)
	}
	kind := CutRunes(CleanName(m.Type), 40)
	if kind == "" {
		kind = "unknown type"
	}
	return fmt.Sprintf("[%s (%s, %s) is left out: %s]", name, kind, ByteSize(len(m.Data)), why)
}

// ByteSize returns n bytes for users: "512 bytes", "3 KB", "3.75 MB".
func ByteSize(n int) string {
	switch {
	case n < 1<<10:
		return strconv.Itoa(n) + " bytes"
	case n < 1<<20:
		return strconv.Itoa(n>>10) + " KB"
	case n >= 1<<30:
		return strconv.FormatFloat(float64(n)/(1<<30), 'g', 3, 64) + " GB"
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'g', 3, 64) + " MB"
}
