package anthropictest

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
)

// The documented limits on media, in bytes of base64 and in number.
const (
	maxImage  = 5 << 20
	maxImages = 100
)

var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// checkMedia holds pictures and documents, also those that tools have shown,
// against what the vision and PDF guides say.
func (s *Server) checkMedia(m *Message) *refusal {
	images := 0
	for i := range m.Messages {
		for j := range m.Messages[i].Content {
			b := &m.Messages[i].Content[j]
			at := "messages." + strconv.Itoa(i) + ".content." + strconv.Itoa(j)
			all := []*Block{b}
			if b.Type == "tool_result" {
				all = nil
				for k := range b.Content {
					c := &b.Content[k]
					if !slices.Contains([]string{"text", "image", "document"}, c.Type) {
						return invalid("%s.tool_result.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags", at, k, c.Type)
					}
					if b.IsError && c.Type != "text" {
						return invalid("%s.tool_result: all content must be type \"text\" if \"is_error\" is true", at)
					}
					all = append(all, c)
				}
			}
			for _, c := range all {
				if c.Type != "image" && c.Type != "document" {
					continue
				}
				if bad := s.checkSource(at+"."+c.Type+".source", c); bad != nil {
					return bad
				}
				if c.Type == "image" {
					images++
				}
			}
		}
	}
	if images > maxImages {
		return invalid("messages: too many images: %d > %d", images, maxImages)
	}
	return nil
}

func (s *Server) checkSource(at string, b *Block) *refusal {
	switch {
	case s.o.NoImages:
		return invalid("%s: this model does not support %s input", at, b.Type)
	case b.Source == nil:
		return invalid("%s: Field required", at)
	case b.Source.Type != "base64":
		return invalid("%s.type: the fake knows base64 sources only", at)
	case b.Type == "image" && !slices.Contains(imageTypes, b.Source.MediaType):
		return invalid("%s.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", at)
	case b.Type == "document" && b.Source.MediaType != "application/pdf":
		return invalid("%s.base64.media_type: Input should be 'application/pdf'", at)
	case b.Type == "image" && len(b.Source.Data) > maxImage:
		return invalid("%s.base64: image exceeds 5 MB maximum: %d bytes > %d bytes", at, len(b.Source.Data), maxImage)
	}
	data, err := base64.StdEncoding.DecodeString(b.Source.Data)
	if err != nil {
		return invalid("%s.base64.data: Invalid base64 data", at)
	}
	is := http.DetectContentType(data)
	switch {
	case b.Type == "document" && !bytes.HasPrefix(data, []byte("%PDF-")):
		return invalid("%s.base64.data: The PDF specified was not valid.", at)
	case b.Type == "image" && !slices.Contains(imageTypes, is):
		return invalid("%s.base64: Could not process image", at)
	case b.Type == "image" && is != b.Source.MediaType:
		return invalid("%s.base64: The image was specified using the %s media type, but the image appears to be a %s image", at, b.Source.MediaType, is)
	}
	return nil
}
