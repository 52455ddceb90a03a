package core

import (
	"hash/fnv"
	"sync"
)

// FileLocks lock files by name against other goroutines of the process. Two names may
// share a lock. The zero value is ready.
type FileLocks [64]sync.Mutex

// Lock locks name until unlock is called.
func (l *FileLocks) Lock(name string) (unlock func()) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	mu := &l[h.Sum32()%uint32(len(l))]
	mu.Lock()
	return mu.Unlock
}
