// Package incoming makes a message, and what comes with it, into blocks that a model
// reads: what it refers to is marked as data, files are fetched from their platform, voice
// messages are transcribed, and pictures, PDFs and texts are read within bounds.
package incoming

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/attach/content"
	"gatehouse/core/llm"
	"gatehouse/core/texts"
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

// Sources are where files come from, and what reads them.
type Sources struct {
	Clock core.Clock
	Log   *slog.Logger
	Files fs.FS // the vault; it opens no links
	// Fetch brings a file of user's message from the bot's platform into the vault, once for
	// a run. An error of a kind is a refusal, for its sender to read; any other may be
	// tried again. Nil: nothing can be fetched.
	Fetch func(ctx context.Context, user int64, run, bot string, f core.File) (core.File, error)
	// Hear transcribes a voice message or an audio file in the vault; nil: they are
	// not transcribed. It calls show, unless that is nil, with the text so far.
	Hear func(ctx context.Context, user int64, f core.File, show func(string)) (string, error)
	// PDF returns the text of a PDF for models that do not take the file, and how
	// many pages were read. An error with a kind has a text that begins with "it";
	// nil: PDFs are not read.
	PDF func(ctx context.Context, data []byte) (text string, read, pages int, err error)
}

// A Reader reads the files of one turn, and counts them against its bounds. It
// is not safe for concurrent use.
type Reader struct {
	Sources
	Run  string
	User int64
	// Last reports that no attempt follows this one. Before, what cannot be fetched now is an error.
	Last bool
	// Trust and Begun are Text's, for the texts of voice messages.
	Trust core.Trust
	Begun bool
	// Heard is called with the text of a recording so far, while it is transcribed; may be nil.
	Heard func(text string)
	// Wrote is called with the block of a voice message, the user's own text, and the
	// message that it refers to; may be nil.
	Wrote func(block, text string, quote *core.Quote)
	// Waits reports whether n voice messages of the turn can be transcribed later, by who
	// reads Unheard; nil: none can.
	Waits func(ctx context.Context, n int) bool
	// Unheard are those; at most maxFiles.
	Unheard []Unheard
	// Notices are on files that the model does not see; at most one for each.
	Notices []core.Warning
	// Read is what was found in the files whose text was read, by path; at most maxFiles.
	Read map[string]content.Content

	heard  map[string]heard // voice messages by path, as Kept or Spoken has found them; at most maxFiles
	model  *llm.About       // that is given the files; nil: none
	files  int              // that were checked
	quoted bool             // the file that is read is not of the turn's sender, who is told nothing of it
	media  int              // bytes of them that the model is given as they are
}

// A heard is the text of a voice message, or the code of why there is none, or the note on that of an
// earlier attempt.
type heard struct{ text, fault, note string }

// Blocks returns the files that came with a row, as blocks: pictures and PDFs as
// they are, texts as text, anything else by name. The type is what the bytes
// say. What the model does not get to see is named to it, and to the sender of the file,
// with the reason. A line before each file of the message that the row refers to says so.
func (r *Reader) Blocks(ctx context.Context, row *core.Inbound, model *llm.About) []core.Block {
	r.model = model
	var out []core.Block
	for i, f := range row.Files {
		if r.files == maxFiles {
			r.quoted = !slices.ContainsFunc(row.Files[i:], func(f core.File) bool { return !f.Quoted })
			out = append(out, r.unread(texts.Text("file_more", texts.With{"N": len(row.Files) - i})))
			break
		}
		r.files++
		if r.quoted = f.Quoted; r.quoted {
			out = append(out, core.Block{Type: "text", Text: quotedFile})
		}
		out = append(out, r.file(ctx, row, f))
	}
	if row.Turn != nil && len(row.Turn.Media) > 0 {
		out = append(out, core.Block{Type: "media", Media: row.Turn.Media})
	}
	return out
}

// read notes what was found in a file. cut: the model is given less than the text.
func (r *Reader) read(path, text string, pages int, cut bool) {
	c := content.Of(text)
	c.Pages, c.Truncated = pages, cut
	if r.Read == nil {
		r.Read = map[string]content.Content{}
	}
	r.Read[path] = c
}

// quotedFile is the line before a file of another message. It is a note: see named.Own.
const quotedFile = "[of the message that is answered]"

// unread returns the line that represents a file, and warns of it with the same text.
func (r *Reader) unread(text string) core.Block {
	r.warn(text)
	return core.Block{Type: "text", Text: "[" + text + "]"}
}

// warn warns the turn's sender of a file that is theirs.
func (r *Reader) warn(text string) {
	if !r.quoted {
		r.Notices = append(r.Notices, core.Warning{Code: "attachment", Message: text})
	}
}

