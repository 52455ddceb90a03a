package shell

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"gatehouse/core/tool"
)

// maxNotes bounds what is told of one sweep.
const maxNotes = 10

// sweep moves to the trash what a command made and the turn may not write: a
// mount can keep a file from being changed, not a name from being taken. It
// also takes away pipes and sockets, on which a reader would wait, and puts
// back links that commands must not change. It says what it did.
func (v *view) sweep(t *tool.Turn, now time.Time) []string {
	s := sweeper{t: t, v: v, now: now}
	for _, p := range v.writable {
		d, err := t.Vault.Dir(p)
		if err != nil || !d.Inside || !d.Exists {
			continue
		}
		root, err := t.Vault.Root().OpenRoot(d.Rel)
		if err != nil {
			continue
		}
		s.folder(root, d.Rel)
		_ = root.Close()
	}
	s.relink()
	if len(s.notes) > maxNotes {
		more := len(s.notes) - maxNotes
		s.notes = append(s.notes[:maxNotes], fmt.Sprintf("and %d more", more))
	}
	return s.notes
}

type sweeper struct {
	t     *tool.Turn
	v     *view
	now   time.Time
	notes []string
}

func (s *sweeper) folder(root *os.Root, name string) {
	entries, err := entriesOf(root)
	if err != nil { // the command took its own right to look away
		if root.Chmod(".", 0o700) != nil {
			return
		}
		if entries, err = entriesOf(root); err != nil {
			return
		}
	}
	for _, e := range entries {
		s.entry(root, path.Join(name, e.Name()), e)
	}
}

func (s *sweeper) entry(root *os.Root, name string, e fs.DirEntry) {
	refused := !s.v.open[name] && !s.t.MayWrite(name)
	if refused || special(e) {
		if !s.stood(root, name, e) {
			s.trash(name, refused)
		}
		return
	}
	if !e.IsDir() {
		return
	}
	child, err := root.OpenRoot(e.Name())
	if err != nil {
		if root.Chmod(e.Name(), 0o700) != nil {
			return
		}
		if child, err = root.OpenRoot(e.Name()); err != nil {
			return
		}
	}
	s.folder(child, name)
	_ = child.Close()
}

// stood reports whether what is at name was there before, perhaps in a folder
// that has another name now: as it was mounted, it is unchanged.
func (s *sweeper) stood(root *os.Root, name string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink != 0 {
		to, err := root.Readlink(e.Name())
		before, ok := s.v.links[name]
		return err == nil && ok && to == before
	}
	st, err := root.Lstat(e.Name())
	if err != nil {
		return true
	}
	if before, ok := s.v.fixed[name]; ok && os.SameFile(before, st) {
		return true
	}
	for _, before := range s.v.fixed {
		if path.Base(before.Name()) == e.Name() && os.SameFile(before, st) {
			return true
		}
	}
	return false
}

func (s *sweeper) trash(name string, refused bool) {
	why := "files of this name command agents or the gateway"
	if !refused {
		why = "it is neither file nor folder"
	}
	to, err := s.t.Vault.Trash(name, s.now)
	if err != nil {
		s.notes = append(s.notes, fmt.Sprintf("%s must not be there (%s), and could not be moved to the trash", name, why))
		return
	}
	s.notes = append(s.notes, fmt.Sprintf("%s was moved to the trash (%s): %s", name, to, why))
}

// relink puts back links that are gone.
func (s *sweeper) relink() {
	names := make([]string, 0, len(s.v.links))
	for name := range s.v.links {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	root := s.t.Vault.Root()
	for _, name := range names {
		if _, err := root.Lstat(name); err == nil {
			continue
		}
		if root.Symlink(s.v.links[name], name) == nil {
			s.notes = append(s.notes, name+" was put back: it commands agents or the gateway")
		}
	}
}
