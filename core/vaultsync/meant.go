package vaultsync

import (
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"gatehouse/core"
	"gatehouse/core/vaultsync/merge"
	"gatehouse/core/vaultsync/wire"
)

// maxMeant limits the files that meant remembers; the oldest are forgotten.
const maxMeant = 1000

// meant has the last files that keys at trust full wrote and that trust vault may not
// write. It is safe for concurrent use.
type meant struct {
	mu   sync.Mutex
	list []sent // at most maxMeant, the newest last
}

type sent struct {
	name, hash string
	at         time.Time
}

func (m *meant) add(s sent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(s.name)
	if m.list = append(m.list, s); len(m.list) > maxMeant {
		m.list = m.list[1:]
	}
}

func (m *meant) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name)
}

func (m *meant) drop(name string) {
	m.list = slices.DeleteFunc(m.list, func(s sent) bool { return s.name == name })
}

// any reports whether one of the files that were sent since a time is as match wants.
func (m *meant) any(since time.Time, match func(s sent) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.list, func(s sent) bool { return !s.at.Before(since) && match(s) })
}

// Meant reports whether a file of the vault that trust vault may not write, with this
// content, is what a key at trust full sent since a time; without a content, whether name
// is a directory of such files. What a command wrote in the meantime is not.
func (s *Store) Meant(name string, since time.Time, content io.Reader) bool {
	if content == nil {
		return s.meant.any(since, func(f sent) bool { return strings.HasPrefix(f.name, name+"/") })
	}
	if !s.meant.any(since, func(f sent) bool { return f.name == name }) {
		return false
	}
	h := wire.New()
	if n, err := io.Copy(h, io.LimitReader(content, merge.MaxSize+1)); err != nil || n > merge.MaxSize {
		return false
	}
	return s.meant.any(since, func(f sent) bool { return f.name == name && f.hash == wire.Sum(h) })
}

// write is Tree.Put. It remembers what trust vault may not write, before it is there.
func (p *pushed) write(name string, content io.Reader, was, hash string) (string, error) {
	if !p.a.May(min(p.a.Trust, core.Vault), p.a.User, name, true) {
		p.meant.add(sent{name, hash, p.o.Clock.Now()})
	}
	return p.Put(name, content, was, hash)
}
