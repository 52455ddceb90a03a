package container

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/sandbox"
	"gatehouse/core/sandbox/container/inside"
)

// A mount is one of a container's. An empty source is a tmpfs.
type mount struct {
	source, path string
	readOnly     bool
	size         int // of a tmpfs, in bytes
}

// A view is what a program sees of the host.
type view struct {
	mounts  []mount // the highest first
	checks  []inside.Check
	points  []string              // where something is mounted, in addition to what each container has
	ids     map[string]beneath.ID // as in sandbox.Spec
	handles []*os.File            // of what is checked: while they are open no other file gets the same number
	shell   string                // directory for what replaces masked directories with open ones below; made when needed
	shells  int
}

// closeHandles closes what was opened for the checks.
func (v *view) closeHandles() {
	for _, f := range v.handles {
		_ = f.Close()
	}
	v.handles = nil
}

// remove removes what was made for the view, once no container uses it.
func (v *view) remove() {
	v.closeHandles()
	if v.shells > 0 {
		_ = os.RemoveAll(v.shell)
	}
}

const shmBytes = 64 << 20

// Limits of the mounts of one container. runc takes at most 64 KiB of sources.
const (
	maxPaths   = 1000
	maxSources = 56 << 10
)

// fixed returns the mounts that do not depend on the vault.
func (b *box) fixed(r *run) []mount {
	list := []mount{{source: b.stage, path: inside.StagePath, readOnly: true}, {source: r.address, path: inside.LinkPath}}
	if r.spec.Scratch == "" {
		list = append(list, mount{path: "/tmp", size: shmBytes})
	} else {
		list = append(list, mount{source: r.spec.Scratch, path: "/tmp"})
	}
	if b.o.Image != "" {
		return list
	}
	for _, p := range append(hostFolders(), sandbox.SystemFiles()...) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			list = append(list, mount{source: real, path: p, readOnly: true})
		}
	}
	return list
}

// hostFolders returns the directories of programs and libraries that are no links.
func hostFolders() []string {
	return slices.DeleteFunc(sandbox.SystemFolders(), func(p string) bool {
		st, err := os.Lstat(p)
		return err != nil || !st.IsDir()
	})
}

// plan opens everything that s names, without following a link, and returns how
// it is mounted and checked. It may make the directory shell.
func (b *box) plan(s sandbox.Spec, shell string) (_ *view, err error) {
	if s, err = closeUnnamable(s); err != nil {
		return nil, err
	}
	v := &view{shell: shell, ids: s.IDs}
	defer func() {
		if err != nil {
			v.remove()
		}
	}()
	if s.Scratch != "" {
		if err := v.add(mount{source: s.Scratch, path: "/tmp"}); err != nil {
			return nil, err
		}
		v.mounts = nil // it is one of the fixed ones
	}
	all := order(s)
	kinds := map[string]int{} // by path, of those above
	for _, m := range all {
		if err := b.addPath(v, kinds, all, m); err != nil {
			return nil, err
		}
		kinds[m.path] = m.kind
	}
	sources := 0
	for _, m := range v.mounts {
		v.points = append(v.points, m.path)
		sources += len(m.source) + 1
	}
	if len(v.mounts) > maxPaths || sources > maxSources {
		return nil, core.Errorf(core.TooLarge, "the shell is not available here: what may be seen of the vault would need %d mounts with %d bytes of paths, and a container has at most %d and %d. Files can still be read and written with the other tools", len(v.mounts), sources, maxPaths, maxSources)
	}
	return v, nil
}

// kinds of a path of a Spec.
const (
	readOnly = iota
	writable
	masked
)

type wish struct {
	path string
	kind int
}

// order returns the paths of s, the highest first.
func order(s sandbox.Spec) []wish {
	var all []wish
	for kind, paths := range [][]string{readOnly: s.ReadOnly, writable: s.Writable, masked: s.Masked} {
		for _, p := range paths {
			all = append(all, wish{p, kind})
		}
	}
	core.Sort(all, func(a, b wish) int {
		return cmp.Or(cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), strings.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
	})
	return all
}

// addPath adds the mount of one path. kinds holds those above it.
func (b *box) addPath(v *view, kinds map[string]int, all []wish, m wish) error {
	above, found := enclosing(kinds, m.path)
	hiddenAbove := found && kinds[above] == masked
	if m.kind != masked {
		if hiddenAbove {
			if err := v.makePoint(above, m.path); err != nil {
				return err
			}
		}
		return v.add(mount{source: m.path, path: m.path, readOnly: m.kind == readOnly})
	}
	if hiddenAbove {
		return nil
	}
	f, st, err := open(m.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // deleted since: nothing to hide
	}
	if err != nil {
		return err
	}
	_ = f.Close()
	source := filepath.Join(b.o.Dir, maskFile)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		source = filepath.Join(b.o.Dir, maskDir)
		if slices.ContainsFunc(all, func(o wish) bool { return o.kind != masked && below(o.path, m.path) }) {
			if source, err = v.makeShell(); err != nil {
				return err
			}
		}
	}
	return v.add(mount{source: source, path: m.path, readOnly: true})
}

