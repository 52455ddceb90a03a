package permission

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gatehouse/core/permission/shell"
	"gatehouse/core/vault"
)

// Limits of looking up what a glob represents.
const (
	maxGlobParts = 2    // elements of a path that hold a glob
	maxGlobHits  = 5000 // files that they may be for
)

// where is the place that a command starts in, for the paths that it names.
type where struct {
	dir  string                  // absolute, links resolved; "" unknown
	area []string                // absolute: the directories that a command may write in
	home string                  // absolute; "" unknown
	own  []string                // absolute: the gateway's own files and directories
	real func(abs string) string // with links resolved; nil: by text alone
}

func newWhere(v *vault.Vault, dir string, own []string) where {
	w := where{dir: dir}
	for _, o := range own {
		if filepath.IsAbs(o) {
			w.own = append(w.own, filepath.Clean(o))
		}
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		w.home = filepath.Clean(home)
	}
	if v == nil {
		return w
	}
	w.real = func(abs string) string {
		if d, err := v.Resolve("/", abs); err == nil {
			return d.Path
		}
		return filepath.Clean(abs)
	}
	if w.dir == "" {
		w.dir = v.Path()
	}
	w.area = []string{w.real(v.Path())}
	if w.dir = w.real(w.dir); w.dir != w.area[0] {
		w.area = append(w.area, w.dir)
	}
	for _, o := range slices.Clone(w.own) {
		if r := w.real(o); r != o {
			w.own = append(w.own, r)
		}
	}
	return w
}

// absolute returns the absolute path of a name as a command gives it, with "~"
// and ".." resolved; ok is false where that cannot be known.
func (w where) absolute(name string) (abs string, ok bool) {
	base := "/"
	switch rest, isHome := strings.CutPrefix(name, "~"); {
	case isHome && (rest == "" || rest[0] == '/'):
		if w.home == "" {
			return "", false
		}
		base, name = w.home, rest
	case !strings.HasPrefix(name, "/"):
		if w.dir == "" {
			return "", false
		}
		base = w.dir
	}
	at := base
	for _, part := range strings.Split(name, "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			at = path.Join(at, part)
		case strings.ContainsAny(at, "*?["):
			return "", false
		default: // the parent of where a link leads
			at = path.Dir(w.resolved(at))
		}
	}
	return at, true
}

func (w where) resolved(abs string) string {
	if w.real == nil {
		return path.Clean(abs)
	}
	return w.real(abs)
}

// targets returns the files that a path represents, links resolved, next to the path
// itself; ok is false where that cannot be known.
func (w where) targets(p shell.Path) (list []string, ok bool) {
	abs, ok := w.absolute(p.Name)
	if !ok {
		return nil, false
	}
	list = append(list, abs)
	switch {
	case w.real == nil:
		return list, true
	case !p.Pattern:
		return append(list, w.resolved(abs)), true
	}
	globs := 0
	for _, part := range strings.Split(abs, "/") {
		if strings.ContainsAny(part, "*?[") {
			globs++
		}
	}
	if globs > maxGlobParts {
		return list, false
	}
	hits, err := filepath.Glob(strings.ReplaceAll(abs, "[!", "[^"))
	if err != nil || len(hits) > maxGlobHits {
		return list, false
	}
	for _, h := range hits {
		list = append(list, w.resolved(h))
	}
	return list, true
}

// owns reports whether a path is at or below one of the gateway's own files, or
// is read with all below it and holds one.
func (w where) owns(p shell.Path) bool {
	if len(w.own) == 0 {
		return false
	}
	list, ok := w.targets(p)
	if !ok && (len(list) > 0 || strings.Contains(p.Name, "..")) {
		return true // it may
	}
	inside := w.inside(list)
	for _, t := range list {
		for _, o := range w.own {
			if beneath(t, o) || p.Deep && beneath(o, t) && !(p.List && inside) {
				return true
			}
		}
	}
	return false
}

// inside reports whether all of the paths are in the working area.
func (w where) inside(list []string) bool {
	for _, t := range list {
		if !slices.ContainsFunc(w.area, func(a string) bool { return beneath(t, a) }) {
			return false
		}
	}
	return len(list) > 0
}

// outside reports whether a name leads out of the working area, or may; list are
// its targets, where they are known.
func (w where) outside(name string, list []string, known bool) bool {
	if known && len(w.area) > 0 {
		return !w.inside(list)
	}
	return strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || climbs(name)
}

// beneath reports whether a path, which may hold globs, is top or below it.
func beneath(name, top string) bool {
	if top == "/" {
		return true
	}
	a, b := strings.Split(name, "/"), strings.Split(top, "/")
	if len(a) < len(b) {
		return false
	}
	for i, part := range b {
		if a[i] == part {
			continue
		}
		if ok, err := path.Match(strings.ReplaceAll(a[i], "[!", "[^"), part); !ok && err == nil {
			return false
		}
	}
	return true
}

// beyond returns why the files that an understood command names are not all
// within what it may use unasked.
func (q question) beyond(paths []shell.Path) []string {
	for _, p := range paths {
		if why := q.where.beyond(p); why != "" {
			return []string{why}
		}
	}
	return nil
}

// harmlessDevices may be read and written.
var harmlessDevices = []string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"}

// harmlessKernel are files of /proc that hold nothing about processes.
var harmlessKernel = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime"}

