package permission

import (
	"math/rand/v2"
	"strings"
)

// canaries are programs that no generated command may run unasked.
var canaries = []string{"canary", "sudo", "env", "xargs", "sh", "bash", "python3", "perl", "make", "time", "timeout", "nice", "nohup", "kill", "tar", "vim", "ssh", "curl", "eval"}

// A maker makes commands over bash's grammar: mostly of what the reader
// understands, with anything else mixed in.
type maker struct{ *rand.Rand }

func (m *maker) one(list ...string) string { return list[m.IntN(len(list))] }

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

// line makes a command; some are then damaged at a random place.
func (m *maker) line() string {
	text := m.list(0)
	for m.chance(30) {
		at := m.IntN(len(text) + 1)
		text = text[:at] + m.fragment() + text[at:]
	}
	if m.chance(4) && len(text) > 1 {
		at := m.IntN(len(text))
		text = text[:at] + text[at+1:]
	}
	if m.chance(3) && len(text) > 4 {
		a, b := m.IntN(len(text)), m.IntN(len(text))
		text = text[:max(a, b)] + text[min(a, b):]
	}
	return text
}

// fragment is text that has, or once had, a meaning to a shell.
func (m *maker) fragment() string {
	return m.one("\r", "\x01", "\v", "\f", "\x1b[A", "\u00a0", "\u202e", "\u200b", "\x7f", "\xff", "\n", " ", "\t", ";", "&", "|", "||", "&&", "#", " # ", "\\", "\\\n", "'", "\"", "`", "$", "!",
		"`canary`", "$(canary)", "${x[$(canary)]}", "$((a[$(canary)]))", "$[a[$(canary)]]", "${x:-$(canary)}", "${!x}", "${x@P}", "$@", "$*", "$1", "$#", "$$", "$_", "$IFS", "$PATH", "${IFS}", "$'\\x63anary'", "$\"x\"",
		"(", ")", "((", "))", "{", "}", "[", "]", "[[", "]]", "{a,b}", "{1..3}", "{a..c}", "{,a}", "{canary,x}", "*", "?", "[a-c]", "[!-]*", "@(a|b)", "!(x)", "~", "~root", "~+", "=~", "=", "+=",
		"<", ">", ">>", "<<", "<<<", ">|", "<>", ">&", "&>", "2>&1", "3>x", "{fd}>x", "{a[$(canary)]}>x", "< /dev/tcp/h/1", "> ../x", ">&x", "<(canary)", ">(canary)", "<(ls)",
		"; canary", "\ncanary\n", " | canary", " && canary", "& canary", "\r canary", "\r\ncanary", " ; canary #", "' canary '", "\" canary \"",
		"a=1 ", "PATH=. ", "IFS=c ", "BASH_ENV=x ", "LC_ALL=C ", "x=1; ", "a=([$(canary)]=1)", "PS4='$(canary)' ", " then ", " do ", " done ", " fi ", "if ", "for x in ", "case x in x) ", " esac", "function ", "f() ", "coproc ", "time ", "! ", "select x in ",
		"\ncat <<E\n", "\nE\n", " <<'E'\n", " <<-E\n\t", "<<\\E\n", "<<\"E\"\n", "E", "$(", "`", "-v", "-R", " -v 'a[$(canary)]' ", "%n", "--", "-")
}

func (m *maker) list(depth int) string {
	out := m.pipeline(depth)
	for m.chance(30) {
		out += m.one(" && ", " || ", "; ", "\n", ";", " ;\n", "&&", "||", "; # note\n") + m.pipeline(depth)
	}
	return out
}

func (m *maker) pipeline(depth int) string {
	out := m.command(depth)
	for m.chance(20) {
		out += m.one(" | ", "|", " |& ", " |\n") + m.command(depth)
	}
	if m.chance(4) {
		out = "! " + out
	}
	return out
}

