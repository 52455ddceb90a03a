package flight

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
)

// mapFile maps the file into memory. A store to it is in the page cache at once, as a
// write is, but is no system call, in which a thread may be held up: a kill between
// the record that a message leaves and its first byte makes its outcome unknown.
func mapFile(f *os.File, size int) ([]byte, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var b []byte
	var failed error
	if err := c.Control(func(fd uintptr) {
		b, failed = syscall.Mmap(int(fd), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}); err != nil {
		return nil, err
	}
	return b, failed
}

// store copies b into the mapped file. It returns an error where the file has become
// too short for it.
func store(mapped, b []byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write to the mapped file: %v", p)
		}
	}()
	copy(mapped, b)
	return nil
}
