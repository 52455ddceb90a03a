package sealed

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gatehouse/core"
)

// maxKeys limits the keys of a file.
const maxKeys = 32

// maxFile limits the file, in bytes.
const maxFile = 16 << 10

const heading = `# Keys of the encrypted columns of Gatehouse's database: id and key, one a line. The first
# line encrypts; the others open what was encrypted with them. Without this file these
# columns cannot be read: keep a copy of it elsewhere than the backups.
`

// ErrMissing reports that there is no key file.
var ErrMissing = errors.New("there is no key file")

// Open reads the key file at path; ErrMissing without one. It returns core.Invalid, with
// what to do, for a file that other users can read or that has no valid keys.
func Open(path string) (*Box, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would hold up the start
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the key file of the encrypted columns cannot be read: %v", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, core.Errorf(core.Invalid, "the key file of the encrypted columns, %s, is not a regular file", path)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, core.Errorf(core.Invalid, "the key file of the encrypted columns is open to other users: run 'chmod 600 %s'", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	keys, err := read(text)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "the key file of the encrypted columns, %s, is damaged: %v; restore it from your copy", path, err)
	}
	b := &Box{path: path}
	b.keys.Store(&keys)
	return b, nil
}

// read returns the keys of a file's text. No key is in its errors.
func read(text []byte) (keys []*key, err error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d is not an id and a key", n)
		}
		root, err := base64.StdEncoding.DecodeString(fields[1])
		if err != nil || len(root) != keySize {
			return nil, fmt.Errorf("line %d has no key of %d bytes in base64", n, keySize)
		}
		k, err := newKey(root)
		if err != nil {
			return nil, err
		}
		if k.id != fields[0] {
			return nil, fmt.Errorf("line %d names another key than %s, which is its key", n, k.id)
		}
		if !slices.ContainsFunc(keys, func(other *key) bool { return other.id == k.id }) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys, want 1 to %d", len(keys), maxKeys)
	}
	return keys, nil
}

// Create makes the key file at path, with mode 0600 and one random key, and its directory
// with mode 0700 if missing. It returns core.Conflict where the file exists, also when
// another process makes it at the same time.
func Create(path string) (*Box, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, core.Errorf(core.Conflict, "the key file %s exists already", path)
	}
	k, err := randomKey()
	if err != nil {
		return nil, err
	}
	keys := []*key{k}
	b := &Box{path: path}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the key file: %w", err)
	}
	err = write(path, keys, place)
	if errors.Is(err, fs.ErrExist) {
		return nil, core.Errorf(core.Conflict, "the key file %s exists already", path)
	}
	if err != nil {
		return nil, err
	}
	b.keys.Store(&keys)
	return b, nil
}

// place moves a file to where there is none yet; fs.ErrExist otherwise.
func place(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if _, exists := os.Lstat(to); exists == nil {
		return fs.ErrExist
	}
	return os.Rename(from, to) // a file system without hard links
}

// write stores the keys in the file in one step, on the disk before it returns. move
// brings the whole file to its path.
func write(path string, keys []*key, move func(from, to string) error) (err error) {
	var text bytes.Buffer
	text.WriteString(heading)
	for _, k := range keys {
		fmt.Fprintf(&text, "%s %s\n", k.id, base64.StdEncoding.EncodeToString(k.root))
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".content-key-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	if err := move(f.Name(), path); err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	return core.SyncDir(dir)
}

// Add makes a new key, stores it in the file and seals with it from then on. The earlier
// keys still open. It returns the new key's id.
func (b *Box) Add() (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	have := b.all()
	if len(have) >= maxKeys {
		return "", core.Errorf(core.Conflict, "the key file %s has %d keys already: delete the lines of the oldest, which open only old backups", b.path, maxKeys)
	}
	k, err := randomKey()
	if err != nil {
		return "", err
	}
	keys := append([]*key{k}, have...)
	path, err := filepath.EvalSymlinks(b.path) // a link stays one, and what it names gets the key
	if err != nil {
		return "", fmt.Errorf("write the key file: %w", err)
	}
	if err := write(path, keys, os.Rename); err != nil {
		return "", err
	}
	b.keys.Store(&keys)
	return k.id, nil
}
