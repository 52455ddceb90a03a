// Package pattern matches simple commands of a shell against the patterns that a
// session or a grant allows, such as "git status * ; ls".
package pattern

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Exact begins the pattern of a grant that covers one text only.
const Exact = "= "

// field is one word of a command's pattern: a glob, in which what was quoted
// represents itself.
type field string

// patterns reads "git status * ; ls" as the patterns of simple commands; nil
// for what is no such thing, as an exact text ("= make test") is not.
func patterns(text string) [][]field {
	if strings.HasPrefix(text, Exact) {
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
			b.WriteString(EscapeGlob(p.Value))
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				l, ok := q.(*syntax.Lit)
				if !ok || strings.Contains(l.Value, `\`) {
					return "", false
				}
				b.WriteString(EscapeGlob(l.Value))
			}
		default:
			return "", false
		}
	}
	return field(b.String()), true
}

// fits reports whether a pattern names a command. "*" as the last word is
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

// AllMatch reports whether every command, given by its words, fits one of the patterns.
func AllMatch(texts []string, list [][]string) bool {
	var all [][]field
	for _, t := range texts {
		all = append(all, patterns(t)...)
	}
	for _, c := range list {
		if !slices.ContainsFunc(all, func(p []field) bool { return fits(p, c) }) {
			return false
		}
	}
	return true
}

// Narrower reports whether each command of the pattern begins with the words of a
// wider one that is open at its end, or is one of the wider ones.
func Narrower(pattern, wide string) bool {
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

// EscapeGlob returns a glob that names exactly name.
func EscapeGlob(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`*?[]{}\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