func (w where) beyond(p shell.Path) string {
	name := shorten(p.Name)
	if slices.Contains(harmlessDevices, p.Name) || !p.Write && slices.Contains(harmlessKernel, p.Name) {
		return ""
	}
	list, ok := w.targets(p)
	if !ok { // by text alone
		if climbs(p.Name) && (p.Write || !leads(p.Name)) || len(list) > 0 {
			return "where " + name + " leads cannot be resolved"
		}
		switch {
		case strings.HasPrefix(p.Name, "~"):
			list = []string{path.Join("/home directory", p.Name[1:])}
		case climbs(p.Name): // it may lead to the root
			list = []string{path.Join("/", p.Name)}
		default:
			list = []string{path.Join("/working directory", p.Name)}
		}
	}
	for _, t := range list {
		for _, top := range []string{"/proc", "/dev"} {
			if beneath(t, top) || p.Deep && t == "/" {
				return "it opens " + name + ", which shows or changes processes and devices"
			}
		}
	}
	switch {
	case w.outside(p.Name, list, ok) && slices.ContainsFunc(append(list, p.Name), secretive):
		return "it opens " + name + ", outside of the working area, where secrets may be"
	case p.Deep && !w.inside(list) && w.holdsHome(p.Name, list):
		return "it goes through everything below " + name
	case p.Deep && slices.ContainsFunc(list, func(t string) bool { return slices.ContainsFunc(guarded, func(g string) bool { return beneath(g, t) }) }):
		return "it goes through everything below " + name
	case p.Copy && w.copiesMore(list):
		return "it copies a repository or links, which may command other programs or lead elsewhere"
	case p.Write:
		return w.writeBeyond(p, list, ok)
	}
	return ""
}

// holdsHome reports whether one of the paths is the home directory or holds it.
func (w where) holdsHome(name string, list []string) bool {
	name = path.Clean(name)
	return name == "~" || strings.Trim(name, "./") == "" && climbs(name) ||
		slices.ContainsFunc(list, func(t string) bool {
			return w.home != "" && beneath(w.home, t) || slices.Contains([]string{"/", "/home", "/root", "/Users"}, t) || path.Dir(t) == "/home" || path.Dir(t) == "/Users"
		})
}

// writeBeyond returns why a file is not written unasked, or "".
func (w where) writeBeyond(p shell.Path, list []string, known bool) string {
	name := shorten(p.Name)
	if w.outside(p.Name, list, known) {
		return "it writes to " + name + ", outside of the working area"
	}
	if p.Deep && (path.Clean(p.Name) == "." || p.Pattern && path.Dir(path.Clean(p.Name)) == "." || slices.ContainsFunc(list, func(t string) bool { return slices.Contains(w.area, t) }) ||
		slices.ContainsFunc(w.area, func(a string) bool { return slices.ContainsFunc(list, func(t string) bool { return beneath(a, t) }) })) {
		return "it changes the whole working directory"
	}
	if path.Clean(p.Name) == "." || slices.ContainsFunc(list, func(t string) bool { return slices.Contains(w.area, t) }) {
		return "it changes the working directory itself"
	}
	seen := w.inArea(list)
	if !strings.HasPrefix(p.Name, "/") && !strings.HasPrefix(p.Name, "~") {
		seen = append(seen, p.Name)
	}
	for _, t := range seen {
		for _, part := range strings.Split(t, "/") {
			if len(part) > 1 && part[0] == '.' && part != ".." {
				return "it writes to " + name + ", a hidden file that may command other programs"
			}
		}
		if commands(strings.TrimLeft(t, "/")) || slices.Contains(bareRepository, path.Base(t)) || p.Pattern && globCommands(path.Base(t)) {
			return "it writes to " + name + ", which commands the gateway or other agents"
		}
	}
	return ""
}

// inArea returns absolute paths as seen from the part of the working area that
// they are in.
func (w where) inArea(list []string) []string {
	var out []string
	for _, t := range list {
		for _, a := range w.area {
			if rest, ok := strings.CutPrefix(t, strings.TrimSuffix(a, "/")+"/"); ok {
				out = append(out, "/"+rest)
				break
			}
		}
	}
	return out
}

// globCommands reports whether a glob may be for a file that commands agents.
func globCommands(pattern string) bool {
	return slices.ContainsFunc(append([]string{"CLAUDE.md", "AGENTS.md", "agents"}, bareRepository...), func(n string) bool {
		ok, err := path.Match(strings.ReplaceAll(pattern, "[!", "[^"), n)
		return ok || err != nil
	})
}

// bareRepository are files by which git takes a directory for a repository. The
// configuration of a repository may run programs.
var bareRepository = []string{"HEAD", "objects", "refs", "commondir"}

// guarded are files outside of the working area that hold passwords.
var guarded = []string{"/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/ssh"}

// secretive reports whether a path outside of the working area may hold secrets:
// it is guarded, or hidden in someone's home.
func secretive(name string) bool {
	for _, part := range strings.Split(name, "/") {
		if len(part) > 1 && part[0] == '.' && part != ".." {
			return true
		}
	}
	return slices.ContainsFunc(guarded, func(g string) bool { return beneath(name, g) })
}

// climbs reports whether a name goes up anywhere; leads, only at its beginning.
func climbs(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

func leads(name string) bool {
	rest := strings.TrimLeft(name, "./")
	return !climbs(rest) && fs.ValidPath(strings.Trim(rest, "/")+"x")
}
