package measure

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A Usage is what processes use together.
type Usage struct {
	Tasks     int   // threads
	Own       int64 // bytes that each process has for itself
	Shared    int64 // bytes of shared memory that each has mapped and touched
	Processes []int
}

// Of returns what the process first and those below it use. It stops once they have
// more than maxTasks threads or maxMemory bytes of their own.
func Of(first, maxTasks int, maxMemory int64) (u Usage) {
	seen := map[int]bool{first: true} // bounded by maxTasks
	for todo := []int{first}; len(todo) > 0 && u.Tasks <= maxTasks && u.Own <= maxMemory; {
		pid := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		threads, children := Family(pid)
		own, shared := memoryOf(pid)
		u.Tasks, u.Own, u.Shared, u.Processes = u.Tasks+threads, u.Own+own, u.Shared+shared, append(u.Processes, pid)
		for _, c := range children {
			if !seen[c] {
				seen[c] = true
				todo = append(todo, c)
			}
		}
	}
	return u
}

// Family returns the number of a process's threads, and its children.
func Family(pid int) (threads int, children []int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, nil
	}
	for _, e := range entries {
		b, err := os.ReadFile(dir + "/" + e.Name() + "/children")
		if err != nil {
			continue
		}
		for _, f := range bytes.Fields(b) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				children = append(children, n)
			}
		}
	}
	return len(entries), children
}

// memoryOf returns the memory of a process that no file backs: what it wrote, and
// what it shares.
func memoryOf(pid int) (own, shared int64) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		f := bytes.Fields(value)
		if len(f) == 0 {
			continue
		}
		kb, _ := strconv.ParseInt(string(f[0]), 10, 64)
		switch string(name) {
		case "RssAnon", "VmSwap":
			own += kb << 10
		case "RssShmem":
			shared += kb << 10
		}
	}
	return own, shared
}

// A Space is what is free on a file system.
type Space struct {
	Bytes, Files uint64
	ID           unix.Fsid
}

// Free returns what is free on the file system of path; false if it is unknown.
func Free(path string) (Space, bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return Space{}, false
	}
	return Space{st.Bavail * uint64(st.Bsize), st.Ffree, st.Fsid}, true
}
