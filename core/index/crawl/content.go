package crawl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

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
		d = document.Document{File: f, Title: path.Base(f.Path)}
		d.Hash, d.Fault = "not read", unreadable+reason(err)
		return d, true, nil
	case info.Size() != f.Size || !info.ModTime().Equal(f.Modified) || int64(len(data)) != f.Size:
		return d, false, nil
	}
	sum := sha256.Sum256(data)
	f.Hash = hex.EncodeToString(sum[:])
	same := strings.TrimPrefix(was.Hash, string(fresh)) == f.Hash && !p.retries(was)
	if p.c.o.Clock.Now().Sub(f.Modified).Abs() < freshFor {
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
	d.File, d.Title = f, path.Base(f.Path)
	if d.Fault = fault; fault == "" {
		split, err := passages(f.Path, text)
		if d.Fault = ""; err != nil {
			d.Fault = err.Error()
		} else {
			d.Title, d.Tags, d.Chunks = split.Title, split.Tags, split.Chunks
		}
	}
	return d, true, nil
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
