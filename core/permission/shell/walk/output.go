package walk

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// output returns what a statement prints, where that is settled by the text.
func (w *Walker) output(st *syntax.Stmt, s *State, in Input) (string, bool) {
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 || st.Background || w.spent() {
		return "", false
	}
	w.quiet++
	defer func() { w.quiet-- }()
	for _, r := range st.Redirs {
		if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc && r.Op != syntax.WordHdoc {
			return "", false
		}
	}
	in = w.redirects(st.Redirs, s, in)
	var f []string
	for _, a := range c.Args {
		alts := w.word(a, s)
		if len(alts) != 1 {
			return "", false
		}
		f = append(f, alts[0]...)
	}
	if len(f) == 0 || s.Funcs[f[0]] != nil || s.Aliases[f[0]] != "" || slices.ContainsFunc(f, Unresolved) || slices.ContainsFunc(f, Globbed) {
		return "", false
	}
	out, ok := printed(f, s, in)
	return strings.ReplaceAll(out, "\x00", ""), ok
}

var dated = regexp.MustCompile(`^\+(%[-_0^#]?[YmdHMSsFTjyuN]|[-_:T ])*$`)

func printed(f []string, s *State, in Input) (string, bool) {
	args := f[1:]
	switch path.Base(f[0]) {
	case "echo":
		return echoed(args)
	case "printf":
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) == 0 || strings.HasPrefix(args[0], "-") {
			return "", false
		}
		return Formatted(args[0], args[1:])
	case "cat":
		return in.Text, in.Known && (len(args) == 0 || len(args) == 1 && args[0] == "-")
	case "true", ":":
		return "", true
	case "pwd":
		return s.Cwd, len(args) == 0
	case "nproc":
		return string(Digits), true
	case "wc": // with a file it prints its name, too
		return string(Digits), !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") || strings.HasPrefix(a, "--") })
	case "id":
		return string(Digits), slices.Contains(args, "-u") || slices.Contains(args, "-g")
	case "date":
		for _, a := range args {
			if !dated.MatchString(a) && a != "-u" && a != "-I" {
				return "", false
			}
		}
		return string(Digits), true
	case "seq":
		return string(Digits), !slices.ContainsFunc(args, func(a string) bool { return strings.Trim(a, "0123456789"+string(Digits)) != "" })
	case "which":
		return "/usr/bin/" + strings.Join(args, ""), len(args) == 1
	case "command":
		return "/usr/bin/" + args[len(args)-1], len(args) == 2 && args[0] == "-v"
	}
	return "", false
}

func echoed(args []string) (string, bool) {
	escapes, end := false, "\n"
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		escapes = strings.Contains(args[0], "e") || escapes
		if strings.Contains(args[0], "n") {
			end = ""
		}
		args = args[1:]
	}
	text := strings.Join(args, " ")
	switch {
	case !strings.Contains(text, `\`):
		return text + end, true
	case !escapes || strings.Contains(text, `\0`) || strings.Contains(text, `\c`): // differs between shells
		return "", false
	}
	out, _, err := expand.Format(nil, text, nil)
	return out + end, err == nil
}

func Formatted(format string, args []string) (string, bool) {
	for _, a := range append([]string{format}, args...) {
		if strings.Contains(a, `\0`) || strings.Contains(a, `\c`) {
			return "", false
		}
	}
	var b strings.Builder
	for range maxField {
		out, n, err := expand.Format(nil, format, append([]string{}, args...))
		if err != nil || b.Len()+len(out) > maxText {
			return "", false
		}
		b.WriteString(out)
		if args = args[min(n, len(args)):]; n == 0 || len(args) == 0 {
			return b.String(), true
		}
	}
	return "", false
}
