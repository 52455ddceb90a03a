package shell

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects notes the files that a statement's redirections name, and gives
// what it reads.
func (w *walker) redirects(list []*syntax.Redirect, s *state, in input) input {
	before := in
	for _, r := range list {
		if r.N != nil && r.N.Value != "0" { // not what the command reads
			in, before = before, in
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc == nil {
				in = input{known: true, piped: true}
				break
			}
			in = input{w.quotedText(r, s), true, true}
		case syntax.WordHdoc:
			in = input{w.text(r.Word, s) + "\n", true, true}
		case syntax.DplIn, syntax.DplOut:
			w.word(r.Word, s)
			if r.Op == syntax.DplIn {
				in = input{piped: true}
			}
		default:
			for _, fields := range w.word(r.Word, s) {
				w.redirect(r, strings.Join(fields, " "), s)
			}
			if r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut {
				in = input{piped: true}
			}
		}
		if r.N != nil && r.N.Value != "0" {
			in, before = before, in
		}
		in.known = in.known && !unresolved(in.text)
	}
	return in
}

// quotedText returns a here-document's text.
func (w *walker) quotedText(r *syntax.Redirect, s *state) string {
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
			return string(unknown)
		}
		b.WriteString(p.alts[0])
	}
	return b.String()
}

// text returns a word's one value.
func (w *walker) text(word *syntax.Word, s *state) string {
	alts := w.word(word, s)
	if len(alts) != 1 {
		return string(unknown)
	}
	return strings.Join(alts[0], " ")
}

// device are names that write to a disk or to memory itself.
var device = regexp.MustCompile(`^/+dev/+(sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk|dm-|mapper/|md|mem$|kmem$|port$|loop|block/)`)

func (w *walker) redirect(r *syntax.Redirect, target string, s *state) {
	if unresolved(target) {
		w.hidden("a redirection cannot be resolved")
	}
	w.name(s, target)
	if r.Op == syntax.RdrIn {
		return
	}
	clean := path.Clean(shown(s.at(target)))
	if device.MatchString(clean) {
		w.danger("writing to a disk itself")
	}
	if clean != "/dev/null" && clean != "/dev/stdout" && clean != "/dev/stderr" {
		w.command([]string{">", s.at(target)})
	}
}

