package programs

import (
	"slices"
	"strconv"
	"strings"

	"gatehouse/core/permission/shell/walk"
)

// A wrapper runs the command among its arguments.
type wrapper struct {
	valued string // options that take a value, letters and long names, between blanks
	flags  string // options that take none
	skip   int    // arguments before the command
}

var wrappers = map[string]wrapper{
	"nohup": {}, "setsid": {flags: "c f w ctty fork wait"}, "builtin": {}, "busybox": {}, "toybox": {}, "chronic": {flags: "v e"}, "unbuffer": {flags: "p"},
	"caffeinate": {valued: "t w", flags: "d i m s u"}, "catchsegv": {}, "fakeroot": {valued: "l s i b"}, "linux64": {}, "linux32": {}, "rlwrap": {},
	"nice":    {valued: "n adjustment"},
	"ionice":  {valued: "c n class classdata", flags: "t ignore"},
	"time":    {valued: "f o format output", flags: "p v a portability verbose append"},
	"gtime":   {valued: "f o format output", flags: "p v a"},
	"timeout": {valued: "k s kill-after signal", flags: "v foreground preserve-status verbose", skip: 1},
	"stdbuf":  {valued: "i o e walk.Input output error"},
	"exec":    {valued: "a", flags: "c l"},
	"command": {flags: "p"},
	"chrt":    {flags: "b f i o r a", skip: 1}, "taskset": {flags: "c a", skip: 1}, "setarch": {flags: "R", skip: 1},
	"strace": {valued: "e o p s u a b E I O P S X", flags: "f ff q qq c C d i k n r t tt ttt T v x xx y yy"},
	"ltrace": {valued: "e o s n l", flags: "f c C r t tt S"}, "valgrind": {flags: "q"}, "gdb": {flags: "args"},
	"chroot": {skip: 1, valued: "userspec groups"}, "xvfb-run": {valued: "n s e f p w", flags: "a"}, "torsocks": {}, "proxychains": {valued: "f", flags: "q"},
	"faketime": {flags: "f m", skip: 1}, "dbus-run-session": {flags: "-"}, "ssh-agent": {flags: "a k s c"},
	"ld.so": {}, "sem": {}, "entr": {flags: "r c d n p s z"}, "then": {}, "coproc": {}, "prlimit": {valued: "p o"}, "perf": {skip: 1},
}

// wrap examines the command behind a wrapper.
func wrap(name string, wr wrapper) walk.Handler {
	return func(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
		rest, ok := operands(f[1:], wr)
		if !ok {
			w.Hidden("an option of " + name + " is not known")
			defer w.Quiet()()
			for i, a := range f[1:] { // whichever of them is the command
				if walk.Privileged(strings.ToLower(a[strings.LastIndexByte(a, '/')+1:])) {
					w.Exec(f[1+i:], s.Clone(), in)
				}
			}
			return
		}
		rest = rest[min(wr.skip, len(rest)):]
		if len(rest) > 0 && rest[0] == "--" {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			w.Plain(f, s)
			return
		}
		w.Exec(slices.Clone(rest), s, in)
	}
}

// operands returns the arguments from the first that is no option on; ok is false
// when an option is not known, so that no one knows where they begin.
func operands(args []string, wr wrapper) (rest []string, ok bool) {
	valued, flags := strings.Fields(wr.valued), strings.Fields(wr.flags)
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			return args, true
		}
		if long, isLong := strings.CutPrefix(a, "--"); isLong {
			name, _, has := strings.Cut(long, "=")
			switch {
			case has || slices.Contains(flags, name):
			case slices.Contains(valued, name) && len(args) > 0:
				args = args[1:]
			default:
				return nil, false
			}
			continue
		}
		if _, err := strconv.Atoi(a[1:]); err == nil { // nice -10
			continue
		}
		if slices.Contains(flags, a[1:]) {
			continue
		}
		for i, r := range a[1:] {
			letter := string(r)
			if slices.Contains(valued, letter) {
				if i == len(a)-2 && len(args) > 0 {
					args = args[1:]
				}
				break
			}
			if !slices.Contains(flags, letter) {
				return nil, false
			}
		}
	}
	return args, true
}

