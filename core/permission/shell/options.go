package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// writes are programs that write to what they are told: a disk itself is
// refused, and so is a privileged program under another name.
func writes(w *walker, f []string, s *state, in input) {
	for _, a := range f[1:] {
		if device.MatchString(path.Clean(shown(s.at(a)))) {
			w.danger("writing to a disk itself")
		}
		if f[0] != "tee" && strings.Contains(a, "/") && privileged[path.Base(a)] {
			w.danger(path.Base(a) + " under another name")
		}
	}
	if f[0] == "mv" && len(f) > 2 {
		for _, a := range f[1 : len(f)-1] {
			if !strings.HasPrefix(a, "-") && whole(s.at(a)) {
				w.danger("moving " + shown(a) + " away")
			}
		}
	}
	if f[0] == "rsync" && slices.ContainsFunc(f, func(a string) bool { return strings.HasPrefix(a, "--del") }) && whole(s.at(f[len(f)-1])) {
		w.danger("deleting " + shown(f[len(f)-1]) + " with everything in it")
	}
	viaOptions(w, f, s, in)
}

// searches are programs whose first argument is a pattern and no file.
func searches(w *walker, f []string, s *state, in input) {
	args := slices.Clone(f)
	given := slices.ContainsFunc(f, func(a string) bool {
		return a == "-e" || a == "-f" || strings.HasPrefix(a, "--regexp") || strings.HasPrefix(a, "--file") || strings.HasPrefix(a, "--pre")
	})
	for i := 1; i < len(args) && !given; i++ {
		if !strings.HasPrefix(args[i], "-") {
			args[i] = "PATTERN"
			w.quiet++
			viaOptions(w, args, s, in)
			w.quiet--
			w.command(f)
			if slices.ContainsFunc(args[1:], unresolved) {
				w.hidden("an argument of " + f[0] + " cannot be resolved")
			}
			w.names(slices.Delete(args, i, i+1)[1:], s)
			return
		}
	}
	viaOptions(w, f, s, in)
}

// harmless are scripts of sed that run and write nothing.
var harmless = regexp.MustCompile(`^(\s*((\d+|\$|/([^/\\]|\\.)*/I?)(,(\+?\d+|\$|/([^/\\]|\\.)*/I?))?\s*)?!?\s*(s/([^/\\]|\\.)*/([^/\\]|\\.)*/[gpiI0-9]*|s\|([^|\\]|\\.)*\|([^|\\]|\\.)*\|[gpiI0-9]*|s#([^#\\]|\\.)*#([^#\\]|\\.)*#[gpiI0-9]*|s,([^,\\]|\\.)*,([^,\\]|\\.)*,[gpiI0-9]*|[pdDqQGHhgxnNP=]|y/[^/]*/[^/]*/|[aic]\\?\s.*)?\s*(;|\n|$))+$`)

// compared is a comparison with a number, which writes no file.
var compared = regexp.MustCompile(`>=?\s*[0-9]+`)

// scripted are awk and sed, whose scripts can run commands.
func scripted(w *walker, f []string, s *state, _ input) {
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
			w.hidden(f[0] + " runs a script, which is not seen")
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
				w.hidden(f[0] + " has an option that may load a script")
				for _, later := range f[i+1:] {
					w.quoted(shown(later), s)
				}
			}
			if strings.HasPrefix(a, "-f") || sed && strings.HasPrefix(a, "-n") && strings.HasSuffix(a, "e") && i+1 < len(f) {
				w.hidden(f[0] + " runs a script, which is not seen")
			}
		case len(script) == 0:
			script = append(script, a)
		default:
			files = append(files, a)
		}
	}
	for _, text := range script {
		text = shown(text)
		if sed && text != "" && !harmless.MatchString(text) || !sed && (strings.ContainsAny(text, "|@") || strings.Contains(text, "system") || strings.Contains(text, "getline") || strings.Contains(compared.ReplaceAllString(text, ""), ">")) {
			w.hidden(f[0] + " has a script that may run commands or write files")
			w.quoted(text, s)
		}
	}
	w.command(f)
	if slices.ContainsFunc(f[1:], unresolved) {
		w.hidden("an argument of " + f[0] + " cannot be resolved")
	}
	w.names(files, s)
}

var quote = regexp.MustCompile(`"([^"]*)"|'([^']*)'`)