func (m *maker) command(depth int) string {
	if depth > 2 || m.chance(75) {
		return m.simple()
	}
	depth++
	switch m.IntN(9) {
	case 0:
		return "(" + m.list(depth) + ")" + m.redirection()
	case 1:
		return "{ " + m.list(depth) + "; }" + m.redirection()
	case 2:
		return "if " + m.list(depth) + "; then " + m.list(depth) + m.one("", "; else "+m.list(depth), "; elif true; then ls") + "; fi"
	case 3:
		return "for f in " + m.words(3) + "; do " + m.one("echo \"$f\"", "cat \"$f\"", "wc -l $f", m.list(depth)) + "; done"
	case 4:
		return m.one("x", "name", "y_2") + "=" + m.word() + m.one("; ", "\n", " && ") + "echo " + m.one("\"$x\"", "$x", "${x}", "\"${name}\"", "$y_2", "\"a$x.b\"")
	case 5:
		return "cat <<" + m.one("E\nplain text\nE\n", "'E'\n$(canary) `canary` \\\nE\n", "-E\n\ttext\n\tE\n", "E > out.txt\nx\nE\n", "E\nE \nE\n", "'E'\n\\\nE\n")
	case 6:
		return "[[ " + m.one("-f ", "-d ", "-n ", "-z ", "! -e ") + m.word() + " ]]"
	case 7:
		return "cd " + m.one("sub", ".", "..", "/tmp", "~", "sub/..", "-", m.word()) + m.one(" && ", "; ") + m.simple()
	}
	return "echo \"" + m.one("", "a ", "at ") + "$(" + m.simple() + ")\""
}

// simple is a program with options and words, or a whole command of everyday.
func (m *maker) simple() string {
	prefix := ""
	if m.chance(5) {
		prefix = m.one("LC_ALL=C ", "TZ=UTC ", "A=1 ", "x=1 ", "PATH=/tmp ", "LANG=C ")
	}
	if m.chance(35) {
		return prefix + m.one("ls -la", "cat a.txt", "grep -rn foo .", "git status", "git log --oneline -5", "git diff", "wc -l *.md", "head -20 a.txt", "sort a.txt | uniq -c", "find . -name '*.md'", "mkdir -p a/b", "touch x",
			"echo hi > out.txt", "date +%F", "pwd", "which ls", "du -sh .", "sed -n 1,5p a.txt", "awk '{print $1}' a.txt", "jq . f.json", "tr a-z A-Z < a.txt", "cut -d, -f1 a.txt", "diff a.txt b.md", "printf '%s\\n' x", "test -f x && echo yes", "[ -f x ]",
			"printf '%d %5s' 1 a", "sed -i 's/a/b/' a.txt", "rm -f x", "cp a.txt b", "mv b.md b", "tee out.txt", "seq 3", "true", "command -v ls", "type ls", "git commit -m 'x y'", "find . -type f -newer a.txt", "awk 'NR>1' a.txt", "diff <(sort a.txt) <(sort b.md)") + m.redirection()
	}
	if m.chance(6) {
		return m.hazard()
	}
	name := m.one("ls", "cat", "grep", "head", "tail", "wc", "sort", "uniq", "cut", "tr", "stat", "file", "du", "find", "sed", "awk", "jq", "git", "echo", "printf", "test", "[", "touch", "mkdir", "rm", "cp", "mv", "diff", "date", "seq", "basename", "realpath", "sha256sum", "base64", "tree", "tee", "chmod", "cd", "true", ":", "type", "command", "exit", "od", "nl", "paste", "strings", "rg", "xxd")
	if m.chance(4) {
		name = m.one(append(canaries, "read", "exec", "declare", "let", "eval", "source", "trap", "set", "export", "alias", "unset", "local", "mapfile", "getopts", "hash", "enable", "builtin", ".", "wait", "shift")...)
	}
	out := prefix + name
	for m.chance(55) {
		out += " " + m.option()
	}
	out += " " + m.words(3)
	if name == "[" {
		out += " ]"
	}
	return out + m.redirection()
}

