package orchestrator

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/session"
)

// Bounds of what comes with a message.
const (
	maxFiles     = 20       // of one turn
	maxMediaFile = 20 << 20 // bytes of a picture or document that a model is given
	maxMedia     = 32 << 20 // of all of them in one turn: no provider takes more in one request
	maxTextFile  = 40_000   // bytes of a text that is read into the message: 10,000 tokens
)

// attachments is where connectors keep what came with messages: a message shows
// nothing from elsewhere, whatever path it names, since its sender may be a guest.
const attachments = "Chat/assets/"

// attached are the files that came with a row, as blocks: pictures and PDFs as
// they are, texts as text, anything else by name. The type is what the bytes
// say. A file that is gone or too large is named with the reason.
func (r *run) attached(row *core.Inbound) []session.Block {
	var out []session.Block
	for i, f := range row.Files {
		if r.files == maxFiles {
			out = append(out, note("and %d more files, which are not read", len(row.Files)-i))
			break
		}
		r.files++
		out = append(out, r.file(f))
	}
	if row.Turn != nil && len(row.Turn.Media) > 0 {
		out = append(out, session.Block{Type: "media", Media: row.Turn.Media})
	}
	return out
}

func note(format string, args ...any) session.Block {
	return session.Block{Type: "text", Text: "[" + fmt.Sprintf(format, args...) + "]"}
}

func (r *run) file(f core.File) session.Block {
	name := core.CutRunes(core.CleanName(f.Name), 200)
	if name == "" {
		name = "a file"
	}
	data, err := r.readFile(f.Path)
	switch {
	case err != nil:
		r.o.o.Log.Warn("an attached file cannot be read", "run", r.t.Run, "err", err)
		return note("%s was attached and cannot be read", name)
	case len(data) > maxMediaFile:
		return note("%s was attached and is larger than %d MB; it is kept as %s", name, maxMediaFile>>20, f.Path)
	}
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	switch {
	case kind == "image/png", kind == "image/jpeg", kind == "image/gif", kind == "image/webp", kind == "application/pdf":
		if r.media += len(data); r.media > maxMedia {
			r.media -= len(data)
			return note("%s was attached and is not read: what came with this message is larger than %d MB in all; it is kept as %s", name, maxMedia>>20, f.Path)
		}
		return session.Block{Type: "media", Media: []core.Media{{Type: kind, Name: name, Data: data}}}
	case utf8.Valid(data) && !bytes.ContainsRune(data, 0):
		return session.Block{Type: "text", Text: textFile(name, string(data))}
	}
	return note("%s was attached (%s, %d bytes) and is kept as %s; it is not a text, a picture or a PDF", name, kind, len(data), f.Path)
}

// textFile delimits a file's text as data.
func textFile(name, text string) string {
	rest := ""
	if len(text) > maxTextFile {
		n := maxTextFile
		for !utf8.RuneStart(text[n]) {
			n--
		}
		text, rest = text[:n], "\n[the rest is left out]"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return "Attached file " + name + ":\n" + fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + rest
}

// readFile reads one byte more than is taken, so that the caller sees what is too large.
func (r *run) readFile(path string) ([]byte, error) {
	if !strings.HasPrefix(path, attachments) || !fs.ValidPath(path) {
		return nil, fmt.Errorf("%q is not among the attachments", path)
	}
	st, err := fs.Lstat(r.o.o.Files, path) // a link is not what came with a message
	if err != nil {
		return nil, err
	}
	f, err := r.o.o.Files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || !os.SameFile(st, opened) {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	return io.ReadAll(io.LimitReader(f, maxMediaFile+1))
}
