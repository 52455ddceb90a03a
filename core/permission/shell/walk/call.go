package walk

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// redirects notes the files that a statement's redirections name, and gives
// what it reads.
func (w *Walker) redirects(list []*syntax.Redirect, s *State, in Input) Input {
	before := in
	for _, r := range list {
		if r.N != nil && r.N.Value != "0" { // not what the command reads
			in, before = before, in
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc == nil {
				in = Input{Known: true, Piped: true}
				break
			}
			in = Input{w.quotedText(r, s), true, true}
		case syntax.WordHdoc:
			in = Input{w.text(r.Word, s) + "\n", true, true}
		case syntax.DplIn, syntax.DplOut:
			w.word(r.Word, s)
			if r.Op == syntax.DplIn {
				in = Input{Piped: true}
			}
		default:
			for _, fields := range w.word(r.Word, s) {
				w.redirect(r, strings.Join(fields, " "), s)
			}
			if r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut {
				in = Input{Piped: true}
			}
		}
		if r.N != nil && r.N.Value != "0" {
			in, before = before, in
		}
		in.Known = in.Known && !Unresolved(in.Text)
	}
	return in
}

// quotedText returns a here-document's text.
func (w *Walker) quotedText(r *syntax.Redirect, s *State) string {
	literal := false
	for _, p := range r.Word.Parts {
		_, lit := p.(*syntax.Lit)
		literal = literal || !lit || strings.Contains(r.Word.Lit(), `\`)
	}
	var b strings.Builder
	if literal {
		for _, p := range r.Hdoc.Parts {
			if l, ok := p.(*syntax.Lit); ok {
				b.WriteString(l.Value)
			}
		}
		return b.String()
	}
	for _, p := range w.parts(r.Hdoc.Parts, s, true) {
		if len(p.alts) != 1 {
			return string(Unknown)
		}
		b.WriteString(p.alts[0])
	}
	return b.String()
}

// text returns a word's one value.
func (w *Walker) text(word *syntax.Word, s *State) string {
	alts := w.word(word, s)
	if len(alts) != 1 {
		return string(Unknown)
	}
	return strings.Join(alts[0], " ")
}

func (w *Walker) redirect(r *syntax.Redirect, target string, s *State) {
	if Unresolved(target) {
		w.Hidden("a redirection cannot be resolved")
	}
	w.Name(s, target)
	if r.Op == syntax.RdrIn {
		return
	}
	clean := path.Clean(Shown(s.At(target)))
	if IsDisk(clean) {
		w.Danger("writing to a disk itself")
	}
	if clean != "/dev/null" && clean != "/dev/stdout" && clean != "/dev/stderr" {
		w.Command([]string{">", s.At(target)})
	}
}

// call examines a simple command with all values that its words may have.
func (w *Walker) call(c *syntax.CallExpr, s *State, in Input) {
	inside := s
	if len(c.Args) > 0 {
		inside = s.Clone()
	}
	for _, a := range c.Assigns {
		w.assign(a, inside, s)
	}
	out := [][]string{nil}
	for _, arg := range c.Args {
		var next [][]string
		for _, o := range out {
			for _, a := range w.word(arg, s) {
				next = append(next, append(slices.Clone(o), a...))
			}
		}
		if out = next; len(out) > 4*maxAlts || len(out) > 0 && len(out[0]) > 16*maxField {
			w.Hidden("it has too many possibilities")
			return
		}
		if w.spend(len(out) * (1 + len(out[0])/8)) {
			return
		}
	}
	if len(c.Args) > 0 && len(c.Assigns) > 0 {
		defer s.lend(inside, c.Assigns)()
	}
	if len(out) == 1 {
		w.Exec(out[0], s, in)
		return
	}
	before := s.Clone()
	var after *State
	for _, fields := range out {
		branch := before.Clone()
		w.Exec(fields, branch, in)
		if after == nil {
			after = branch
		} else {
			after.join(branch)
		}
	}
	if after != nil {
		*s = *after
	}
}

// commanding are variables that a shell or another program runs as a command, or by
// which it finds what it runs.
var commanding = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(PATH|LD_.*|DYLD_.*|BASH_ENV|ENV|BASH_FUNC_.*|PROMPT_COMMAND|PS[04]|SHELLOPTS|BASHOPTS|GIT_(SSH|EXTERNAL_DIFF|PAGER|EDITOR|CONFIG|PROXY|ASKPASS|SEQUENCE|EXEC|TEMPLATE).*|(MAN|SYSTEMD_|AWS_)?PAGER|EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|PERL5(OPT|DB|LIB)|PYTHONSTARTUP|NODE_OPTIONS|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|(SSH|SUDO)_ASKPASS|MAKEFLAGS|CC|CXX|RUSTC_WRAPPER|SHELL)$`)
})

