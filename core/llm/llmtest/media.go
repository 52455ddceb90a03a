package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// The documented limits on media, in bytes and in number.
const (
	maxImage  = 20 << 20
	maxImages = 500
)

var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// content reads a string or an array of parts; false when it is null or absent.
func content(raw json.RawMessage) (string, []Part, bool) {
	var text *string
	if len(raw) == 0 {
		return "", nil, false
	}
	if json.Unmarshal(raw, &text) == nil {
		if text == nil {
			return "", nil, false
		}
		return *text, nil, true
	}
	var parts []Part
	if json.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return "", nil, false
	}
	var out strings.Builder
	for _, p := range parts {
		out.WriteString(p.Text)
	}
	return out.String(), parts, true
}

// checkParts holds the parts of one message against the API reference:
// pictures and files are a user's, and hold what their type states.
func (s *Server) checkParts(at, role string, parts []Part) *refusal {
	images := 0
	for i, p := range parts {
		param := fmt.Sprintf("%s.content[%d]", at, i)
		if p.Type != "text" && role != "user" {
			return invalid(400, fmt.Sprintf("Invalid value: '%s'. Supported values are: 'text'.", p.Type), param+".type", "invalid_value")
		}
		switch p.Type {
		case "text":
			if p.Text == "" {
				return invalid(400, fmt.Sprintf("Missing required parameter: '%s.text'.", param), param+".text", "missing_required_parameter")
			}
		case "image_url":
			if images++; images > maxImages {
				return invalid(400, fmt.Sprintf("Too many images in request. Max is %d.", maxImages), "", "too_many_images")
			}
			if bad := s.checkImage(param, p.Image); bad != nil {
				return bad
			}
		case "file":
			if bad := s.checkFile(param, p.File); bad != nil {
				return bad
			}
		default:
			return invalid(400, fmt.Sprintf("Invalid value: '%s'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'.", p.Type),
				param+".type", "invalid_value")
		}
	}
	return nil
}

func (s *Server) checkImage(param string, i *Image) *refusal {
	if s.o.NoImages {
		return invalid(400, "Invalid content type. image_url is only supported by certain models.", param+".type", "")
	}
	if i == nil || i.URL == "" {
		return invalid(400, fmt.Sprintf("Missing required parameter: '%s.image_url'.", param), param+".image_url", "missing_required_parameter")
	}
	kind, data, ok := dataURI(i.URL)
	switch {
	case !ok || !slices.Contains(imageTypes, kind):
		return invalid(400, "Invalid MIME type. Only image types are supported.", param+".image_url.url", "invalid_image_format")
	case len(data) > maxImage:
		return invalid(400, "Image exceeds the maximum size of 20 MB.", param+".image_url.url", "image_too_large")
	case http.DetectContentType(data) != kind:
		return invalid(400, "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
			param+".image_url.url", "invalid_image_format")
	}
	return nil
}

func (s *Server) checkFile(param string, f *File) *refusal {
	if s.o.NoFiles {
		return invalid(400, "Invalid content type. file is only supported by certain models.", param+".type", "")
	}
	if f == nil || f.Name == "" || f.Data == "" {
		return invalid(400, fmt.Sprintf("Missing required parameter: '%s.file'.", param), param+".file", "missing_required_parameter")
	}
	kind, data, ok := dataURI(f.Data)
	if !ok || kind != "application/pdf" || !bytes.HasPrefix(data, []byte("%PDF-")) {
		return invalid(400, "Invalid file data: 'file_data'. Expected a base64-encoded data URL with an application/pdf MIME type.",
			param+".file.file_data", "invalid_value")
	}
	return nil
}

// dataURI reads data:TYPE;base64,….
func dataURI(uri string) (kind string, data []byte, ok bool) {
	rest, is := strings.CutPrefix(uri, "data:")
	kind, encoded, found := strings.Cut(rest, ";base64,")
	data, err := base64.StdEncoding.DecodeString(encoded)
	return kind, data, is && found && err == nil
}
