//go:build amd64 || arm64

package flight

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// writeAt is f.WriteAt, without the scheduler, which may run something else after a system
// call: a kill between the record that a message leaves and its first byte would
// make its outcome unknown. The write is to the page cache: it takes about a microsecond.
func writeAt(f *os.File, b []byte, at int64) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var n uintptr
	var errno syscall.Errno
	err = c.Control(func(fd uintptr) {
		n, _, errno = syscall.RawSyscall6(syscall.SYS_PWRITE64, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), uintptr(at), 0, 0)
	})
	switch {
	case err != nil:
		return err
	case errno != 0:
		return os.NewSyscallError("pwrite", errno)
	case int(n) != len(b):
		return io.ErrShortWrite
	}
	return nil
}
