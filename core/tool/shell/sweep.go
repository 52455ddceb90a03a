package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/tool"
)

// Bounds of one sweep. The watcher of a command ends it when it made more than
// 200,000 files, so a sweep that ends early met a command that was ended, too.
const (
	maxNew    = 250_000          // files and directories beyond those that were there before
	sweepTime = 15 * time.Second // and a third of that once the run was stopped
	maxMoves  = 2_000            // what is moved to the trash one by one; the rest of what the command made is deleted
	maxNotes  = 10               // what is reported
)

// sweep moves to the trash what a command made and the turn may not write: a
// mount can keep a file from being changed, not a name from being taken. What Options.Meant
// knows stays. It also
// removes pipes and sockets, on which a reader would wait, links that lead out of
// the area, and what exceeds the bounds of a guest's area; and it restores links
// that commands must not change. It returns what it did, for the model.
//
// It works on open directories and follows no link, moves nothing but the file that
// it checked, and ends within sweepTime.
func (v *view) sweep(ctx context.Context, t *tool.Turn, o Options, began time.Time) []string {
	limit := sweepTime
	if ctx.Err() != nil {
		limit /= 3
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	s := sweeper{ctx: ctx, t: t, v: v, meant: o.Meant, began: began, now: o.Clock.Now(), left: v.seen + maxNew, notes: v.notes}
	top, err := t.Vault.Beneath()
	if err != nil {
		return []string{"what the command left could not be checked"}
	}
	defer top.Close()
	s.top = top
	for _, name := range v.areas {
		s.area(name)
	}
	s.relink()
	if s.deleted > 0 {
		s.notes = append([]string{fmt.Sprintf("%d more files must not be there and were deleted: the command made too many of them", s.deleted)}, s.notes...)
	}
	if len(s.notes) > maxNotes {
		more := len(s.notes) - maxNotes
		s.notes = append(s.notes[:maxNotes:maxNotes], fmt.Sprintf("and %d more", more))
	}
	return s.notes
}

type sweeper struct {
	ctx            context.Context
	t              *tool.Turn
	v              *view
	meant          func(name string, since time.Time, content io.Reader) bool
	began, now     time.Time    // of the command, and of the sweep
	top            *beneath.Dir // the vault
	left           int          // files and directories that may still be checked
	moves, deleted int
	notes          []string
}

// A pending directory has been seen and not yet been looked into.
type pending struct {
	name  string // in the vault
	id    beneath.ID
	depth int // below the area
}

// errBounds ends the sweep of an area.
var errBounds = errors.New("bounds of the sweep")

// area looks through a directory that a command could write, the directories that were
// there before first: what is planted in these is the likeliest to be read.
func (s *sweeper) area(name string) {
	info, err := s.top.Stat(name)
	if err != nil || info.ID != s.v.ids[pathOf(s.t, name)] || !info.Mode.IsDir() {
		return // it is not the directory that the command could write
	}
	before, after := []pending{{name, info.ID, 0}}, []pending(nil)
	counted := 0
	for len(before)+len(after) > 0 {
		from := &before
		if len(before) == 0 {
			from = &after
		}
		f := (*from)[len(*from)-1]
		*from = (*from)[:len(*from)-1]
		found, n, err := s.folder(f)
		counted += n
		if err == nil && s.t.Bounded() && counted > s.bound() {
			err = errBounds
		}
		if err != nil {
			fresh := slices.DeleteFunc(found, func(p pending) bool { return s.v.known[p.id] })
			if !s.v.known[f.id] {
				fresh = []pending{f} // with all that is in it
			}
			s.unfinished(name, info.ID, append(after, fresh...), len(before) > 0 || s.v.known[f.id])
			return
		}
		for _, p := range found {
			if s.v.known[p.id] {
				before = append(before, p)
			} else {
				after = append(after, p)
			}
		}
	}
}

func pathOf(t *tool.Turn, name string) string { return (&walk{t: t}).path(name) }

// bound returns how many files a guest's area may hold. What was there before counts
// twice: the user may have more from the operator.
func (s *sweeper) bound() int { return max(tool.MaxAreaEntries, 2*s.v.seen) }

// likeliest are names that agents and programs look for in every directory. In one
// that was there before they are checked first: what else a command made there
// may be more than can be checked in time.
var likeliest = []string{"CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "GEMINI.md", ".claude", ".mcp.json", ".git", "HEAD", ".envrc"}

// folder checks the entries of f and returns the directories among them and the
// number of its entries.
func (s *sweeper) folder(f pending) (found []pending, counted int, err error) {
	d, err := s.enter(f)
	if err != nil {
		return nil, 0, nil // gone, or closed even to its owner: no one reads in it
	}
	defer d.Close()
	for _, base := range likeliest {
		if s.v.known[f.id] {
			_, _ = s.entry(place{d, f.id, base, path.Join(f.name, base)}, f.depth+1)
		}
	}
	for {
		if s.ctx.Err() != nil {
			return found, counted, s.ctx.Err()
		}
		names, err := d.Names(listed)
		if err != nil || len(names) == 0 {
			return found, counted, nil
		}
		if counted += len(names); counted > s.left {
			return found, counted, errBounds
		}
		for _, base := range names {
			if p, ok := s.entry(place{d, f.id, base, path.Join(f.name, base)}, f.depth+1); ok {
				found = append(found, p)
			}
		}
	}
}

// enter opens the directory f, also where a command took its own right to do so.
func (s *sweeper) enter(f pending) (*beneath.Dir, error) {
	d, err := s.top.Dir(f.name)
	if errors.Is(err, fs.ErrPermission) {
		up, err := s.top.Dir(path.Dir(f.name))
		if err != nil {
			return nil, err
		}
		defer up.Close()
		if info, err := up.Stat(path.Base(f.name)); err != nil || info.ID != f.id {
			return nil, beneath.ErrChanged
		}
		if err := up.Unlock(path.Base(f.name)); err != nil {
			return nil, err
		}
		d, err = up.Dir(path.Base(f.name))
		if err != nil {
			return nil, err
		}
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if self, err := d.Self(); err != nil || self.ID != f.id {
		_ = d.Close()
		return nil, beneath.ErrChanged
	}
	return d, nil
}

// entry decides on one file; ok is true for a directory that is to be looked into.
func (s *sweeper) entry(at place, depth int) (p pending, ok bool) {
	s.left--
	if s.v.closed[at.name] {
		return p, false
	}
	info, err := at.dir.Stat(at.base)
	if err != nil {
		return p, false
	}
	refused := !s.v.open[at.name] && !s.t.MayWrite(at.name)
	if (refused || special(info.Mode)) && s.stood(at, info) {
		return p, false // mounted as it was: nothing in it was changed
	}
	if refused && s.arrived(at, info) {
		return pending{at.name, info.ID, depth}, info.Mode.IsDir()
	}
	if why := s.unwanted(at, info, depth, refused); why != "" {
		s.trash(at, info.ID, why)
		return p, false
	}
	return pending{at.name, info.ID, depth}, info.Mode.IsDir()
}

// arrived reports whether someone who may write a file wrote it while the command ran, or
// files in a directory. What else is in the directory is checked separately. A file of two
// names is not the one that was written alone: a later command could write it by the other.
func (s *sweeper) arrived(at place, info beneath.Info) bool {
	switch {
	case s.meant == nil:
		return false
	case info.Mode.IsDir():
		return s.meant(at.name, s.began, nil)
	case !info.Mode.IsRegular():
		return false
	}
	f, err := at.dir.Open(at.base)
	if err != nil {
		return false
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Nlink == 1 && s.meant(at.name, s.began, f)
}

// unwanted returns why a file must not stay, "" where it may.
func (s *sweeper) unwanted(at place, info beneath.Info, depth int, refused bool) string {
	switch {
	case refused:
		return "files of this name command agents or the gateway, or are run by programs that find them"
	case special(info.Mode):
		return "it is neither file nor folder"
	case info.Mode&fs.ModeSymlink != 0:
		to, err := at.dir.Readlink(at.base)
		if before, ok := s.v.loose[at.name]; err == nil && !(ok && before == to) && leaves(area(s.t), at.name, to) {
			return "the link leads out of the folder"
		}
	case info.Mode.IsDir() && depth > s.deepest() && !s.v.known[info.ID]:
		return fmt.Sprintf("folders are nested deeper than %d", s.deepest())
	}
	return ""
}

// deepest returns how deep directories may be nested below the area of a command.
func (s *sweeper) deepest() int {
	if s.t.Bounded() {
		return tool.MaxAreaDepth
	}
	return maxDepth - 1
}

// stood reports whether what is at a place was there before, perhaps in a directory
// that has another name now: as it was mounted, it is unchanged.
func (s *sweeper) stood(at place, info beneath.Info) bool {
	if info.Mode&fs.ModeSymlink != 0 {
		to, err := at.dir.Readlink(at.base)
		before, ok := s.v.links[at.name]
		return err == nil && ok && to == before.to
	}
	if before, ok := s.v.fixed[at.name]; ok && before == info.ID {
		return true
	}
	for name, before := range s.v.fixed {
		if before == info.ID && path.Base(name) == at.base {
			return true
		}
	}
	return false
}

// leaves reports whether a link at name leads out of area, or could: where it
// goes up after it went down, a link on its way decides where that is.
func leaves(area, name, to string) bool {
	if path.IsAbs(to) || len(to) == 0 {
		return true
	}
	depth := strings.Count(strings.TrimPrefix(name, strings.TrimPrefix(area+"/", "./")), "/")
	down := false
	for part := range strings.SplitSeq(to, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 || down {
				return true
			}
		default:
			down = true
		}
	}
	return false
}

// trash moves a file that must not stay to the trash, and deletes it where the
// command made very many: moving all of them would take longer than a sweep may.
func (s *sweeper) trash(at place, id beneath.ID, why string) {
	if s.moves >= maxMoves && !s.v.known[id] {
		if s.deleted++; at.dir.Remove(s.ctx, at.base) != nil {
			s.notes = append(s.notes, at.name+" must not be there ("+why+"), and could not be deleted")
		}
		return
	}
	s.move(at, id, why)
}

func (s *sweeper) move(at place, id beneath.ID, why string) {
	s.moves++ // each has a stamp of its own: a command may make one name in many directories
	to, err := s.t.Vault.TrashFrom(at.dir, at.base, id, core.GuestOf(at.name), s.now.Add(time.Duration(s.moves)*time.Microsecond))
	switch {
	case errors.Is(err, syscall.EXDEV) && !s.v.known[id] && at.dir.Remove(s.ctx, at.base) == nil:
		s.notes = append(s.notes, fmt.Sprintf("%s was deleted, because the trash is on another file system: %s", at.name, why))
		return
	case err != nil:
		s.notes = append(s.notes, fmt.Sprintf("%s must not be there (%s), and could not be moved to the trash", at.name, why))
		return
	}
	s.notes = append(s.notes, fmt.Sprintf("%s was moved to the trash (%s): %s", at.name, to, why))
}

// unfinished ends the sweep of an area that holds more than can be checked. A
// guest's is moved to the trash as a whole, in one step: nothing of it is lost,
// and nothing of it is left unchecked. Elsewhere the directories that the command
// made and that were not looked into are moved.
func (s *sweeper) unfinished(area string, id beneath.ID, after []pending, known bool) {
	if s.t.Bounded() {
		up, err := s.top.Dir(path.Dir(area))
		if err == nil {
			s.move(place{up, beneath.ID{}, path.Base(area), area}, id,
				fmt.Sprintf("it held more than %d files and folders, or more than could be checked in time; the operator can restore what is needed", s.bound()))
			_ = up.Close()
		}
		return
	}
	for _, p := range after {
		up, err := s.top.Dir(path.Dir(p.name))
		if err != nil {
			continue
		}
		s.move(place{up, beneath.ID{}, path.Base(p.name), p.name}, p.id, "the command made more than could be checked")
		_ = up.Close()
	}
	if known {
		s.notes = append([]string{"not everything that the command left could be checked: it made too many files"}, s.notes...)
	}
}

// relink restores links that are gone, each in the directory that it was in.
func (s *sweeper) relink() {
	for _, name := range slices.Sorted(maps.Keys(s.v.links)) {
		was := s.v.links[name]
		if _, err := s.top.Stat(name); err == nil || s.v.shut(name) {
			continue
		}
		if err := s.restore(name, was); err != nil {
			s.notes = append(s.notes, name+" was deleted and could not be restored: it controls agents or the gateway")
			continue
		}
		s.notes = append(s.notes, name+" was restored: it commands agents or the gateway")
	}
}

func (s *sweeper) restore(name string, was link) error {
	d, err := s.top.Dir(path.Dir(name))
	if err != nil {
		return err
	}
	defer d.Close()
	if self, err := d.Self(); err != nil || self.ID != was.parent {
		return errors.Join(err, beneath.ErrChanged)
	}
	return d.Symlink(was.to, path.Base(name))
}
