package beneath

import (
	"context"
	"errors"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"
)

// listed is how many names are read from a folder at a time.
const listed = 512

// Remove deletes name, an entry of d itself, with everything in it; a missing
// one is no error. It follows no link, needs few descriptors however deep the
// folders are nested, and deletes also where a folder's owner took its own
// rights away. When ctx ends it stops, and what is left is still below name.
func (d *Dir) Remove(ctx context.Context, name string) error {
	info, err := d.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return d.unlink(name, 0)
	}
	if err := d.unlink(name, unix.AT_REMOVEDIR); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	top, err := d.unlocked(name)
	if err != nil {
		return err
	}
	defer top.Close()
	r := remover{ctx: ctx, top: top}
	if err := r.all(); err != nil {
		return renamed(err, name)
	}
	return d.unlink(name, unix.AT_REMOVEDIR)
}

func (d *Dir) unlink(name string, flags int) error {
	err := control(d.f, func(at int) error { return unix.Unlinkat(at, name, flags) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("remove", name, err)
	}
	return nil
}

// unlocked opens the folder name, an entry of d, and gives itself the right to
// list it and to change what is in it.
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

// A remover empties one folder. Folders that are nested in its entries are moved
// up into it first, so that depth costs neither descriptors nor stack.
type remover struct {
	ctx   context.Context
	top   *Dir
	moved int
}

// all deletes what is in top.
func (r *remover) all() error {
	for {
		names, err := r.names(r.top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := r.entry(name); err != nil {
				return err
			}
		}
	}
}

// names are some names of a folder, from its beginning.
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
			if err := r.nested(d, inner); err != nil {
				return err
			}
		}
	}
}

// nested deletes an entry of d, a folder in top, or moves it up into top.
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
	if info.Mode&0o200 == 0 { // a folder is moved by those who may write it
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
