package agent

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"gatehouse/core/beneath"
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
	left  map[string]bool // names that were logged as left out, at most maxFiles
}

type file struct {
	name string
	was  fs.FileInfo // when it was read
	text string
	cut  bool // longer than the budget of a prompt
}

func newFiles(v *vault.Vault) *files {
	return &files{vault: v, order: list.New(), byKey: map[string]*list.Element{}, left: map[string]bool{}}
}

// read returns the file's text, from memory while the open file is the one that
// was read before. It opens name without following a link.
func (f *files) read(name string) (file, error) {
	r, st, err := openFile(f.vault, name)
	if err != nil {
		return file{}, err
	}
	defer r.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.byKey[name]; e != nil {
		if got := e.Value.(*file); os.SameFile(got.was, st) && got.was.Size() == st.Size() && got.was.ModTime().Equal(st.ModTime()) {
			f.order.MoveToFront(e)
			return *got, nil
		}
		f.order.Remove(e)
		delete(f.byKey, name)
	}
	got, err := load(r, st, name)
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

// load reads the text of the open file r.
func load(r io.Reader, st fs.FileInfo, name string) (*file, error) {
	got := &file{name: name, was: st}
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

// Reasons why a file of the prompt is not read.
var (
	errNotRegular = errors.New("it is no regular file, or its path goes through a symbolic link: replace it by a copy")
	errHardLinked = errors.New("it has more than one hard link, so its text can be changed under another name: replace it by a copy")
)

// openFile opens the regular file name of the vault for a prompt: no part of
// the path may be a symbolic link, and no second name may lead to the file.
// Both are checked on the open file, so that a rename during the call has no
// effect.
func openFile(v *vault.Vault, name string) (*os.File, fs.FileInfo, error) {
	f, err := v.OpenNoLinks(name)
	if err != nil {
		return nil, nil, refused(err)
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = errNotRegular
	case links(st) != 1:
		err = errHardLinked
	default:
		return f, st, nil
	}
	_ = f.Close()
	return nil, nil, err
}

// openFolder opens the directory name of the vault with no link on the way.
func openFolder(v *vault.Vault, name string) (*os.File, error) {
	f, err := v.OpenNoLinks(name)
	if err != nil {
		return nil, refused(err)
	}
	if st, err := f.Stat(); err != nil || !st.IsDir() {
		_ = f.Close()
		return nil, errNotRegular
	}
	return f, nil
}

// links returns the number of names that a file has.
func links(st fs.FileInfo) uint64 {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Nlink)
	}
	return 1
}

// leave logs that the file name was left out of a prompt, once for each name.
func (f *files) leave(log *slog.Logger, name string, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left[name] || len(f.left) >= maxFiles {
		return
	}
	f.left[name] = true
	log.Warn("a file was left out of a prompt", "file", name, "reason", why)
}

// refused is errNotRegular where OpenNoLinks refused what it found, else err.
func refused(err error) error {
	is := func(list ...error) bool {
		return slices.ContainsFunc(list, func(e error) bool { return errors.Is(err, e) })
	}
	switch {
	case is(fs.ErrNotExist, fs.ErrInvalid, syscall.ENOTDIR, syscall.ENAMETOOLONG):
		return fs.ErrNotExist
	case is(beneath.ErrLink, beneath.ErrSpecial, syscall.ENXIO, syscall.EAGAIN): // the last: renamed again and again
		return errNotRegular
	}
	return err
}

// cutLine returns at most n bytes of s, to the end of a line where there is one in
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
