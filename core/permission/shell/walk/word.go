package walk

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Characters of private use that mark what has a meaning beyond its text. A command
// that contains one itself is hidden.
const (
	Unknown  = '\uE000' // any text, of any number of fields
	Digits   = '\uE001' // a number or a time: nothing that names a file or program
	Star     = '\uE002' // an unquoted *
	question = '\uE003' // an unquoted ?
	bracket  = '\uE004' // an unquoted [
	Home     = '\uE005' // the home directory
	next     = '\uE006' // where "$@" begins another field
)

func marked(r rune) bool { return r >= Unknown && r <= next }

var show = strings.NewReplacer(string(Unknown), "…", string(Digits), "0", string(Star), "*", string(question), "?", string(bracket), "[", string(Home), "~", string(next), " ")

// shown returns a value as users read it.
func Shown(s string) string { return show.Replace(s) }

func Unresolved(f string) bool { return strings.ContainsRune(f, Unknown) }
func Globbed(f string) bool    { return strings.ContainsAny(f, string([]rune{Star, question, bracket})) }

// piece is a part of a word: the values it may have, and whether the shell
// splits them into fields.
type piece struct {
	alts  []string
	split bool
}

// word returns what a word may become: lists of fields, one for each possibility.
func (w *Walker) word(word *syntax.Word, s *State) [][]string {
	if word == nil {
		return nil
	}
	if w.spent() {
		return [][]string{{string(Unknown)}}
	}
	out := [][]string{nil}
	for _, one := range braces(word) {
		alts := w.fields(one, s)
		var next [][]string
		for _, o := range out {
			for _, a := range alts {
				next = append(next, append(slices.Clone(o), a...))
			}
		}
		if out = next; len(out) > maxAlts || len(out[0]) > maxField {
			w.Hidden("it has too many possibilities")
			return [][]string{{string(Unknown)}}
		}
		if w.spend(len(out) * (1 + len(out[0])/8)) {
			return [][]string{{string(Unknown)}}
		}
	}
	return out
}

// braces expands {a,b} and {1..9}; very many words are unknown.
func braces(word *syntax.Word) []*syntax.Word {
	c := &syntax.Word{Parts: slices.Clone(word.Parts)}
	if !syntax.SplitBraces(c) {
		return []*syntax.Word{word}
	}
	var out []*syntax.Word
	for one, err := range expand.BracesSeq(nil, c) {
		if err != nil || len(out) == maxField {
			return []*syntax.Word{{Parts: []syntax.WordPart{&syntax.ParamExp{Param: &syntax.Lit{Value: "{"}}}}}
		}
		out = append(out, one)
	}
	return out
}

func (w *Walker) fields(word *syntax.Word, s *State) [][]string {
	pieces := w.parts(word.Parts, s, false)
	combos, size := [][]piece{nil}, 0
	for _, p := range pieces {
		for _, a := range p.alts {
			size += len(a)
		}
	}
	if size > maxText || w.spend(size/1024) {
		w.Hidden("it is too long to be followed")
		return [][]string{{string(Unknown)}}
	}
	for _, p := range pieces {
		var next [][]piece
		for _, c := range combos {
			for _, a := range p.alts {
				next = append(next, append(slices.Clone(c), piece{[]string{a}, p.split}))
			}
		}
		if combos = next; len(combos) > maxAlts {
			w.Hidden("it has too many possibilities")
			return [][]string{{string(Unknown)}}
		}
	}
	var out [][]string
	for _, c := range combos {
		out = append(out, assemble(c, s.ifs))
	}
	return out
}

// assemble joins pieces to fields and splits those that the shell splits.
func assemble(pieces []piece, ifs bool) []string {
	var out []string
	cur, open := "", false
	for _, p := range pieces {
		v := p.alts[0]
		if !p.split {
			for i, part := range strings.Split(v, string(next)) {
				if i > 0 {
					out, cur = append(out, cur), ""
				}
				cur, open = cur+part, true
			}
			continue
		}
		v = strings.ReplaceAll(v, string(next), " ")
		if ifs && v != "" {
			v = string(Unknown)
		}
		v = strings.NewReplacer("*", string(Star), "?", string(question), "[", string(bracket)).Replace(v)
		words := strings.Fields(v)
		if strings.TrimLeft(v, " \t\n") != v && open {
			out, cur, open = append(out, cur), "", false
		}
		for i, word := range words {
			if i > 0 {
				out, cur = append(out, cur), ""
			}
			cur, open = cur+word, true
		}
		if strings.TrimRight(v, " \t\n") != v && open && len(words) > 0 {
			out, cur, open = append(out, cur), "", false
		}
	}
	if open {
		out = append(out, cur)
	}
	if len(out) == 1 && out[0] == string(bracket) { // the command
		out[0] = "["
	}
	return out
}

