package beneath

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"

	"golang.org/x/sys/unix"
)

// listed is the number of names that are read from a directory at a time.
const listed = 512

// maxReplaced limits how often one Remove retries what another process replaced.
const maxReplaced = 10_000

// Remove deletes name, an entry of d itself, with everything in it; a missing one is no
// error. It follows no link, needs few descriptors at any depth, and also deletes
// directories from which the owner's rights were removed. An entry that another process
// replaces while it is deleted is read again and deleted as what it is then. When ctx
// ends it stops, and what is left is still below name.
func (d *Dir) Remove(ctx context.Context, name string) error {
	r := remover{ctx: ctx}
	return r.retry(func() error { return r.whole(d, name) })
}

func (d *Dir) unlink(name string, flags int) error {
	err := control(d.f, func(at int) error { return unix.Unlinkat(at, name, flags) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("remove", name, err)
	}
	return nil
}

// unlocked opens the directory name, an entry of d, with the right to list and to
// change it.
func (d *Dir) unlocked(name string) (*Dir, error) {
	child, err := d.Dir(name)
	if err == nil {
		if info, err := child.Self(); err == nil && info.Mode&0o700 == 0o700 {
			return child, nil
		}
		_ = child.Close()
	} else if !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err := d.Unlock(name); err != nil {
		return nil, err
	}
	return d.Dir(name)
}

// A remover empties the directory top. Directories that are nested in its entries
// are moved up into it first, so that depth needs neither descriptors nor stack.
type remover struct {
	ctx   context.Context
	top   *Dir
	moved int

	replaced int // attempts that failed as an entry had been replaced
}

// whole deletes name, an entry of d, once.
func (r *remover) whole(d *Dir, name string) error {
	info, err := d.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return d.unlink(name, 0)
	}
	if err := d.unlink(name, unix.AT_REMOVEDIR); err == nil {
		return nil
	}
	r.top, err = d.unlocked(name)
	if err != nil {
		return err
	}
	defer r.top.Close()
	if err := r.all(); err != nil {
		return renamed(err, name)
	}
	return d.unlink(name, unix.AT_REMOVEDIR)
}

// retry calls delete until it succeeds, fails for another reason than that an
// entry was replaced between two of its steps, ctx ends, or maxReplaced attempts
// of this Remove failed.
func (r *remover) retry(delete func() error) error {
	for {
		err := delete()
		if !raced(err) || r.replaced == maxReplaced {
			return err
		}
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
		r.replaced++
	}
}

// raced reports whether err is one that deleting returns when an entry is
// replaced, renamed or filled between two steps.
func raced(err error) bool {
	return Replaced(err) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTEMPTY)
}

// all deletes what is in top.
func (r *remover) all() error {
	for {
		names, err := r.names(r.top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := r.retry(func() error { return r.entry(name) }); err != nil {
				return err
			}
		}
	}
}

// names returns the first names of a directory.
func (r *remover) names(d *Dir) ([]string, error) {
	if err := context.Cause(r.ctx); err != nil {
		return nil, err
	}
	if _, err := d.f.Seek(0, 0); err != nil {
		return nil, failed("list", d.f.Name(), err)
	}
	return d.Names(listed)
}

// entry deletes an entry of top.
func (r *remover) entry(name string) error {
	info, err := r.top.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode.IsDir() {
		return r.top.unlink(name, 0)
	}
	d, err := r.top.unlocked(name)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := r.names(d)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return r.top.unlink(name, unix.AT_REMOVEDIR)
		}
		for _, inner := range names {
			if err := r.retry(func() error { return r.nested(d, inner) }); err != nil {
				return err
			}
		}
	}
}

// nested deletes an entry of d, a directory in top, or moves it up into top.
func (r *remover) nested(d *Dir, name string) error {
	info, err := d.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode.IsDir() {
		return d.unlink(name, 0)
	}
	if d.unlink(name, unix.AT_REMOVEDIR) == nil {
		return nil
	}
	if info.Mode&0o200 == 0 { // only a writable directory can be moved
		if err := d.Unlock(name); err != nil {
			return err
		}
	}
	for {
		r.moved++
		err := renameBetween(d, name, r.top, ".removed-"+strconv.Itoa(r.moved))
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

// RemoveEmpty deletes the empty directory name below d. Another one is an error.
func (d *Dir) RemoveEmpty(name string) error {
	up, err := d.Dir(path.Dir(name))
	if err != nil {
		return err
	}
	defer up.Close()
	return up.unlink(path.Base(name), unix.AT_REMOVEDIR)
}