func (r *Reader) file(ctx context.Context, row *core.Inbound, f core.File) core.Block {
	name := core.CutRunes(core.CleanName(f.Name), 200)
	if name == "" {
		name = texts.Text("a_file")
	}
	if f.Refused != "" {
		return r.unread(texts.Text("file_not_taken", texts.With{"Name": name, "Why": core.CutRunes(clean(f.Refused), 400)}))
	}
	if f.Voice {
		if said, ok := r.heardVoice(ctx, row, f); ok {
			return said
		}
	}
	if audio(f) {
		if block, ok := r.heardFile(ctx, name, f); ok {
			return block
		}
	}
	data, err := r.readFile(f.Path)
	switch {
	case err != nil:
		r.Log.Warn("an attached file cannot be read", "run", r.Run, "err", err)
		return r.unread(texts.Text("file_unreadable", texts.With{"Name": name}))
	case len(data) > maxMediaFile:
		return r.unread(texts.Text("file_large", texts.With{"Name": name, "MB": maxMediaFile >> 20, "Path": f.Path}))
	}
	if block, ok := r.medium(ctx, name, f.Path, data); ok {
		return block
	}
	if text, ok := textOf(data); ok {
		r.read(f.Path, text, 0, len(text) > maxTextFile)
		return core.Block{Type: "text", Text: content.InMessage(name, text, maxTextFile)}
	}
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return r.unread(texts.Text("file_of_no_kind", texts.With{"Name": name, "Type": kind, "Bytes": len(data), "Path": f.Path}))
}

// medium returns a picture or a PDF as a model is given it; where it takes no PDFs,
// the text of one. For pictures that it does not take, its provider writes a line
// instead.
func (r *Reader) medium(ctx context.Context, name, path string, data []byte) (core.Block, bool) {
	m := core.Media{Name: name, Data: data}
	kind, mime := m.Kind()
	if kind == "" {
		return core.Block{}, false
	}
	if kind == core.DocumentMedia && r.model != nil && !r.model.Documents && r.PDF != nil {
		return r.pdf(ctx, name, path, data), true
	}
	if r.media += len(data); r.media > maxMedia {
		r.media -= len(data)
		return r.unread(texts.Text("files_large", texts.With{"Name": name, "MB": maxMedia >> 20, "Path": path})), true
	}
	m.Type = mime
	if about := r.model; about != nil {
		switch {
		case kind == core.ImageMedia && !about.Images:
			r.unread(texts.Text("file_no_pictures", texts.With{"Name": name, "Model": about.Name, "Path": path}))
		case kind == core.DocumentMedia && !about.Documents:
			r.unread(texts.Text("file_no_pdfs", texts.With{"Name": name, "Model": about.Name, "Path": path}))
		}
	}
	return core.Block{Type: "media", Media: []core.Media{m}}, true
}

// pdf returns the text of a PDF, which its sender is notified of: pictures and the
// arrangement are not in it.
func (r *Reader) pdf(ctx context.Context, name, path string, data []byte) core.Block {
	model := r.model.Name
	text, read, pages, err := r.PDF(ctx, data)
	if err != nil {
		why := core.TextOf(err)
		if core.KindOf(err) == core.Other {
			r.Log.Warn("the text of a PDF cannot be read", "run", r.Run, "err", err)
			why = texts.Text("pdf_unopened")
		}
		return r.unread(texts.Text("pdf_unreadable", texts.With{"Name": name, "Model": model, "Why": why, "Path": path}))
	}
	r.read(path, text, pages, read < pages || len(text) > maxTextFile)
	if strings.TrimSpace(text) == "" {
		return r.unread(texts.Text("pdf_empty", texts.With{"Name": name, "Model": model, "Path": path}))
	}
	r.warn(texts.Text("pdf_text", texts.With{"Name": name, "Model": model, "Read": read, "Pages": pages}))
	block := content.InMessage(name+" (the text of the PDF, without its pictures)", text, maxTextFile)
	if read < pages {
		block += fmt.Sprintf("\n[%d of %d pages; the rest is left out]", read, pages)
	}
	return core.Block{Type: "text", Text: block}
}

// textOf returns the content of a text file: UTF-8, or UTF-16 with a byte order mark.
func textOf(data []byte) (string, bool) {
	if len(data)%2 == 0 && (bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff})) {
		units := make([]uint16, 0, len(data)/2)
		for i := 2; i < len(data); i += 2 {
			if data[0] == 0xff {
				units = append(units, binary.LittleEndian.Uint16(data[i:]))
			} else {
				units = append(units, binary.BigEndian.Uint16(data[i:]))
			}
		}
		text := string(utf16.Decode(units))
		return text, !strings.ContainsRune(text, 0)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	return string(data), utf8.Valid(data) && !bytes.ContainsRune(data, 0)
}

// clean returns a sentence on one line.
func clean(s string) string { return strings.Join(strings.Fields(s), " ") }

// readFile reads one byte more than is taken, so that the caller sees what is too large.
func (r *Reader) readFile(path string) ([]byte, error) {
	if !strings.HasPrefix(path, attachments) || !fs.ValidPath(path) {
		return nil, fmt.Errorf("%q is not among the attachments", path)
	}
	f, err := r.Files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file", path), err)
	}
	return io.ReadAll(io.LimitReader(f, maxMediaFile+1))
}
