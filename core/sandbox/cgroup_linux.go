package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Groups are the control groups (cgroup v2) that enforce the limits of programs: one
// for each program with its children, below one directory that is delegated to the
// gateway. They are in addition to Landlock, resource limits and watch: if a group
// cannot be created the program runs with those alone, and it is logged.
//
// A group is locked while its gateway lives, so that the next one detects those
// that a crash has left.
type Groups struct {
	base  string
	holds []string // controllers, in the order of wanted
	log   *slog.Logger
}

// Names below the directory: the gateway itself, because a group with processes
// cannot have limited groups below it, and the programs.
const (
	leaf        = "gateway"
	groupPrefix = "gatehouse-"
)

// wanted are the controllers, with a name of what they limit.
var wanted = []struct{ name, what string }{{"memory", "memory"}, {"pids", "processes"}, {"cpu", "processor time"}}

// watched is the text for when no control group limits memory or processes.
const watched = "limits of memory and processes are checked ten times a second, and by the kernel for each process: "

// OpenGroups returns the Groups that can be created, or nil, and a description to
// show. where is Auto, None, or a directory of a cgroup2 file system. With Auto it
// uses the group that the gateway runs in, if that is delegated to it, and moves
// the gateway into a group below it. It removes what a killed gateway has left.
func OpenGroups(where string, log *slog.Logger) (*Groups, string) {
	if where == None {
		return nil, watched + "control groups are switched off (SANDBOX_CGROUP is none)"
	}
	g := &Groups{base: where, log: log}
	err := g.open(where == Auto)
	if err != nil {
		return nil, watched + err.Error()
	}
	var what []string
	for _, w := range wanted {
		if slices.Contains(g.holds, w.name) {
			what = append(what, w.what)
		}
	}
	return g, "the kernel holds " + strings.Join(what, ", ") + " of each program and all that it starts (control groups in " + g.base + ")"
}

func (g *Groups) open(auto bool) error {
	own, top, err := ownGroup()
	if err != nil {
		return err
	}
	if auto {
		if g.base, err = delegated(own, top); err != nil {
			return err
		}
	}
	if own == g.base {
		if err := enter(own); err != nil {
			return fmt.Errorf("the gateway cannot move into a control group of its own: %w", err)
		}
	}
	if err := g.enable(); err != nil {
		return err
	}
	g.sweep()
	return g.try()
}

// ownGroup returns the directory of the group that this process runs in, and of
// the highest one that is visible.
func ownGroup() (own, top string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", "", err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", "", err
	}
	return findGroup(string(mounts), string(groups))
}

// findGroup reads /proc/self/mountinfo and /proc/self/cgroup.
func findGroup(mounts, groups string) (own, top string, err error) {
	for line := range strings.Lines(groups) {
		path, v2 := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !v2 {
			continue
		}
		for mount := range strings.Lines(mounts) {
			place, kind, _ := strings.Cut(mount, " - ")
			f := strings.Fields(place)
			if len(f) < 5 || !strings.HasPrefix(kind, "cgroup2 ") {
				continue
			}
			if rest, below := strings.CutPrefix(path, strings.TrimSuffix(f[3], "/")); below {
				return filepath.Join(f[4], rest), f[4], nil
			}
		}
	}
	return "", "", errors.New("control groups of version 2 are not mounted here")
}

// delegated returns the directory that the gateway may use of its group.
func delegated(own, top string) (string, error) {
	base := own
	if filepath.Base(own) == leaf {
		base = filepath.Dir(own) // moved before
	}
	if _, err := os.Stat(filepath.Join(base, "cgroup.type")); err != nil { // the root of all has none
		return "", errors.New("the gateway runs in the machine's uppermost control group")
	}
	if base != top && !marked(base) { // in a container the uppermost one is its own
		return "", errors.New("the gateway's control group is not delegated to it (systemd: Delegate=memory pids cpu)")
	}
	for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
		if err := unix.Access(filepath.Join(base, name), unix.W_OK); err != nil {
			return "", errors.New("the gateway's control group cannot be written (systemd: ProtectControlGroups=no; in a container its file system is mounted read-only)")
		}
	}
	return base, nil
}