func env(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	args := f[1:]
	inside := s.Clone()
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a == "-" || a == "-i" || a == "--ignore-environment" || a == "-0" || a == "--null" || a == "-v" || a == "--debug" || a == "-iv":
		case (a == "-u" || a == "--unset" || a == "-C" || a == "--chdir") && len(args) > 0:
			if a == "-C" || a == "--chdir" {
				chdir(w, args[0], inside)
			}
			args = args[1:]
		case strings.HasPrefix(a, "--unset=") || strings.HasPrefix(a, "-u"):
		case strings.HasPrefix(a, "--chdir=") || strings.HasPrefix(a, "-C"):
			chdir(w, strings.TrimPrefix(strings.TrimPrefix(a, "--chdir="), "-C"), inside)
		case a == "-S" || a == "--split-string" || a == "-iS" || a == "-vS":
			w.Run(strings.ReplaceAll(strings.Join(args, " "), `\_`, " "), inside, in)
			return
		case strings.HasPrefix(a, "-S") || strings.HasPrefix(a, "--split-string="):
			text := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(a, "--split-string="), "-S"), `\_`, " ")
			w.Run(text+" "+walk.Rejoin(args), inside, in)
			return
		case a == "--":
			if len(args) > 0 && !strings.Contains(args[0], "=") {
				w.Exec(slices.Clone(args), inside, in)
				return
			}
		case strings.HasPrefix(a, "-"):
			w.Hidden("an option of env is not known")
		case strings.Contains(a, "="):
			w.Assign(a, inside)
		default:
			w.Exec(append([]string{a}, args...), inside, in)
			return
		}
	}
	w.Command(f)
}

// sh examines a shell: the text of -c, a script, or its input.
func sh(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	args, text, script := f[1:], false, true
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		a := args[0]
		args = args[1:]
		switch {
		case a == "--":
		case a == "--version" || a == "--help":
			w.Command(f)
			return
		case a == "--rcfile" || a == "--init-file":
			w.Hidden("a shell reads its commands from a file")
			args = args[min(1, len(args)):]
			continue
		case strings.HasPrefix(a, "--"):
			text = text || strings.HasPrefix(a, "--command")
			if _, v, ok := strings.Cut(a, "="); ok && text {
				args = append([]string{v}, args...)
			}
			continue
		default:
			text = text || a[0] == '-' && strings.Contains(a, "c")
			script = script && !strings.Contains(a, "s")
			if strings.ContainsAny(a, "oO") && len(args) > 0 {
				args = args[1:]
			}
			continue
		}
		break
	}
	inside := walk.NewState()
	inside.Cwd, inside.Vars = s.Cwd, s.Clone().Vars
	switch {
	case text && len(args) > 0:
		inside.Params = args[min(2, len(args)):]
		if len(args) > 1 {
			inside.Zero = args[1]
		}
		w.Run(args[0], inside, in)
	case text:
		w.Hidden("a shell runs a text that is not there")
	case script && len(args) > 0 && args[0] != "-" && args[0] != "/dev/stdin":
		w.Command(f)
		w.Hidden("a shell runs a script, whose commands are not seen")
		w.Names(args, s)
	case in.Known:
		inside.Params = args
		w.Run(in.Text, inside, walk.Input{})
	default:
		w.Command(f)
		w.Hidden("a shell runs what it reads")
	}
}

func eval(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	w.Run(strings.Join(f[1:], " "), s, in)
}

func source(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	w.Command(f)
	w.Names(f[1:], s)
	if len(f) > 1 && f[1] == "/dev/stdin" && in.Known {
		w.Run(in.Text, s, walk.Input{})
		return
	}
	w.Hidden("it runs a script, whose commands are not seen")
	s.Lost = true
}

func trap(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	if len(f) > 2 && f[1] != "-" && f[1] != "-p" && f[1] != "-l" {
		w.Run(f[1], s.Clone(), walk.Input{})
	}
	if len(f) > 3 && f[1] == "--" {
		w.Run(f[2], s.Clone(), walk.Input{})
	}
}

