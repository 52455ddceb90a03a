package agent

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"gatehouse/core/vault"
)

// maxFiles bounds the context files kept in memory, each at most the largest
// budget of a prompt: 64 × 160 kB.
const maxFiles = 64

// files keeps the text of context files until they change.
type files struct {
	vault *vault.Vault

	mu    sync.Mutex
	order *list.List // of *file, most recent first
	byKey map[string]*list.Element
}

type file struct {
	name string
	size int64
	mod  time.Time
	text string
	cut  bool // longer than the budget of a prompt
}

func newFiles(v *vault.Vault) *files {
	return &files{vault: v, order: list.New(), byKey: map[string]*list.Element{}}
}

// read is the file's text, from memory while size and time stay the same.
func (f *files) read(name string, st fs.FileInfo) (file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.byKey[name]; e != nil {
		if got := e.Value.(*file); got.size == st.Size() && got.mod.Equal(st.ModTime()) {
			f.order.MoveToFront(e)
			return *got, nil
		}
		f.order.Remove(e)
		delete(f.byKey, name)
	}
	got, err := f.load(name, st)
	if err != nil {
		return file{}, err
	}
	f.byKey[name] = f.order.PushFront(got)
	if f.order.Len() > maxFiles {
		old := f.order.Remove(f.order.Back()).(*file)
		delete(f.byKey, old.name)
	}
	return *got, nil
}

func (f *files) load(name string, st fs.FileInfo) (*file, error) {
	got := &file{name: name, size: st.Size(), mod: st.ModTime()}
	r, _, err := openStraight(f.vault.Root(), name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errNotStraight) {
		return got, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open context file: %w", err)
	}
	defer r.Close()
	const limit = maxFolderTokens * bytesPerToken
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read context file: %w", err)
	}
	got.text = strings.TrimSpace(strings.ToValidUTF8(string(data), ""))
	if len(data) > limit {
		got.text, got.cut = cutLine(got.text, limit), true
	}
	return got, nil
}

// errNotStraight: a link stands where a file or a folder should, or somebody
// put another in its place while it was opened.
var errNotStraight = errors.New("it is a link, or no plain file")

// openFolder opens the folder name with no link on the way: each folder is held
// against what stood there before, so that one who swaps it gains nothing.
func openFolder(root *os.Root, name string) (*os.Root, error) {
	dir, err := root.OpenRoot(".")
	for part := range strings.SplitSeq(name, "/") {
		if err != nil || part == "." {
			break
		}
		above := dir
		dir, err = child(above, part)
		_ = above.Close()
	}
	return dir, err
}

func child(above *os.Root, name string) (*os.Root, error) {
	before, err := above.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, errNotStraight
	}
	dir, err := above.OpenRoot(name)
	if err != nil {
		return nil, swapped(err)
	}
	if now, err := dir.Stat("."); err != nil || !os.SameFile(before, now) {
		_ = dir.Close()
		return nil, errNotStraight
	}
	return dir, nil
}

// swapped is errNotStraight where an error in opening comes of another thing in
// the place of what was there a moment before. os.Root has no name for a link
// that leads out, only a text.
func swapped(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) && !slices.Contains([]syscall.Errno{syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.ENXIO}, no) {
		return err
	}
	return errNotStraight
}

// openStraight opens the plain file name with no link on the way.
func openStraight(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	dir, err := openFolder(root, path.Dir(name))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	before, err := dir.Lstat(path.Base(name))
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, errNotStraight
	}
	f, err := dir.OpenFile(path.Base(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, swapped(err)
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		_ = f.Close()
		return nil, nil, errNotStraight
	}
	return f, before, nil
}

// cutLine is at most n bytes of s, to the end of a line where there is one in
// the second half, and never inside a character.
func cutLine(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n'); i > n/2 {
		s = s[:i]
	}
	return s
}