// enclosing returns the deepest path of kinds above path.
func enclosing(kinds map[string]int, path string) (string, bool) {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if _, ok := kinds[dir]; ok {
			return dir, true
		}
	}
	return "", false
}

// makeShell makes an empty directory that replaces a masked one.
func (v *view) makeShell() (string, error) {
	v.shells++
	dir := filepath.Join(v.shell, strconv.Itoa(v.shells))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("sandbox path: %w", err)
	}
	return dir, nil
}

// makePoint makes, in what replaces the masked directory above, the place where path is
// mounted.
func (v *view) makePoint(above, path string) error {
	i := slices.IndexFunc(v.mounts, func(m mount) bool { return m.path == above })
	if i < 0 {
		return nil // deleted since, and path too
	}
	st, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("sandbox path: %w", err)
	}
	at := v.mounts[i].source + strings.TrimPrefix(path, above)
	dir := at
	if !st.IsDir() {
		dir = filepath.Dir(at)
	}
	if err = os.MkdirAll(dir, 0o700); err == nil && !st.IsDir() {
		err = os.WriteFile(at, nil, 0o600)
	}
	if err != nil {
		return fmt.Errorf("sandbox path: %w", err)
	}
	return nil
}

// add adds a mount, and the check that it shows what is at its source now.
func (v *view) add(m mount) error {
	f, st, err := open(m.source)
	if err != nil {
		return err
	}
	v.handles = append(v.handles, f)
	if id, ok := v.ids[m.source]; ok && id != (beneath.ID{Dev: st.Dev, Ino: st.Ino}) {
		return errors.New("sandbox path: a file was replaced while the sandbox was made")
	}
	v.mounts = append(v.mounts, m)
	v.checks = append(v.checks, inside.Check{Path: m.path, Dev: st.Dev, Ino: st.Ino, ReadOnly: m.readOnly})
	return nil
}

// open opens a path without following any link.
func open(path string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, st, fmt.Errorf("sandbox path: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, st, errors.Join(fmt.Errorf("sandbox path: %w", err), f.Close())
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil, st, errors.Join(fmt.Errorf("sandbox path %q is a link", path), f.Close())
	}
	return f, st, nil
}

// below reports whether path is below dir.
func below(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }

// representable reports whether the engines' command lines and the files that
// they write can hold a path: CSV turns CR LF into LF, JSON holds UTF-8 only.
func representable(path string) bool {
	return utf8.ValidString(path) && !strings.Contains(path, "\r\n")
}

// closeUnnamable hides the parent directory of each path of s with a name that no
// engine accepts: a user who creates such a name loses only that directory.
func closeUnnamable(s sandbox.Spec) (sandbox.Spec, error) {
	if !representable(s.Dir) || !representable(s.Scratch) {
		return s, core.Errorf(core.Invalid, "the command was not started: no container can begin in a folder with the name %q", s.Dir)
	}
	for _, w := range order(s) {
		if representable(w.path) {
			continue
		}
		hide := w.path
		for !representable(hide) {
			hide = filepath.Dir(hide)
		}
		if hide == s.Dir || below(s.Dir, hide) {
			return s, core.Errorf(core.Invalid, "the command was not started: the name %q in the folder where it would run cannot be mounted in a container; rename it", w.path)
		}
		gone := func(p string) bool { return p == hide || below(p, hide) }
		s.ReadOnly = slices.DeleteFunc(slices.Clone(s.ReadOnly), gone)
		s.Writable = slices.DeleteFunc(slices.Clone(s.Writable), gone)
		s.Masked = append(slices.DeleteFunc(slices.Clone(s.Masked), gone), hide)
	}
	return s, nil
}

// Names in Options.Dir of what is mounted over a masked file and directory.
const (
	maskFile = "hidden-file"
	maskDir  = "hidden-folder"
)

// makeMasks creates what is mounted over masked paths: a file without rights and
// an empty directory.
func makeMasks(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, maskFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0)
	if err == nil {
		err = f.Close()
	}
	if errors.Is(err, os.ErrExist) {
		err = os.Chmod(filepath.Join(dir, maskFile), 0)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{maskDir, "d", "s", "r"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}
