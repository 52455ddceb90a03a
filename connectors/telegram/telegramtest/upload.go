package telegramtest

import (
	"bytes"
	"image"
	_ "image/gif" // the formats that a photo may have
	_ "image/jpeg"
	_ "image/png"
	"strings"
)

// Rules of what a bot sends.
const (
	maxUpload     = 50 << 20 // [api] sendDocument: "files of any type of up to 50 MB in size"
	maxPhoto      = 10 << 20 // [api] sendPhoto: "must be at most 10 MB in size"
	maxPhotoSides = 10000    // "width and height must not exceed 10000 in total"
	maxPhotoRatio = 20       // "Width and height ratio must be at most 20"
)

// sendPhoto implements [api] sendPhoto for an upload; by file_id or URL is not played.
func (s *Server) sendPhoto(c *call) (any, *apiError) { return s.sendFile(c, "photo") }

// sendDocument implements [api] sendDocument for an upload.
func (s *Server) sendDocument(c *call) (any, *apiError) { return s.sendFile(c, "document") }

func (s *Server) sendFile(c *call, kind string) (any, *apiError) {
	file, ok := c.uploads[kind]
	switch {
	case !ok:
		return nil, bad("there is no " + kind + " in the request")
	case len(file.Data) == 0:
		return nil, bad("file must be non-empty")
	case len(file.Data) > maxUpload:
		return nil, &apiError{code: 413, text: "Request Entity Too Large"}
	}
	if kind == "photo" {
		if err := checkPhoto(file.Data); err != nil {
			return nil, err
		}
	}
	caption, entities, err := formatted(c.p["caption"], c.p["parse_mode"], c.p["caption_entities"])
	switch {
	case err != nil:
		return nil, err
	case units(caption) > maxCaption:
		return nil, bad("message caption is too long")
	}
	file.Kind = kind
	return s.post(c, wireMessage{Caption: strings.TrimSpace(caption), CaptionEntities: entities}, func(w *wireMessage) *apiError {
		if s.attach(w, file) != nil {
			return &apiError{code: 500, text: "Internal Server Error: the simulator holds no more files"}
		}
		return nil
	})
}

// checkPhoto holds an upload against the rules of photos; the texts are the
// client protocol's errors of messages.sendMedia.
func checkPhoto(data []byte) *apiError {
	if len(data) > maxPhoto {
		return bad("PHOTO_SAVE_FILE_INVALID")
	}
	p, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return bad("IMAGE_PROCESS_FAILED")
	}
	if p.Width+p.Height > maxPhotoSides || max(p.Width, p.Height) > maxPhotoRatio*min(p.Width, p.Height) {
		return bad("PHOTO_INVALID_DIMENSIONS")
	}
	return nil
}

// Sent returns the content of the newest file of that kind and name that the
// platform holds, anyone who sent it; name may be "". nil for none.
func (s *Server) Sent(kind, name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest *storedFile
	for _, f := range s.files {
		if f.Kind == kind && (name == "" || f.Name == name) && (newest == nil || f.number > newest.number) {
			newest = f
		}
	}
	if newest == nil {
		return nil
	}
	return newest.Data
}
