package control

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"gatehouse/core"
)

// maxSocketPath is what a Unix socket's address holds on Linux (108 with the NUL).
const maxSocketPath = 107

// Dir returns the 0700 directory of the socket and the local key: outside the
// vault, so that anyone who sees the vault does not become admin by it. It is
// under $XDG_RUNTIME_DIR, else the temporary directory, by uid and vault.
func Dir(vault string) (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = os.TempDir()
	}
	if real, err := filepath.EvalSymlinks(vault); err == nil {
		vault = real
	}
	sum := sha256.Sum256([]byte(vault))
	dir := filepath.Join(base, fmt.Sprintf("gatehouse-%d-%s", os.Getuid(), hex.EncodeToString(sum[:6])))
	if len(dir)+len("/socket") > maxSocketPath {
		return "", core.Errorf(core.Invalid, "the runtime folder's path is too long for a socket (%d bytes, at most %d): set XDG_RUNTIME_DIR or TMPDIR to a shorter one", len(dir), maxSocketPath-len("/socket"))
	}
	return dir, nil
}

// MakeDir makes the runtime directory, and refuses one that another user made
// or could change. Nothing is made in it before it was checked.
func MakeDir(dir string) error {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	if err := checkParents(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("runtime folder: %w", err)
	}
	return checkDir(dir)
}

// checkDir refuses a runtime directory that is a link, no directory, another
// user's, or writable by others. It removes the permission of others to read one
// of ours.
func checkDir(dir string) error {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("runtime folder %s: %w", dir, err)
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		return refusedDir(dir, "is a link or not a folder")
	case errors.Is(err, syscall.EACCES):
		return refusedDir(dir, "belongs to another user")
	case err != nil:
		return fmt.Errorf("runtime folder %s: %w", dir, err)
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	mode := st.Mode().Perm()
	switch {
	case ownerOf(st) != os.Getuid():
		return refusedDir(dir, fmt.Sprintf("belongs to another user (uid %d)", ownerOf(st)))
	case mode&0o022 != 0:
		return refusedDir(dir, fmt.Sprintf("can be changed by other users (mode %04o), who may have left files in it", mode))
	case mode&0o077 != 0:
		if err := f.Chmod(0o700); err != nil {
			return fmt.Errorf("runtime folder: %w", err)
		}
	}
	return nil
}

func refusedDir(dir, why string) error {
	return core.Errorf(core.Invalid, "the runtime folder %s %s: remove it, or set XDG_RUNTIME_DIR to a folder that is yours alone", dir, why)
}

// checkParents refuses a directory that another user could rename, replace or
// remove: every directory on the way to it must be root's or ours, and writable by
// no one else unless its sticky bit protects what is in it.
func checkParents(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		st, err := os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("runtime folder: %w", err)
		}
		owner, mode := ownerOf(st), st.Mode()
		trusted := owner == 0 || owner == os.Getuid() || owner == unmappedUser && os.Getuid() != 0
		open := mode.Perm()&0o002 != 0 || mode.Perm()&0o020 != 0 && groupOf(st) != os.Getgid() && groupOf(st) != 0
		if !trusted || open && mode&fs.ModeSticky == 0 {
			return core.Errorf(core.Invalid, "other users can replace the runtime folder, because %s can be changed by them (uid %d, mode %04o): set XDG_RUNTIME_DIR to a folder that is yours alone", dir, owner, mode.Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// unmappedUser is shown in a user namespace as the owner of files of unmapped users,
// such as root's.
const unmappedUser = 65534

// ownerOf returns the user that owns a file, or this user where the system does
// not say it.
func ownerOf(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Uid)
	}
	return os.Getuid()
}

func groupOf(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Gid)
	}
	return os.Getgid()
}
