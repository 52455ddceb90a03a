package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// program returns how a program's arguments are examined; nil for one that we know
// nothing special of.
func program(name string) handler {
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
		return words
	case "cp", "mv", "ln", "tee", "install", "shred", "truncate", "rsync", "gcp", "gmv":
		return writes
	case "grep", "egrep", "fgrep", "rg", "ag", "ack", "zgrep", "pgrep", "pkill":
		return searches
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed":
		return scripted
	case "ssh", "mosh", "rsh", "sshpass":
		return ssh
	case "watch", "script", "flock", "parallel", "tmux", "screen", "expect":
		return texts
	case "git":
		return git
	case "fdisk", "sfdisk", "gdisk", "sgdisk", "parted", "wipefs", "blkdiscard", "newfs", "mke2fs", "mkswap", "mkdosfs", "mkntfs", "badblocks", "cryptsetup", "diskutil":
		return disk
	case "at", "batch", "crontab", "hash", "enable", "bind", "complete", "compgen", "compopt", "fc", "history", "let", "ld-linux.so", "nsenter", "unshare", "systemd-run", "machinectl", "start-stop-daemon", "bwrap", "firejail", "gdbserver", "capsh", "dbus-send", "busctl", "at-spi", "socat", "ncat", "nc", "netcat", "telnet", "uudecode", "run-parts", "foreach", "git-shell", "vim", "vi", "nvim", "ex", "ed", "view", "emacs", "osascript", "cscript":
		return unseen
	}
	switch {
	case strings.HasPrefix(name, "mkfs"):
		return disk
	case strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so"):
		return wrap(name, wrapper{valued: "library-path preload argv0 audit", flags: "inhibit-cache list verify"})
	}
	if interpreter.MatchString(name) {
		return interpret
	}
	if wr, ok := wrappers[name]; ok {
		return wrap(name, wr)
	}
	return viaOptions
}

var interpreter = regexp.MustCompile(`^(python|pypy|perl|ruby|irb|node|nodejs|deno|bun|php|lua|luajit|tclsh|wish|rscript|r|julia|guile|groovy|scala|elixir|erl|racket|sbcl|clisp|ghci|runghc|jshell|swift|raku|ocaml|pwsh|powershell|sqlite3|psql|mysql|octave|gnuplot|dc|docker|podman|nerdctl|kubectl|lxc)[0-9.]*w?$`)

// words are programs that open no file and run nothing by their arguments.
func words(w *walker, f []string, s *state, in input) {
	w.command(f)
	args := f[1:]
	switch f[0] {
	case "test", "[", "unset", "read", "mapfile", "readarray", "printf", "export", "local", "declare", "typeset", "readonly", "wait", "getopts":
		for _, a := range args {
			if (f[0] != "printf" || len(args) > 1 && args[0] == "-v" && a == args[1]) && strings.Contains(a, "[") && strings.ContainsAny(a, "$`") {
				w.hidden("a name holds a command")
			}
		}
	}
	switch f[0] {
	case "test", "[":
		for _, a := range args {
			if !unresolved(a) && strings.ContainsAny(a, "/.") {
				w.name(s, a)
			}
		}
	case "date", "logger":
		w.names(args, s)
	case "set":
		if i := slices.Index(args, "--"); i >= 0 {
			s.params, s.lost = slices.Clone(args[i+1:]), false
		} else if len(args) > 0 && !strings.HasPrefix(args[0], "-") && !strings.HasPrefix(args[0], "+") {
			s.params, s.lost = slices.Clone(args), false
		}
	case "shift":
		if len(args) == 0 && len(s.params) > 0 {
			s.params = s.params[1:]
		} else {
			s.params, s.lost = nil, true
		}
	case "unset":
		for _, a := range args {
			delete(s.vars, a)
			delete(s.funcs, a)
		}
	case "read", "mapfile", "readarray", "getopts":
		w.reads(f[0], args, s, in)
	case "printf":
		if len(args) > 2 && args[0] == "-v" {
			out, ok := formatted(args[1+1], args[3:])
			if !ok || unresolved(out) {
				out = string(unknown)
			}
			w.set(args[1], []string{out}, s)
		}
	case "export", "local", "declare", "typeset", "readonly":
		for _, a := range args {
			w.assignField(a, s)
		}
	case "popd":
		s.cwd = string(unknown)
	}
}

// reads sets the variables that a builtin fills from its input.
func (w *walker) reads(name string, args []string, s *state, in input) {
	value := string(unknown)
	var names []string
	for _, a := range args {
		if strings.HasPrefix(a, "-C") {
			w.hidden("a command is called back")
		}
		if !strings.HasPrefix(a, "-") {
			names = append(names, a)
		}
	}
	if name == "read" && len(names) == 1 && in.known {
		value = strings.TrimSpace(strings.SplitN(in.text, "\n", 2)[0])
	}
	for _, n := range append(names, "REPLY", "MAPFILE", "OPTARG") {
		if syntaxName(n) {
			w.set(n, []string{value}, s)
		}
	}
}

