package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"gatehouse/core/beneath"
	"gatehouse/core/vaultsync/wire"
)

// A Found is a file as a scan found it.
type Found struct {
	Name     string
	Hash     string
	Size     int64
	Modified time.Time
	// Mark identifies size, times and inode: a file that has the same mark as before has the
	// same content. "" when it was changed so recently that a further change may keep them.
	Mark string
}

// A Scan is what Tree.Scan did.
type Scan struct {
	Files   map[string]Found // at most wire.MaxFiles
	Unread  map[string]bool  // directories and files that could not be read, and links: what is known of them stays; with Files at most wire.MaxFiles
	Temps   []string         // temporary files of this package that are as old as TempAge
	Hashed  int              // files that were read
	Skipped []string         // files that are too large to sync
	Failed  []string         // files and directories that could not be read; with Files at most wire.MaxFiles
}

// Unknown reports whether the scan could not find out about a name.
func (s *Scan) Unknown(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if s.Unread[name] {
			return true
		}
	}
	return s.Unread["."]
}

// names is how many names of a directory are read at a time.
const names = 512

// tick is how long after a change the file system may give a further one the same time.
const tick = 100 * time.Millisecond

// Scan finds the files below the directory below, "." for all, that keep accepts.
// Directories that enter refuses are left out. The hash of a file whose mark is that of
// known is not computed again. More than wire.MaxFiles are an error.
func (t Tree) Scan(ctx context.Context, below string, enter, keep func(name string) bool, known func(name string) Found) (*Scan, error) {
	s := &Scan{Files: map[string]Found{}, Unread: map[string]bool{}}
	w := scan{t, s, enter, keep, known}
	dir, err := t.Top.Dir(below)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	return s, w.dir(ctx, dir, below)
}

type scan struct {
	Tree
	*Scan
	enter, keep func(name string) bool
	known       func(name string) Found
}

// dir scans a directory and closes it.
func (s *scan) dir(ctx context.Context, d *beneath.Dir, at string) error {
	defer d.Close()
	for {
		list, err := d.Names(names)
		if err != nil {
			s.failed(at)
			return nil
		}
		if len(list) == 0 {
			return nil
		}
		for _, base := range list {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			if err := s.entry(ctx, d, at, base); err != nil {
				return err
			}
		}
	}
}

// failed notes what could not be read.
func (s *scan) failed(name string) {
	s.Failed, s.Unread[name] = append(s.Failed, name), true
}

func (s *scan) entry(ctx context.Context, d *beneath.Dir, at, base string) error {
	name := path.Join(at, base)
	info, err := d.Stat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		s.failed(name)
		return nil
	case info.Mode.IsDir():
		if !s.enter(name) {
			return nil
		}
		below, err := d.Dir(base)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.failed(name)
			}
			return nil
		}
		return s.dir(ctx, below, name)
	case Temporary(base) && info.Mode.IsRegular():
		if s.Stale == nil || s.Stale(info.Changed) {
			s.Temps = append(s.Temps, name)
		}
		return nil
	case !info.Mode.IsRegular():
		if s.keep(name) || s.enter(name) {
			s.Unread[name] = true // what was synced may be behind a link: it is not deleted
		}
		return nil
	case !s.keep(name):
		return nil
	case info.Size > wire.MaxFile:
		s.Skipped, s.Unread[name] = append(s.Skipped, name), true
		return nil
	}
	if len(s.Files)+len(s.Unread) >= wire.MaxFiles {
		return fmt.Errorf("there are more than %d files", wire.MaxFiles)
	}
	return s.file(d, base, name, info)
}

// file adds a file, whose hash is computed unless it is known.
func (s *scan) file(d *beneath.Dir, base, name string, info beneath.Info) error {
	f := Found{Name: name, Size: info.Size, Modified: info.Time, Mark: markOf(info)}
	if was := s.known(name); was.Mark == f.Mark && was.Hash != "" {
		f.Hash = was.Hash
		s.Files[name] = f
		return nil
	}
	hash, size, err := (Tree{Top: d}).Hash(base)
	if err != nil {
		s.failed(name)
		return nil
	}
	if hash == "" {
		return nil // gone since
	}
	s.Hashed++
	// Times of files are those of the machine, not of an injected clock.
	if after, err := d.Stat(base); err != nil || markOf(after) != f.Mark || time.Since(info.Changed) < tick {
		f.Mark = ""
	}
	f.Hash, f.Size = hash, size
	s.Files[name] = f
	return nil
}

func markOf(i beneath.Info) string {
	return fmt.Sprintf("%x-%x-%x-%x", i.Size, i.Time.UnixNano(), i.Changed.UnixNano(), i.Ino)
}
