package vetted

import (
	"reflect"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// A word is one argument after expansion.
type word struct {
	text    string
	glob    bool // holds an unquoted glob
	lead    bool // a glob is its first character: it may expand to an option
	home    bool // begins with ~, which the shell expands
	dynamic bool // part of it is only known when it runs
	process bool // is <(…), the name of a pipe
	inert   bool // holds a quoted glob
}

// in returns the word as a path seen from where the command starts, for display.
func (w word) in(dirs []string) word {
	if d := dirs[len(dirs)-1]; d != "." && !w.home && !strings.HasPrefix(w.text, "/") {
		w.text = strings.TrimSuffix(d, "/") + "/" + w.text
	}
	return w
}

// fields expands words to arguments.
func (r *reader) fields(list []*syntax.Word) []word {
	var out []word
	for _, w := range list {
		list := r.braces(w)
		for _, one := range list {
			if got := r.word(one, false); got.text != "" || one == w {
				out = append(out, got)
			}
		}
		if r.failed() {
			return nil
		}
		if len(out) > maxWords {
			r.fail("it has too many words")
			return nil
		}
	}
	return out
}

// braced are words in which brace expansion is read: plain text, in which braces
// hold a list or a short sequence and are not nested. Parsers differ beyond that.
var braced = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_./,+-]*(\{([A-Za-z0-9_./+-]*(,[A-Za-z0-9_./+-]*)+|[0-9]{1,4}\.\.[0-9]{1,4}|[a-z]\.\.[a-z]|[A-Z]\.\.[A-Z])\}[A-Za-z0-9_./,+-]*){1,2}$`)
})

// braces expands {a,b} and {1..9}.
func (r *reader) braces(w *syntax.Word) []*syntax.Word {
	if !holdsBrace(w) {
		return []*syntax.Word{w}
	}
	lit := w.Lit()
	if lit == "" || !braced().MatchString(lit) {
		r.fail("it uses braces that are not read")
		return nil
	}
	c := &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: lit}}}
	if !syntax.SplitBraces(c) {
		r.fail("it uses braces that are not read")
		return nil
	}
	var out []*syntax.Word
	for one, err := range expand.BracesSeq(nil, c) {
		if err != nil || len(out) >= maxCommands {
			r.fail("it uses braces that are not read")
			return nil
		}
		out = append(out, one)
	}
	return out
}

func holdsBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.Contains(p.Value, "{") {
				return true
			}
		case *syntax.BraceExp:
			return true
		}
	}
	return false
}

// globbed are the characters that a word with an unquoted glob may have, so
// that it reads the same with and without quotes.
var globbed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN_./*?\[\]!^,@%:=+-]*$`) }) // compiled at the first use: each start of the program would pay

