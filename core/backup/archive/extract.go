package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"gatehouse/core"
)

// A Tree extracts the entries of an archive's vault into an empty directory. Every
// access goes through os.Root. Links and the times and modes of directories come
// last (Finish), so that nothing is written through a link.
type Tree struct {
	root    *os.Root
	folders []Entry
	links   []Entry
	// Left names the links that were left out because they lead out of the
	// vault: at most maxLeft of them.
	Left []string
}

// Bounds of what a Tree keeps until Finish. Directories beyond it have the usual
// mode and time; links beyond it are an error.
const (
	maxFolders = 200_000
	maxLinks   = 100_000
	maxLeft    = 100
)

// NewTree returns a Tree in root.
func NewTree(root *os.Root) *Tree { return &Tree{root: root} }

// Put extracts one entry with a name that begins with Vault.
func (t *Tree) Put(e Entry, body io.Reader) error {
	name := strings.TrimPrefix(e.Name, Vault)
	switch e.Kind {
	case Folder:
		if len(t.folders) < maxFolders {
			t.folders = append(t.folders, e)
		}
		return t.explain(e, t.root.MkdirAll(name, 0o700))
	case Link:
		if !Inside(e.Name, e.Target) {
			if len(t.Left) < maxLeft {
				t.Left = append(t.Left, name)
			}
			return nil
		}
		if len(t.links) == maxLinks {
			return core.Errorf(core.TooLarge, "the archive holds more than %d symbolic links", maxLinks)
		}
		t.links = append(t.links, e)
		return nil
	}
	if err := t.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return t.explain(e, err)
	}
	return t.explain(e, write(t.root, name, e, body))
}

// write makes one file, which must not be there.
func write(root *os.Root, name string, e Entry, body io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	if err == nil && e.Mode != 0 && e.Mode != 0o600 {
		err = f.Chmod(e.Mode)
	}
	if err = errors.Join(err, f.Close()); err == nil && !e.Time.IsZero() {
		err = root.Chtimes(name, e.Time, e.Time)
	}
	return err
}

// Finish makes the links and gives the directories their modes and times.
func (t *Tree) Finish() error {
	for _, e := range t.links {
		if err := t.root.Symlink(e.Target, strings.TrimPrefix(e.Name, Vault)); err != nil {
			return t.explain(e, err)
		}
	}
	if err := t.follow(); err != nil {
		return err
	}
	for i := len(t.folders) - 1; i >= 0; i-- { // inner ones first: a directory may be read-only
		e := t.folders[i]
		name := strings.TrimPrefix(e.Name, Vault)
		err := errors.Join(t.root.Chmod(name, e.Mode|0o700), t.root.Chtimes(name, e.Time, e.Time)) // readable by us, or there is no next backup
		if err != nil {
			return t.explain(e, err)
		}
	}
	return nil
}

// follow removes the links that lead out through other links, which the root
// detects once all exist. A link to a missing file stays.
func (t *Tree) follow() error {
	var out []Entry // removed only behind the last look: a removed link would hide another's way
	for _, e := range t.links {
		name := strings.TrimPrefix(e.Name, Vault)
		if _, err := t.root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			out = append(out, e)
		}
	}
	for _, e := range out {
		name := strings.TrimPrefix(e.Name, Vault)
		if err := t.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t.explain(e, err)
		}
		if len(t.Left) < maxLeft {
			t.Left = append(t.Left, name)
		}
	}
	return nil
}

func (t *Tree) explain(e Entry, err error) error {
	switch {
	case err == nil, core.KindOf(err) != core.Other:
		return err
	case errors.Is(err, fs.ErrExist):
		return &core.Error{Kind: core.Invalid, Text: "the archive is damaged: it holds an entry twice: " + core.CutRunes(core.CleanName(e.Name), 100), Err: err}
	}
	return fmt.Errorf("restore %q: %w", e.Name, err)
}
