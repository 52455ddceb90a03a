package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// closeProcess closes this process to other processes of its user: its memory,
// environment and open files, by /proc and ptrace. Programs that it starts are
// not affected.
func closeProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close this process to others: %w", err)
	}
	return nil
}

// wipeEnviron overwrites the values of the named variables in the memory that
// the kernel shows as /proc/PID/environ, which os.Unsetenv leaves as it was.
// What os.Getenv returns does not change.
func wipeEnviron(names []string) error {
	from, to, err := environRange()
	if err != nil {
		return fmt.Errorf("wipe the environment: %w", err)
	}
	// Writing through /proc fails on memory that is not ours to write, where a
	// pointer would end the program.
	f, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("wipe the environment: %w", err)
	}
	defer f.Close()
	block := make([]byte, to-from)
	if _, err := f.ReadAt(block, from); err != nil {
		return fmt.Errorf("wipe the environment: %w", err)
	}
	for at := 0; at < len(block); {
		end := at + bytes.IndexByte(append(block[at:len(block):len(block)], 0), 0)
		name, value, ok := strings.Cut(string(block[at:end]), "=")
		if ok && value != "" && slices.Contains(names, name) {
			if _, err := f.WriteAt(make([]byte, len(value)), from+int64(end-len(value))); err != nil {
				return fmt.Errorf("wipe the environment: %w", err)
			}
		}
		at = end + 1
	}
	return nil
}

// maxEnviron bounds the environment, in bytes.
const maxEnviron = 8 << 20

// environRange returns where the kernel keeps this process's environment.
func environRange() (from, to int64, err error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	// The second field, the program's name, may hold blanks and brackets.
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	const envStart = 50 - 3 // env_start is field 50 of proc(5); rest begins with the third
	f := strings.Fields(string(rest))
	if len(f) <= envStart+1 {
		return 0, 0, errors.New("/proc/self/stat does not give its address")
	}
	if from, err = strconv.ParseInt(f[envStart], 10, 64); err == nil {
		to, err = strconv.ParseInt(f[envStart+1], 10, 64)
	}
	if err == nil && (from <= 0 || to < from || to-from > maxEnviron) {
		err = errors.New("/proc/self/stat names no environment")
	}
	return from, to, err
}
