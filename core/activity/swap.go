package activity

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/vault"
)

// tempOf returns the temporary name of a new content of the file name. It names the file,
// what is replaced and what is written, so that what a crash leaves can be identified.
func tempOf(name string, was, now []byte) string {
	return "." + path.Base(name) + "." + sumOf(was) + "." + sumOf(now) + "." + strings.ToLower(rand.Text()[:12]) + ".gatehouse-tmp"
}

func sumOf(data []byte) string {
	if data == nil {
		return "new"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// temporary are the names that tempOf makes.
var temporary = core.Pattern(`^\.([^/]+)\.(new|[0-9a-f]{16})\.([0-9a-f]{16})\.[a-z0-9]{12}\.gatehouse-tmp$`)

// putBack gives a file the content that another program saved in the moment when now was
// written, which is in the file temp; what was to be written is tried again on that. If
// the file was changed once more, the content is kept in another file next to it.
func (w *Worker) putBack(name, temp string, now, displaced []byte) error {
	again := tempOf(name, now, displaced)
	more, err := w.o.Vault.Swap(name, again, now, displaced)
	switch {
	case errors.Is(err, vault.ErrChanged):
		err = w.keepBeside(name, displaced)
	case err == nil && more != nil:
		if err = w.keepBeside(name, more); err == nil {
			err = w.o.Vault.Remove(path.Join(path.Dir(name), again))
		}
	}
	if err != nil {
		return err
	}
	return w.o.Vault.Remove(path.Join(path.Dir(name), temp))
}

// keepBeside writes a content of the file name to a file of its own.
func (w *Worker) keepBeside(name string, data []byte) error {
	ext := path.Ext(name)
	beside := strings.TrimSuffix(name, ext) + "-conflict-" + sumOf(data) + ext
	_, err := w.o.Vault.Swap(beside, tempOf(beside, nil, data), nil, data)
	if errors.Is(err, vault.ErrChanged) { // it is there already
		return nil
	}
	if err == nil {
		w.o.Log.Warn("another program saved a file of the log of activity while it was written; what it saved is kept in a file beside it", "file", name, "kept", beside)
	}
	return err
}

// sweep removes what a crash has left half written, and restores what only that has.
func (w *Worker) sweep() {
	for _, dir := range []string{linesDir, logDir} {
		files, err := fs.ReadDir(w.o.Vault.FS(), dir)
		if err != nil {
			continue // none, or what writing finds too
		}
		for _, f := range files {
			if vault.IsTemporary(f.Name()) {
				if err := w.sweepOne(dir, f.Name()); err != nil {
					w.o.Log.Warn("an unfinished file is still in the vault", "file", path.Join(dir, f.Name()), "err", err)
				}
			}
		}
	}
}

func (w *Worker) sweepOne(dir, base string) error {
	m := temporary().FindStringSubmatch(base)
	temp := path.Join(dir, base)
	if m == nil {
		return w.o.Vault.Remove(temp)
	}
	left, err := w.read(temp)
	if err != nil {
		return err
	}
	if sum := sumOf(left.data); sum == m[2] || sum == m[3] || len(left.data) == 0 {
		return w.o.Vault.Remove(temp)
	}
	name := path.Join(dir, m[1])
	now, err := w.read(name)
	switch {
	case err != nil:
		return err
	case sumOf(now.data) == m[2] || sumOf(now.data) == sumOf(left.data): // nothing was exchanged, or it was put back
		return w.o.Vault.Remove(temp)
	case sumOf(now.data) == m[3]:
		return w.putBack(name, base, now.data, left.data)
	}
	if err := w.keepBeside(name, left.data); err != nil {
		return err
	}
	return w.o.Vault.Remove(temp)
}
