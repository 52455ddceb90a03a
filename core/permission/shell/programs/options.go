package programs

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gatehouse/core/permission/shell/walk"
)

// writes examines programs that write to the files in their arguments. It refuses
// disks, and privileged programs under another name.
func writes(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	for _, a := range f[1:] {
		if walk.IsDisk(path.Clean(walk.Shown(s.At(a)))) {
			w.Danger("writing to a disk itself")
		}
		if f[0] != "tee" && strings.Contains(a, "/") && walk.Privileged(path.Base(a)) {
			w.Danger(path.Base(a) + " under another name")
		}
	}
	if f[0] == "mv" && len(f) > 2 {
		for _, a := range f[1 : len(f)-1] {
			if !strings.HasPrefix(a, "-") && whole(s.At(a)) {
				w.Danger("moving " + walk.Shown(a) + " away")
			}
		}
	}
	if f[0] == "rsync" && slices.ContainsFunc(f, func(a string) bool { return strings.HasPrefix(a, "--del") }) && whole(s.At(f[len(f)-1])) {
		w.Danger("deleting " + walk.Shown(f[len(f)-1]) + " with everything in it")
	}
	viaOptions(w, f, s, in)
}

// searches examines programs whose first argument is a pattern and no file.
func searches(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	args := slices.Clone(f)
	given := slices.ContainsFunc(f, func(a string) bool {
		return a == "-e" || a == "-f" || strings.HasPrefix(a, "--regexp") || strings.HasPrefix(a, "--file") || strings.HasPrefix(a, "--pre")
	})
	for i := 1; i < len(args) && !given; i++ {
		if !strings.HasPrefix(args[i], "-") {
			args[i] = "PATTERN"
			loud := w.Quiet()
			viaOptions(w, args, s, in)
			loud()
			w.Command(f)
			if slices.ContainsFunc(args[1:], walk.Unresolved) {
				w.Hidden("an argument of " + f[0] + " cannot be resolved")
			}
			w.Names(slices.Delete(args, i, i+1)[1:], s)
			return
		}
	}
	viaOptions(w, f, s, in)
}

// harmless are scripts of sed that run and write nothing.
var harmless = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\s*((\d+|\$|/([^/\\]|\\.)*/I?)(,(\+?\d+|\$|/([^/\\]|\\.)*/I?))?\s*)?!?\s*(s/([^/\\]|\\.)*/([^/\\]|\\.)*/[gpiI0-9]*|s\|([^|\\]|\\.)*\|([^|\\]|\\.)*\|[gpiI0-9]*|s#([^#\\]|\\.)*#([^#\\]|\\.)*#[gpiI0-9]*|s,([^,\\]|\\.)*,([^,\\]|\\.)*,[gpiI0-9]*|[pdDqQGHhgxnNP=]|y/[^/]*/[^/]*/|[aic]\\?\s.*)?\s*(;|\n|$))+$`)
})

// compared is a comparison with a number, which writes no file.
var compared = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`>=?\s*[0-9]+`) })

// scripts examines awk and sed, whose scripts can run commands.
func scripts(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	sed := strings.HasSuffix(f[0], "sed")
	script, files := []string{}, []string{}
	for i := 1; i < len(f); i++ {
		a := f[i]
		switch {
		case a == "-e" || a == "--expression":
			if i++; i < len(f) {
				script = append(script, f[i])
			}
		case a == "-f" || strings.HasPrefix(a, "--file"):
			w.Hidden(f[0] + " runs a script, which is not seen")
			i++
			script = append(script, "")
		case strings.HasPrefix(a, "--expression="):
			script = append(script, strings.TrimPrefix(a, "--expression="))
		case !sed && (a == "-F" || a == "-v"):
			i++
		case strings.HasPrefix(a, "-e") && sed:
			script = append(script, a[2:])
		case strings.HasPrefix(a, "-") && len(a) > 1:
			if !sed && !strings.HasPrefix(a, "-F") && !strings.HasPrefix(a, "-v") && a != "--" && a != "--version" {
				w.Hidden(f[0] + " has an option that may load a script")
				for _, later := range f[i+1:] {
					quoted(w, walk.Shown(later), s)
				}
			}
			if strings.HasPrefix(a, "-f") || sed && strings.HasPrefix(a, "-n") && strings.HasSuffix(a, "e") && i+1 < len(f) {
				w.Hidden(f[0] + " runs a script, which is not seen")
			}
		case len(script) == 0:
			script = append(script, a)
		default:
			files = append(files, a)
		}
	}
	for _, text := range script {
		text = walk.Shown(text)
		if sed && text != "" && !harmless().MatchString(text) || !sed && (strings.ContainsAny(text, "|@") || strings.Contains(text, "system") || strings.Contains(text, "getline") || strings.Contains(compared().ReplaceAllString(text, ""), ">")) {
			w.Hidden(f[0] + " has a script that may run commands or write files")
			quoted(w, text, s)
		}
	}
	w.Command(f)
	if slices.ContainsFunc(f[1:], walk.Unresolved) {
		w.Hidden("an argument of " + f[0] + " cannot be resolved")
	}
	w.Names(files, s)
}

