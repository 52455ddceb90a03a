package source

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"gatehouse/core"
)

// Bounds of an archive.
const (
	maxEntries = 50_000   // files in it
	maxRatio   = 250      // bytes that one byte of an entry may become
	freeRatio  = 16 << 20 // bytes of an entry that may have any ratio
	maxTotal   = 32 << 30 // bytes of all entries that are read
)

// An archive is a zip file. Its entries are read, and never written under their names.
type archive struct {
	zip   *zip.Reader
	size  int64    // of the file
	total int64    // bytes that were read of all entries
	names []string // base names of the entries, sorted, for assets
	at    map[string]*zip.File
}

func isZip(head []byte) bool { return bytes.HasPrefix(head, []byte("PK\x03\x04")) }

// openZip opens an archive of size bytes. One with more than maxEntries is refused before its
// directory is read.
func openZip(r io.ReaderAt, size int64) (*archive, error) {
	n, err := entries(r, size)
	if err != nil {
		return nil, err
	}
	if n > maxEntries {
		return nil, core.Errorf(core.TooLarge, "the archive has %d files; at most %d are read", n, maxEntries)
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, core.Errorf(core.Invalid, "the archive cannot be read: %v", err)
	}
	if len(z.File) > maxEntries {
		return nil, core.Errorf(core.TooLarge, "the archive has over %d files", maxEntries)
	}
	a := &archive{zip: z, size: size, at: make(map[string]*zip.File, len(z.File))}
	for _, f := range z.File {
		if base := path.Base(strings.ReplaceAll(f.Name, `\`, "/")); f.Mode().IsRegular() && a.at[base] == nil {
			a.at[base] = f
			a.names = append(a.names, base)
		}
	}
	slices.Sort(a.names)
	return a, nil
}

// entries returns how many files the archive reports that it has.
func entries(r io.ReaderAt, size int64) (uint64, error) {
	tail := make([]byte, min(size, 64<<10+22))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	i := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if i < 0 || len(tail)-i < 22 {
		return 0, core.Errorf(core.Invalid, "the archive is not complete")
	}
	n, dir := uint64(binary.LittleEndian.Uint16(tail[i+10:])), uint64(binary.LittleEndian.Uint32(tail[i+12:]))
	if n == 0xffff || dir == 0xffffffff { // zip64: the numbers are in a record of their own
		j := bytes.LastIndex(tail[:i], []byte("PK\x06\x06"))
		if j < 0 || i-j < 56 {
			return 0, core.Errorf(core.Invalid, "the archive is not complete")
		}
		n, dir = binary.LittleEndian.Uint64(tail[j+32:]), binary.LittleEndian.Uint64(tail[j+40:])
	}
	// The directory decides what a reader makes: an entry takes 46 bytes at least.
	return max(n, dir/4096), nil
}

// conversations returns the entries that may hold conversations, in the order of their names.
func (a *archive) conversations() (list []*zip.File) {
	for _, f := range a.zip.File {
		base := path.Base(strings.ReplaceAll(f.Name, `\`, "/"))
		in := path.Base(path.Dir(strings.ReplaceAll(f.Name, `\`, "/")))
		if f.Mode().IsRegular() && strings.HasSuffix(base, ".json") && (strings.HasPrefix(base, "conversations") || in == "conversations") {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(x, y *zip.File) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// open opens an entry.
func (a *archive) open(f *zip.File) (io.ReadCloser, error) {
	r, err := f.Open()
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the entry cannot be read: %v", err)
	}
	return &entry{ReadCloser: r, a: a, packed: int64(min(f.CompressedSize64, uint64(a.size)))}, nil
}

// asset opens the entry whose name is, or begins with, the reference ref of a file.
func (a *archive) asset(ref string) (io.ReadCloser, string, error) {
	i, exact := slices.BinarySearch(a.names, ref)
	if !exact {
		for i < len(a.names) && strings.HasPrefix(a.names[i], ref) && !strings.ContainsRune("-._", rune(a.names[i][len(ref)])) {
			i++
		}
		if i >= len(a.names) || !strings.HasPrefix(a.names[i], ref) {
			return nil, "", fs.ErrNotExist
		}
	}
	r, err := a.open(a.at[a.names[i]])
	return r, a.names[i], err
}

// An entry is a file of an archive that is being read. It ends with an error where it
// becomes larger than a file of its kind can be.
type entry struct {
	io.ReadCloser
	a         *archive
	packed, n int64
}

func (e *entry) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.n += int64(n)
	e.a.total += int64(n)
	switch {
	case e.n > freeRatio && e.n/maxRatio > max(e.packed, 1):
		return 0, core.Errorf(core.TooLarge, "the entry unpacks to over %d times its size: it is refused", maxRatio)
	case e.a.total > maxTotal:
		return 0, core.Errorf(core.TooLarge, "the archive unpacks to over %s: the rest is not read", core.ByteSize(maxTotal))
	case err != nil && !errors.Is(err, io.EOF):
		return n, core.Errorf(core.Invalid, "the entry is damaged: %v", err)
	}
	return n, err
}
