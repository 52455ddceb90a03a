package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"mvdan.cc/sh/v3/syntax"

	"gatehouse/core"
	"gatehouse/core/permission/shell"
	"gatehouse/core/texts"
)

// suggestFiles are the five graduated grants for a file, from this one to all.
func suggestFiles(name string, search bool) []core.SuggestedGrant {
	top, all := "", "**/*"
	rest, outside := strings.CutPrefix(name, "/")
	if outside {
		top, all = "/", "/**/*"
	}
	dir, exact := path.Dir(rest), escapeGlob(name)
	if search {
		dir = rest
	}
	var out []core.SuggestedGrant
	add := func(scope, pattern, label string) {
		if !slices.ContainsFunc(out, func(g core.SuggestedGrant) bool { return g.Pattern == pattern }) {
			out = append(out, core.SuggestedGrant{Scope: scope, Pattern: pattern, Label: label})
		}
	}
	add("file", exact, texts.Text("grant_file", texts.With{"Name": name}))
	if dir == "." || dir == "" {
		add("folder", top+"*", texts.Text("grant_beside"))
	} else {
		first, _, _ := strings.Cut(dir, "/")
		add("folder", top+escapeGlob(dir)+"/*", texts.Text("grant_folder", texts.With{"Name": top + dir}))
		add("recursive", top+escapeGlob(dir)+"/**/*", texts.Text("grant_below", texts.With{"Name": top + dir}))
		add("root", top+escapeGlob(first)+"/**/*", texts.Text("grant_below", texts.With{"Name": top + first}))
	}
	if outside {
		add("vault", all, texts.Text("grant_machine"))
	} else {
		add("vault", all, texts.Text("grant_vault"))
	}
	return out
}

// suggestCommands are the grants for a command line: as it is, then each
// command with any further arguments behind its first word, and its name alone.
func suggestCommands(list []shell.Command) []core.SuggestedGrant {
	var exact, sub, name []string
	for _, c := range list {
		words := c.Words
		if words[0] == ">" {
			exact = append(exact, "> "+shell.Quote(words[1:]))
			continue
		}
		exact = append(exact, shell.Quote(words))
		p := words[:1]
		if len(words) > 1 && subcommand(words[1]) {
			p = words[:2]
		}
		sub = append(sub, shell.Quote(p)+" *")
		name = append(name, shell.Quote(words[:1])+" *")
	}
	var out []core.SuggestedGrant
	add := func(scope string, patterns []string, label string) {
		pattern := strings.Join(slices.Compact(patterns), " ; ")
		if pattern != "" && len(pattern) <= maxPattern && allMatch([]string{pattern}, list) && !slices.ContainsFunc(out, func(g core.SuggestedGrant) bool { return g.Pattern == pattern }) {
			out = append(out, core.SuggestedGrant{Scope: scope, Pattern: pattern, Label: label + " " + pattern})
		}
	}
	if slices.ContainsFunc(list, func(c shell.Command) bool { return c.Words[0] == ">" }) {
		add("command", exact, "Only") // writing elsewhere is another decision
		return out
	}
	add("command", exact, "Only")
	add("subcommand", sub, "Any")
	add("program", name, "Any")
	return out
}

func subcommand(s string) bool {
	return len(s) > 1 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-:") == "" && s[0] != '-'
}

// maxPattern bounds the bytes of a grant's pattern.
const maxPattern = 2000

// field is one word of a command's pattern: a glob, in which what was quoted
// stands for itself.
type field string

