package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox/mask"
	"gatehouse/core/sandbox/seccomp"
)

// passOn runs argv as tree does, with the order of a veil and, as veilStageFD, this
// program itself as inherited files.
func passOn(argv []string) error {
	order := os.NewFile(aliveFD+1, "order")
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{order, self} // veilOrderFD, veilStageFD
	return runTree(cmd)
}

// behind runs inside of bwrap's namespaces: it hides what the order's Cover
// lists, gives up what could undo that, and becomes the program. args holds the
// number of the order's file. Like stage it stays on one thread.
func behind(args []string) error {
	runtime.LockOSThread()
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.NewFile(uintptr(n), "order"))
	if err != nil {
		return err
	}
	var o veilOrder
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	root := os.Geteuid() == 0
	if err := mask.Hide(mask.Cover(o.Cover), o.Places, root); err != nil {
		return fmt.Errorf("hide the gateway's own files: %w", err)
	}
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	path, err := lookPath(o.Argv[0], o.Env)
	if err != nil {
		return err
	}
	if err := giveUpInherited(); err != nil {
		return err
	}
	if err := dropCapabilities(root); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := seccomp.Veiled().Install(); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return fmt.Errorf("start %s: %w", o.Argv[0], unix.Exec(path, o.Argv, o.Env))
}

// dropCapabilities leaves this thread, and what it becomes, the capabilities of
// rootKeeps for root and none for others.
func dropCapabilities(root bool) error {
	var keep [2]uint32
	for c := uint(0); c < 64; c++ {
		if root && slices.ContainsFunc(rootKeeps, func(k capability) bool { return k.number == c }) {
			keep[c/32] |= 1 << (c % 32)
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: beyond the last one
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, left [2]unix.CapUserData
	if err := unix.Capget(&head, &have[0]); err != nil {
		return err
	}
	for i := range left {
		left[i].Permitted = have[i].Permitted & keep[i]
		left[i].Effective = left[i].Permitted
	}
	return unix.Capset(&head, &left[0])
}
