// Package floor measures what the machine itself costs.
package floor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gatehouse/cmd/loadgen/report"
)

// Sync returns what one fsync and one fdatasync of an appended 4 KiB page cost
// on the disk of dir.
func Sync(dir string, n int) (fsync, fdatasync report.Percentiles, err error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return fsync, fdatasync, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	page := make([]byte, 4096)
	var full, data []time.Duration
	for i := range 2 * n {
		if _, err := f.WriteAt(page, int64(i%n)*4096); err != nil {
			return fsync, fdatasync, err
		}
		began := time.Now()
		if i%2 == 0 {
			err = f.Sync()
			full = append(full, time.Since(began))
		} else {
			err = syscall.Fdatasync(int(f.Fd()))
			data = append(data, time.Since(began))
		}
		if err != nil {
			return fsync, fdatasync, err
		}
	}
	return report.Summary(full), report.Summary(data), nil
}

// Syncs counts the fsync and fdatasync calls of a traced run, from strace's
// summary.
func Syncs(path string) (n int, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.Contains(fields[len(fields)-1], "sync") {
			continue
		}
		calls, err := strconv.Atoi(fields[3])
		if err != nil {
			return 0, fmt.Errorf("strace's summary: %q", line)
		}
		n += calls
	}
	return n, nil
}

// Traced returns the command that counts syncs into file; "" where there is none.
func Traced(file string) []string {
	path, err := exec.LookPath("strace")
	if err != nil {
		return nil
	}
	return []string{path, "-f", "-c", "-o", file, "-e", "trace=fsync,fdatasync"}
}

// Busy returns how much of the machine's processors others use now, 0 to 1.
func Busy(ctx context.Context) float64 {
	a, at := cpuTimes()
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
	b, bt := cpuTimes()
	if bt == at {
		return 0
	}
	return 1 - (b-a)/(bt-at)
}

// cpuTimes returns the ticks the machine was idle, and all ticks (proc_stat(5)).
func cpuTimes() (idle, all float64) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, field := range strings.Fields(line)[1:] {
		v, _ := strconv.ParseFloat(field, 64)
		all += v
		if i == 3 || i == 4 { // idle, iowait
			idle += v
		}
	}
	return idle, all
}