// quoted looks for what is forbidden in the texts that a foreign script quotes.
func (w *walker) quoted(script string, s *state) {
	w.quiet++
	defer func() { w.quiet-- }()
	for _, m := range quote.FindAllStringSubmatch(script, maxAlts) {
		w.run(m[1]+m[2], s.clone(), input{})
	}
}

// flagOnly are options of interpreters that take no value.
var flagOnly = regexp.MustCompile(`^(-[uqBsOvEwt]+|--|--[a-z-]+=.*)$`)

// interpret are programs that run texts in other languages, or commands
// elsewhere: what is given in the arguments or on the input is not seen.
func interpret(w *walker, f []string, s *state, in input) {
	w.command(f)
	w.names(f[1:], s)
	if slices.ContainsFunc(f[1:], unresolved) {
		w.hidden("an argument of " + f[0] + " cannot be resolved")
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
			inline = inline || i > 0 && strings.HasPrefix(f[i], "-") && !flagOnly.MatchString(f[i]) // or is it that option's value?
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
		w.hidden(f[0] + " runs a text that is not followed")
		for _, a := range f[1:] {
			w.quoted(shown(a), s)
		}
	case operand == "" && !asks:
		w.hidden(f[0] + " runs what it reads")
		if in.known {
			w.quoted(in.text, s)
		}
	}
}

// unseen are programs that run or change what the text does not show.
func unseen(w *walker, f []string, s *state, _ input) {
	w.command(f)
	w.names(f[1:], s)
	if len(f) == 1 && f[0] == "history" || len(f) == 2 && slices.Contains([]string{"-l", "--version", "--help", "-h", "-r"}, f[1]) {
		return
	}
	w.hidden(f[0] + " can run commands that are not seen")
	w.quiet++
	defer func() { w.quiet-- }()
	for i, a := range f[1:] {
		if privileged[path.Base(a)] {
			w.exec(slices.Clone(f[1+i:]), s.clone(), input{})
		}
		if strings.Contains(a, " ") {
			w.run(strings.TrimLeft(a, "!:+"), s.clone(), input{})
		}
	}
}

// ssh runs its further arguments in a shell elsewhere.
func ssh(w *walker, f []string, s *state, in input) {
	if f[0] == "sshpass" {
		wrap("sshpass", wrapper{valued: "p f d P", flags: "e v"})(w, f, s, in)
		return
	}
	w.command(f)
	w.names(f[1:], s)
	rest, ok := operands(f[1:], wrapper{valued: "b c D E e F I i J L l m O o p Q R S W w B", flags: "4 6 A a C f G g K k M N n q s T t tt V v vv vvv X x Y y"})
	if !ok || slices.ContainsFunc(f, func(a string) bool {
		return strings.HasPrefix(a, "-F") || strings.Contains(strings.ToLower(a), "command")
	}) {
		w.hidden("an option of " + f[0] + " can run commands")
	}
	if len(rest) < 2 {
		if in.piped && len(rest) == 1 {
			w.hidden("a shell elsewhere runs what it reads")
			if in.known {
				w.quiet++
				w.run(in.text, newState(), input{})
				w.quiet--
			}
		}
		return
	}
	if rest = rest[1:]; rest[0] == "--" {
		rest = rest[1:]
	}
	w.run(strings.Join(rest, " "), newState(), in)
}

// texts are programs that run a command, or a text in a shell.
func texts(w *walker, f []string, s *state, in input) {
	args := f[1:]
	switch f[0] {
	case "flock":
		rest, ok := operands(args, wrapper{valued: "w E timeout", flags: "s x e u n o F v shared exclusive unlock nonblock"})
		if ok && len(rest) > 1 && rest[1] != "-c" {
			w.exec(slices.Clone(rest[1:]), s.clone(), in)
			return
		}
	case "watch":
		if rest, ok := operands(args, wrapper{valued: "n interval q equexit", flags: "b c d e g t x p beep color differences errexit chgexit no-title exec precise"}); ok && len(rest) > 0 {
			w.run(strings.Join(rest, " "), s.clone(), in)
			return
		}
	case "tmux", "screen":
		if len(args) == 1 && (args[0] == "ls" || args[0] == "-ls") {
			w.command(f)
			return
		}
	}
	w.command(f)
	clear := false
	if i := slices.Index(args, "-c"); i >= 0 && i+1 < len(args) {
		w.run(args[i+1], s.clone(), in)
		clear = f[0] != "expect"
	}
	if !clear {
		w.hidden(f[0] + " can run commands that are not seen")
		w.quiet++
		for i := range args {
			if !strings.HasPrefix(args[i], "-") {
				rest := slices.Clone(args[i:])
				if j := slices.Index(rest, ":::"); j > 0 {
					rest = append(rest[:j], rest[j+1:]...)
				}
				w.run(strings.Join(rest, " "), s.clone(), in)
			}
		}
		w.quiet--
	}
}

