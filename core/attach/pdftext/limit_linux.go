package pdftext

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// limit has the kernel hold the bounds, too. Where it cannot, watch and the
// clock still do. What a program has from its start (a race detector's tables)
// does not count.
func limit(memory uint64) {
	limits := map[int]uint64{unix.RLIMIT_CPU: uint64(maxTime.Seconds()), unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0}
	if has, ok := data(); ok {
		limits[unix.RLIMIT_DATA] = has + 4*memory // address space that may be written; watch counts what is in use
	}
	for what, most := range limits {
		_ = unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most})
	}
}

// data returns how much the kernel counts for RLIMIT_DATA now.
func data() (bytesNow uint64, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	_, rest, found := bytes.Cut(status, []byte("VmData:"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, false
	}
	kb, err := strconv.ParseUint(string(fields[0]), 10, 64)
	return kb << 10, err == nil
}
