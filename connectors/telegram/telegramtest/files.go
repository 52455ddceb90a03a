package telegramtest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"time"

	"gatehouse/core"
)

// Rules of files.
const (
	maxDownload = 20 << 20  // [api] getFile: "bots can download files of up to 20MB in size"
	fileLink    = time.Hour // [api] getFile: the link "will be valid for at least 1 hour"; here for exactly 1
	maxStored   = 64 << 20  // bytes of given contents held in memory, over all files
	maxFiles    = 10_000    // further ones are refused
)

// A File is what a user attaches. Without Data its content is Size bytes
// made up on the fly, so that a large file costs nothing.
type File struct {
	Kind string `json:"kind"` // photo, document, voice, audio, video or video_note
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"`
	Data []byte `json:"data,omitempty"`
}

type storedFile struct {
	File
	number int
	path   string
	link   time.Time // until when the path works
}

// attach stores f and adds it to a message.
func (s *Server) attach(w *wireMessage, f File) error {
	if f.Data != nil {
		f.Size = int64(len(f.Data))
	}
	if len(s.files) >= maxFiles || s.stored+int64(len(f.Data)) > maxStored || f.Size < 0 {
		return core.Errorf(core.TooLarge, "the simulator holds at most %d files and %d bytes", maxFiles, maxStored)
	}
	n := len(s.files) + 1
	id := fmt.Sprintf("AgACAgIAAx%019dEAAQ%s", n, f.Kind)
	v := wireFile{FileID: id, UniqueID: fmt.Sprintf("AQAD%012d", n), Size: f.Size, MIME: f.MIME}
	zero := 1
	switch f.Kind {
	case "photo":
		v.MIME, v.Width, v.Height = "", 1280, 960
		small := v
		small.Width, small.Height, small.Size = 90, 67, 1024
		small.FileID, small.UniqueID = id+"s", v.UniqueID+"s"
		w.Photo = []wireFile{small, v} // sizes ascend
		if f.Name == "" {
			f.Name = "photo.jpg"
		}
	case "document":
		v.Name = f.Name
		w.Document = &v
	case "voice":
		v.Duration = &zero
		w.Voice = &v
		f.Name = "voice.oga"
	case "video_note": // neither a name nor a type
		v.Duration, v.Name, v.MIME = &zero, "", ""
		w.VideoNote = &v
		f.Name = "video_note.mp4"
	case "audio":
		v.Name, v.Duration = f.Name, &zero
		w.Audio = &v
	case "video":
		v.Name, v.Duration, v.Width, v.Height = f.Name, &zero, 640, 480
		w.Video = &v
	default:
		return core.Errorf(core.Invalid, "no file is of kind %q", f.Kind)
	}
	s.files[id] = &storedFile{File: f, number: n, path: fmt.Sprintf("%ss/file_%d%s", f.Kind, n, path.Ext(f.Name))}
	s.stored += int64(len(f.Data))
	return nil
}

// getFile implements [api] getFile; errors from [server] check_remote_file_id, do_get_file.
func (s *Server) getFile(c *call) (any, *apiError) {
	id := c.p["file_id"]
	if id == "" {
		return nil, bad("file_id not specified")
	}
	f := s.files[id]
	if f == nil {
		return nil, bad("invalid file_id")
	}
	if f.Size > maxDownload {
		return nil, bad("file is too big")
	}
	f.link = c.now.Add(fileLink)
	return wireFile{FileID: id, UniqueID: "AQAD" + id[10:29], Size: f.Size, Path: f.path}, nil
}

// serveFile is a download: /file/bot<token>/<file_path>.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	token, name, _ := strings.Cut(rest, "/")
	began := s.clock.Now()
	entry := Request{At: began, Token: token, Method: "file", Params: map[string]string{"path": name}}
	x, ok := s.Begin(w, r, "file", func(outcome string) {
		entry.Outcome = outcome
		s.record(entry)
	})
	if !ok {
		return
	}
	f, fault := s.findFile(token, name)
	if fault != nil {
		entry.Status, entry.Description = fault.code, fault.text
		x.End(failed(fault))
		return
	}
	body, err := io.ReadAll(f.content())
	if err != nil {
		body = nil
	}
	entry.Status = 200
	x.End(answer{Status: 200, Kind: "application/octet-stream", Body: body})
}

func (s *Server) findFile(token, name string) (File, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byToken[token]
	if !wellFormed().MatchString(token) {
		return File{}, errNotFound
	}
	if b == nil {
		return File{}, errUnauthorized
	}
	for _, f := range s.files { // at most maxFiles, and downloads are rare
		if f.path == name && s.clock.Now().Before(f.link) {
			return f.File, nil
		}
	}
	return File{}, errNotFound
}

func (f File) content() io.Reader {
	if f.Data != nil {
		return bytes.NewReader(f.Data)
	}
	return io.LimitReader(pattern{}, f.Size)
}

// pattern is an endless made-up content.
type pattern struct{}

func (pattern) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "simulated content\n"[i%18]
	}
	return len(p), nil
}
