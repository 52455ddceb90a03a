package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/backup/archive"
)

// An Over is a restore over a vault that has files and a database. The caller holds
// the vault's lock, and has made a backup of Source: what that one has is replaced,
// what it leaves out (secrets, links that lead out, special files) stays. Until
// everything is extracted and on the disk nothing of the vault is touched.
type Over struct {
	ID     string // of this restore, random: only the caller knows it
	Source Source // what is replaced
	// Done notes that the backup is in its place. It is called before the old files
	// are deleted, and again by Resume after a crash. nil: nothing.
	Done func(Restored) error
}

// maxKept bounds what of a vault stays, in names.
const maxKept = 10_000

// Check verifies the archive file, and that it could be restored to a target with
// Over, which it does not change. progress may be nil.
func Check(ctx context.Context, to Target, file string, progress Progress) (archive.About, error) {
	if err := to.replaceable(); err != nil {
		return archive.About{}, err
	}
	r := newRestoring(to, progress)
	in, err := openArchive(file)
	if err != nil {
		return archive.About{}, err
	}
	defer in.Close()
	about, _, err := r.check(ctx, in)
	if err != nil {
		return about, err
	}
	return about, r.mayReplace(ctx)
}

// Resume finishes to.Over if it was interrupted when everything was extracted, and
// undoes it if it was interrupted before. It reports whether there was anything to
// do, and whether the backup is in its place now. If err is not nil, CheckFinished
// reports whether the vault is as it was before. It returns core.Conflict while
// another process restores.
func Resume(to Target) (found, done bool, err error) {
	r := newRestoring(to, nil)
	if st, err := os.Lstat(r.work); err != nil || !st.IsDir() {
		return false, false, nil
	}
	if err := r.begin(); err != nil {
		return false, false, err
	}
	defer func() { _ = r.lock.Close() }()
	state, ok := r.readState()
	switch {
	case ok && state.Over != to.Over.ID:
		return false, false, nil
	case ok && state.Moving:
		err := r.finish(state)
		return true, err == nil, err
	}
	return true, false, r.discard()
}

// mayReplace returns an error if what is there cannot be replaced, and notes what
// of it stays.
func (r *restoring) mayReplace(ctx context.Context) (err error) {
	if err := r.to.replaceable(); err != nil {
		return err
	}
	if state, ok := r.readState(); ok && state.Moving {
		return unfinished(r.vault, state)
	}
	if mount := mountBelow(r.vault, r.db); mount != "" {
		return core.Errorf(core.Conflict, "%s is a mount of its own, which a restore cannot replace: stop the gateway and use 'gatehouse restore' with an empty vault", shownName(mount))
	}
	r.keep, err = leftOutOf(ctx, r.to.Over.Source)
	return err
}

// leftOutOf returns the names in the vault that a backup of src leaves out, without
// the gateway's working files, or an error if one cannot be complete.
func leftOutOf(ctx context.Context, src Source) (names []string, err error) {
	b := &making{listing: true, report: &Report{}}
	if b.path, err = filepath.EvalSymlinks(src.Vault); err != nil {
		return nil, err
	}
	if b.root, err = os.OpenRoot(b.path); err != nil {
		return nil, err
	}
	defer b.root.Close()
	b.skip = b.leftOut(src)
	err = b.vault(ctx)
	switch {
	case err != nil:
		return nil, err
	case b.report.Misses > 0:
		return nil, core.Errorf(core.Conflict, "%s: no backup can hold it, so a restore would lose it; rename it first ('gatehouse doctor' lists all %d)", b.report.Missed[0], b.report.Misses)
	case len(b.kept) > maxKept:
		return nil, core.Errorf(core.TooLarge, "the vault has more than %d links that lead out of it or other files that no backup holds: a restore would have to move each", maxKept)
	}
	return b.kept, nil
}

// mountBelow returns a mount point in the directory vault, or db if it is one; ""
// without any, and where the system does not list them.
func mountBelow(vault, db string) string {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(list)) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		at := f[4] // blanks are written as \040
		if plain, err := strconv.Unquote(`"` + strings.ReplaceAll(at, `"`, `\"`) + `"`); err == nil {
			at = plain
		}
		if strings.HasPrefix(at, strings.TrimSuffix(vault, "/")+"/") || at == db {
			return at
		}
	}
	return ""
}

