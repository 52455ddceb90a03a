// Package programs examines the arguments of programs that run others, delete, or
// change disks and rights, and refuses what must not run.
package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gatehouse/core/permission/shell/walk"
)

// Handler returns how the arguments of the program with that name, in lower case and
// without directory, are examined.
func Handler(name string) walk.Handler {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "pdksh", "ash", "fish", "rbash", "yash", "csh", "tcsh", "elvish", "nu", "xonsh", "osh":
		return sh
	case "env":
		return env
	case "eval":
		return eval
	case ".", "source":
		return source
	case "trap":
		return trap
	case "alias":
		return alias
	case "xargs", "gxargs":
		return xargs
	case "find", "gfind":
		return find
	case "command":
		return lookUp
	case "rm", "grm":
		return rm
	case "chmod", "chown", "chgrp", "gchmod":
		return chmod
	case "dd", "gdd":
		return dd
	case "cd", "pushd":
		return cd
	case "echo", "printf", "true", "false", ":", "test", "[", "date", "sleep", "seq", "exit", "return", "expr", "basename", "dirname", "logger", "wait", "break", "continue", "unset", "shift", "set", "read", "mapfile", "readarray", "getopts", "popd", "dirs", "export", "local", "declare", "typeset", "readonly":
		return builtins
	case "cp", "mv", "ln", "tee", "install", "shred", "truncate", "rsync", "gcp", "gmv":
		return writes
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "zgrep", "pgrep", "pkill":
		return searches
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed":
		return scripts
	case "ssh", "mosh", "rsh", "sshpass":
		return ssh
	case "watch", "script", "flock", "parallel", "tmux", "screen", "expect":
		return runners
	case "git":
		return git
	case "fdisk", "sfdisk", "gdisk", "sgdisk", "parted", "wipefs", "blkdiscard", "newfs", "mke2fs", "mkswap", "mkdosfs", "mkntfs", "badblocks", "cryptsetup", "diskutil":
		return disk
	case "at", "batch", "crontab", "hash", "enable", "bind", "complete", "compgen", "compopt", "fc", "history", "let", "ld-linux.so", "nsenter", "unshare", "systemd-run", "machinectl", "start-stop-daemon", "bwrap", "firejail", "gdbserver", "capsh", "dbus-send", "busctl", "at-spi", "socat", "ncat", "nc", "netcat", "telnet", "uudecode", "run-parts", "foreach", "git-shell", "vim", "vi", "nvim", "ex", "ed", "view", "emacs", "osascript", "cscript":
		return opaque
	}
	switch {
	case strings.HasPrefix(name, "mkfs"):
		return disk
	case strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so"):
		return wrap(name, wrapper{valued: "library-path preload argv0 audit", flags: "inhibit-cache list verify"})
	}
	if interpreter().MatchString(name) {
		return interpret
	}
	if wr, ok := wrappers[name]; ok {
		return wrap(name, wr)
	}
	return viaOptions
}

var interpreter = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(python|pypy|perl|ruby|irb|node|nodejs|deno|bun|php|lua|luajit|tclsh|wish|rscript|r|julia|guile|groovy|scala|elixir|erl|racket|sbcl|clisp|ghci|runghc|jshell|swift|raku|ocaml|pwsh|powershell|sqlite3|psql|mysql|octave|gnuplot|dc|docker|podman|nerdctl|kubectl|lxc)[0-9.]*w?$`)
})

// builtins examines programs that open no file and run nothing by their arguments.
func builtins(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	w.Command(f)
	args := f[1:]
	switch f[0] {
	case "test", "[", "unset", "read", "mapfile", "readarray", "printf", "export", "local", "declare", "typeset", "readonly", "wait", "getopts":
		for _, a := range args {
			if (f[0] != "printf" || len(args) > 1 && args[0] == "-v" && a == args[1]) && strings.Contains(a, "[") && strings.ContainsAny(a, "$`") {
				w.Hidden("a name holds a command")
			}
		}
	}
	switch f[0] {
	case "test", "[":
		for _, a := range args {
			if !walk.Unresolved(a) && strings.ContainsAny(a, "/.") {
				w.Name(s, a)
			}
		}
	case "date", "logger":
		w.Names(args, s)
	case "set":
		if i := slices.Index(args, "--"); i >= 0 {
			s.Params, s.Lost = slices.Clone(args[i+1:]), false
		} else if len(args) > 0 && !strings.HasPrefix(args[0], "-") && !strings.HasPrefix(args[0], "+") {
			s.Params, s.Lost = slices.Clone(args), false
		}
	case "shift":
		if len(args) == 0 && len(s.Params) > 0 {
			s.Params = s.Params[1:]
		} else {
			s.Params, s.Lost = nil, true
		}
	case "unset":
		for _, a := range args {
			delete(s.Vars, a)
			delete(s.Funcs, a)
		}
	case "read", "mapfile", "readarray", "getopts":
		reads(w, f[0], args, s, in)
	case "printf":
		if len(args) > 2 && args[0] == "-v" {
			out, ok := walk.Formatted(args[1+1], args[3:])
			if !ok || walk.Unresolved(out) {
				out = string(walk.Unknown)
			}
			w.Set(args[1], []string{out}, s)
		}
	case "export", "local", "declare", "typeset", "readonly":
		for _, a := range args {
			w.Assign(a, s)
		}
	case "popd":
		s.Cwd = string(walk.Unknown)
	}
}

