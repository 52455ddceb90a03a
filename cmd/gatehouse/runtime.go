package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"gatehouse/core"
)

// maxSocketPath is what a Unix socket's address holds on Linux (108 with the NUL).
const maxSocketPath = 107

// runtimeDir is the 0700 folder of the socket and the local key: outside the
// vault, so that whoever sees the vault does not become admin by it. It is
// under $XDG_RUNTIME_DIR, else the temporary folder, by uid and vault.
func runtimeDir(vault string) (string, error) {
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

// makeRuntimeDir makes the folder, and refuses one that is somebody else's.
func makeRuntimeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("runtime folder: %w", err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o077 != 0 || ok && int(sys.Uid) != os.Getuid() {
		return core.Errorf(core.Invalid, "the runtime folder %s is not a folder of yours alone (mode 0700): remove it", dir)
	}
	return nil
}
