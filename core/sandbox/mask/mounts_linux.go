package mask

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mountLine is one line of /proc/self/mountinfo.
type mountLine struct {
	id                  int
	device, root, point string
}

func readMounts() ([]mountLine, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(text)), nil
}

func parseMounts(text string) (list []mountLine) {
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		id, err := strconv.Atoi(f[0])
		if err != nil {
			continue
		}
		list = append(list, mountLine{id, f[2], plain.Replace(f[3]), plain.Replace(f[4])})
	}
	return list
}

// aliasesOf returns the other places where the file at p is mounted, without those
// that must stay open.
func aliasesOf(p string, open []string, mounts []mountLine) (list []string) {
	fd, err := straight(unix.AT_FDCWD, p)
	if err != nil {
		return nil
	}
	id := mountOf(fd)
	_ = unix.Close(fd)
	at := slices.IndexFunc(mounts, func(m mountLine) bool { return m.id == id })
	if at < 0 {
		return nil
	}
	return slices.DeleteFunc(aliases(p, mounts[at], mounts), func(other string) bool {
		return slices.ContainsFunc(open, func(o string) bool { return other == o || isBelow(other, o) })
	})
}

// aliases returns the other places where p, which is on the mount own, or a part
// of it is mounted.
func aliases(p string, own mountLine, mounts []mountLine) (list []string) {
	rel, ok := within(p, own.point)
	if !ok {
		return nil
	}
	inside := path.Join(own.root, rel)
	for _, m := range mounts {
		if m.id == own.id || m.device != own.device {
			continue
		}
		if rest, ok := within(inside, m.root); ok {
			list = append(list, path.Join(m.point, rest))
		} else if isBelow(m.root, inside) {
			list = append(list, m.point)
		}
	}
	return list
}

// within returns p relative to directory; ok is false if it is not below it.
func within(p, folder string) (rel string, ok bool) {
	if folder == "/" {
		return strings.TrimPrefix(p, "/"), true
	}
	rest, ok := strings.CutPrefix(p, folder)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

// isBelow reports whether p is strictly below directory.
func isBelow(p, folder string) bool {
	rel, ok := within(p, folder)
	return ok && rel != ""
}

// mountOf returns the number of the mount of an open file; 0 if it is unknown.
func mountOf(fd int) int {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
}