// brackets are the sets of characters in globs that every matcher reads alike:
// without negation and classes.
var brackets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[[A-Za-z0-9]+(-[A-Za-z0-9]+)*\]`) })

// word expands one word. In an assignment the shell neither splits nor globs.
func (r *reader) word(w *syntax.Word, assignment bool) word {
	var out word
	literalTilde := false
	for i, part := range w.Parts {
		last := i == len(w.Parts)-1
		switch p := part.(type) {
		case *syntax.Lit:
			r.literal(p.Value, i == 0, last, &out, &literalTilde)
		case *syntax.SglQuoted:
			text := p.Value
			switch {
			case p.Dollar && text == `\t`:
				text = "\t"
			case p.Dollar && text == `\n`:
				text = "\n"
			case p.Dollar:
				r.fail("it uses $'…'")
			}
			out.text += text
			out.inert = out.inert || strings.ContainsAny(p.Value, "*?[")
		case *syntax.DblQuoted:
			r.quoted(p, &out)
		case *syntax.ParamExp:
			r.param(p, false, &out)
		case *syntax.ProcSubst:
			if p.Op != syntax.CmdIn || len(w.Parts) > 1 || assignment {
				r.fail("it uses a process substitution that is not read")
				break
			}
			r.subshell(p.Stmts)
			out.text, out.process = "/dev/fd/…", true
		default:
			r.fail(unreadPart(part))
		}
		if r.size += len(out.text); r.size > maxSize {
			r.fail("it is too long")
		}
		if r.failed() {
			return word{}
		}
	}
	if assignment && literalTilde {
		r.fail("it uses ~ inside a word")
		return word{}
	}
	return r.settled(out)
}

// settled returns a whole word, unless the parts of it cannot be read together.
func (r *reader) settled(out word) word {
	if out.text == "[" { // no glob, but the command
		out.glob = false
	}
	if out.glob && strings.Contains(brackets().ReplaceAllString(out.text, ""), "[") {
		r.fail("it uses a glob that is not read")
		return word{}
	}
	if out.glob && (!globbed().MatchString(out.text) || out.dynamic || out.inert) ||
		out.home && out.text != "~" && !strings.HasPrefix(out.text, "~/") {
		r.fail("it holds a word that is not read")
		return word{}
	}
	out.lead = out.glob && strings.ContainsAny(out.text[:1], "*?[")
	return out
}

func unreadPart(p syntax.WordPart) string {
	switch p.(type) {
	case *syntax.CmdSubst:
		return "the output of a command becomes part of a command"
	case *syntax.ArithmExp:
		return "it evaluates arithmetic"
	case *syntax.ExtGlob:
		return "it uses an extended glob"
	}
	return "it uses an expansion that is not read"
}

// literal adds unquoted text.
func (r *reader) literal(v string, first, last bool, out *word, tilde *bool) {
	rs := []rune(v)
	for i := 0; i < len(rs); i++ {
		c := rs[i]
		switch {
		case c == '\\':
			if i++; i >= len(rs) || rs[i] == '\n' {
				r.fail("a line is continued inside a word")
				return
			}
			out.text += string(rs[i])
			out.inert = out.inert || strings.ContainsRune("*?[", rs[i])
		case c == '~':
			if *tilde = true; !first && i == 0 || i > 0 {
				if i > 0 && (rs[i-1] == '=' || rs[i-1] == ':') || i == 0 {
					r.fail("it uses ~ inside a word")
					return
				}
				out.text += "~"
				continue
			}
			if i+1 < len(rs) && rs[i+1] != '/' || i+1 == len(rs) && !last {
				r.fail("it uses ~ with a name")
				return
			}
			out.home = true
			out.text += "~"
		case c == '$':
			if i < len(rs)-1 || !last {
				r.fail("it uses $ in a way that is not read")
				return
			}
			out.text += "$"
		case c == '*' || c == '?' || c == '[':
			out.glob = true
			out.text += string(c)
		default:
			out.text += string(c)
		}
	}
}

// quoted adds text in double quotes.
func (r *reader) quoted(q *syntax.DblQuoted, out *word) {
	if q.Dollar {
		r.fail(`it uses $"…"`)
		return
	}
	for i, part := range q.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			v := p.Value
			for j := 0; j < len(v); j++ {
				switch {
				case v[j] == '\\' && j+1 < len(v) && strings.IndexByte("$`\"\\", v[j+1]) >= 0:
					j++
				case v[j] == '\\' && j+1 < len(v) && v[j+1] == '\n', v[j] == '`', v[j] == '$' && (j+1 < len(v) || i < len(q.Parts)-1):
					r.fail("it uses $ or \\ in a way that is not read")
					return
				}
				out.text += v[j : j+1]
				out.inert = out.inert || strings.IndexByte("*?[", v[j]) >= 0
			}
		case *syntax.ParamExp:
			r.param(p, true, out)
		case *syntax.CmdSubst:
			if p.Backquotes || p.TempFile || p.ReplyVar || len(p.Stmts) == 0 {
				r.fail("the output of a command becomes part of a command")
				return
			}
			r.conditionally(func() { r.subshell(p.Stmts) })
			out.text += "…"
			out.dynamic = true
		default:
			r.fail(unreadPart(part))
		}
	}
}

// unsplit are values that the shell leaves as they are outside of quotes.
var unsplit = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./,@%+-]+$`) })

// param adds a variable that the text itself sets.
func (r *reader) param(p *syntax.ParamExp, quoted bool, out *word) {
	plain := syntax.ParamExp{Dollar: p.Dollar, Rbrace: p.Rbrace, Short: p.Short, Param: p.Param}
	if !reflect.DeepEqual(*p, plain) || p.Param == nil {
		r.fail("it uses ${…} with an operator")
		return
	}
	name := p.Param.Value
	switch v, ok := r.vars[name]; {
	case ok && v.pattern:
		if !quoted || out.text != "" {
			r.fail("it uses the name of a file outside of quotes")
			return
		}
		out.text, out.glob = v.text, true
	case ok:
		if !quoted && !unsplit().MatchString(v.text) {
			r.fail("it uses $" + name + " outside of quotes, where it may be split")
			return
		}
		out.text += v.text
	case name == "HOME" && out.text == "" && !out.home && !out.glob:
		out.text, out.home = "~", true
	case name == "?":
		out.text += "…"
		out.dynamic = true
	default:
		r.fail("it uses $" + name + ", which it does not set")
	}
}