// running are options and words of programs by which they run others.
var running = map[string]*regexp.Regexp{
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

// viaOptions is a program that may run others by its options.
func viaOptions(w *walker, f []string, s *state, _ input) {
	if re := running[f[0]]; re != nil {
		for i, a := range f[1:] {
			if !re.MatchString(a) {
				continue
			}
			w.hidden("an option of " + f[0] + " runs a command")
			_, text, _ := strings.Cut(a, "=")
			if i+2 < len(f) {
				text += "\n" + f[i+2]
			}
			w.quiet++
			w.run(strings.TrimPrefix(text, "exec="), s.clone(), input{})
			w.quiet--
		}
	}
	w.plain(f, s)
}

// git runs commands by its configuration and by some of its subcommands.
func git(w *walker, f []string, s *state, in input) {
	i := 1
	for i < len(f) && strings.HasPrefix(f[i], "-") {
		switch a := f[i]; {
		case a == "-c" || a == "--config-env" || a == "--exec-path":
			if i++; i < len(f) && !strings.HasPrefix(f[i], "user.") && !strings.HasPrefix(f[i], "color.") && !strings.HasPrefix(f[i], "core.quot") {
				w.runsIn(f[i], s)
			}
		case strings.HasPrefix(a, "--exec-path=") || strings.HasPrefix(a, "--config-env=") || strings.HasPrefix(a, "-c"):
			w.runsIn(a, s)
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
			w.runsIn(strings.Join(args, " "), s)
		case "submodule":
			if has("foreach") {
				w.runsIn(strings.Join(args[slices.Index(args, "foreach")+1:], " "), s)
			}
		case "bisect":
			if has("run") {
				w.exec(slices.Clone(args[1:]), s.clone(), in)
			}
		case "rebase":
			for j, a := range args {
				if text, ok := strings.CutPrefix(a, "--exec="); ok {
					w.runsIn(text, s)
				} else if (a == "-x" || a == "--exec") && j+1 < len(args) {
					w.runsIn(args[j+1], s)
				}
			}
		case "config":
			if has("alias.", "core.", "pager.", "filter.", "diff.", "merge.", "credential.", "gpg.", "protocol.", "sequence.", "include", "url.", "uploadpack.", "remote.") && len(args) > 1 {
				w.runsIn(strings.Join(args[1:], " "), s)
			}
		case "clone", "fetch", "pull", "push", "ls-remote", "archive", "fetch-pack":
			if has("--upload-pack", "--receive-pack", "--exec", "-u", "ext::", "--config", "-c", "--template") && !(f[i] == "push" && !has("--receive-pack", "--exec", "ext::")) {
				w.runsIn(strings.Join(args, " "), s)
			}
		case "grep":
			if has("-O", "--open-files") {
				w.runsIn(strings.Join(args, " "), s)
			}
		case "commit", "tag", "merge", "notes":
			w.messages(f, i, s)
			return
		}
	}
	w.plain(f, s)
}

// messages are subcommands of git whose -m is text.
func (w *walker) messages(f []string, i int, s *state) {
	w.command(f)
	for ; i < len(f); i++ {
		switch a := f[i]; {
		case a == "-m" || a == "--message" || a == "-am":
			i++
		case strings.HasPrefix(a, "-m") || strings.HasPrefix(a, "--message="):
		default:
			if unresolved(a) {
				w.hidden("an argument of git cannot be resolved")
			}
			w.names([]string{a}, s)
		}
	}
}

// runsIn means that a text of git's is run as a command.
func (w *walker) runsIn(text string, s *state) {
	w.hidden("git runs a command by its options")
	w.quiet++
	defer func() { w.quiet-- }()
	_, after, ok := strings.Cut(text, "=")
	if ok {
		w.run(strings.TrimPrefix(after, "!"), s.clone(), input{})
	}
	w.run(strings.Trim(text, "!'\""), s.clone(), input{})
}