// marked reports whether systemd has marked the group as delegated.
func marked(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// maxBeside bounds how many processes are moved with the gateway.
const maxBeside = 1000

// enter moves the processes of own, which is the gateway's alone, into the leaf
// below it: this one, and in a container perhaps its first.
func enter(own string) error {
	if _, err := os.Stat(filepath.Join(own, "cgroup.type")); err != nil {
		return nil // the root may have both processes and groups
	}
	dir := filepath.Join(own, leaf)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for range maxBeside {
		b, err := os.ReadFile(filepath.Join(own, "cgroup.procs"))
		if err != nil {
			return err
		}
		pid, _, _ := strings.Cut(string(b), "\n")
		if pid == "" {
			break
		}
		if err := put(dir, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// enable hands the controllers down to the groups below.
func (g *Groups) enable() error {
	have, err := os.ReadFile(filepath.Join(g.base, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("no control group: %w", err)
	}
	var last error
	for _, w := range wanted {
		if !slices.Contains(strings.Fields(string(have)), w.name) {
			continue
		}
		if err := put(g.base, "cgroup.subtree_control", "+"+w.name); err != nil {
			last = err
			continue
		}
		g.holds = append(g.holds, w.name)
	}
	switch {
	case slices.Contains(g.holds, "memory") || slices.Contains(g.holds, "pids"):
		return nil
	case errors.Is(last, unix.EBUSY):
		return fmt.Errorf("other programs run in the control group %s itself", g.base)
	case last != nil:
		return fmt.Errorf("the control group delegates no controllers: %w", last)
	}
	return fmt.Errorf("the control group %s has neither memory nor pids to hand down", g.base)
}

// sweep ends and removes the groups of gateways that have ended.
func (g *Groups) sweep() {
	entries, err := os.ReadDir(g.base)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), groupPrefix) {
			continue
		}
		left := &group{path: filepath.Join(g.base, e.Name()), log: g.log}
		if left.lock() != nil {
			continue // another gateway's
		}
		g.log.Info("removing the control group of a program that a killed gateway has left", "group", left.path)
		left.kill()
		left.end()
	}
}

// try runs a program in a group once, so that what is promised was seen to work.
func (g *Groups) try() error {
	one, err := g.make(Limits{}.orDefaults())
	if err != nil {
		return fmt.Errorf("no control group can be made: %w", err)
	}
	defer one.end()
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", stageWord, "none") // a stage without an order ends at once
	cmd.Env, cmd.SysProcAttr = []string{}, one.attr(&syscall.SysProcAttr{})
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("no program can be started in a control group: %w", err)
	}
	_ = cmd.Wait()
	return nil
}

// cores returns the number of processors for a program without a limit: half of
// them, so that the gateway keeps running.
func cores() int { return max(1, runtime.NumCPU()/2) }

// Rooms for what the sandbox itself needs inside a group.
const (
	ownMemory  = 32 << 20 // bytes
	ownThreads = 16
)

// make makes a group with these limits, empty and locked.
func (g *Groups) make(l Limits) (*group, error) {
	one := &group{path: filepath.Join(g.base, groupPrefix+strings.ToLower(rand.Text())), log: g.log}
	if err := os.Mkdir(one.path, 0o755); err != nil {
		return nil, err
	}
	err := one.lock()
	for _, f := range []struct{ controller, file, value string }{
		{"memory", "memory.max", strconv.FormatInt(l.Memory+ownMemory, 10)},
		{"memory", "memory.swap.max", "0"},
		{"memory", "memory.oom.group", "1"},
		{"pids", "pids.max", strconv.Itoa(l.Processes + ownThreads)},
		{"cpu", "cpu.max", fmt.Sprintf("%d 100000", 100000*cores())},
	} {
		if err != nil || !slices.Contains(g.holds, f.controller) {
			continue
		}
		err = put(one.path, f.file, f.value)
		if f.file == "memory.swap.max" && errors.Is(err, fs.ErrNotExist) {
			err = nil // a kernel that has no swap
		}
	}
	if err != nil {
		one.end()
		return nil, err
	}
	return one, nil
}

// Limited returns box with each of its programs in a group of its own. If box or g
// is nil, or box does not support it, it returns box.
func Limited(box Box, g *Groups) Box {
	w, ok := box.(*bubblewrap)
	if !ok || g == nil {
		return box
	}
	held := *w
	held.groups = g
	return &held
}
