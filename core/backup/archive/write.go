package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"time"

	"gatehouse/core"
)

// A Writer makes an archive. It is for one goroutine.
type Writer struct {
	gz    *gzip.Writer
	tar   *tar.Writer
	since []Entry // the entries since the last list; at most perSums
	lists int
	id    hash.Hash
	total Total
}

// NewWriter begins an archive; a.Format is set.
func NewWriter(w io.Writer, a About) (*Writer, error) {
	gz, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	out := &Writer{gz: gz, tar: tar.NewWriter(gz), id: sha256.New()}
	a.Format = Format
	return out, out.json(aboutName, a)
}

// json writes an entry of the archive's own.
func (w *Writer) json(name string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if name != aboutName && name != totalName {
		w.id.Write(body)
	}
	return w.plain(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(body))}, bytes.NewReader(body))
}

func (w *Writer) plain(h *tar.Header, body io.Reader) error {
	h.Format = tar.FormatPAX
	if err := w.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if _, err := io.Copy(w.tar, body); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}

// ErrShort is Add's answer to a body that ends before the entry's size. The
// archive cannot be gone on with.
var ErrShort = core.Errorf(core.Busy, "a file became shorter while it was read: try again")

// Add writes e; a file's body is read as far as e.Size.
func (w *Writer) Add(e Entry, body io.Reader) error {
	if err := checkName(e.Name); err != nil {
		return err
	}
	e.Time, e.Mode = e.Time.UTC().Truncate(time.Second), e.Mode.Perm()
	h := &tar.Header{Name: e.Name, Mode: int64(e.Mode), ModTime: e.Time, Format: tar.FormatPAX}
	switch e.Kind {
	case Folder:
		h.Typeflag, h.Name, e.Size = tar.TypeDir, e.Name+"/", 0
	case Link:
		h.Typeflag, h.Linkname, e.Size = tar.TypeSymlink, e.Target, 0
	default:
		h.Typeflag, h.Size = tar.TypeReg, e.Size
	}
	if err := w.tar.WriteHeader(h); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	if e.Kind == File {
		sum := sha256.New()
		n, err := io.Copy(io.MultiWriter(w.tar, sum), io.LimitReader(body, e.Size))
		if err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		if n < e.Size {
			return ErrShort
		}
		e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	w.total.add(&e)
	if w.since = append(w.since, e); len(w.since) == perSums {
		return w.list()
	}
	return nil
}

// list writes which entries there were since the last list.
func (w *Writer) list() error {
	w.lists++
	err := w.json(fmt.Sprintf("%s%06d.json", sumsDir, w.lists), w.since)
	w.since = w.since[:0]
	return err
}

// Close ends the archive and returns its totals. It does not close the writer below.
func (w *Writer) Close() (Total, error) {
	if len(w.since) > 0 {
		if err := w.list(); err != nil {
			return Total{}, err
		}
	}
	w.total.ID = hex.EncodeToString(w.id.Sum(nil))
	if err := w.json(totalName, w.total); err != nil {
		return Total{}, err
	}
	if err := w.tar.Close(); err != nil {
		return Total{}, fmt.Errorf("write archive: %w", err)
	}
	if err := w.gz.Close(); err != nil {
		return Total{}, fmt.Errorf("write archive: %w", err)
	}
	return w.total, nil
}
