package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

// tempSuffix is that of the vault's own temporary files: no listing shows them.
const tempSuffix = ".gatehouse-tmp"

type writeInput struct {
	Path    string  `json:"file_path" tool:"required"`
	Content *string `json:"content" tool:"required"`
}

func decodeWrite(raw json.RawMessage) (in writeInput, err error) {
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	return in, fileName(in.Path)
}

// fileName refuses what can only be a directory.
func fileName(p string) error {
	switch {
	case p == "":
		return core.Errorf(core.Invalid, "file_path is empty")
	case strings.HasSuffix(p, "/"):
		return core.Errorf(core.Invalid, "file_path ends in a slash: it names a folder, not a file")
	}
	return nil
}

func touchWrite(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	in, err := decodeWrite(raw)
	if err != nil {
		return tool.Access{}, err
	}
	name, err := t.Name(in.Path)
	return tool.Access{Write: []string{name}}, err
}

func (f *files) write(ctx context.Context, c *tool.Call) (tool.Result, error) {
	in, err := decodeWrite(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	shown := place.Shown(c.Turn, in.Path)
	name, err := place.Decided(c.Access.Write, shown)
	if err != nil {
		return tool.Result{}, err
	}
	old, err := f.overwrite(ctx, c, name, *in.Content)
	if err != nil {
		return tool.Result{}, place.Explain(shown, err)
	}
	done := "Created"
	if old {
		done = "Replaced"
	}
	return tool.Result{Text: fmt.Sprintf("%s: %s (%d bytes).", done, shown, len(*in.Content))}, nil
}

// overwrite makes the file name hold text. One that exists must have been read.
func (f *files) overwrite(ctx context.Context, c *tool.Call, name, text string) (existed bool, err error) {
	t := c.Turn
	p, err := writable(t, name)
	if err != nil {
		return false, err
	}
	defer p.Close()
	defer f.lock(p.Path())()
	st, err := p.Lstat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		st = nil
	case err != nil:
		return false, err
	default:
		if err := f.mayReplace(t, name, st); err != nil {
			return true, err
		}
	}
	if err := f.asShown(c, name); err != nil {
		return st != nil, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := room(ctx, t, name, st == nil, grows(st, len(text))); err != nil {
		return st != nil, err
	}
	return st != nil, f.replace(t, p, name, []byte(text), st)
}

// grows returns by how many bytes a file grows that gets size bytes; was is nil
// for a new one.
func grows(was fs.FileInfo, size int) int64 {
	if was == nil {
		return int64(size)
	}
	return int64(size) - was.Size()
}

// writable returns the place of a name that the Turn's bounds let be written.
func writable(t *tool.Turn, name string) (place.Place, error) {
	if !place.May(t.MayWrite, name) {
		return place.Place{}, core.Errorf(core.Denied, "this file may not be written here")
	}
	return place.At(t, name)
}

func (f *files) mayReplace(t *tool.Turn, name string, st fs.FileInfo) error {
	switch read, same := f.seen.knows(t, name, st); {
	case st.IsDir():
		return core.Errorf(core.Invalid, "it is a folder")
	case !st.Mode().IsRegular():
		return place.Irregular(st.Mode())
	case place.Single(t, st) != nil:
		return place.Single(t, st)
	case !read:
		return core.Errorf(core.Conflict, "the file exists and was not read in this conversation; Read it first, so that nothing is lost unseen")
	case !same:
		return core.Errorf(core.Conflict, "the file changed since it was read; Read it again before writing")
	}
	return nil
}

// replace inserts data in the place of p in one step: anyone who reads sees the old
// content or the new, also after a power cut. was is the file as it was looked
// at, nil for a new one: when it is another now, nothing is done. The new file
// is made in a directory that is held open, and the directory is asked for its real
// name again right before the file gets its own.
func (f *files) replace(t *tool.Turn, p place.Place, name string, data []byte, was fs.FileInfo) error {
	dir, base, err := f.open.Folder(p)
	if err != nil {
		return err
	}
	defer dir.Close()
	temp := "." + strconv.FormatUint(rand.Uint64(), 36) + tempSuffix
	err = fill(dir.Root(), temp, data, newMode(name), was)
	if err == nil {
		err = dir.Check()
	}
	if err == nil {
		err = unchanged(dir.Root(), base, was)
	}
	if err == nil {
		err = dir.Root().Rename(temp, base)
	}
	if err != nil {
		_ = dir.Root().Remove(temp)
		return err
	}
	st, err := dir.Root().Lstat(base)
	if err == nil {
		f.seen.add(t, name, st)
		err = dir.Sync()
	}
	return err
}

// newMode: the vault is private, the rest is as everywhere.
func newMode(name string) fs.FileMode {
	if filepath.IsAbs(name) {
		return 0o644
	}
	return 0o600
}

// fill makes the file temp with data, on the disk, with mode and owner of was.
func fill(dir *os.Root, temp string, data []byte, mode fs.FileMode, was fs.FileInfo) error {
	w, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	if err == nil && was != nil {
		if sys, ok := was.Sys().(*syscall.Stat_t); ok {
			_ = w.Chown(int(sys.Uid), int(sys.Gid)) // only root can; then it matters
		}
		err = w.Chmod(was.Mode().Perm())
	}
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// unchanged: base in dir is still what it was.
func unchanged(dir *os.Root, base string, was fs.FileInfo) error {
	now, err := dir.Lstat(base)
	switch {
	case was == nil && errors.Is(err, fs.ErrNotExist):
		return nil
	case was == nil && err == nil:
		return place.ErrMoved
	case err != nil:
		return err
	case !os.SameFile(was, now) || was.Size() != now.Size() || !was.ModTime().Equal(now.ModTime()):
		return core.Errorf(core.Conflict, "the file changed in this moment; Read it again")
	}
	return nil
}