// reads sets the variables that a builtin fills from its input.
func reads(w *walk.Walker, name string, args []string, s *walk.State, in walk.Input) {
	value := string(walk.Unknown)
	var names []string
	for _, a := range args {
		if strings.HasPrefix(a, "-C") {
			w.Hidden("a command is called back")
		}
		if !strings.HasPrefix(a, "-") {
			names = append(names, a)
		}
	}
	if name == "read" && len(names) == 1 && in.Known {
		value = strings.TrimSpace(strings.SplitN(in.Text, "\n", 2)[0])
	}
	for _, n := range append(names, "REPLY", "MAPFILE", "OPTARG") {
		if syntaxName(n) {
			w.Set(n, []string{value}, s)
		}
	}
}

func syntaxName(n string) bool { return n != "" && !strings.ContainsAny(n, "/.=$[") }

func cd(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	w.Command(f)
	args := slices.DeleteFunc(slices.Clone(f[1:]), func(a string) bool { return a == "-P" || a == "-L" || a == "--" || a == "-e" })
	switch {
	case len(args) == 0 && f[0] == "cd":
		s.Cwd = string(walk.Home)
	case len(args) == 1:
		chdir(w, args[0], s)
	default:
		s.Cwd = string(walk.Unknown)
	}
}

func chdir(w *walk.Walker, to string, s *walk.State) {
	if walk.Unresolved(to) || to == "-" || walk.Globbed(to) {
		w.Hidden("a change of directory cannot be resolved")
		s.Cwd = string(walk.Unknown)
		return
	}
	w.Name(s, to)
	if s.Cwd = s.At(to); s.Cwd == "" {
		s.Cwd = "."
	}
	s.Cwd = path.Clean(s.Cwd)
}

// lookUp examines command, which with -v and -V only prints the path of a program.
func lookUp(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	if len(f) > 1 && (strings.HasPrefix(f[1], "-v") || strings.HasPrefix(f[1], "-V")) {
		w.Command(f)
		return
	}
	wrap("command", wrappers["command"])(w, f, s, in)
}

