package core

import (
	"errors"
	"hash/fnv"
	"os"
	"sync"
)

// SyncDir writes the entries of a directory to the disk, so that files renamed or
// created in it are there after a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

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
