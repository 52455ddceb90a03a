package importer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/importer/foreign"
	"gatehouse/core/importer/source"
)

const (
	maxFile    = 50 << 20        // bytes of one attachment
	maxPicture = 5 << 20 / 4 * 3 // bytes of a picture that the model is shown, as in transcripts
	maxShown   = 9 << 20         // bytes of all pictures of one message that are shown
	maxFiles   = 50              // of one message
)

// attachments keep the files of one conversation.
type attachments struct {
	i    *Importer
	s    *source.Source
	user int64
	kept []core.File
}

// Keep implements foreign.Attachments: each file is a line of text with its path, a picture of a user's
// message is shown to the model, too.
func (a *attachments) Keep(ctx context.Context, m *foreign.Message) (blocks []core.Block, missing []string, err error) {
	var shown []core.Media
	size := 0
	for n := range m.Files {
		if n == maxFiles {
			missing = append(missing, fmt.Sprintf("%d more files of one message are left out", len(m.Files)-n))
			break
		}
		f := &m.Files[n]
		name := label(f)
		file, picture, err := a.one(ctx, f)
		switch {
		case err == nil:
			blocks = append(blocks, core.Block{Type: "text", Text: "[File: " + name + " (" + file.Path + ")]"})
			if picture != nil && size+len(picture.Data) <= maxShown {
				size += len(picture.Data)
				shown = append(shown, *picture)
			}
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, "the export does not hold the file "+name)
			blocks = append(blocks, core.Block{Type: "text", Text: "[File: " + name + ", not in the export]"})
		case core.KindOf(err) == core.Other || core.KindOf(err) == core.Busy:
			return nil, nil, err
		default:
			missing = append(missing, core.TextOf(err))
			blocks = append(blocks, core.Block{Type: "text", Text: "[File: " + name + ", left out]"})
		}
	}
	if len(shown) > 0 {
		blocks = append(blocks, core.Block{Type: "media", Media: shown})
	}
	return blocks, missing, nil
}

// label returns a file's name for display.
func label(f *foreign.File) string {
	name := core.CleanName(path.Base(strings.ReplaceAll(f.Name, `\`, "/")))
	if name == "" || name == "." || name == "/" {
		name = cmp.Or(core.CleanName(core.CutRunes(f.Ref, 60)), "attachment")
	}
	return strings.NewReplacer("[", "(", "]", ")").Replace(name)
}

// one keeps one file; picture is set for one that a model can be shown.
func (a *attachments) one(ctx context.Context, f *foreign.File) (file core.File, picture *core.Media, err error) {
	name := label(f)
	var in io.Reader = strings.NewReader(f.Text)
	if f.Text == "" {
		r, stored, err := a.s.Asset(f.Ref)
		if err != nil {
			return file, nil, err
		}
		defer r.Close()
		in = r
		if f.Name == "" {
			name = stored
		}
	} else if path.Ext(name) == "" {
		name += ".txt"
	}
	head := &start{}
	file, err = a.i.o.Files.Save(ctx, a.user, name, f.Type, maxFile, io.TeeReader(in, head))
	if err != nil {
		return file, nil, err
	}
	a.kept = append(a.kept, file)
	if m := (core.Media{Name: name, Data: head.Bytes()}); !head.over {
		if kind, mime := m.Kind(); kind == core.ImageMedia {
			m.Type = mime
			return file, &m, nil
		}
	}
	return file, nil, nil
}

// A start is the beginning of a file, up to the size of a picture that is shown.
type start struct {
	bytes.Buffer
	over bool
}

// Write keeps p, unless it becomes too much, or is no picture.
func (s *start) Write(p []byte) (int, error) {
	if s.over = s.over || s.Len()+len(p) > maxPicture; s.over {
		s.Buffer = bytes.Buffer{}
		return len(p), nil
	}
	if s.Len() == 0 {
		m := core.Media{Data: p}
		if kind, _ := m.Kind(); kind != core.ImageMedia {
			s.over = true
			return len(p), nil
		}
	}
	return s.Buffer.Write(p)
}
