package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"gatehouse/core/beneath"
	"gatehouse/core/vaultsync/wire"
)

// A Found is a file as a walk found it.
type Found struct {
	Name     string
	Hash     string
	Size     int64
	Modified time.Time
	// Mark identifies size, times and inode: a file that has the same mark as before has the
	// same content. "" when it was changed so recently that a further change may keep them.
	Mark string
}

// A Visitor is called by a walk, in the order of the bytes of the paths. An error ends the walk.
type Visitor interface {
	// Known returns the hash of a file that has been found, by its mark, "" if it is to be computed.
	Known(f Found) (hash string, err error)
	// File is called with a file.
	File(f Found) error
	// Unread is called for a name about which the walk could not find out: what is known of it
	// stays. It is a link, or too large, or cannot be read.
	Unread(name string) error
	// Below is the same for all names in a directory, "." for all.
	Below(dir string) error
}

// Walked is what Tree.Walk did.
type Walked struct {
	Files   int      // at most wire.MaxFiles
	Hashed  int      // files that were read
	Temps   []string // temporary files of this package that are stale
	Skipped []string // files that are too large to sync
	Failed  []string // files and directories that could not be read; with Files at most wire.MaxFiles
	unread  int
}

// names is how many names of a directory are read at a time.
const names = 512

// tick is how long after a change the file system may give a further one the same time.
const tick = 100 * time.Millisecond

// Walk visits the files below the directory below, "." for all, that keep accepts.
// Directories that enter refuses are left out. More than wire.MaxFiles are an error. It keeps
// the names of the directories that it is in, and of no others.
func (t Tree) Walk(ctx context.Context, below string, enter, keep func(name string) bool, v Visitor) (*Walked, error) {
	w := walk{t, &Walked{}, enter, keep, v}
	dir, err := t.Top.Dir(below)
	if errors.Is(err, fs.ErrNotExist) {
		return w.Walked, nil
	}
	if err != nil {
		return nil, err
	}
	return w.Walked, w.dir(ctx, dir, below)
}

type walk struct {
	Tree
	*Walked
	enter, keep func(name string) bool
	v           Visitor
}

// all returns the names of a directory in order.
func all(d *beneath.Dir) (list []string, err error) {
	for {
		some, err := d.Names(names)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			slices.Sort(list)
			return list, nil
		}
		list = append(list, some...)
	}
}

// A kind is what an entry of a directory is to a walk.
type kind int

const (
	done    kind = iota // with the visit of its own name
	entered             // a directory
	unread              // nor is what may be below
)

// dir walks a directory and closes it. What is below an entry comes behind the names between
// it and it with a slash: "a.md" is before "a/b.md".
func (w *walk) dir(ctx context.Context, d *beneath.Dir, at string) error {
	defer d.Close()
	list, err := all(d)
	if err != nil {
		w.Failed = append(w.Failed, at)
		return w.v.Below(at)
	}
	type waiting struct {
		base string
		kind
	}
	var stack []waiting // each begins with the one before; at most one for each byte of a name
	for i := 0; i <= len(list); i++ {
		for n := len(stack) - 1; n >= 0 && (i == len(list) || stack[n].base+"/" < list[i]); n-- {
			top := stack[n]
			stack = stack[:n]
			if err := w.below(ctx, d, path.Join(at, top.base), top.base, top.kind); err != nil {
				return err
			}
		}
		if i == len(list) {
			break
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		k, err := w.entry(d, path.Join(at, list[i]), list[i])
		if err != nil {
			return err
		}
		if k != done {
			stack = append(stack, waiting{list[i], k})
		}
	}
	return nil
}

// below walks what is in an entry.
func (w *walk) below(ctx context.Context, d *beneath.Dir, name, base string, k kind) error {
	if k == unread {
		return w.v.Below(name)
	}
	inner, err := d.Dir(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		w.Failed = append(w.Failed, name)
		return w.v.Below(name)
	}
	return w.dir(ctx, inner, name)
}

// skip visits a name that could not be read.
func (w *walk) skip(name string) (kind, error) {
	if w.unread++; w.Files+w.unread > wire.MaxFiles {
		return done, tooMany()
	}
	return unread, w.v.Unread(name)
}

func tooMany() error { return fmt.Errorf("there are more than %d files", wire.MaxFiles) }

// failed visits a name whose reading failed.
func (w *walk) failed(name string) (kind, error) {
	w.Failed = append(w.Failed, name)
	return w.skip(name)
}

// entry visits the entry base of d.
func (w *walk) entry(d *beneath.Dir, name, base string) (kind, error) {
	info, err := d.Stat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return done, nil
	case err != nil:
		return w.failed(name)
	case info.Mode.IsDir():
		if w.enter(name) {
			return entered, nil
		}
		return done, nil
	case isTemporary(base) && info.Mode.IsRegular():
		if w.Stale == nil || w.Stale(info.Changed) {
			w.Temps = append(w.Temps, name)
		}
		return done, nil
	case !info.Mode.IsRegular():
		if w.keep(name) || w.enter(name) {
			return w.skip(name) // what was synced may be behind a link: it is not deleted
		}
		return done, nil
	case !w.keep(name):
		return done, nil
	case info.Size > wire.MaxFile:
		w.Skipped = append(w.Skipped, name)
		return w.skip(name)
	}
	if w.Files+w.unread >= wire.MaxFiles {
		return done, tooMany()
	}
	return w.file(d, base, name, info)
}

// file visits a file, whose hash is computed unless it is known.
func (w *walk) file(d *beneath.Dir, base, name string, info beneath.Info) (kind, error) {
	f := Found{Name: name, Size: info.Size, Modified: info.Time, Mark: markOf(info)}
	var err error
	if f.Hash, err = w.v.Known(f); err != nil {
		return done, err
	}
	if f.Hash != "" {
		w.Files++
		return done, w.v.File(f)
	}
	hash, size, err := (Tree{Top: d}).Hash(base)
	if err != nil {
		return w.failed(name)
	}
	if hash == "" {
		return done, nil // gone since
	}
	w.Hashed++
	// Times of files are those of the machine, not of an injected clock.
	if after, err := d.Stat(base); err != nil || markOf(after) != f.Mark || time.Since(info.Changed) < tick {
		f.Mark = ""
	}
	f.Hash, f.Size = hash, size
	w.Files++
	return done, w.v.File(f)
}

func markOf(i beneath.Info) string {
	return fmt.Sprintf("%x-%x-%x-%x", i.Size, i.Time.UnixNano(), i.Changed.UnixNano(), i.Ino)
}