// parts returns a word's pieces.
func (w *Walker) parts(parts []syntax.WordPart, s *State, quoted bool) []piece {
	var out []piece
	for i, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			out = append(out, piece{alts: []string{literal(p.Value, quoted, i == 0 && !quoted)}})
		case *syntax.SglQuoted:
			v := p.Value
			if p.Dollar {
				v = ansi(v)
			}
			out = append(out, piece{alts: []string{v}})
		case *syntax.DblQuoted:
			inner := w.parts(p.Parts, s, true)
			if len(inner) == 0 {
				inner = []piece{{alts: []string{""}}}
			}
			for _, q := range inner {
				out = append(out, piece{alts: q.alts})
			}
		case *syntax.ParamExp:
			out = append(out, piece{w.param(p, s), !quoted})
		case *syntax.CmdSubst:
			out = append(out, piece{w.substitution(p.Stmts, s), !quoted})
		case *syntax.ArithmExp:
			w.inner(p.X, s)
			out = append(out, piece{alts: []string{string(Digits)}})
		case *syntax.ProcSubst:
			w.stmts(p.Stmts, s.Clone(), Input{Piped: true})
			out = append(out, piece{alts: []string{"/dev/fd/" + string(Digits)}})
		case *syntax.ExtGlob:
			out = append(out, piece{alts: []string{string(Star)}})
		default:
			out = append(out, piece{alts: []string{string(Unknown)}})
		}
	}
	return out
}

// literal resolves backslashes and marks what the shell expands.
func literal(v string, quoted, first bool) string {
	var b strings.Builder
	rs := []rune(v)
	for i := 0; i < len(rs); i++ {
		r := rs[i]
		switch {
		case r == '\\' && i+1 < len(rs) && (!quoted || strings.ContainsRune("$`\"\\\n", rs[i+1])):
			if i++; rs[i] != '\n' {
				b.WriteRune(rs[i])
			}
		case quoted:
			b.WriteRune(r)
		case r == '~' && i == 0 && first:
			end := slices.Index(rs, '/')
			if end < 0 {
				end = len(rs)
			}
			b.WriteRune(Home)
			switch user := string(rs[1:end]); user {
			case "", "root":
			case "+", "-":
				b.Reset()
				b.WriteRune(Unknown)
			}
			i = end - 1 // ~name is a home, too
		case r == '*':
			b.WriteRune(Star)
		case r == '?':
			b.WriteRune(question)
		case r == '[':
			b.WriteRune(bracket)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ansi resolves the escapes of $'…', which end at a NUL.
func ansi(v string) string {
	out, _, err := expand.Format(nil, v, nil)
	if err != nil {
		return string(Unknown)
	}
	out, _, _ = strings.Cut(out, "\x00")
	return out
}

// numbers are parameters that hold a number, or letters that name no file.
const numbers = "#?$!-"

// param is what a parameter expansion may become.
func (w *Walker) param(p *syntax.ParamExp, s *State) []string {
	w.inner(p, s)
	if p.Slice != nil {
		w.inner(p.Slice.Offset, s)
		w.inner(p.Slice.Length, s)
	}
	if p.Param == nil || p.Excl || p.Flags != nil || p.NestedParam != nil || p.Names != 0 || len(p.Modifiers) > 0 {
		return []string{string(Unknown)}
	}
	if p.Length {
		return []string{string(Digits)}
	}
	values := s.values(p.Param.Value)
	if p.Index != nil || p.Slice != nil || p.Repl != nil || p.Width || p.IsSet {
		values = []string{string(Unknown)}
	}
	if p.Exp == nil {
		return values
	}
	var word []string
	for _, c := range w.word(p.Exp.Word, s) {
		word = append(word, strings.Join(c, " "))
	}
	if len(word) == 0 {
		word = []string{""}
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		out := either(values, word)
		if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
			w.Set(p.Param.Value, out, s)
		}
		return out
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return either(word, []string{""})
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return values
	}
	if p.Exp.Op == syntax.OtherParamOps { // ${x@P} runs what is in it
		w.Hidden("a value is expanded again")
		w.quiet++
		for _, v := range values {
			w.Run("echo \""+v+"\"", s.Clone(), Input{})
		}
		w.quiet--
	}
	return []string{string(Unknown)}
}

// substitution is what $(…) may become.
func (w *Walker) substitution(list []*syntax.Stmt, s *State) []string {
	inside := s.Clone()
	w.stmts(list, inside, Input{})
	if len(list) == 0 {
		return []string{""}
	}
	if len(list) == 1 {
		if out, ok := w.output(list[0], s.Clone(), Input{}); ok {
			return []string{strings.TrimRight(out, "\n")}
		}
	}
	return []string{string(Unknown)}
}

// inner examines the substitutions inside a node that is no command, and the
// variables that arithmetic evaluates: their text may hold commands.
func (w *Walker) inner(n syntax.Node, s *State) {
	if n == nil || w.spent() {
		return
	}
	_, arithmetic := n.(syntax.ArithmExpr)
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.stmts(n.Stmts, s.Clone(), Input{})
			return false
		case *syntax.ProcSubst:
			w.stmts(n.Stmts, s.Clone(), Input{Piped: true})
			return false
		case *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.LetClause:
			arithmetic = true
		case *syntax.Assign:
			if n.Name != nil {
				s.Vars[n.Name.Value] = []string{string(Digits)}
			}
		case *syntax.ParamExp:
			if arithmetic && n.Param != nil {
				w.evaluated(s.values(n.Param.Value))
			}
		case *syntax.Lit:
			if arithmetic && syntax.ValidName(n.Value) {
				if v, ok := s.Vars[n.Value]; ok {
					w.evaluated(v)
				}
			}
		case *syntax.SglQuoted:
			if strings.ContainsAny(n.Value, "$`") {
				w.evaluated([]string{n.Value})
			}
		}
		return true
	})
}

// evaluated reports when arithmetic would evaluate a text that is no number.
func (w *Walker) evaluated(values []string) {
	for _, v := range values {
		if _, err := strconv.ParseInt(v, 0, 64); err != nil && v != "" && v != string(Digits) {
			w.Hidden("arithmetic evaluates a text that is no number")
		}
	}
}