func (w *Walker) assign(a *syntax.Assign, s, outer *State) {
	if a.Index != nil {
		w.inner(a.Index, outer)
	}
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			w.word(e.Value, outer)
		}
		w.Set(name, []string{string(Unknown)}, s)
		return
	}
	values := []string{""}
	if a.Value != nil {
		values = nil
		for _, v := range w.word(a.Value, outer) {
			values = append(values, strings.Join(v, " "))
		}
	}
	if a.Append {
		var sums []string
		for _, before := range s.values(name) {
			for _, v := range values {
				sums = append(sums, before+v)
			}
		}
		values = either(nil, sums)
	}
	if a.Index != nil {
		values = []string{string(Unknown)}
	}
	w.Set(name, values, s)
}

// Set assigns the values that a variable may have, and examines them where they are
// commands.
func (w *Walker) Set(name string, values []string, s *State) {
	if slices.ContainsFunc(values, func(v string) bool { return len(v) > maxText/4 }) || len(values) > 4*maxAlts {
		values = []string{string(Unknown)}
	}
	if w.fixed[name] {
		values = either(s.values(name), values)
	}
	s.Vars[name] = values
	if name == "IFS" {
		s.ifs = true
		return
	}
	if name == "HOME" {
		s.Vars[name] = append(slices.Clone(values), string(Home))
	}
	if !commanding().MatchString(name) {
		return
	}
	for _, v := range values {
		if v == "" || v == "cat" || v == "true" || v == "less" || name == "SHELL" && strings.HasPrefix(v, "/bin/") {
			continue
		}
		w.Hidden("it sets " + name + ", by which other programs are run")
		w.quiet++
		w.Run(v, s.Clone(), Input{})
		w.quiet--
	}
}

// declare examines export, local, declare and the like.
func (w *Walker) declare(c *syntax.DeclClause, s *State) {
	defer w.fix(c)
	for _, a := range c.Args {
		if !a.Naked {
			before, outside := s.Clone(), c.Variant.Value == "local" && len(w.calls) == 0
			w.assign(a, s, s)
			if outside && a.Name != nil { // where there is no function it assigns nothing
				s.Vars[a.Name.Value] = either(before.values(a.Name.Value), s.Vars[a.Name.Value])
			}
			continue
		}
		if a.Name != nil {
			if c.Variant.Value != "export" && c.Variant.Value != "readonly" {
				s.Vars[a.Name.Value] = []string{""}
			}
			continue
		}
		for _, fields := range w.word(a.Value, s) {
			for _, f := range fields {
				w.Assign(f, s)
				if c.Variant.Value == "nameref" || strings.HasPrefix(f, "-") && strings.ContainsAny(f, "nf") && c.Variant.Value != "export" {
					w.Hidden("a variable refers to another one")
				}
			}
		}
	}
	if c.Variant.Value == "nameref" {
		w.Hidden("a variable refers to another one")
	}
}

// fix notes what becomes read-only: a later assignment may not take place.
func (w *Walker) fix(c *syntax.DeclClause) {
	fixes := c.Variant.Value == "readonly"
	for _, a := range c.Args {
		fixes = fixes || a.Name == nil && a.Value != nil && strings.HasPrefix(a.Value.Lit(), "-") && strings.Contains(a.Value.Lit(), "r")
	}
	for _, a := range c.Args {
		if fixes && a.Name != nil {
			w.fixed[a.Name.Value] = true
		}
	}
}

