// Package place reads and writes the files of a directory that others change at any
// time: it finds what changed, and replaces or deletes a file only while it has the
// content that the caller decided on. It follows no link. Contents are streamed.
package place

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/vaultsync/wire"
)

// ErrChanged is the cause when a file has another content than the caller decided on, or
// when there is one where none was expected.
var ErrChanged = errors.New("the file was changed by another program")

// ErrInWay is the cause when a directory has the name of a file, or a file that of one of
// its directories.
var ErrInWay = errors.New("a file has the name of a folder, or a folder that of a file")

// Names of temporary files. A part is not complete. A whole one has the first digits of
// its own content's hash and of what it replaces, by which Sweep knows what a crash left.
const (
	partPrefix  = ".sync-part-"
	wholePrefix = ".sync-"
	suffix      = ".gatehouse-tmp"
	digits      = 16
)

// isTemporary reports whether name is a file of this package that is being written.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, wholePrefix) && strings.HasSuffix(name, suffix)
}

// A Tree is a directory. It is safe for concurrent use.
type Tree struct {
	Top *beneath.Dir
	// Stale reports whether a temporary file that was changed last at a time is what a
	// crash left, for a scan to report it; nil: every one is.
	Stale func(changed time.Time) bool
	// Step is called before each step that a crash may come before, in tests; nil: nothing.
	Step func(what string)
}

func (t Tree) step(what string) {
	if t.Step != nil {
		t.Step(what)
	}
}

// Hash returns the hash and the size of a regular file; "" without one. A larger one than
// wire.MaxFile is core.TooLarge.
func (t Tree) Hash(name string) (hash string, size int64, err error) {
	f, err := t.open(name)
	if err != nil || f == nil {
		return "", 0, err
	}
	defer f.Close()
	return sum(f)
}

// open returns nil for a missing file. What is no regular file is ErrInWay.
func (t Tree) open(name string) (*os.File, error) {
	f, err := t.Top.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if beneath.Replaced(err) {
		return nil, fmt.Errorf("open %s: %w", name, ErrInWay)
	}
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("open %s: %w", name, errors.Join(ErrInWay, err))
	}
	return f, nil
}

func sum(f io.Reader) (hash string, size int64, err error) {
	h := wire.New()
	size, err = io.Copy(h, io.LimitReader(f, wire.MaxFile+1))
	if err == nil && size > wire.MaxFile {
		err = tooLarge()
	}
	return wire.Sum(h), size, err
}

func tooLarge() error {
	return core.Errorf(core.TooLarge, "the file is larger than %s", core.ByteSize(wire.MaxFile))
}

// Read returns the content of a file, which has at most most bytes: nil for a missing
// one, core.TooLarge for a longer one.
func (t Tree) Read(name string, most int64) ([]byte, error) {
	f, err := t.open(name)
	if err != nil || f == nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		return nil, tooLarge()
	}
	return data, err
}

// Open opens a regular file; nil without one.
func (t Tree) Open(name string) (*os.File, error) { return t.open(name) }

// Put gives the file name the content, if it has the hash was; "" is no file. want is the
// hash that the content must have, "" for any. Readers see the one content or the other, also
// after a power cut. It returns the hash.
func (t Tree) Put(name string, content io.Reader, was, want string) (hash string, err error) {
	dir, err := t.Top.MkdirAll(path.Dir(name))
	if beneath.Replaced(err) || errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("write %s: %w", name, ErrInWay)
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	p := put{tree: t, dir: dir, name: path.Base(name), was: was}
	if hash, err = p.fill(content, want); err == nil {
		err = p.place(hash)
	}
	if err == nil {
		err = dir.Sync()
	}
	return hash, err
}

type put struct {
	tree            Tree
	dir             *beneath.Dir
	name, temp, was string
}

// fill writes the content under a temporary name, with the mode of the old file.
func (p *put) fill(content io.Reader, want string) (hash string, err error) {
	p.temp = partPrefix + random() + suffix
	f, err := p.dir.Create(p.temp)
	if err != nil {
		return "", err
	}
	p.tree.step("part")
	h := wire.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(content, wire.MaxFile+1))
	hash = wire.Sum(h)
	switch {
	case err != nil:
	case n > wire.MaxFile:
		err = tooLarge()
	case want != "" && want != hash:
		err = core.Errorf(core.Invalid, "the content of %s is not what its hash names: it was cut off, or changed while it was sent", p.name)
	case p.was != "":
		if info, err := p.dir.Stat(p.name); err == nil && info.Mode.IsRegular() {
			_ = f.Chmod(info.Mode.Perm())
		}
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		p.tree.step("filled")
		whole := wholePrefix + short(hash) + "-" + short(p.was) + "-" + random() + suffix
		if err = p.dir.Rename(p.temp, whole, true); err == nil {
			p.temp = whole
		}
	}
	if err != nil {
		_ = p.dir.Unlink(p.temp)
	}
	return hash, err
}

func random() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// short returns the digits of a hash that are in temporary names.
func short(hash string) string {
	if hash == "" {
		return "new"
	}
	return wire.Hex(hash)[:digits]
}

