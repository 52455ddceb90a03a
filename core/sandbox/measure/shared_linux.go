package measure

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A SharedGauge estimates the memory of a program that is in no process's count: a
// shared anonymous mapping keeps pages of processes that have ended, and files in
// /dev/shm and /tmp belong to none. The filter refuses the other ways (files in
// memory, System V memory).
type SharedGauge struct {
	before int64 // of the machine, when the program began
}

// NewSharedGauge returns a gauge of a program that begins now.
func NewSharedGauge() SharedGauge { return SharedGauge{machineShared()} }

// Bytes returns how much shared memory the processes pids of the program keep;
// first is its first process. mapped is what they count themselves. If that and
// own, their other memory, are surely below limit, it does not measure further.
func (g SharedGauge) Bytes(first int, pids []int, mapped, own, limit int64) int64 {
	files := memoryFiles(first)
	grown := max(0, machineShared()-g.before)
	least := max(mapped, files)
	if own+max(least, grown) <= limit {
		return least
	}
	kept, has, exact := keptByMappings(pids)
	switch {
	case exact:
		return max(mapped, files+kept)
	case has: // this user cannot read how much: count the growth since
		return max(least, grown)
	}
	return least
}

// machineShared returns the machine's shared memory, with what is swapped out.
func machineShared() (sum int64) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		f := bytes.Fields(value)
		if len(f) == 0 {
			continue
		}
		kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
		switch string(name) {
		case "Shmem", "SwapTotal":
			sum += kb << 10
		case "SwapFree":
			sum -= kb << 10
		}
	}
	return sum
}

// memoryFiles returns the size of the files of the program's own file systems in
// memory, as its first process sees them.
func memoryFiles(first int) (sum int64) {
	for _, dir := range []string{"/dev/shm", "/tmp"} {
		var ours, theirs unix.Stat_t
		var fs unix.Statfs_t
		inside := "/proc/" + strconv.Itoa(first) + "/root" + dir
		if unix.Stat(inside, &theirs) != nil || unix.Statfs(inside, &fs) != nil || fs.Type != unix.TMPFS_MAGIC {
			continue
		}
		if unix.Stat(dir, &ours) == nil && ours.Dev == theirs.Dev { // the machine's: the program has not begun
			continue
		}
		sum += int64(fs.Blocks-fs.Bfree) * int64(fs.Bsize)
	}
	return sum
}

// maxMappings bounds the lines of one process's list of mappings that are read.
const maxMappings = 100_000

// keptByMappings adds up the files in memory that processes have mapped, each
// once, also if a small part is mapped. has reports whether there is any; exact
// whether the size of all is known.
func keptByMappings(pids []int) (sum int64, has, exact bool) {
	type file struct{ dev, ino uint64 }
	known := map[file]bool{} // bounded by the mappings of the program's processes
	exact = true
	for _, pid := range pids {
		dir := "/proc/" + strconv.Itoa(pid)
		f, err := os.Open(dir + "/maps")
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for n := 0; n < maxMappings && lines.Scan(); n++ {
			place, ok := inMemory(lines.Text())
			if !ok {
				continue
			}
			has = true
			var st unix.Stat_t
			if unix.Stat(dir+"/map_files/"+place, &st) != nil {
				exact = false
				break // one is enough to know
			}
			if at := (file{uint64(st.Dev), st.Ino}); !known[at] {
				known[at] = true
				sum += st.Blocks * 512
			}
		}
		_ = f.Close()
	}
	return sum, has, exact
}

// inMemory reports whether a line of /proc/PID/maps is of a file in memory that
// has no name: a shared anonymous mapping, or what the filter refuses to make. It
// returns where it is mapped, as map_files names it.
func inMemory(line string) (place string, ok bool) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return "", false
	}
	name := f[5]
	return f[0], name == "/dev/zero" && len(f) > 6 && f[6] == "(deleted)" || strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/SYSV")
}
