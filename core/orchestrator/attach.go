package orchestrator

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"gatehouse/core"
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

// attached returns the files that came with a row, as blocks: pictures and PDFs as
// they are, texts as text, anything else by name. The type is what the bytes
// say. What the model does not get to see is named to it and to the sender,
// with the reason.
func (r *run) attached(ctx context.Context, row *core.Inbound) []core.Block {
	var out []core.Block
	for i, f := range row.Files {
		if r.files == maxFiles {
			out = append(out, r.unread(texts.Text("file_more", texts.With{"N": len(row.Files) - i})))
			break
		}
		r.files++
		out = append(out, r.file(ctx, f))
	}
	if row.Turn != nil && len(row.Turn.Media) > 0 {
		out = append(out, core.Block{Type: "media", Media: row.Turn.Media})
	}
	return out
}

// unread returns the line that represents a file, and a warning with the same text.
func (r *run) unread(text string) core.Block {
	r.notices = append(r.notices, core.Warning{Code: "attachment", Message: text})
	return core.Block{Type: "text", Text: "[" + text + "]"}
}

func (r *run) file(ctx context.Context, f core.File) core.Block {
	name := core.CutRunes(core.CleanName(f.Name), 200)
	if name == "" {
		name = texts.Text("a_file")
	}
	if f.Refused != "" {
		return r.unread(texts.Text("file_not_taken", texts.With{"Name": name, "Why": core.CutRunes(clean(f.Refused), 400)}))
	}
	if f.Voice {
		if said, ok := r.heardVoice(ctx, f); ok {
			return said
		}
	}
	data, err := r.readFile(f.Path)
	switch {
	case err != nil:
		r.o.o.Log.Warn("an attached file cannot be read", "run", r.t.Run, "err", err)
		return r.unread(texts.Text("file_unreadable", texts.With{"Name": name}))
	case len(data) > maxMediaFile:
		return r.unread(texts.Text("file_large", texts.With{"Name": name, "MB": maxMediaFile >> 20, "Path": f.Path}))
	}
	if block, ok := r.medium(ctx, name, f.Path, data); ok {
		return block
	}
	if text, ok := textOf(data); ok {
		return core.Block{Type: "text", Text: textFile(name, text)}
	}
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return r.unread(texts.Text("file_of_no_kind", texts.With{"Name": name, "Type": kind, "Bytes": len(data), "Path": f.Path}))
}

// medium returns a picture or a PDF as a model is given it; where it takes no PDFs,
// the text of one. For pictures that it does not take, its provider writes a line
// instead.
func (r *run) medium(ctx context.Context, name, path string, data []byte) (core.Block, bool) {
	m := core.Media{Name: name, Data: data}
	kind, mime := m.Kind()
	if kind == "" {
		return core.Block{}, false
	}
	if kind == core.DocumentMedia && r.model != nil && !r.model.About().Documents && r.o.o.PDF != nil {
		return r.pdf(ctx, name, path, data), true
	}
	if r.media += len(data); r.media > maxMedia {
		r.media -= len(data)
		return r.unread(texts.Text("files_large", texts.With{"Name": name, "MB": maxMedia >> 20, "Path": path})), true
	}
	m.Type = mime
	if r.model != nil {
		about := r.model.About()
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
func (r *run) pdf(ctx context.Context, name, path string, data []byte) core.Block {
	model := r.model.About().Name
	text, read, pages, err := r.o.o.PDF(ctx, data)
	if err != nil {
		why := core.TextOf(err)
		if core.KindOf(err) == core.Other {
			r.o.o.Log.Warn("the text of a PDF cannot be read", "run", r.t.Run, "err", err)
			why = texts.Text("pdf_unopened")
		}
		return r.unread(texts.Text("pdf_unreadable", texts.With{"Name": name, "Model": model, "Why": why, "Path": path}))
	}
	if strings.TrimSpace(text) == "" {
		return r.unread(texts.Text("pdf_empty", texts.With{"Name": name, "Model": model, "Path": path}))
	}
	r.notices = append(r.notices, core.Warning{Code: "attachment", Message: texts.Text("pdf_text", texts.With{"Name": name, "Model": model, "Read": read, "Pages": pages})})
	block := textFile(name+" (the text of the PDF, without its pictures)", text)
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

// initial returns what the request gives with a conversation that begins. Of one
// that has begun it is omitted, with a warning.
func (r *run) initial() []core.Block {
	given := strings.TrimSpace(r.t.options().Initial)
	if given == "" {
		return nil
	}
	if r.t.Session.MessageCount > 0 {
		r.notices = append(r.notices, core.Warning{Code: "initial_context", Message: "the conversation has begun already: initial_context was left out"})
		return nil
	}
	mark := fence(given)
	return []core.Block{{Type: "text", Text: "Given with this conversation, to begin with:\n" + mark + "\n" + given + "\n" + mark}}
}

// fence returns more backquotes than text has in a row.
func fence(text string) string {
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark
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
	mark := fence(text)
	return "Attached file " + name + ":\n" + mark + "\n" + strings.TrimRight(text, "\n") + "\n" + mark + rest
}

// readFile reads one byte more than is taken, so that the caller sees what is too large.
func (r *run) readFile(path string) ([]byte, error) {
	if !strings.HasPrefix(path, attachments) || !fs.ValidPath(path) {
		return nil, fmt.Errorf("%q is not among the attachments", path)
	}
	f, err := r.o.o.Files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is not a file", path), err)
	}
	return io.ReadAll(io.LimitReader(f, maxMediaFile+1))
}
