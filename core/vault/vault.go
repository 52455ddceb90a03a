// Package vault reads and writes the vault, the directory of plain files that
// belongs to the user: transcripts, sidecars, trash. Every access goes through
// os.Root, so no name and no symbolic link leads out of it.
//
// Names are relative to the vault and use slashes. Directories are created with
// mode 0700 and files with 0600. A full disk is core.Busy and a read-only one
// core.Denied; the text names no path, because guests may read it, and the cause
// is in the error's chain.
package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"math/rand/v2"

	"gatehouse/core"
)

// Dirs of the vault that are ours.
const (
	stateDir   = ".parachute"
	lockName   = stateDir + "/lock"
	trashDir   = stateDir + "/trash"
	projectDir = ".claude/projects"
)

// A Vault is an open vault directory. It is safe for concurrent use.
type Vault struct {
	root   *os.Root
	path   string
	lock   *os.File               // set by Lock, before the vault is shared
	signed atomic.Pointer[string] // what Sign wrote
}

// Open opens the vault at path and creates the directory (0700) if it is missing.
func Open(path string) (*Vault, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, openError(path, err)
	}
	abs, err := filepath.Abs(path)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, openError(path, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, openError(path, err)
	}
	return &Vault{root: root, path: abs}, nil
}

// openError returns an error that names the path, which the operator chose.
func openError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return &core.Error{Kind: core.Invalid, Text: fmt.Sprintf("the vault %s is not a folder", path), Err: err}
	case readOnly(err):
		return &core.Error{Kind: core.Denied, Text: fmt.Sprintf("the vault %s cannot be opened or made: check who owns it and whether its disk is writable", path), Err: err}
	case full(err):
		return &core.Error{Kind: core.Busy, Text: fmt.Sprintf("the vault %s cannot be made: the disk is full", path), Err: err}
	}
	return fmt.Errorf("open vault: %w", err)
}

// Root gives access to files below the vault and nowhere else.
func (v *Vault) Root() *os.Root { return v.root }

// Path returns the vault's real absolute path, symbolic links resolved.
func (v *Vault) Path() string { return v.path }

// Close releases the lock and closes the directory.
func (v *Vault) Close() error {
	var err error
	if v.lock != nil {
		// A program that is just being started has the file open, too, for a moment.
		err = errors.Join(syscall.Flock(int(v.lock.Fd()), syscall.LOCK_UN), v.lock.Close())
	}
	return errors.Join(err, v.root.Close())
}

// open opens a file of the vault; with O_CREATE it makes missing directories.
func (v *Vault) open(name string, flag int) (*os.File, error) {
	f, err := v.root.OpenFile(name, flag, 0o600)
	if err == nil || flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := v.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return v.root.OpenFile(name, flag, 0o600)
}

// WriteFile replaces the file name by data in one step: readers see the old
// content or the new, also after a power cut. It is on the disk when
// WriteFile returns.
func (v *Vault) WriteFile(name string, data []byte) error {
	return explain("write", v.replace(name, data, true))
}

// WriteFileNoSync writes like WriteFile without waiting for the disk: after a
// power cut the file may be old, missing or empty. It is for files that can be
// written again from the database (sidecars).
func (v *Vault) WriteFileNoSync(name string, data []byte) error {
	return explain("write", v.replace(name, data, false))
}

// tempSuffix ends temporary names; a crash may leave some behind.
const tempSuffix = ".gatehouse-tmp"

// IsTemporary reports whether name is a file that WriteFile was making.
func IsTemporary(name string) bool { return strings.HasSuffix(name, tempSuffix) }

func (v *Vault) replace(name string, data []byte, sync bool) error {
	temp := path.Join(path.Dir(name), "."+strconv.FormatUint(rand.Uint64(), 36)+tempSuffix)
	f, err := v.open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = v.rename(temp, name)
	}
	if err != nil {
		_ = v.root.Remove(temp)
		return err
	}
	if sync {
		return v.syncDir(path.Dir(name))
	}
	return nil
}

// rename gives a file another name, unless another process has the vault by now: writing the file may have
// taken long, or this process was frozen meanwhile.
func (v *Vault) rename(from, to string) error {
	if err := v.Fenced(); err != nil {
		return err
	}
	return v.root.Rename(from, to)
}

// syncDir syncs a directory's entries.
func (v *Vault) syncDir(name string) error {
	d, err := v.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// What a guest may read of a disk that takes nothing.
const (
	fullText     = "the disk of the vault is full: messages cannot be stored until there is space"
	readOnlyText = "the vault is read-only for the gateway: check the owner and the mount of its directory"
)

// Explain returns err of an operation on files of the vault as the vault's own methods
// do: a full disk is core.Busy, a read-only one core.Denied. nil for nil.
func Explain(op string, err error) error {
	if core.KindOf(err) == core.Other {
		return explain(op, err)
	}
	return err
}

// explain returns err as an error that may be shown; nil for nil.
func explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case full(err):
		return &core.Error{Kind: core.Busy, Text: fullText, Err: err}
	case readOnly(err):
		return &core.Error{Kind: core.Denied, Text: readOnlyText, Err: err}
	case strings.HasSuffix(err.Error(), "path escapes from parent"): // os.Root has no exported error for it
		return &core.Error{Kind: core.Denied, Text: "the path leads out of the vault", Err: err}
	}
	return fmt.Errorf("%s in vault: %w", op, err)
}

func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func readOnly(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission)
}