// patterns reads "git status * ; ls" as the patterns of simple commands; nil
// for what is no such thing, as an exact text ("= make test") is not.
func patterns(text string) [][]field {
	if strings.HasPrefix(text, exactMark) {
		return nil
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	var out [][]field
	for _, st := range f.Stmts {
		p, ok := onePattern(st)
		if !ok {
			return nil
		}
		out = append(out, p)
	}
	return out
}

func onePattern(st *syntax.Stmt) (out []field, ok bool) {
	if st.Background || st.Negated || st.Coprocess || st.Disown {
		return nil, false
	}
	if st.Cmd == nil && len(st.Redirs) == 1 && st.Redirs[0].Op == syntax.RdrOut && st.Redirs[0].N == nil { // "> file": what a redirection writes
		f, ok := oneField(st.Redirs[0].Word)
		return []field{">", f}, ok
	}
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns)+len(st.Redirs) > 0 || len(c.Args) == 0 {
		return nil, false
	}
	for _, a := range c.Args {
		f, ok := oneField(a)
		if !ok {
			return nil, false
		}
		out = append(out, f)
	}
	return out, !strings.ContainsAny(quotedPair.ReplaceAllString(string(out[0]), ""), "*?[")
}

var quotedPair = regexp.MustCompile(`\\.`)

func oneField(w *syntax.Word) (field, bool) {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(escapeGlob(p.Value))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				l, ok := q.(*syntax.Lit)
				if !ok || strings.Contains(l.Value, `\`) {
					return "", false
				}
				b.WriteString(escapeGlob(l.Value))
			}
		default:
			return "", false
		}
	}
	return field(b.String()), true
}

// fits reports whether a pattern names a command. "*" as the last word stands
// for any further words; elsewhere it does not cross "/".
func fits(p []field, c []string) bool {
	open := len(p) > 1 && p[len(p)-1] == "*" && p[0] != ">"
	if open {
		p = p[:len(p)-1]
	}
	if len(c) < len(p) || len(c) > len(p) && !open {
		return false
	}
	for i, f := range p {
		if ok, err := path.Match(string(f), c[i]); !ok || err != nil {
			return false
		}
	}
	return true
}

// allMatch reports whether every command fits one of the patterns.
func allMatch(texts []string, list []shell.Command) bool {
	var all [][]field
	for _, t := range texts {
		all = append(all, patterns(t)...)
	}
	for _, c := range list {
		if !slices.ContainsFunc(all, func(p []field) bool { return fits(p, c.Words) }) {
			return false
		}
	}
	return true
}

// narrower reports whether everything that pattern covers is covered by one of
// the suggested grants. It is true only where that can be shown.
func narrower(kind, pattern string, suggested []core.SuggestedGrant) bool {
	if pattern == "" || len(pattern) > maxPattern {
		return false
	}
	for _, s := range suggested {
		switch {
		case pattern == s.Pattern,
			kind == kindBash && narrowerCommand(pattern, s.Pattern),
			(kind == kindRead || kind == kindWrite) && narrowerGlob(pattern, s.Pattern):
			return true
		}
	}
	return false
}

// narrowerGlob: a file that the wider glob names, or anything below a folder
// that it names with all in it.
func narrowerGlob(pattern, wide string) bool {
	if clean, ok := cleaned(strings.TrimPrefix(pattern, "/")); !ok || clean != strings.TrimPrefix(pattern, "/") {
		return false
	}
	if !doublestar.ValidatePattern(pattern) {
		return false
	}
	if !strings.ContainsAny(pattern, `*?[]{}\`) {
		return matches(wide, pattern)
	}
	top, ok := below(wide)
	if !ok || strings.HasPrefix(pattern, "/") != strings.HasPrefix(wide, "/") || strings.ContainsAny(pattern, `{}\`) {
		return false
	}
	return top == "" || strings.HasPrefix(pattern, top+"/")
}

// narrowerCommand: each command of the pattern begins with the words of a wider
// one that is open at its end, or is one of the wider ones.
func narrowerCommand(pattern, wide string) bool {
	narrow, wider := patterns(pattern), patterns(wide)
	if len(narrow) == 0 {
		return false
	}
	for _, n := range narrow {
		if !slices.ContainsFunc(wider, func(w []field) bool {
			if slices.Equal(n, w) {
				return true
			}
			last := len(w) - 1
			return last > 0 && w[last] == "*" && w[0] != ">" && len(n) >= last && slices.Equal(n[:last], w[:last])
		}) {
			return false
		}
	}
	return true
}