// hazard is a use of a builtin that evaluates a subscript, or nearly one.
func (m *maker) hazard() string {
	value := m.one("'a[$(canary)0]'", "'a[`canary`]'", "\"a[\\$(canary)0]\"", "x", "a.txt")
	return m.one("printf '%n' ", "printf '%s%n' b ", "printf -v ", "printf -- -v ", "printf '%d' ", "printf '%(%F)T' ", "printf '%*d' ", "printf %b ", "test -v ", "test -R ", "test -n ", "test -f x -o -v ", "test 1 -eq ", "test ! -v ",
		"exit ", "cd ", "echo -e ", "type ", "command -v ", "seq ", "[[ -v ", "[[ -n ", "[[ 0 -eq ", "read ", "let ", "unset ", "declare -i x=", "x=", ": >", "echo \"$(test -v ") + value +
		m.one("", " x", " ]]", " ]", ")\"", " -eq 0 ]]", "; echo $((x))", "; [[ $x -eq 0 ]]", "; echo ${b[x]}", "; echo \"$x\"")
}

func (m *maker) option() string {
	return m.one("-l", "-a", "-n", "-r", "-c", "-1", "-i", "-v", "-la", "-n 5", "-n5", "-d,", "-d ,", "-f1", "-e x", "-s", "-o out", "-oout", "-p", "-t", "--", "-", "--color", "--color=never", "--all", "--output=x", "--out=x", "--recursive", "--version", "--help", "-R", "-u", "-w", "-z", "-k2,2n",
		"-exec canary {} ;", "-exec canary '{}' \\;", "-delete", "--to-command=canary", "--filter=canary", "--compress-program=canary", "--pre=canary", "-S canary", "-c core.pager=canary", "--ext-diff", "-name '*.md'", "-type f", "-maxdepth 1")
}

func (m *maker) words(most int) string {
	var out []string
	for range m.IntN(most + 1) {
		out = append(out, m.word())
	}
	return strings.Join(out, " ")
}

// word is one word with any quoting and expansion.
func (m *maker) word() string {
	if m.chance(60) {
		return m.one("a.txt", "b.md", "sub", "sub/e.md", "x", "*.md", "./*.md", "sub/*", "'c d.md'", "\"a b\"", "$'\\t'", "{x,y}{1,2}", "f{3..1}", "{01..03}", "{b..a}", "{{a,b},c}", "a\\ b", ".", "..", "~", "~/x", "{a,b}.txt", "f{1..3}", "a[bc]", "''", "\"\"", "-", "é", "a=b", "100%", "s/a/b/", "'{print $1}'", "1,5p", "HEAD~1", "@", "%s", "'%s\\n'", "$HOME", "\"$HOME/x\"", "$?", "\"$?\"", "+%F", "u+x", "644", "a,b", "a:b", "^x", "x$", "'x$'", "!x", "a#b", "\"it's\"", "'say \"hi\"'", "a'b'\"c\"d", "\\*", "\\$x", "\"\\$x\"", "\"a\\\"b\"", "\"\\a\"")
	}
	out := ""
	for range 1 + m.IntN(3) {
		if m.chance(12) {
			out += m.fragment()
		} else {
			out += m.one("a", "b", "x1", ".", "/", "-", "_", "'a b'", "\"c\"", "\\ ", "\\a", "$x", "\"$x\"", "*", "?", "~", "é", ":", "=", ",", "%", "@", "+", "{", "}", "#", "!", "^")
		}
	}
	return out
}

func (m *maker) redirection() string {
	if !m.chance(15) {
		return ""
	}
	return m.one(" > out.txt", " >> out.txt", " 2>/dev/null", " 2>&1", " < a.txt", " &> all.txt", " >&2", " <<< 'x y'", " 2> err.txt", " >| out.txt", " > 'o u t'", " > sub/new", " < /dev/null", " > "+m.word(), " 3> x", " >&x", " <<< $x", " > a{1..1}", " > *.md")
}
