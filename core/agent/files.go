package agent

import (
	"container/list"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gatehouse/core/vault"
)

// maxFiles bounds the context files kept in memory, each at most the whole
// budget of a prompt: 64 × 40 kB.
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

// part is one context file, cut to room bytes; false when it is missing,
// empty, a repeat by link, or not for this reader. The check is made on the
// file's real name.
func (a *Agents) part(name string, room int, mayRead func(string) bool, seen map[string]bool) (part, bool, error) {
	st, err := a.vault.Root().Lstat(name)
	if err != nil {
		return part{}, false, nil // missing or not ours to see: no context
	}
	real := name
	if st.Mode()&fs.ModeSymlink != 0 {
		d, err := a.vault.Dir(name)
		if err != nil || !d.Inside {
			return part{}, false, nil // a link that leads out of the vault
		}
		real = d.Rel
		if st, err = a.vault.Root().Lstat(real); err != nil {
			return part{}, false, nil // a link to nothing
		}
	}
	if !st.Mode().IsRegular() || seen[real] || !mayRead(name) || !mayRead(real) {
		return part{}, false, nil
	}
	seen[real] = true
	f, err := a.files.read(real, st)
	if err != nil || f.text == "" {
		return part{}, false, err
	}
	p := part{name: name, text: f.text, cut: f.cut}
	if len(p.text) > room {
		p.text, p.cut = cutLine(p.text, room), true
	}
	return p, true, nil
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
	r, err := f.vault.Root().Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return got, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open context file: %w", err)
	}
	defer r.Close()
	const limit = maxFileTokens * bytesPerToken
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
