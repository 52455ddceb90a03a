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
	f, err := os.Open(path)
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
			return nil, fmt.Errorf("line %d names the key %.8q, but its key is %s", n, fields[0], k.id)
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
// with mode 0700 if missing. It returns core.Conflict where the file exists.
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
	if err := write(path, keys); err != nil {
		return nil, err
	}
	b.keys.Store(&keys)
	return b, nil
}

// write replaces the file in one step, on the disk before it returns.
func write(path string, keys []*key) (err error) {
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
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write the key file: %w", err)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
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
	if err := write(b.path, keys); err != nil {
		return "", err
	}
	b.keys.Store(&keys)
	return k.id, nil
}
