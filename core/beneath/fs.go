package beneath

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// FS returns the files and directories below root, without links: a name that goes
// through one cannot be opened. It implements fs.ReadLinkFS; directories list links
// as links.
func FS(root *os.Root) fs.FS { return tree{root} }

type tree struct{ root *os.Root }

var _ fs.ReadLinkFS = tree{}

// with calls f with the directory that contains name.
func (t tree) with(name string, f func(d *Dir, base string) error) error {
	top, err := Of(t.root)
	if err != nil {
		return failed("open", name, err)
	}
	defer top.Close()
	if !fs.ValidPath(name) {
		return failed("open", name, fs.ErrInvalid)
	}
	d, err := top.Dir(path.Dir(name))
	if err != nil {
		return renamed(err, name)
	}
	defer d.Close()
	return renamed(f(d, path.Base(name)), name)
}

// Open implements fs.FS.
func (t tree) Open(name string) (fs.File, error) {
	top, err := Of(t.root)
	if err != nil {
		return nil, failed("open", name, err)
	}
	defer top.Close()
	f, err := top.Open(name)
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Lstat implements fs.ReadLinkFS.
func (t tree) Lstat(name string) (info fs.FileInfo, err error) {
	err = t.with(name, func(d *Dir, base string) error {
		i, err := d.Stat(base)
		info = named{i, base}
		return err
	})
	return info, err
}

// ReadLink implements fs.ReadLinkFS.
func (t tree) ReadLink(name string) (to string, err error) {
	err = t.with(name, func(d *Dir, base string) (err error) {
		to, err = d.Readlink(base)
		return err
	})
	return to, err
}

// A file lists its entries by its descriptor: os.File asks for their kind by the
// path that it was opened by.
type file struct{ *os.File }

// ReadDir implements fs.ReadDirFile.
func (f file) ReadDir(n int) (entries []fs.DirEntry, err error) {
	d := Dir{f.File}
	for n <= 0 || len(entries) < n {
		want := listed
		if n > 0 {
			want = min(want, n-len(entries))
		}
		names, err := d.Names(want)
		if err != nil {
			return entries, err
		}
		if len(names) == 0 {
			break
		}
		for _, name := range names {
			info, err := d.Stat(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue // deleted since
			}
			if err != nil {
				return entries, err
			}
			entries = append(entries, fs.FileInfoToDirEntry(named{info, name}))
		}
	}
	if n > 0 && len(entries) == 0 {
		return nil, io.EOF
	}
	return entries, nil
}

// A named is an Info as a fs.FileInfo.
type named struct {
	info Info
	name string
}

func (i named) Name() string       { return i.name }
func (i named) Size() int64        { return i.info.Size }
func (i named) Mode() fs.FileMode  { return i.info.Mode }
func (i named) ModTime() time.Time { return i.info.Time }
func (i named) IsDir() bool        { return i.info.Mode.IsDir() }
func (i named) Sys() any           { return nil }

// Changed returns when the content or the description changed.
func (i named) Changed() time.Time { return i.info.Changed }
