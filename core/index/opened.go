package index

import (
	"bufio"
	"io"

	"gatehouse/core/transcript"
)

// lineOf reads a hit's line.
func (x *Index) lineOf(h hitRow) ([]byte, error) {
	var f opened
	defer f.Close()
	return f.lineOf(x, h)
}

// opened is the transcript of a session; the zero value is none.
type opened struct {
	io.ReaderAt
	io.Closer
	session string
}

// Close closes the transcript.
func (o *opened) Close() {
	if o.Closer != nil {
		o.Closer.Close()
	}
	*o = opened{}
}

// lineOf reads a hit's line, and leaves its transcript open.
func (o *opened) lineOf(x *Index, h hitRow) ([]byte, error) {
	if o.session != h.Session {
		o.Close()
		f, err := x.vault.Root().Open(h.File)
		if err != nil {
			found, ferr := x.vault.FindTranscripts(h.Session)
			if ferr != nil || len(found) == 0 {
				return nil, err
			}
			if f, err = x.vault.Root().Open(found[0]); err != nil {
				return nil, err
			}
		}
		*o = opened{f, f, h.Session}
	}
	if h.Length > maxExcerpt { // a line with media
		raw, _, err := transcript.ReadLine(bufio.NewReaderSize(io.NewSectionReader(o, h.At, h.Length), 64<<10))
		return raw, err
	}
	raw := make([]byte, h.Length)
	_, err := o.ReadAt(raw, h.At)
	return raw, err
}