// Assign assigns name=value, an argument.
func (w *Walker) Assign(f string, s *State) {
	if Unresolved(f) {
		w.Hidden("an assignment cannot be resolved")
	}
	if name, value, ok := strings.Cut(f, "="); ok && syntax.ValidName(name) {
		w.Set(name, []string{value}, s)
	}
}

// Exec examines one command with its arguments resolved; f[0] is its name.
func (w *Walker) Exec(f []string, s *State, in Input) {
	for len(f) > 0 && f[0] == "" {
		f = f[1:]
	}
	if len(f) == 0 || w.spend(1+len(f)) {
		return
	}
	name := f[0]
	if Unresolved(name) || strings.ContainsRune(name, Digits) || Globbed(name) || strings.ContainsRune(name, Home) {
		w.execUnresolved(f, s, in)
		return
	}
	if text, ok := s.Aliases[name]; ok {
		delete(s.Aliases, name)
		w.Run(text+" "+Rejoin(f[1:]), s, in)
		s.Aliases[name] = text
		return
	}
	if fn := s.Funcs[name]; fn != nil {
		w.invoke(fn, f[1:], s, in)
		return
	}
	base := strings.ToLower(path.Base(name))
	if b := strings.TrimSuffix(base, ".exe"); b != "" {
		base = b
	}
	if privileged[base] {
		w.Danger(base + ": it would run with another user's rights")
		return
	}
	w.handler(base)(w, append([]string{base}, f[1:]...), s, in)
}

// execUnresolved examines a command with an unknown name.
func (w *Walker) execUnresolved(f []string, s *State, in Input) {
	if strings.HasPrefix(f[0], string(Home)+"/") && !Unresolved(f[0]) && !Globbed(f[0]) {
		f[0] = Shown(f[0]) // a program in the home directory
		w.Exec(f, s, in)
		return
	}
	w.Hidden("the name of a command cannot be resolved")
	w.Command(f)
	w.quiet++
	defer func() { w.quiet-- }()
	if Globbed(f[0]) {
		pattern := path.Base(Shown(f[0]))
		for _, name := range slices.Sorted(maps.Keys(privileged)) {
			if ok, _ := path.Match(pattern, name); ok && pattern != "*" {
				w.Danger(name + ": it would run with another user's rights")
			}
		}
		for _, name := range []string{"rm", "dd", "chmod"} {
			if ok, _ := path.Match(pattern, name); ok && pattern != "*" {
				w.Exec(append([]string{name}, f[1:]...), s.Clone(), in)
			}
		}
		return
	}
	if name := strings.ReplaceAll(f[0], string(Unknown), ""); name != "" {
		w.Exec(append([]string{name}, f[1:]...), s.Clone(), in)
	} else if len(f) > 1 {
		w.Exec(slices.Clone(f[1:]), s.Clone(), in)
	}
}

// Plain notes a command without rules of its own.
func (w *Walker) Plain(f []string, s *State) {
	w.Command(f)
	if slices.ContainsFunc(f[1:], Unresolved) {
		w.Hidden("an argument of " + Shown(path.Base(f[0])) + " cannot be resolved")
	}
	if strings.HasSuffix(f[0], ".sh") || strings.HasSuffix(f[0], ".bash") {
		w.Hidden("it runs a script, whose commands are not seen")
	}
	w.Names(f[1:], s)
}

// Names notes what may be a file among arguments: the whole argument, and the part
// after "=", "@", ":" or an option's letter.
func (w *Walker) Names(args []string, s *State) {
	for _, a := range args {
		w.Name(s, a)
		for i, r := range a {
			if strings.ContainsRune("=@:,", r) && i+1 < len(a) {
				w.Name(s, a[i+1:])
			}
		}
		if len(a) > 2 && a[0] == '-' && a[1] != '-' {
			w.Name(s, a[2:])
		}
	}
}

// Rejoin returns fields as the text of a shell.
func Rejoin(fields []string) string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f
		if !strings.ContainsFunc(f, marked) {
			if q, err := syntax.Quote(f, syntax.LangBash); err == nil {
				out[i] = q
			}
		}
	}
	return strings.Join(out, " ")
}