// topDirectories are directories without which a machine does not start or is empty.
var topDirectories = []string{"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "srv", "sys", "usr", "var", "mnt", "media", "Users", "System", "Library", "Applications"}

// processRoot begins names of the root or working directory of a process.
var processRoot = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/+proc/+[^/]+/+(root|cwd)(/|$)`) })

// whole reports whether a name is the whole file system, a system directory or
// the home directory of a user. A glob is whole when it matches one of them.
func whole(f string) bool {
	f = walk.Shown(f)
	clean := path.Clean(f)
	if clean == "~" || clean == "~/*" || strings.HasPrefix(clean, "~/") && path.Join("/", clean[1:]) == "/" {
		return true
	}
	if rest, ok := strings.CutPrefix(clean, "~/"); ok {
		return strings.ContainsAny(rest, "*?[") && !strings.Contains(rest, "/") && strings.Trim(rest, "*?.[]!^-_azAZ") == ""
	}
	if !strings.HasPrefix(clean, "/") {
		return false
	}
	clean = processRoot().ReplaceAllString(clean, "/")
	parts := strings.Split(strings.Trim(path.Clean(clean), "/"), "/")
	if parts[0] == "" {
		return true
	}
	users := globMatches(parts[0], "home") || globMatches(parts[0], "Users")
	switch len(parts) {
	case 1:
		return strings.Trim(parts[0], "*?.[]!^-_azAZ") == "" && strings.ContainsAny(parts[0], "*?[") || slices.ContainsFunc(topDirectories, func(d string) bool { return globMatches(parts[0], d) })
	case 2:
		return users || allOf(parts[1]) && slices.ContainsFunc(topDirectories, func(d string) bool { return globMatches(parts[0], d) })
	case 3:
		return users && allOf(parts[2])
	}
	return false
}

// allOf reports whether a glob matches practically every name.
func allOf(glob string) bool {
	return strings.Contains(glob, "*") && strings.Trim(glob, "*?.[]!^-_azAZ09") == ""
}

func globMatches(glob, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(glob, "[!", "[^"), name)
	return ok || err != nil
}

// rm refuses to delete the file system or a home directory. What may be one of these
// is hidden.
func rm(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	recursive, targets := false, []string{}
	for i, a := range f[1:] {
		switch {
		case a == "--":
			targets = append(targets, f[i+2:]...)
		case strings.HasPrefix(a, "--"):
			recursive = recursive || strings.HasPrefix("--recursive", a) && len(a) > 2 || a == "--no-preserve-root"
			continue
		case strings.HasPrefix(a, "-") && len(a) > 1:
			recursive = recursive || strings.ContainsAny(a, "rR")
			continue
		default:
			targets = append(targets, a)
			continue
		}
		break
	}
	for _, t := range targets {
		removes(w, s, t, recursive)
	}
	w.Plain(f, s)
}

func removes(w *walk.Walker, s *walk.State, target string, recursive bool) {
	t := s.At(target)
	if target == "" {
		return
	}
	switch bare := strings.ReplaceAll(t, string(walk.Unknown), ""); {
	case walk.Unresolved(t):
		w.Hidden("what is deleted cannot be resolved")
		if recursive && strings.HasPrefix(t, string(walk.Home)) && whole(bare) {
			w.Danger("deleting a home directory")
		}
	case whole(t) && recursive:
		w.Danger("deleting " + walk.Shown(t) + " with everything in it")
	case whole(t):
		w.Hidden("it deletes " + walk.Shown(t))
	case recursive && (t == "." || t == "./" || t == string(walk.Star) || t == "./"+string(walk.Star)):
		w.Hidden("it deletes everything in the working directory")
	case recursive && climbs(t):
		w.Hidden("it deletes a directory that contains the working directory")
	}
}

// climbs reports whether a name is a parent directory, or everything in one.
func climbs(f string) bool {
	f = path.Clean(walk.Shown(f))
	f = strings.TrimSuffix(f, "/*")
	return f == ".." || strings.HasSuffix(f, "/..")
}

var open777 = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-7]?[0-7][0-7][2367]$|[ao]*[ugoa]*[+=][rwxXst]*w`)
})

func chmod(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	recursive, opens := false, f[0] != "chmod" && f[0] != "gchmod"
	for _, a := range f[1:] {
		if strings.HasPrefix(a, "--") {
			recursive = recursive || strings.HasPrefix("--recursive", a) && len(a) > 2
		} else if strings.HasPrefix(a, "-") {
			recursive = recursive || strings.Contains(a, "R")
		}
		opens = opens || open777().MatchString(a) || walk.Unresolved(a)
	}
	for _, a := range f[1:] {
		if t := s.At(a); recursive && whole(t) {
			if clean := path.Clean(walk.Shown(t)); clean == "/" || clean == "/*" || opens {
				w.Danger("changing the rights of all of " + walk.Shown(t))
			}
		}
	}
	w.Plain(f, s)
}

func dd(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	for _, a := range f[1:] {
		target, writes := strings.CutPrefix(a, "of=")
		if strings.HasPrefix(a, "if=") || writes && strings.HasPrefix(path.Clean(walk.Shown(s.At(target))), "/dev/") && path.Clean(target) != "/dev/null" {
			w.Danger("dd: copying a disk")
		}
	}
	w.Plain(f, s)
}

func disk(w *walk.Walker, f []string, _ *walk.State, _ walk.Input) {
	if len(f) == 2 && slices.Contains([]string{"-l", "--help", "--version"}, f[1]) {
		w.Command(f)
		return
	}
	w.Danger(f[0] + ": making or wiping a file system")
}