func syntaxName(n string) bool { return n != "" && !strings.ContainsAny(n, "/.=$[") }

func cd(w *walker, f []string, s *state, _ input) {
	w.command(f)
	args := slices.DeleteFunc(slices.Clone(f[1:]), func(a string) bool { return a == "-P" || a == "-L" || a == "--" || a == "-e" })
	switch {
	case len(args) == 0 && f[0] == "cd":
		s.cwd = string(home)
	case len(args) == 1:
		chdir(w, args[0], s)
	default:
		s.cwd = string(unknown)
	}
}

func chdir(w *walker, to string, s *state) {
	if unresolved(to) || to == "-" || globbed(to) {
		w.hidden("a change of folder cannot be resolved")
		s.cwd = string(unknown)
		return
	}
	w.name(s, to)
	if s.cwd = s.at(to); s.cwd == "" {
		s.cwd = "."
	}
	s.cwd = path.Clean(s.cwd)
}

// lookUp is command: with -v and -V it only tells where a program is.
func lookUp(w *walker, f []string, s *state, in input) {
	if len(f) > 1 && (strings.HasPrefix(f[1], "-v") || strings.HasPrefix(f[1], "-V")) {
		w.command(f)
		return
	}
	wrap("command", wrappers["command"])(w, f, s, in)
}

// topDirectories are directories without which a machine does not start or is empty.
var topDirectories = []string{"bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "srv", "sys", "usr", "var", "mnt", "media", "Users", "System", "Library", "Applications"}

// processRoot begins names of the root or working directory of a process.
var processRoot = regexp.MustCompile(`^/+proc/+[^/]+/+(root|cwd)(/|$)`)

// whole reports whether a name is the whole file system, a system directory or
// the home directory of a user. A glob is whole when it matches one of them.
func whole(f string) bool {
	f = shown(f)
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
	clean = processRoot.ReplaceAllString(clean, "/")
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

// rm refuses what deletes the file system or a home; what it cannot tell from
// that is hidden.
func rm(w *walker, f []string, s *state, _ input) {
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
		w.removes(s, t, recursive)
	}
	w.plain(f, s)
}

func (w *walker) removes(s *state, target string, recursive bool) {
	t := s.at(target)
	if target == "" {
		return
	}
	switch bare := strings.ReplaceAll(t, string(unknown), ""); {
	case unresolved(t):
		w.hidden("what is deleted cannot be resolved")
		if recursive && strings.HasPrefix(t, string(home)) && whole(bare) {
			w.danger("deleting a home folder")
		}
	case whole(t) && recursive:
		w.danger("deleting " + shown(t) + " with everything in it")
	case whole(t):
		w.hidden("it deletes " + shown(t))
	case recursive && (t == "." || t == "./" || t == string(star) || t == "./"+string(star)):
		w.hidden("it deletes everything in the working directory")
	case recursive && climbs(t):
		w.hidden("it deletes a directory that contains the working directory")
	}
}

// climbs reports whether a name is only a way up, or all that is up there.
func climbs(f string) bool {
	f = path.Clean(shown(f))
	f = strings.TrimSuffix(f, "/*")
	return f == ".." || strings.HasSuffix(f, "/..")
}

var open777 = regexp.MustCompile(`^[0-7]?[0-7][0-7][2367]$|[ao]*[ugoa]*[+=][rwxXst]*w`)

func chmod(w *walker, f []string, s *state, _ input) {
	recursive, opens := false, f[0] != "chmod" && f[0] != "gchmod"
	for _, a := range f[1:] {
		if strings.HasPrefix(a, "--") {
			recursive = recursive || strings.HasPrefix("--recursive", a) && len(a) > 2
		} else if strings.HasPrefix(a, "-") {
			recursive = recursive || strings.Contains(a, "R")
		}
		opens = opens || open777.MatchString(a) || unresolved(a)
	}
	for _, a := range f[1:] {
		if t := s.at(a); recursive && whole(t) {
			if clean := path.Clean(shown(t)); clean == "/" || clean == "/*" || opens {
				w.danger("changing the rights of all of " + shown(t))
			}
		}
	}
	w.plain(f, s)
}

func dd(w *walker, f []string, s *state, _ input) {
	for _, a := range f[1:] {
		target, writes := strings.CutPrefix(a, "of=")
		if strings.HasPrefix(a, "if=") || writes && strings.HasPrefix(path.Clean(shown(s.at(target))), "/dev/") && path.Clean(target) != "/dev/null" {
			w.danger("dd: copying a disk")
		}
	}
	w.plain(f, s)
}

func disk(w *walker, f []string, _ *state, _ input) {
	if len(f) == 2 && slices.Contains([]string{"-l", "--help", "--version"}, f[1]) {
		w.command(f)
		return
	}
	w.danger(f[0] + ": making or wiping a file system")
}
