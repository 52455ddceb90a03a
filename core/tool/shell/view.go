package shell

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
)

// Bounds of what is looked at before a command below full trust.
const (
	maxEntries = 100_000 // files and folders of the vault
	maxDepth   = 64      // of folders
	maxHidden  = 2       // how far below a forbidden folder an allowed one is looked for
)

// A view is what a command sees of the vault.
type view struct {
	readOnly, writable, masked []string // as for a sandbox.Spec
	dir                        string

	// What stood there before and must not be written, by name: it is mounted
	// so that it cannot be. At most maxEntries in each.
	fixed map[string]fs.FileInfo
	links map[string]string // links that must not be changed, and where they lead
	open  map[string]bool   // what stood there and may be written: need not be asked again
}

// A grade is how much of a file is open.
type grade uint8

const (
	hidden grade = iota
	readable
	writable
)

// never are the folders of the vault that no guest sees, whatever is listed.
var never = []string{".claude", ".parachute", "chat", "daily", ".mcp.json"}

func gradeOf(t *tool.Turn, name string) grade {
	if t.Trust == core.Sandboxed {
		if top, _, _ := strings.Cut(name, "/"); slices.Contains(never, strings.ToLower(top)) {
			return hidden
		}
	}
	switch { // a bound that nobody set opens nothing
	case t.MayRead == nil || !t.MayRead(name):
		return hidden
	case t.MayWrite == nil || !t.MayWrite(name):
		return readable
	}
	return writable
}

// look walks the vault and finds the fewest mounts that show what t may see. A
// link is never mounted on: it leads to what stands under its own name, or
// nowhere.
func look(t *tool.Turn) (*view, error) {
	v := &view{fixed: map[string]fs.FileInfo{}, links: map[string]string{}, open: map[string]bool{}}
	home := "."
	if t.Trust == core.Sandboxed {
		home = own(t)
		if err := t.Vault.Root().MkdirAll(home, 0o700); err != nil {
			return nil, core.Errorf(core.Denied, "the person's own folder %s cannot be made", home)
		}
		if d, err := t.Vault.Dir(home); err != nil || d.Rel != home {
			return nil, core.Errorf(core.Denied, "the person's own folder %s is a link", home)
		}
	}
	w := walk{t: t, v: v}
	top := gradeOf(t, ".")
	w.mount(t.Vault.Path(), hidden, top)
	if err := w.folder(t.Vault.Root(), ".", top, 0, 0); err != nil {
		return nil, err
	}
	w.closeLinks()
	if n := len(v.readOnly) + len(v.writable) + len(v.masked); n > sandbox.MaxPaths {
		return nil, core.Errorf(core.TooLarge, "the shell is not available here: what this person may see of the vault would need %d mounts, and at most %d are made. Files can still be read and written with the other tools", n, sandbox.MaxPaths)
	}
	v.dir = filepath.Join(t.Vault.Path(), filepath.FromSlash(home))
	if d := t.Dir; d.Inside && d.Exists && gradeOf(t, d.Rel) != hidden {
		v.dir = d.Path
	}
	return v, nil
}

type walk struct {
	t    *tool.Turn
	v    *view
	seen int
}

var errMany = core.Errorf(core.TooLarge, "the shell is not available here: the vault holds more than %d files and folders, which is more than can be looked at before each command. Files can still be read and written with the other tools", maxEntries)

// folder looks at the entries of one folder, which stands in a mount of grade
// in. below counts the levels under a forbidden folder of an open one.
func (w *walk) folder(root *os.Root, name string, in grade, depth, below int) error {
	entries, err := entriesOf(root)
	if err != nil {
		return nil // not ours to read, so not the command's either: it runs as the same user
	}
	if w.seen += len(entries); w.seen > maxEntries {
		return errMany
	}
	if depth > maxDepth {
		return core.Errorf(core.TooLarge, "the shell is not available here: folders of the vault are nested deeper than %d", maxDepth)
	}
	for _, e := range entries {
		if err := w.entry(root, path.Join(name, e.Name()), e, in, depth, below); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(root *os.Root, name string, e fs.DirEntry, in grade, depth, below int) error {
	g := gradeOf(w.t, name)
	if g == writable {
		w.v.open[name] = true
	}
	switch {
	case e.Type()&fs.ModeSymlink != 0:
		if to, err := root.Readlink(e.Name()); err == nil && in == writable && g != writable {
			w.v.links[name] = to
		}
		return nil
	case special(e) && g != hidden:
		g = hidden // a socket leads out of every namespace, a pipe to whoever reads it
	}
	if in == writable && g != writable {
		if st, err := root.Lstat(e.Name()); err == nil {
			w.v.fixed[name] = st
		}
	}
	w.mount(w.path(name), in, g)
	if !e.IsDir() {
		return nil
	}
	if g == hidden && (in != hidden || below > 0) {
		if below++; below > maxHidden {
			return nil
		}
	} else {
		below = 0
	}
	child, err := root.OpenRoot(e.Name())
	if err != nil {
		return nil
	}
	defer child.Close()
	return w.folder(child, name, g, depth+1, below)
}

func (w *walk) path(name string) string {
	return filepath.Join(w.t.Vault.Path(), filepath.FromSlash(name))
}

// mount notes that path is of grade g within a mount of grade in.
func (w *walk) mount(path string, in, g grade) {
	switch {
	case g == in:
	case g == hidden:
		w.v.masked = append(w.v.masked, path)
	case g == readable:
		w.v.readOnly = append(w.v.readOnly, path)
	default:
		w.v.writable = append(w.v.writable, path)
	}
}

// closeLinks makes what a forbidden link leads to as closed as the link: who
// may not write CLAUDE.md may not write it by the name of the file behind it.
func (w *walk) closeLinks() {
	for name := range w.v.links {
		d, err := w.t.Vault.Dir(name)
		if err != nil || !d.Inside || d.Rel == "." || gradeOf(w.t, d.Rel) != writable {
			continue
		}
		st, err := os.Lstat(d.Path)
		if err != nil {
			continue
		}
		w.v.writable = slices.DeleteFunc(w.v.writable, func(p string) bool { return p == d.Path })
		w.v.fixed[d.Rel] = st
		if gradeOf(w.t, name) == hidden {
			w.v.masked = append(w.v.masked, d.Path)
		} else {
			w.v.readOnly = append(w.v.readOnly, d.Path)
		}
	}
}

// special reports whether e is neither file nor folder nor link.
func special(e fs.DirEntry) bool {
	return e.Type()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) != 0
}

// entriesOf lists a folder, in no order.
func entriesOf(root *os.Root) ([]fs.DirEntry, error) {
	f, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}
