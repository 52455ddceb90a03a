package flight

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// bootID returns the id of this run of the kernel.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	id := strings.TrimSpace(string(b))
	if err == nil && id == "" {
		err = errors.New("the system names no boot id")
	}
	return id, err
}

// fileID returns what distinguishes the file from its copies.
func fileID(f *os.File) (device, inode uint64, err error) {
	st, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, errors.New("the file has no inode")
	}
	return uint64(sys.Dev), sys.Ino, nil
}
