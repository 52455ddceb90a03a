package inside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gatehouse/core/sandbox"
)

// verify checks from inside that the container is what was ordered, whatever
// the engine and the names that it mounted have become. Nothing is started
// where one thing differs.
func (i *Instruction) verify() error {
	for _, c := range []func() error{i.verifyRights, verifyNetwork, i.verifyMounts, verifyKernel} {
		if err := c(); err != nil {
			return fmt.Errorf("the container is not what was ordered, so nothing is started: %w", err)
		}
	}
	for _, c := range i.Checks {
		if err := c.verify(); err != nil {
			return fmt.Errorf("the container does not show what was ordered (its names were changed concurrently), so nothing is started; try again: %w", err)
		}
	}
	return nil
}

// verifyRights checks that this process has no rights beyond its user's.
func (i *Instruction) verifyRights() error {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2"}
	for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		want[name] = "0000000000000000"
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		if w, ok := want[name]; ok && strings.TrimSpace(value) != w {
			return fmt.Errorf("%s is %s, not %s", name, strings.TrimSpace(value), w)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		return errors.New("the kernel does not report which rights a process has")
	}
	if os.Getuid() != i.User || os.Geteuid() != i.User || os.Getgid() != i.Group || os.Getegid() != i.Group {
		return fmt.Errorf("the user is %d:%d, not %d:%d", os.Getuid(), os.Getgid(), i.User, i.Group)
	}
	if os.Getpid() != 1 {
		return errors.New("it has no process namespace of its own")
	}
	return nil
}

// verifyNetwork checks that there is no network beyond the loopback.
func verifyNetwork() error {
	b, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		name, _, found := strings.Cut(strings.TrimSpace(line), ":")
		// A kernel makes these in each network namespace; none is up.
		idle := slices.Contains([]string{"lo", "tunl0", "gre0", "gretap0", "erspan0", "sit0", "ip6tnl0", "ip6gre0", "ip_vti0", "ip6_vti0"}, name)
		if found && !idle {
			return fmt.Errorf("it has the network %s", name)
		}
	}
	return nil
}

// engineMounts are the places that an engine mounts in each container, and
// engineTrees those below which it does.
var (
	engineMounts = []string{"/", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd", "/etc/group", "/run/.containerenv", "/tmp", StagePath, LinkPath}
	engineTrees  = []string{"/proc", "/dev", "/sys"}
)

// verifyMounts checks that nothing is mounted that was not ordered: no volume of
// an image or of the engine's configuration, and no file system that was mounted
// below an ordered directory, to which "read-only" would not apply.
func (i *Instruction) verifyMounts() error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	known := slices.Concat(i.Mounts, engineMounts, sandbox.SystemFolders(), sandbox.SystemFiles())
	slices.Sort(known)
	for line := range strings.Lines(string(b)) {
		f := strings.Split(line, " ") // other white space may be part of a name
		if len(f) < 6 {
			return errors.New("its list of mounts cannot be read")
		}
		point, options := unescape(f[4]), strings.Split(f[5], ",")
		if _, found := slices.BinarySearch(known, point); found || in(point, engineTrees) && !in(point, i.Mounts) {
			continue
		}
		if in(point, sandbox.SystemFolders()) && slices.Contains(options, "ro") {
			continue
		}
		return fmt.Errorf("something is mounted at %s", point)
	}
	return nil
}

// in reports whether path is one of the directories or below one.
func in(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(dir string) bool { return path == dir || below(path, dir) })
}

// unescape returns a path of mountinfo as it is: blanks, tabs, line feeds and
// backslashes are octal there.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// verifyKernel checks that the settings of the kernel cannot be written.
func verifyKernel() error {
	for _, p := range []string{"/proc/sys", "/sys", "/"} {
		if !readOnlyAt(p) {
			return fmt.Errorf("%s can be written", p)
		}
	}
	if unix.Access("/proc/sysrq-trigger", unix.W_OK) == nil {
		return errors.New("/proc/sysrq-trigger can be written")
	}
	return nil
}

func readOnlyAt(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// verify compares what is at the path with what the gateway had opened there.
func (c Check) verify() error {
	real, err := filepath.EvalSymlinks(c.Path)
	if err != nil {
		return err
	}
	if real != c.Path {
		return fmt.Errorf("%s leads elsewhere", c.Path)
	}
	var st unix.Stat_t
	if err := unix.Lstat(c.Path, &st); err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	switch {
	case st.Dev != c.Dev || st.Ino != c.Ino:
		return fmt.Errorf("%s is another file", c.Path)
	case c.ReadOnly && !readOnlyAt(c.Path):
		return fmt.Errorf("%s can be written", c.Path)
	}
	return nil
}

// below reports whether path is below dir.
func below(path, dir string) bool { return strings.HasPrefix(path, dir+"/") }
