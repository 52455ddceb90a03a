package container

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"gatehouse/core"
	"gatehouse/core/sandbox"
)

// A mount is one of a container's. An empty source is a tmpfs.
type mount struct {
	source, path string
	readOnly     bool
	size         int    // of a tmpfs, in bytes
	mode         string // of a tmpfs
}

// A check is what the first process inside finds at a path before it starts anything.
type check struct {
	Path     string
	Dev, Ino uint64
	ReadOnly bool
	Empty    bool // a read-only tmpfs instead: Dev and Ino are what it hides
}

// A view is what a program sees of the host.
type view struct {
	mounts  []mount // the highest first
	checks  []check
	points  []string   // where something is mounted, beside what each container has
	handles []*os.File // of what is checked: while they are open no other file gets the same number
}

func (v *view) close() {
	for _, f := range v.handles {
		_ = f.Close()
	}
}

const (
	stagePath = "/.gatehouse"      // our own program inside
	linkPath  = "/.gatehouse.sock" // where its first process reports
	shmBytes  = 64 << 20
)

// Limits of the mounts of one container. runc takes at most 64 KiB of sources.
const (
	maxPaths   = 1000
	maxSources = 56 << 10
)

// fixed returns the mounts that do not depend on the vault.
func (b *box) fixed(r *run) []mount {
	list := []mount{{source: b.stage, path: stagePath, readOnly: true}, {source: r.address, path: linkPath}}
	if r.spec.Scratch == "" {
		list = append(list, mount{path: "/tmp", size: shmBytes, mode: "1777"})
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

// hostFolders returns the folders of programs and libraries that are no links.
func hostFolders() []string {
	return slices.DeleteFunc(sandbox.SystemFolders(), func(p string) bool {
		st, err := os.Lstat(p)
		return err != nil || !st.IsDir()
	})
}

// plan opens everything that s names, without following a link, and returns how
// it is mounted and checked.
func (b *box) plan(s sandbox.Spec) (_ *view, err error) {
	if s, err = closeUnnamable(s); err != nil {
		return nil, err
	}
	v := &view{}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	if s.Scratch != "" {
		if err := v.add(mount{source: s.Scratch, path: "/tmp"}, s.Scratch); err != nil {
			return nil, err
		}
		v.mounts = nil // it is one of the fixed ones
	}
	for _, m := range order(s) {
		if err := b.addPath(v, s, m); err != nil {
			return nil, err
		}
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
	slices.SortFunc(all, func(a, b wish) int {
		return cmp.Or(cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), strings.Compare(a.path, b.path), cmp.Compare(a.kind, b.kind))
	})
	return all
}

// addPath adds the mount of one path of s.
func (b *box) addPath(v *view, s sandbox.Spec, m wish) error {
	if m.kind != masked {
		return v.add(mount{source: m.path, path: m.path, readOnly: m.kind == readOnly}, m.path)
	}
	f, st, err := open(m.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // deleted since: nothing to hide
	}
	if err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		_ = f.Close()
		return v.add(mount{source: filepath.Join(b.o.Dir, maskFile), path: m.path, readOnly: true}, filepath.Join(b.o.Dir, maskFile))
	case !anyBelow(m.path, s.ReadOnly) && !anyBelow(m.path, s.Writable):
		_ = f.Close()
		return v.add(mount{source: filepath.Join(b.o.Dir, maskDir), path: m.path, readOnly: true}, filepath.Join(b.o.Dir, maskDir))
	}
	v.handles = append(v.handles, f)
	v.mounts = append(v.mounts, mount{path: m.path, readOnly: true, size: 64 << 10, mode: "0755"})
	v.checks = append(v.checks, check{Path: m.path, Dev: st.Dev, Ino: st.Ino, ReadOnly: true, Empty: true})
	return nil
}

// add adds a mount, and the check that it shows what is at source now.
func (v *view) add(m mount, source string) error {
	f, st, err := open(source)
	if err != nil {
		return err
	}
	v.handles = append(v.handles, f)
	v.mounts = append(v.mounts, m)
	v.checks = append(v.checks, check{Path: m.path, Dev: st.Dev, Ino: st.Ino, ReadOnly: m.readOnly})
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

// anyBelow reports whether one of paths is below dir.
func anyBelow(dir string, paths []string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return below(p, dir) })
}

func below(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }

// representable reports whether the engines' command lines and the files that
// they write can hold a path: CSV turns CR LF into LF, JSON holds UTF-8 only.
func representable(path string) bool {
	return utf8.ValidString(path) && !strings.Contains(path, "\r\n")
}

// closeUnnamable hides the folder around each path of s that no engine can be
// given: a person who makes such a name loses the folder in which it is, and
// nobody else loses anything.
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

// Names in Options.Dir of what is mounted over a masked file and folder.
const (
	maskFile = "hidden-file"
	maskDir  = "hidden-folder"
)

// makeMasks makes what is mounted over masked paths: nobody can open the file,
// and the folder is empty.
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
