package crawl

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/index/chunk"
	"gatehouse/core/index/document"
)

// read returns a file as it is indexed; false when it changed concurrently, for the next
// pass. A file that cannot be read has a Fault.
func (p *pass) read(ctx context.Context, was, f document.File) (d document.Document, ok bool, err error) {
	data, info, err := p.bytesOf(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, false, nil
	case err != nil:
		d = p.bare(f)
		d.Hash, d.Fault = "not read", unreadable+reason(err)
		return d, true, nil
	case info.Size() != f.Size || !info.ModTime().Equal(f.Modified) || int64(len(data)) != f.Size:
		return d, false, nil
	}
	sum := sha256.Sum256(data)
	f.Hash = hex.EncodeToString(sum[:])
	same := strings.TrimPrefix(was.Hash, string(fresh)) == f.Hash && !p.retries(was)
	if core.FileAge(p.c.o.Clock, f.Modified) < freshFor {
		f.Hash = string(fresh) + f.Hash
	}
	if same {
		f.Fault = was.Fault
		return document.Document{File: f}, true, nil // its text is not asked for
	}
	text, fault := p.text(ctx, f.Path, data)
	if err := context.Cause(ctx); err != nil {
		return d, false, err
	}
	d = p.bare(f)
	if d.Fault = fault; fault != "" {
		return d, true, nil
	}
	if d.Journal {
		err = entries(&d, p.c.o.Journal.Parts(f.Path, data))
	} else {
		var split chunk.Text
		split, err = passages(f.Path, text)
		d.Title, d.Tags, d.Chunks = cmp.Or(split.Title, d.Title), split.Tags, split.Chunks
	}
	if err != nil {
		d = p.bare(f)
		d.Fault = err.Error()
	}
	return d, true, nil
}

// bare returns a file without its content.
func (p *pass) bare(f document.File) document.Document {
	return document.Document{File: f, Title: path.Base(f.Path), Journal: p.c.o.Journal != nil && p.c.o.Journal.IsDay(f.Path)}
}

// entries adds the parts of a journal's file to it.
func entries(d *document.Document, parts []Part) error {
	for _, part := range parts {
		split, err := passages(d.Path, part.Text)
		if err != nil {
			return err
		}
		for i := range split.Chunks {
			split.Chunks[i].Line += part.Line - 1
		}
		if part.ID == "" {
			d.Chunks, d.Tags = append(d.Chunks, split.Chunks...), append(d.Tags, split.Tags...)
			continue
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %s %q", part.Title, part.Line, part.At.UTC().Format(time.RFC3339), part.Text))
		d.Entries = append(d.Entries, document.Entry{ID: part.ID, Title: part.Title, Tags: split.Tags, Chunks: split.Chunks, Hash: hex.EncodeToString(sum[:]), At: part.At})
	}
	return nil
}

// passages is chunk.Split; what makes a parser panic has a fault, and ends nothing else.
func passages(name, text string) (t chunk.Text, err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("its text cannot be split: %v", what)
		}
	}()
	return chunk.Split(name, text), nil
}

// bytesOf returns the content of a file, and what it is after that.
func (p *pass) bytesOf(name string) ([]byte, fs.FileInfo, error) {
	f, err := p.c.o.Files.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	return data, info, err
}

func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return err.Error()
}

// text returns the text of a file, or why it has none.
func (p *pass) text(ctx context.Context, name string, data []byte) (text, fault string) {
	if kindOf(name) == pdf {
		if p.c.o.PDF == nil {
			return "", noPDF
		}
		text, _, _, err := p.c.o.PDF(ctx, data)
		if err != nil {
			return "", badPDF + reason(err)
		}
		if strings.TrimSpace(text) == "" {
			return "", "it has no text"
		}
		return text, ""
	}
	if bytes.IndexByte(data[:min(len(data), looked)], 0) >= 0 {
		return "", "it is not text"
	}
	return string(data), ""
}
