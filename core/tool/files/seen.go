package files

import (
	"container/list"
	"io/fs"
	"sync"
	"time"

	"gatehouse/core/tool"
)

// maxSeen bounds the files that are remembered as read, over all sessions. The
// oldest is forgotten first: it must be read again before it is overwritten.
const maxSeen = 8192

// seen remembers which files were read, in which session and by whom, and how
// they were then, so that nothing is overwritten unseen.
type seen struct {
	mu    sync.Mutex
	order *list.List // of sight, newest first
	byKey map[sightKey]*list.Element
}

type sightKey struct {
	session string // the run, where there is no session
	user    int64
	name    string
}

type sight struct {
	key  sightKey
	size int64
	mod  time.Time
}

func newSeen() *seen { return &seen{order: list.New(), byKey: map[sightKey]*list.Element{}} }

func keyOf(t *tool.Turn, name string) sightKey {
	k := sightKey{t.Session, t.User, name}
	if k.session == "" {
		k.session = "run " + t.Run
	}
	return k
}

// add remembers name as it is now.
func (s *seen) add(t *tool.Turn, name string, st fs.FileInfo) {
	k := keyOf(t, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[k]; e != nil {
		s.order.Remove(e)
	}
	s.byKey[k] = s.order.PushFront(sight{k, st.Size(), st.ModTime()})
	if s.order.Len() > maxSeen {
		delete(s.byKey, s.order.Remove(s.order.Back()).(sight).key)
	}
}

// knows reports whether name was read, and whether it is still as it was then.
func (s *seen) knows(t *tool.Turn, name string, st fs.FileInfo) (read, same bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byKey[keyOf(t, name)]
	if e == nil {
		return false, false
	}
	was := e.Value.(sight)
	return true, was.size == st.Size() && was.mod.Equal(st.ModTime())
}

// forget makes name unread.
func (s *seen) forget(t *tool.Turn, name string) {
	k := keyOf(t, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byKey[k]; e != nil {
		s.order.Remove(e)
		delete(s.byKey, k)
	}
}