// over adds to state what is replaced and what stays, and makes room in the tree
// for what stays.
func (r *restoring) over(state *restoreState) error {
	if r.to.Over == nil {
		return nil
	}
	entries, err := os.ReadDir(r.vault)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != restoreDir && e.Name() != "lost+found" && !slices.Contains(r.keep, e.Name()) {
			state.Old = append(state.Old, e.Name())
		}
	}
	state.Over, state.Keep = r.to.Over.ID, r.keep
	tree, err := os.OpenRoot(r.tree())
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := tree.RemoveAll("lost+found"); err != nil { // the file system's own stays
		return err
	}
	for _, name := range r.keep {
		if err := tree.RemoveAll(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cannotStay(name, err)
		}
		if err := tree.MkdirAll(path.Dir(name), 0o700); err != nil {
			return cannotStay(name, err)
		}
	}
	return os.Mkdir(r.old(), 0o700)
}

func cannotStay(name string, err error) error {
	return &core.Error{Kind: core.Conflict, Text: fmt.Sprintf("%s is in no backup and has to stay, but the backup has a file in its way: move it out of the vault first", shownName(name)), Err: err}
}

// old is the directory of what is replaced.
func (r *restoring) old() string { return filepath.Join(r.work, "old") }

// moveOut moves the vault's entries to the directory of the restore, and what stays
// to the tree. It may be called again. If it fails, everything is as it was before.
func (r *restoring) moveOut(state restoreState) error {
	work, err := os.OpenRoot(r.work)
	if err != nil {
		return err
	}
	defer work.Close()
	if err := r.replace(work, state); err != nil {
		err = fmt.Errorf("replace what is there: %w", err)
		if undo := r.moveBack(work, state); undo != nil {
			return errors.Join(err, undo)
		}
		return errors.Join(err, r.discard())
	}
	return nil
}

func (r *restoring) replace(work *os.Root, state restoreState) error {
	for _, name := range state.Old {
		from, to := filepath.Join(r.vault, name), filepath.Join(r.old(), name)
		isNew := slices.Contains(state.Names, name) && !present(filepath.Join(r.tree(), name))
		if isNew || present(to) || !present(from) {
			continue // moved before a crash; what is there now is the backup's or another program's
		}
		if err := moveFolder(from, to); err != nil {
			return err
		}
	}
	for _, name := range state.Keep {
		from, to := path.Join("old", name), path.Join("tree", name)
		if _, err := work.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := work.Rename(from, to)
		if errors.Is(err, fs.ErrPermission) { // out of a directory that may not be written
			_ = work.Chmod(path.Dir(from), 0o700)
			err = work.Rename(from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveBack undoes replace, as long as nothing of the tree was moved.
func (r *restoring) moveBack(work *os.Root, state restoreState) error {
	for _, name := range slices.Backward(state.Keep) {
		from, to := path.Join("tree", name), path.Join("old", name)
		if _, err := work.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := work.Rename(from, to); err != nil {
			return err
		}
	}
	for _, name := range slices.Backward(state.Old) {
		from, to := filepath.Join(r.old(), name), filepath.Join(r.vault, name)
		if !present(from) {
			continue
		}
		if err := setAside(to, state.Over); err != nil {
			return err
		}
		if err := moveFolder(from, to); err != nil {
			return err
		}
	}
	return nil
}

// moveFolder renames a file or directory. A directory that its user may not write
// cannot be moved to another one: it may be written for that moment.
func moveFolder(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	st, errStat := os.Lstat(from)
	if errStat != nil || !st.IsDir() {
		return err
	}
	if err := os.Chmod(from, st.Mode().Perm()|0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return errors.Join(err, os.Chmod(from, st.Mode().Perm()))
	}
	return os.Chmod(to, st.Mode().Perm())
}

// setAside renames what another program has written where the restore moves
// something: it is not a backup, and stays.
func setAside(name, id string) error {
	if !present(name) {
		return nil
	}
	return os.Rename(name, name+".while-restoring-"+id[:min(len(id), 8)])
}

func present(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// finishOver notes the outcome, and deletes what was replaced.
func (r *restoring) finishOver(state restoreState) error {
	for _, dir := range []string{r.work, r.tree(), r.old()} {
		if err := core.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if over := r.to.Over; over != nil && over.Done != nil {
		if err := over.Done(state.Report); err != nil {
			return err
		}
	}
	if err := removeAll(r.old()); err != nil {
		left := filepath.Join(r.vault, "replaced-"+state.Over)
		if err := os.Rename(r.old(), left); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(r.work), core.SyncDir(r.vault))
}

// removeAll removes a tree, also with directories that their user may not write.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