var quote = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([^"]*)"|'([^']*)'`) })

// maxQuoted limits the quoted texts of one script that are examined.
const maxQuoted = 16

// quoted examines the quoted texts of a script in another language, for danger only.
func quoted(w *walk.Walker, script string, s *walk.State) {
	defer w.Quiet()()
	for _, m := range quote().FindAllStringSubmatch(script, maxQuoted) {
		w.Run(m[1]+m[2], s.Clone(), walk.Input{})
	}
}

// flagOnly are options of interpreters that take no value.
var flagOnly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(-[uqBsOvEwt]+|--|--[a-z-]+=.*)$`) })

// interpret are programs that run texts in other languages, or commands
// elsewhere: what is given in the arguments or on the walk.Input is not seen.
func interpret(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	w.Command(f)
	w.Names(f[1:], s)
	if slices.ContainsFunc(f[1:], walk.Unresolved) {
		w.Hidden("an argument of " + f[0] + " cannot be resolved")
	}
	operand := ""
	inline := slices.ContainsFunc(f[1:], func(a string) bool { return strings.HasPrefix(a, "/dev/") || strings.HasPrefix(a, "/proc/") })
	for i, a := range f[1:] {
		switch {
		case slices.Contains([]string{"eval", "-eval", "--eval", "--print", "--execute", "--command", "--exec", "run", "exec", "create", "debug", "repl"}, a) && operand == "",
			strings.HasPrefix(a, "--eval=") || strings.HasPrefix(a, "--execute=") || strings.HasPrefix(a, "--command=") || strings.HasPrefix(a, "--print="):
			inline = true
		case strings.HasPrefix(a, "-m") && strings.HasPrefix(f[0], "py"):
			operand = "module"
			inline = inline || strings.HasSuffix(a, "timeit") || i+2 < len(f) && f[i+2] == "timeit"
		case strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && len(a) > 1 && operand == "":
			inline = inline || strings.ContainsAny(a, "cerEBRpS") && !slices.Contains([]string{"-version", "-V", "-S", "-p"}, a) || a == "-p"
		case !strings.HasPrefix(a, "-") && operand == "":
			operand = a
			inline = inline || i > 0 && strings.HasPrefix(f[i], "-") && !flagOnly().MatchString(f[i]) // or is it that option's value?
			if slices.Contains([]string{"sqlite3", "psql", "mysql"}, f[0]) && i+2 < len(f) {
				inline = true
			}
		}
	}
	asks := slices.ContainsFunc(f[1:], func(a string) bool {
		return slices.Contains([]string{"--version", "-V", "-v", "--help", "-h", "version"}, a)
	})
	switch {
	case inline:
		w.Hidden(f[0] + " runs a text that is not followed")
		for _, a := range f[1:] {
			quoted(w, walk.Shown(a), s)
		}
	case operand == "" && !asks:
		w.Hidden(f[0] + " runs what it reads")
		if in.Known {
			quoted(w, in.Text, s)
		}
	}
}

// opaque examines programs that run or change what the text does not show.
func opaque(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	w.Command(f)
	w.Names(f[1:], s)
	if len(f) == 1 && f[0] == "history" || len(f) == 2 && slices.Contains([]string{"-l", "--version", "--help", "-h", "-r"}, f[1]) {
		return
	}
	w.Hidden(f[0] + " can run commands that are not seen")
	defer w.Quiet()()
	for i, a := range f[1:] {
		if walk.Privileged(path.Base(a)) {
			w.Exec(slices.Clone(f[1+i:]), s.Clone(), walk.Input{})
		}
		if strings.Contains(a, " ") {
			w.Run(strings.TrimLeft(a, "!:+"), s.Clone(), walk.Input{})
		}
	}
}

// ssh examines the further arguments, which run in a shell elsewhere.
func ssh(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	if f[0] == "sshpass" {
		wrap("sshpass", wrapper{valued: "p f d P", flags: "e v"})(w, f, s, in)
		return
	}
	w.Command(f)
	w.Names(f[1:], s)
	rest, ok := operands(f[1:], wrapper{valued: "b c D E e F I i J L l m O o p Q R S W w B", flags: "4 6 A a C f G g K k M N n q s T t tt V v vv vvv X x Y y"})
	if !ok || slices.ContainsFunc(f, func(a string) bool {
		return strings.HasPrefix(a, "-F") || strings.Contains(strings.ToLower(a), "command")
	}) {
		w.Hidden("an option of " + f[0] + " can run commands")
	}
	if len(rest) < 2 {
		if in.Piped && len(rest) == 1 {
			w.Hidden("a shell elsewhere runs what it reads")
			if in.Known {
				loud := w.Quiet()
				w.Run(in.Text, walk.NewState(), walk.Input{})
				loud()
			}
		}
		return
	}
	if rest = rest[1:]; rest[0] == "--" {
		rest = rest[1:]
	}
	w.Run(strings.Join(rest, " "), walk.NewState(), in)
}

// runners examines programs that run a command, or a text in a shell.
func runners(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	args := f[1:]
	switch f[0] {
	case "flock":
		rest, ok := operands(args, wrapper{valued: "w E timeout", flags: "s x e u n o F v shared exclusive unlock nonblock"})
		if ok && len(rest) > 1 && rest[1] != "-c" {
			w.Exec(slices.Clone(rest[1:]), s.Clone(), in)
			return
		}
	case "watch":
		if rest, ok := operands(args, wrapper{valued: "n interval q equexit", flags: "b c d e g t x p beep color differences errexit chgexit no-title exec precise"}); ok && len(rest) > 0 {
			w.Run(strings.Join(rest, " "), s.Clone(), in)
			return
		}
	case "tmux", "screen":
		if len(args) == 1 && (args[0] == "ls" || args[0] == "-ls") {
			w.Command(f)
			return
		}
	}
	w.Command(f)
	clear := false
	if i := slices.Index(args, "-c"); i >= 0 && i+1 < len(args) {
		w.Run(args[i+1], s.Clone(), in)
		clear = f[0] != "expect"
	}
	if !clear {
		w.Hidden(f[0] + " can run commands that are not seen")
		loud := w.Quiet()
		for i := range args {
			if !strings.HasPrefix(args[i], "-") {
				rest := slices.Clone(args[i:])
				if j := slices.Index(rest, ":::"); j > 0 {
					rest = append(rest[:j], rest[j+1:]...)
				}
				w.Run(strings.Join(rest, " "), s.Clone(), in)
			}
		}
		loud()
	}
}

// running are options and arguments by which programs run others.
var running = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"tar":   regexp.MustCompile(`^(--checkpoint-action|--to-command|--use-compress-program|--rsh-command|--info-script|--new-volume-script|-[a-zA-Z]*[IF])`),
		"rsync": regexp.MustCompile(`^(--rsh|--rsync-path|-[a-zA-Z]*e)`),
		"scp":   regexp.MustCompile(`^-[SoFD]`), "sftp": regexp.MustCompile(`^-[SobFD]`),
		"rg": regexp.MustCompile(`^--(pre|hostname-bin)`), "ag": regexp.MustCompile(`^--pager`), "fd": regexp.MustCompile(`^(-[xX]|--exec)`), "fdfind": regexp.MustCompile(`^(-[xX]|--exec)`),
		"sort": regexp.MustCompile(`^--compress-program`), "zip": regexp.MustCompile(`^(-TT|-[a-zA-Z]*T|--unzip-command)`),
		"curl": regexp.MustCompile(`^(-K|--config)`), "wget": regexp.MustCompile(`^(--use-askpass|-e|--execute)`), "nmap": regexp.MustCompile(`^--(script|interactive)`),
		"split": regexp.MustCompile(`^--filter`), "make": regexp.MustCompile(`^(--eval|-f$|-f-|-f/dev|--file=-|SHELL=)`), "gmake": regexp.MustCompile(`^(--eval|SHELL=)`),
		"go": regexp.MustCompile(`^-(toolexec|exec|vettool)`), "npm": regexp.MustCompile(`^(exec|x)$`), "apt-get": regexp.MustCompile(`(?i)Invoke|^-o`), "apt": regexp.MustCompile(`(?i)Invoke|^-o`),
		"less": regexp.MustCompile(`^(\+|-k|--lesskey)`), "more": regexp.MustCompile(`^\+`), "man": regexp.MustCompile(`^(-P|--pager|-H|--html|-C|--config)`), "nano": regexp.MustCompile(`^-.*s`),
		"tcpdump": regexp.MustCompile(`^-z`), "logrotate": regexp.MustCompile(`.`),
	}
})

// viaOptions examines a program that may run others by its options.
func viaOptions(w *walk.Walker, f []string, s *walk.State, _ walk.Input) {
	if re := running()[f[0]]; re != nil {
		for i, a := range f[1:] {
			if !re.MatchString(a) {
				continue
			}
			w.Hidden("an option of " + f[0] + " runs a command")
			_, text, _ := strings.Cut(a, "=")
			if i+2 < len(f) {
				text += "\n" + f[i+2]
			}
			loud := w.Quiet()
			w.Run(strings.TrimPrefix(text, "exec="), s.Clone(), walk.Input{})
			loud()
		}
	}
	w.Plain(f, s)
}

// git examines git, which runs commands by its configuration and some subcommands.
func git(w *walk.Walker, f []string, s *walk.State, in walk.Input) {
	i := 1
	for i < len(f) && strings.HasPrefix(f[i], "-") {
		switch a := f[i]; {
		case a == "-c" || a == "--config-env" || a == "--exec-path":
			if i++; i < len(f) && !strings.HasPrefix(f[i], "user.") && !strings.HasPrefix(f[i], "color.") && !strings.HasPrefix(f[i], "core.quot") {
				runsIn(w, f[i], s)
			}
		case strings.HasPrefix(a, "--exec-path=") || strings.HasPrefix(a, "--config-env=") || strings.HasPrefix(a, "-c"):
			runsIn(w, a, s)
		case a == "-C" || a == "--git-dir" || a == "--work-tree":
			i++
		}
		i++
	}
	if i < len(f) {
		args := f[i+1:]
		has := func(prefixes ...string) bool {
			return slices.ContainsFunc(args, func(a string) bool {
				return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a, p) })
			})
		}
		switch f[i] {
		case "filter-branch", "difftool", "mergetool", "daemon", "instaweb":
			runsIn(w, strings.Join(args, " "), s)
		case "submodule":
			if has("foreach") {
				runsIn(w, strings.Join(args[slices.Index(args, "foreach")+1:], " "), s)
			}
		case "bisect":
			if has("run") {
				w.Exec(slices.Clone(args[1:]), s.Clone(), in)
			}
		case "rebase":
			for j, a := range args {
				if text, ok := strings.CutPrefix(a, "--exec="); ok {
					runsIn(w, text, s)
				} else if (a == "-x" || a == "--exec") && j+1 < len(args) {
					runsIn(w, args[j+1], s)
				}
			}
		case "config":
			if has("alias.", "core.", "pager.", "filter.", "diff.", "merge.", "credential.", "gpg.", "protocol.", "sequence.", "include", "url.", "uploadpack.", "remote.") && len(args) > 1 {
				runsIn(w, strings.Join(args[1:], " "), s)
			}
		case "clone", "fetch", "pull", "push", "ls-remote", "archive", "fetch-pack":
			if has("--upload-pack", "--receive-pack", "--exec", "-u", "ext::", "--config", "-c", "--template") && !(f[i] == "push" && !has("--receive-pack", "--exec", "ext::")) {
				runsIn(w, strings.Join(args, " "), s)
			}
		case "grep":
			if has("-O", "--open-files") {
				runsIn(w, strings.Join(args, " "), s)
			}
		case "commit", "tag", "merge", "notes":
			messages(w, f, i, s)
			return
		}
	}
	w.Plain(f, s)
}

// messages examines subcommands of git whose -m is text.
func messages(w *walk.Walker, f []string, i int, s *walk.State) {
	w.Command(f)
	for ; i < len(f); i++ {
		switch a := f[i]; {
		case a == "-m" || a == "--message" || a == "-am":
			i++
		case strings.HasPrefix(a, "-m") || strings.HasPrefix(a, "--message="):
		default:
			if walk.Unresolved(a) {
				w.Hidden("an argument of git cannot be resolved")
			}
			w.Names([]string{a}, s)
		}
	}
}

// runsIn examines a text that git runs as a command.
func runsIn(w *walk.Walker, text string, s *walk.State) {
	w.Hidden("git runs a command by its options")
	defer w.Quiet()()
	_, after, ok := strings.Cut(text, "=")
	if ok {
		w.Run(strings.TrimPrefix(after, "!"), s.Clone(), walk.Input{})
	}
	w.Run(strings.Trim(text, "!'\""), s.Clone(), walk.Input{})
}
