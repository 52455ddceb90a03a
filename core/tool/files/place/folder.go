package place

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// A Directory is held open, so that it stays itself whatever it is called. Close it.
type Folder struct {
	place Place // where it must be
	root  *os.Root
	self  *os.File
	open  Opener
}

// Root gives access to what is in the directory.
func (d Folder) Root() *os.Root { return d.root }

// Check reports ErrMoved when the directory is not, or not any more, where it must be.
func (d Folder) Check() error {
	_, err := d.open.verify(d.place, d.self)
	return err
}

// Sync flushes the directory's entries to disk.
func (d Folder) Sync() error { return d.self.Sync() }

// Close releases the directory.
func (d Folder) Close() {
	_ = d.self.Close()
	_ = d.root.Close()
}

// Folder opens the directory that p is in, with no link on the way, and makes what
// is missing: 0700 in the vault, 0755 outside. base is p's name in it.
func (o Opener) Folder(p Place) (d Folder, base string, err error) {
	d, err = o.folder(p, path.Dir(p.rel))
	return d, path.Base(p.rel), err
}

// folder opens the directory rel of p's root, with no link on the way, and makes
// what is missing step by step, each in a directory that was asked for its name.
func (o Opener) folder(p Place, rel string) (Folder, error) {
	at := Place{root: p.root, base: p.base, rel: rel}
	d, err := o.openFolder(at, p.root, rel)
	if !errors.Is(err, fs.ErrNotExist) || rel == "." {
		return d, err
	}
	up, err := o.folder(p, path.Dir(rel))
	if err != nil {
		return Folder{}, err
	}
	defer up.Close()
	mode := fs.FileMode(0o700)
	if p.base == "/" {
		mode = 0o755
	}
	if err := up.root.Mkdir(path.Base(rel), mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return Folder{}, err
	}
	return o.openFolder(at, up.root, path.Base(rel))
}

// openFolder opens the directory rel of root, which must be at.
func (o Opener) openFolder(at Place, root *os.Root, rel string) (Folder, error) {
	r, err := root.OpenRoot(rel + "/.") // with "/." it does not wait at a pipe
	if err != nil {
		if escapes(err) {
			err = ErrMoved
		}
		return Folder{}, err
	}
	self, err := r.Open(".")
	if err != nil {
		_ = r.Close()
		return Folder{}, err
	}
	d := Folder{at, r, self, o}
	if err := d.Check(); err != nil {
		d.Close()
		return Folder{}, err
	}
	return d, nil
}
