package shell

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/sandbox"
	"gatehouse/core/tool"
)

// Bounds of what is read of the vault before a command below full trust.
const (
	maxEntries = 100_000 // files and directories, those of guests not counted
	maxGuests  = 100_000 // files and directories of guests' areas together
	maxDepth   = 64      // of directories
	maxHidden  = 2       // how far below a forbidden directory an allowed one is looked for
	listed     = 512     // names that are read from a directory at a time
)

// A view is what a command sees of the vault. Each map has at most one entry for
// each file that was checked.
type view struct {
	readOnly, writable, masked []string              // as for a sandbox.Spec
	ids                        map[string]beneath.ID // of these
	dir                        string
	areas                      []string // names of the directories behind writable

	// What was there before, by name.
	fixed map[string]beneath.ID // must not be written: it is mounted so that it cannot be
	links map[string]link       // must not be changed
	loose map[string]string     // other links, and where they lead
	open  map[string]bool       // may be written: need not be asked again
	known map[beneath.ID]bool   // directories that may be written

	closed map[string]bool // areas of guests that are not shown
	seen   int             // files and directories that were checked
	notes  []string
}

// A link is where a symbolic link leads, and the directory that it is in.
type link struct {
	to     string
	parent beneath.ID
}

func newView() *view {
	return &view{
		ids: map[string]beneath.ID{}, fixed: map[string]beneath.ID{}, links: map[string]link{}, loose: map[string]string{},
		open: map[string]bool{}, known: map[beneath.ID]bool{}, closed: map[string]bool{},
	}
}

func (v *view) spec() sandbox.Spec {
	return sandbox.Spec{ReadOnly: v.readOnly, Writable: v.writable, Masked: v.masked, IDs: v.ids, Dir: v.dir}
}

// A grade is how much of a file is open.
type grade uint8

const (
	hidden grade = iota
	readable
	writable
)

// never are the directories of the vault that no guest sees, whatever is listed.
var never = []string{".claude", ".parachute", "chat", "daily", ".mcp.json"}

func gradeOf(t *tool.Turn, name string) grade {
	if t.Trust == core.Sandboxed {
		if top, _, _ := strings.Cut(name, "/"); slices.Contains(never, strings.ToLower(top)) {
			return hidden
		}
	}
	switch { // a bound that no one set opens nothing
	case t.MayRead == nil || !t.MayRead(name):
		return hidden
	case t.MayWrite == nil || !t.MayWrite(name):
		return readable
	}
	return writable
}

// look walks the vault and returns the fewest mounts that show what t may see,
// without the directories in except. A link is never mounted on: it leads to what
// has a name of its own, or nowhere.
func look(ctx context.Context, t *tool.Turn, except []string) (*view, error) {
	top, err := t.Vault.Beneath()
	if err != nil {
		return nil, err
	}
	defer top.Close()
	self, err := top.Self()
	if err != nil {
		return nil, err
	}
	home := area(t)
	if home != "." {
		d, err := top.MkdirAll(home)
		if err != nil {
			return nil, core.Errorf(core.Denied, "the person's own folder %s cannot be made: a part of it is a link or no folder", home)
		}
		_ = d.Close()
	}
	keepAgents(top, t)
	w := walk{ctx: ctx, t: t, v: newView(), except: except, most: maxEntries, deepest: maxDepth}
	grade := gradeOf(t, ".")
	w.mount(".", self.ID, hidden, grade)
	if err := w.folder(top, ".", grade, 0, 0); err != nil {
		return nil, err
	}
	v := w.v
	w.closeLinks(top)
	if n := len(v.readOnly) + len(v.writable) + len(v.masked); n > sandbox.MaxPaths {
		return nil, core.Errorf(core.TooLarge, "the shell is not available here: what this person may see of the vault would need %d mounts, and at most %d are made. Files can still be read and written with the other tools", n, sandbox.MaxPaths)
	}
	v.dir = w.path(home)
	if d := t.Dir; d.Inside && d.Exists && gradeOf(t, d.Rel) != hidden {
		if v.shut(d.Rel) { // a command that was meant for it must not run elsewhere
			return nil, core.Errorf(core.Busy, "the command was not started: %s", strings.Join(v.notes, "; "))
		}
		v.dir = d.Path
	}
	return v, nil
}

// The directory of daily agents, which the gateway starts while a command still runs, and the
// one that it is in.
const (
	agentsIn  = "Daily"
	agentsDir = agentsIn + "/.agents"
)

// keepAgents makes the directory of daily agents for a command that may write next to it: what
// exists is mounted so that it cannot be written, and its name cannot be taken. Where a part
// of it is a link or a file, the schedule reads nothing there.
func keepAgents(top *beneath.Dir, t *tool.Turn) {
	if gradeOf(t, agentsIn) != writable || gradeOf(t, agentsDir) != readable {
		return
	}
	if d, err := top.MkdirAll(agentsDir); err == nil {
		_ = d.Close()
	}
}

// shut reports whether name is in an area that is not shown.
func (v *view) shut(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if v.closed[name] {
			return true
		}
	}
	return false
}

type walk struct {
	ctx           context.Context
	t             *tool.Turn
	v             *view
	except        []string // areas of guests that are not shown
	most, deepest int      // bounds of what is counted in v.seen, and of depth
	guests        int      // files and directories of guests that were checked
}

// errMany and errDeep are returned to the model.
var (
	errMany = core.Errorf(core.TooLarge, "the shell is not available here: the vault holds more than %d files and folders, which is more than can be checked before each command. Files can still be read and written with the other tools", maxEntries)
	errDeep = core.Errorf(core.TooLarge, "the shell is not available here: folders of the vault are nested deeper than %d. Files can still be read and written with the other tools", maxDepth)
)

