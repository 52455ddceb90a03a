package permission

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"gatehouse/core"
	"gatehouse/core/permission/pattern"
	"gatehouse/core/permission/shell"
	"gatehouse/core/texts"
)

// suggestFiles returns the grants for a file or a search, from narrow to wide: this
// one, its directory, what is below, all.
func suggestFiles(name string, search bool) []core.SuggestedGrant {
	top, all := "", "**/*"
	rest, outside := strings.CutPrefix(name, "/")
	if outside {
		top, all = "/", "/**/*"
	}
	dir, exact := path.Dir(rest), pattern.EscapeGlob(name)
	if search {
		dir = rest
	}
	var out []core.SuggestedGrant
	add := func(scope, pattern, label string) {
		if !slices.ContainsFunc(out, func(g core.SuggestedGrant) bool { return g.Pattern == pattern }) {
			out = append(out, core.SuggestedGrant{Scope: scope, Pattern: pattern, Label: label})
		}
	}
	if search {
		add("file", exact, texts.Text("grant_search"))
	} else {
		add("file", exact, texts.Text("grant_file"))
	}
	if dir == "." || dir == "" {
		add("folder", top+"*", texts.Text("grant_beside"))
	} else {
		first, _, _ := strings.Cut(dir, "/")
		add("folder", top+pattern.EscapeGlob(dir)+"/*", texts.Text("grant_folder", texts.With{"Name": top + dir}))
		add("recursive", top+pattern.EscapeGlob(dir)+"/**/*", texts.Text("grant_below", texts.With{"Name": top + dir}))
		add("root", top+pattern.EscapeGlob(first)+"/**/*", texts.Text("grant_below", texts.With{"Name": top + first}))
	}
	if outside {
		add("vault", all, texts.Text("grant_machine"))
	} else {
		add("vault", all, texts.Text("grant_vault"))
	}
	return out
}

// suggestCommands returns the grants for a command line, from narrow to wide: as it is,
// then each command with any further arguments behind its first words, and its name
// alone.
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
	add := func(scope string, patterns []string, label func(pattern string) string) {
		text := strings.Join(slices.Compact(patterns), " ; ")
		if text != "" && len(text) <= maxPattern && pattern.AllMatch([]string{text}, words(list)) && !slices.ContainsFunc(out, func(g core.SuggestedGrant) bool { return g.Pattern == text }) {
			out = append(out, core.SuggestedGrant{Scope: scope, Pattern: text, Label: label(text)})
		}
	}
	same := func(string) string { return texts.Text("grant_exact", texts.With{"All": len(list) > 1}) }
	like := func(pattern string) string { return texts.Text("grant_like", texts.With{"Name": pattern}) }
	if slices.ContainsFunc(list, func(c shell.Command) bool { return c.Words[0] == ">" }) {
		add("command", exact, same) // writing elsewhere is another decision
		return out
	}
	add("command", exact, same)
	add("subcommand", sub, like)
	add("program", name, like)
	return out
}

func subcommand(s string) bool {
	return len(s) > 1 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-:") == "" && s[0] != '-'
}

// maxPattern bounds the bytes of a grant's pattern.
const maxPattern = 2000

// Narrower reports whether everything that a pattern covers is covered by one of
// the suggested grants. It is true only where that can be shown.
func Narrower(kind, text string, suggested []core.SuggestedGrant) bool {
	if text == "" || len(text) > maxPattern {
		return false
	}
	for _, s := range suggested {
		switch {
		case text == s.Pattern,
			kind == kindBash && pattern.Narrower(text, s.Pattern),
			(kind == kindRead || kind == kindWrite) && narrowerGlob(text, s.Pattern):
			return true
		}
	}
	return false
}

// narrowerGlob: a file that the wider glob names, or anything below a directory
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

// words returns the words of each command.
func words(list []shell.Command) [][]string {
	out := make([][]string, len(list))
	for i, c := range list {
		out[i] = c.Words
	}
	return out
}