// place gives the new content its name. After an error nothing is left of it.
func (p *put) place(hash string) error {
	p.tree.step("whole")
	if p.was == "" {
		err := p.dir.Rename(p.temp, p.name, true)
		if errors.Is(err, fs.ErrExist) && removeEmpty(p.dir, p.name, maxEmpty) == nil {
			err = p.dir.Rename(p.temp, p.name, true)
		}
		if err != nil {
			_ = p.dir.Unlink(p.temp)
		}
		if errors.Is(err, fs.ErrExist) {
			err = p.taken()
		}
		return err
	}
	if now, err := hashIn(p.dir, p.name); err != nil || now != p.was {
		return errors.Join(changed(err), p.dir.Unlink(p.temp))
	}
	err := p.dir.Exchange(p.temp, p.name)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return p.dir.Rename(p.temp, p.name, false)
	case errors.Is(err, fs.ErrNotExist):
		return errors.Join(ErrChanged, p.dir.Unlink(p.temp))
	case err != nil:
		return errors.Join(err, p.dir.Unlink(p.temp))
	}
	p.tree.step("exchanged")
	return p.displaced(hash)
}

// maxEmpty is how deep directories without files may be nested that are removed.
const maxEmpty = 20

// removeEmpty removes the entry name of d if it is a directory without files in it and
// below.
func removeEmpty(d *beneath.Dir, name string, depth int) error {
	below, err := d.Dir(name)
	if err != nil {
		return err
	}
	defer below.Close()
	list, err := below.Names(names)
	if depth == 0 {
		err = ErrInWay
	}
	for _, inner := range list {
		if err == nil {
			err = removeEmpty(below, inner, depth-1)
		}
	}
	if err != nil {
		return err
	}
	return d.RemoveEmpty(name)
}

// taken returns ErrInWay where a directory has the name, else ErrChanged.
func (p *put) taken() error {
	if info, err := p.dir.Stat(p.name); err == nil && !info.Mode.IsRegular() {
		return fmt.Errorf("write %s: %w", p.name, ErrInWay)
	}
	return ErrChanged
}

// displaced removes what was replaced. What another program wrote in the moment of the
// exchange gets its name back.
func (p *put) displaced(hash string) error {
	if old, err := hashIn(p.dir, p.temp); err == nil && old == p.was {
		return p.dir.Unlink(p.temp)
	}
	if err := p.dir.Exchange(p.temp, p.name); err != nil {
		return err // Sweep keeps what is in temp under another name
	}
	if back, err := hashIn(p.dir, p.temp); err == nil && back == hash {
		return errors.Join(ErrChanged, p.dir.Unlink(p.temp))
	}
	return ErrChanged
}

func changed(err error) error {
	if err == nil {
		return ErrChanged
	}
	return err
}

// hashIn returns the hash of an entry of d; "" for what is no regular file.
func hashIn(d *beneath.Dir, name string) (string, error) {
	hash, _, err := (Tree{Top: d}).Hash(name)
	if errors.Is(err, ErrInWay) {
		return "", nil
	}
	return hash, err
}

// Delete deletes the file name if it has the hash was, and the directories that are empty
// then. A missing file is no error.
func (t Tree) Delete(name, was string) error {
	dir, err := t.Top.Dir(path.Dir(name))
	if errors.Is(err, fs.ErrNotExist) || beneath.Replaced(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	base := path.Base(name)
	now, err := hashIn(dir, base)
	if err != nil || now == "" {
		return err
	}
	if now != was {
		return ErrChanged
	}
	temp := wholePrefix + short(was) + "-" + short(was) + "-" + random() + suffix
	t.step("delete")
	err = dir.Rename(base, temp, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.step("moved")
	if moved, err := hashIn(dir, temp); err != nil || moved != was {
		return errors.Join(changed(err), dir.Rename(temp, base, true)) // Sweep keeps it where the name is taken
	}
	err = errors.Join(dir.Unlink(temp), dir.Sync())
	for up := path.Dir(name); err == nil && up != "."; up = path.Dir(up) {
		if t.Top.RemoveEmpty(up) != nil {
			break // it has other files
		}
	}
	return err
}

// Sweep removes the temporary file name, which a crash left. Content that another program
// wrote gets the name free, of a file next to it; that is returned as kept.
func (t Tree) Sweep(name string, free func(n int) string) (kept string, err error) {
	base := path.Base(name)
	if strings.HasPrefix(base, partPrefix) {
		return "", t.unlink(name)
	}
	hash, _, err := t.Hash(name)
	if err != nil || hash == "" {
		return "", err
	}
	parts := strings.Split(strings.TrimPrefix(base, wholePrefix), "-")
	if parts[0] == short(hash) || len(parts) > 1 && parts[1] == short(hash) {
		return "", t.unlink(name)
	}
	dir, err := t.Top.Dir(path.Dir(name))
	if err != nil {
		return "", err
	}
	defer dir.Close()
	for n := 1; ; n++ {
		err := dir.Rename(base, free(n), true)
		if !errors.Is(err, fs.ErrExist) || n == 100 {
			return free(n), err
		}
	}
}

func (t Tree) unlink(name string) error {
	dir, err := t.Top.Dir(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Unlink(path.Base(name))
}
