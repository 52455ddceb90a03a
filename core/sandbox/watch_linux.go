package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// watchEvery is the interval at which a program's use is measured.
const watchEvery = 100 * time.Millisecond

// watch ends the program when all its processes together pass a limit that the
// kernel enforces only for each alone, or not at all for root. It measures from
// outside, where nothing inside can stop it, until the program or ctx ends. On
// status bwrap reports the first process inside; held is the program's control
// group, the limits of which the kernel enforces at once. It returns why it ended
// the program, "" if it did not.
func watch(ctx context.Context, status io.Reader, s Spec, held *group) (why string) {
	// Only the first line is read: bwrap writes it before the program exists.
	line, err := bufio.NewReader(io.LimitReader(status, 4096)).ReadBytes('\n')
	if err != nil {
		return ""
	}
	var said struct {
		Child int `json:"child-pid"`
	}
	if json.Unmarshal(line, &said) != nil || said.Child <= 1 {
		return ""
	}
	first, err := unix.PidfdOpen(said.Child, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(first)
	defer end(first)
	disks, shared := freeOf(s), newSharedGauge()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if why = held.over(s.Limits); why == "" {
			why = over(said.Child, s.Limits, disks, shared)
		}
		if why != "" {
			if s.OnLimit != nil {
				s.OnLimit(why)
			}
			return why
		}
		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
		if unix.PidfdSendSignal(first, 0, nil, 0) != nil { // gone
			return ""
		}
	}
}

// endTime is how long the end of a killed program is waited for.
const endTime = 10 * time.Second

// end kills the first process inside, with it all of its pid namespace, and
// waits until they are gone: it is the last of them to go.
func end(first int) {
	_ = unix.PidfdSendSignal(first, unix.SIGKILL, nil, 0)
	for stop := time.Now().Add(endTime); time.Now().Before(stop); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(first), Events: unix.POLLIN}}, int(endTime.Milliseconds()))
		if n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}

// over returns which limit is exceeded, "" for none.
func over(first int, l Limits, disks map[string]space, shared sharedGauge) string {
	u := use(first, l.Processes, l.Memory)
	if u.tasks-slack > l.Processes {
		return processWords(l)
	}
	if u.own > l.Memory || u.own+shared.bytes(first, u.pids, u.shared, u.own, l.Memory) > l.Memory {
		return memoryWords(l)
	}
	for path, before := range disks {
		now, ok := free(path)
		if ok && before.bytes > now.bytes+uint64(l.Disk) {
			return fmt.Sprintf("the command filled the disk by more than %d MiB", l.Disk>>20)
		}
		if ok && before.files > now.files+maxFiles {
			return fmt.Sprintf("the command made more than %d files", maxFiles)
		}
	}
	return ""
}

func processWords(l Limits) string {
	return fmt.Sprintf("it had more than %d processes and threads", l.Processes)
}

func memoryWords(l Limits) string {
	return fmt.Sprintf("it used more than %d MiB of memory", l.Memory>>20)
}

// A usage is what processes use together.
type usage struct {
	tasks  int   // threads
	own    int64 // bytes that each process has for itself
	shared int64 // bytes of shared memory that each has mapped and touched
	pids   []int
}

// use adds up what the process first and those below it use. It stops once a
// limit is passed.
func use(first, maxTasks int, maxMemory int64) (u usage) {
	seen := map[int]bool{first: true} // bounded by maxTasks
	for todo := []int{first}; len(todo) > 0 && u.tasks <= maxTasks+slack && u.own <= maxMemory; {
		pid := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		threads, children := family(pid)
		own, shared := memoryOf(pid)
		u.tasks, u.own, u.shared, u.pids = u.tasks+threads, u.own+own, u.shared+shared, append(u.pids, pid)
		for _, c := range children {
			if !seen[c] {
				seen[c] = true
				todo = append(todo, c)
			}
		}
	}
	return u
}

// slack are the processes that are the sandbox's own: bwrap, first inside.
const slack = 1

// family returns the number of a process's threads, and its children.
func family(pid int) (threads int, children []int) {
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

// maxFiles is how many files may be made while a program runs.
const maxFiles = 200_000

// A space is what is free on a file system.
type space struct {
	bytes, files uint64
	id           unix.Fsid
}

// freeOf returns the free space of the disks where s may write.
func freeOf(s Spec) map[string]space {
	disks := map[string]space{} // by path; one per file system
	var known []unix.Fsid
	for _, p := range append(slices.Clone(s.Writable), s.Scratch) {
		now, ok := free(p)
		if p == "" || !ok || slices.Contains(known, now.id) {
			continue
		}
		known = append(known, now.id)
		disks[p] = now
	}
	return disks
}

func free(path string) (space, bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return space{}, false
	}
	return space{st.Bavail * uint64(st.Bsize), st.Ffree, st.Fsid}, true
}