// call examines a simple command in all its possibilities.
func (w *walker) call(c *syntax.CallExpr, s *state, in input) {
	inside := s
	if len(c.Args) > 0 {
		inside = s.clone()
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
			w.hidden("it has too many possibilities")
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
		w.exec(out[0], s, in)
		return
	}
	before := s.clone()
	var after *state
	for _, fields := range out {
		branch := before.clone()
		w.exec(fields, branch, in)
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

// commanding are variables whose value a shell or another program runs, or by
// which it finds what it runs.
var commanding = regexp.MustCompile(`^(PATH|LD_.*|DYLD_.*|BASH_ENV|ENV|BASH_FUNC_.*|PROMPT_COMMAND|PS[04]|SHELLOPTS|BASHOPTS|GIT_(SSH|EXTERNAL_DIFF|PAGER|EDITOR|CONFIG|PROXY|ASKPASS|SEQUENCE|EXEC|TEMPLATE).*|(MAN|SYSTEMD_|AWS_)?PAGER|EDITOR|VISUAL|BROWSER|LESSOPEN|LESSCLOSE|PERL5(OPT|DB|LIB)|PYTHONSTARTUP|NODE_OPTIONS|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|(SSH|SUDO)_ASKPASS|MAKEFLAGS|CC|CXX|RUSTC_WRAPPER|SHELL)$`)

func (w *walker) assign(a *syntax.Assign, s, outer *state) {
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
		w.set(name, []string{string(unknown)}, s)
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
		values = []string{string(unknown)}
	}
	w.set(name, values, s)
}

// set gives a variable its values, and checks those that are commands.
func (w *walker) set(name string, values []string, s *state) {
	if slices.ContainsFunc(values, func(v string) bool { return len(v) > maxText/4 }) || len(values) > 4*maxAlts {
		values = []string{string(unknown)}
	}
	if w.fixed[name] {
		values = either(s.values(name), values)
	}
	s.vars[name] = values
	if name == "IFS" {
		s.ifs = true
		return
	}
	if name == "HOME" {
		s.vars[name] = append(slices.Clone(values), string(home))
	}
	if !commanding.MatchString(name) {
		return
	}
	for _, v := range values {
		if v == "" || v == "cat" || v == "true" || v == "less" || name == "SHELL" && strings.HasPrefix(v, "/bin/") {
			continue
		}
		w.hidden("it sets " + name + ", by which other programs are run")
		w.quiet++
		w.run(v, s.clone(), input{})
		w.quiet--
	}
}

// declare examines export, local, declare and the like.
func (w *walker) declare(c *syntax.DeclClause, s *state) {
	defer w.fix(c)
	for _, a := range c.Args {
		if !a.Naked {
			before, outside := s.clone(), c.Variant.Value == "local" && len(w.calls) == 0
			w.assign(a, s, s)
			if outside && a.Name != nil { // where there is no function it assigns nothing
				s.vars[a.Name.Value] = either(before.values(a.Name.Value), s.vars[a.Name.Value])
			}
			continue
		}
		if a.Name != nil {
			if c.Variant.Value != "export" && c.Variant.Value != "readonly" {
				s.vars[a.Name.Value] = []string{""}
			}
			continue
		}
		for _, fields := range w.word(a.Value, s) {
			for _, f := range fields {
				w.assignField(f, s)
				if c.Variant.Value == "nameref" || strings.HasPrefix(f, "-") && strings.ContainsAny(f, "nf") && c.Variant.Value != "export" {
					w.hidden("a variable refers to another one")
				}
			}
		}
	}
	if c.Variant.Value == "nameref" {
		w.hidden("a variable refers to another one")
	}
}

// fix notes what becomes read-only: a later assignment may not take place.
func (w *walker) fix(c *syntax.DeclClause) {
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

// assignField is name=value as an argument.
func (w *walker) assignField(f string, s *state) {
	if unresolved(f) {
		w.hidden("an assignment cannot be resolved")
	}
	if name, value, ok := strings.Cut(f, "="); ok && syntax.ValidName(name) {
		w.set(name, []string{value}, s)
	}
}

// exec examines one command with its arguments resolved.
func (w *walker) exec(f []string, s *state, in input) {
	for len(f) > 0 && f[0] == "" {
		f = f[1:]
	}
	if len(f) == 0 || w.spend(1+len(f)) {
		return
	}
	name := f[0]
	if unresolved(name) || strings.ContainsRune(name, digits) || globbed(name) || strings.ContainsRune(name, home) {
		w.obscure(f, s, in)
		return
	}
	if text, ok := s.aliases[name]; ok {
		delete(s.aliases, name)
		w.run(text+" "+rejoin(f[1:]), s, in)
		s.aliases[name] = text
		return
	}
	if fn := s.funcs[name]; fn != nil {
		w.invoke(fn, f[1:], s, in)
		return
	}
	base := strings.ToLower(path.Base(name))
	if b := strings.TrimSuffix(base, ".exe"); b != "" {
		base = b
	}
	if privileged[base] {
		w.danger(base + ": it would run with another user's rights")
		return
	}
	if h := program(base); h != nil {
		h(w, append([]string{base}, f[1:]...), s, in)
		return
	}
	w.plain(f, s)
}

// obscure is a command whose name is not settled.
func (w *walker) obscure(f []string, s *state, in input) {
	if strings.HasPrefix(f[0], string(home)+"/") && !unresolved(f[0]) && !globbed(f[0]) {
		f[0] = shown(f[0]) // a program in the home directory
		w.exec(f, s, in)
		return
	}
	w.hidden("the name of a command cannot be resolved")
	w.command(f)
	w.quiet++
	defer func() { w.quiet-- }()
	if globbed(f[0]) {
		pattern := path.Base(shown(f[0]))
		for _, name := range slices.Sorted(maps.Keys(privileged)) {
			if ok, _ := path.Match(pattern, name); ok && pattern != "*" {
				w.danger(name + ": it would run with another user's rights")
			}
		}
		for _, name := range []string{"rm", "dd", "chmod"} {
			if ok, _ := path.Match(pattern, name); ok && pattern != "*" {
				w.exec(append([]string{name}, f[1:]...), s.clone(), in)
			}
		}
		return
	}
	if name := strings.ReplaceAll(f[0], string(unknown), ""); name != "" {
		w.exec(append([]string{name}, f[1:]...), s.clone(), in)
	} else if len(f) > 1 {
		w.exec(slices.Clone(f[1:]), s.clone(), in)
	}
}

// plain is a command that we know nothing special of.
func (w *walker) plain(f []string, s *state) {
	w.command(f)
	if slices.ContainsFunc(f[1:], unresolved) {
		w.hidden("an argument of " + shown(path.Base(f[0])) + " cannot be resolved")
	}
	if strings.HasSuffix(f[0], ".sh") || strings.HasSuffix(f[0], ".bash") {
		w.hidden("it runs a script, whose commands are not seen")
	}
	w.names(f[1:], s)
}

// names notes what may be a file among arguments: whole, and behind "=", "@",
// ":" or an option's letter.
func (w *walker) names(args []string, s *state) {
	for _, a := range args {
		w.name(s, a)
		for i, r := range a {
			if strings.ContainsRune("=@:,", r) && i+1 < len(a) {
				w.name(s, a[i+1:])
			}
		}
		if len(a) > 2 && a[0] == '-' && a[1] != '-' {
			w.name(s, a[2:])
		}
	}
}

// rejoin returns fields as the text of a shell.
func rejoin(fields []string) string {
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