func alias(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	for _, a := range f[1:] {
		if name, text, ok := strings.Cut(a, "="); ok {
			loud := w.Quiet()
			w.Run(text, s.Clone(), walk.Input{})
			loud()
			s.Aliases[name] = text
		}
	}
	w.Command(f)
}

func xargs(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	rest, ok := operands(f[1:], wrapper{
		valued: "a d E I L n P s arg-file delimiter max-args max-chars max-lines max-procs replace process-slot-var R J S",
		flags:  "0 r t x p o null no-run-if-empty verbose exit interactive open-tty i l e",
	})
	if !ok {
		w.Hidden("an option of xargs is not known")
		rest = f[1:]
	}
	if len(rest) == 0 {
		rest = []string{"echo"}
	}
	more := []string{string(walk.Unknown)}
	if in.Known && in.Piped && !slices.ContainsFunc(f, func(a string) bool { return strings.HasPrefix(a, "-a") || strings.HasPrefix(a, "--arg") }) {
		more = strings.FieldsFunc(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(in.Text), func(r rune) bool { return r == ' ' || r == '\n' || r == '\t' || r == 0 })
	}
	run := slices.Clone(rest)
	for i, a := range f[1:] {
		replace, inline := strings.CutPrefix(a, "-I")
		if a == "-I" && i+2 < len(f) {
			replace, inline = f[i+2], true
		} else if a == "-i" {
			replace, inline = "{}", true
		}
		if inline && replace != "" {
			for j := range run {
				run[j] = strings.ReplaceAll(run[j], replace, strings.Join(more, " "))
			}
			w.Exec(run, s.Clone(), walk.Input{Piped: true})
			return
		}
	}
	w.Exec(append(run, more...), s.Clone(), walk.Input{Piped: true})
}

func find(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	var roots []string
	tests := 0
	for i := 1; i < len(f); i++ {
		switch a := f[i]; a {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(f) && f[end] != ";" && f[end] != "+" {
				end++
			}
			found(w, roots, tests, f[i+1:end], s)
			i = end
		case "-delete":
			found(w, roots, tests, []string{"rm", "-rf", "{}"}, s)
		case "-fprintf", "-fprint", "-fls", "-fprint0":
			if i+1 < len(f) {
				w.Command([]string{">", f[i+1]})
			}
		case "-type", "-maxdepth", "-mindepth", "-H", "-L", "-P", "-xdev", "-mount", "-depth", "-print":
			if a == "-type" && i+1 < len(f) && f[i+1] != "d" {
				tests++
			}
		default:
			if strings.HasPrefix(a, "-O") || a == "--" {
				continue
			}
			if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
				tests++
			} else if whole(s.At(a)) {
				roots = append(roots, a)
			} else if tests == 0 && (i == 1 || !strings.HasPrefix(f[i-1], "-") || strings.Contains("-H-L-P", f[i-1])) {
				roots = append(roots, a)
			}
		}
	}
	w.Plain(f, s)
}

// found examines what find runs on what it finds below roots.
func found(w *walk.Walker, roots []string, tests int, run []string, s *walk.State) {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	for _, root := range roots {
		// Below a directory something is found, and with no test the directory itself is.
		for _, hit := range []string{strings.TrimRight(root, "/") + "/" + string(walk.Digits) + "/" + string(walk.Digits) + "/x", root} {
			if hit == root && tests > 0 && !walk.Unresolved(root) {
				if whole(s.At(root)) {
					w.Hidden("find runs something all over " + walk.Shown(root))
				}
				continue
			}
			args := make([]string, len(run))
			for i, a := range run {
				args[i] = strings.ReplaceAll(a, "{}", hit)
			}
			if hit == root {
				w.Exec(args, s.Clone(), walk.Input{})
				continue
			}
			loud := w.Quiet()
			w.Exec(args, s.Clone(), walk.Input{})
			loud()
		}
		if tests > 0 {
			args := make([]string, len(run))
			for i, a := range run {
				args[i] = strings.ReplaceAll(a, "{}", strings.TrimRight(root, "/")+"/"+string(walk.Digits)+"/x")
			}
			w.Exec(args, s.Clone(), walk.Input{})
		}
	}
}
