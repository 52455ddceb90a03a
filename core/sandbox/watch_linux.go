package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox/measure"
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
	disks, shared := freeOf(s), measure.NewSharedGauge()
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
func over(first int, l Limits, disks map[string]measure.Space, shared measure.SharedGauge) string {
	u := measure.Of(first, l.Processes+slack, l.Memory)
	if u.Tasks-slack > l.Processes {
		return processWords(l)
	}
	if u.Own > l.Memory || u.Own+shared.Bytes(first, u.Processes, u.Shared, u.Own, l.Memory) > l.Memory {
		return memoryWords(l)
	}
	for path, before := range disks {
		now, ok := measure.Free(path)
		if ok && before.Bytes > now.Bytes+uint64(l.Disk) {
			return fmt.Sprintf("the command filled the disk by more than %d MiB", l.Disk>>20)
		}
		if ok && before.Files > now.Files+maxFiles {
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

// slack are the processes that are the sandbox's own: bwrap, first inside.
const slack = 1

// maxFiles is how many files may be made while a program runs.
const maxFiles = 200_000

// freeOf returns the free space of the disks where s may write.
func freeOf(s Spec) map[string]measure.Space {
	disks := map[string]measure.Space{} // by path; one per file system
	var known []unix.Fsid
	for _, p := range append(slices.Clone(s.Writable), s.Scratch) {
		now, ok := measure.Free(p)
		if p == "" || !ok || slices.Contains(known, now.ID) {
			continue
		}
		known = append(known, now.ID)
		disks[p] = now
	}
	return disks
}