// folder checks the entries of one directory, which is in a mount of grade in.
// below counts the levels under a forbidden directory of an open one.
func (w *walk) folder(d *beneath.Dir, name string, in grade, depth, below int) error {
	if depth > w.deepest {
		return errDeep
	}
	self, err := d.Self()
	if err != nil {
		return err
	}
	if in == writable {
		w.v.known[self.ID] = true
	}
	for {
		if err := context.Cause(w.ctx); err != nil {
			return err
		}
		names, err := d.Names(listed)
		if err != nil || len(names) == 0 {
			return nil // not ours to read, so not the command's either: it runs as the same user
		}
		if w.v.seen += len(names); w.v.seen > w.most {
			return errMany
		}
		for _, base := range names {
			at := place{d, self.ID, base, path.Join(name, base)}
			if err := w.entry(at, in, depth, below); err != nil {
				return err
			}
		}
	}
}

// A place is an entry of an open directory.
type place struct {
	dir    *beneath.Dir
	parent beneath.ID
	base   string
	name   string // in the vault
}

func (w *walk) entry(at place, in grade, depth, below int) error {
	info, err := at.dir.Stat(at.base)
	if err != nil {
		return nil // gone since
	}
	g := gradeOf(w.t, at.name)
	if info.Mode&fs.ModeSymlink != 0 {
		w.link(at, in, g)
		return nil
	}
	if info.Mode.IsDir() && isArea(at.name) && at.name != area(w.t) {
		return w.guest(at, info.ID, in, g)
	}
	if g == writable {
		w.v.open[at.name] = true
	}
	if special(info.Mode) && g != hidden {
		g = hidden // a socket leads out of every namespace, a pipe to anyone who reads it
	}
	if in == writable && g != writable {
		w.v.fixed[at.name] = info.ID
	}
	w.mount(at.name, info.ID, in, g)
	if at.name == agentsIn && in == writable && g == writable && info.Mode.IsDir() {
		p := w.path(at.name) // mounted on its own, it cannot be renamed to make room for another
		w.v.writable, w.v.ids[p] = append(w.v.writable, p), info.ID
	}
	if !info.Mode.IsDir() || w.opensNothing(at.name) {
		return nil
	}
	if g == hidden && (in != hidden || below > 0) {
		if below++; below > maxHidden {
			return nil
		}
	} else {
		below = 0
	}
	return w.child(at, info.ID, g, depth, below)
}

// trash is where the gateway keeps what was deleted, as much as there is of it.
const trash = ".parachute/trash"

// opensNothing reports whether nothing below the directory name is open to anyone
// at this trust: it need not be looked into.
func (w *walk) opensNothing(name string) bool {
	return name == trash || w.t.Trust == core.Sandboxed && slices.Contains(never, strings.ToLower(name))
}

// child looks into the directory at, which is id.
func (w *walk) child(at place, id beneath.ID, g grade, depth, below int) error {
	d, err := at.dir.Dir(at.base)
	if err != nil {
		return nil
	}
	defer d.Close()
	if self, err := d.Self(); err != nil || self.ID != id {
		return nil // replaced since: the program checks what it was given and does not start
	}
	return w.folder(d, at.name, g, depth+1, below)
}

func (w *walk) link(at place, in, g grade) {
	to, err := at.dir.Readlink(at.base)
	switch {
	case err != nil || in != writable:
	case g == writable:
		w.v.loose[at.name] = to
	default:
		w.v.links[at.name] = link{to, at.parent}
	}
}

func (w *walk) path(name string) string {
	return filepath.Join(w.t.Vault.Path(), filepath.FromSlash(name))
}

// mount notes that name is of grade g within a mount of grade in.
func (w *walk) mount(name string, id beneath.ID, in, g grade) {
	if g == in {
		return
	}
	p := w.path(name)
	w.v.ids[p] = id
	switch g {
	case hidden:
		w.v.masked = append(w.v.masked, p)
	case readable:
		w.v.readOnly = append(w.v.readOnly, p)
	default:
		w.v.writable = append(w.v.writable, p)
		w.v.areas = append(w.v.areas, name)
	}
}

// closeLinks makes what a forbidden link leads to as closed as the link: who may
// not write CLAUDE.md may not write it by the name of the file behind it.
func (w *walk) closeLinks(top *beneath.Dir) {
	for name := range w.v.links {
		d, err := w.t.Vault.Dir(name)
		if err != nil || !d.Inside || d.Rel == "." || gradeOf(w.t, d.Rel) != writable || w.v.shut(d.Rel) {
			continue
		}
		info, err := top.Stat(d.Rel)
		if err != nil {
			continue
		}
		if a := areaOf(d.Rel); a != "" && a != area(w.t) {
			w.close(top, a)
			continue
		}
		same := func(p string) bool { return p == d.Path }
		w.v.writable = slices.DeleteFunc(w.v.writable, same)
		w.v.fixed[d.Rel], w.v.ids[d.Path] = info.ID, info.ID
		if slices.ContainsFunc(slices.Concat(w.v.masked, w.v.readOnly), same) {
			continue
		}
		if gradeOf(w.t, name) == hidden {
			w.v.masked = append(w.v.masked, d.Path)
		} else {
			w.v.readOnly = append(w.v.readOnly, d.Path)
		}
	}
}

// special reports whether a file is neither regular nor directory nor link.
func special(mode fs.FileMode) bool {
	return mode&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice|fs.ModeCharDevice|fs.ModeIrregular) != 0
}
