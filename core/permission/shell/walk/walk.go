// Package walk follows a command line as bash would run it, as far as its text shows
// what happens: lists, pipes, subshells, substitutions, loops, functions and the
// values of variables. What the programs do with their arguments it asks a Handler.
//
// It proves nothing: it reports what must be refused and what it has seen, and
// Hidden wherever more may run than it has seen.
package walk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of one examination; beyond them a command counts as hidden.
const (
	maxText  = 64 << 10 // bytes of a command
	maxSteps = 20000    // words and commands checked
	maxDepth = 12       // shells in shells, functions in functions
	maxAlts  = 16       // values that one word may have
	maxField = 256      // fields of one command, by braces
)

// A Command is one simple command. What only the run settles is as "…" in
// it, a number that only the run settles as 0, the home directory as "~".
type Command struct {
	Words []string // its name and arguments, as the program gets them
	Text  string   // the same for users, quoted where a shell needs it
}

// A Report is what was found in a command line; see shell.Report.
type Report struct {
	Commands []Command
	Danger   string
	Hidden   []string
	Names    []string
}

// A Handler examines the arguments of one program; f[0] is its name in lower case.
type Handler func(w *Walker, f []string, s *State, in Input)

// Follow reads a command line as far as it can be followed. programs returns the
// Handler of a program's name.
func Follow(text string, programs func(name string) Handler) (r Report) {
	w := &Walker{handler: programs, fixed: map[string]bool{}}
	defer func() {
		if recover() != nil { // the parser met what it does not expect
			w.quiet = 0
			w.Hidden("it cannot be followed")
		}
		r = w.r
	}()
	w.Run(text, NewState(), Input{})
	return w.r
}

// A Walker follows one command line and collects the report.
type Walker struct {
	handler func(name string) Handler
	r       Report
	steps   int
	depth   int
	quiet   int             // above 0: only danger is reported
	calls   []string        // the functions that run, at most maxDepth
	fixed   map[string]bool // variables that may be read-only; bounded by the text
}

// Danger notes why the command line must not run at all; the first reason counts.
func (w *Walker) Danger(why string) {
	if w.r.Danger == "" {
		w.r.Danger = why
	}
}

// Hidden notes what the list of commands cannot show.
func (w *Walker) Hidden(why string) {
	if w.quiet == 0 && !slices.Contains(w.r.Hidden, why) && len(w.r.Hidden) < maxAlts {
		w.r.Hidden = append(w.r.Hidden, why)
	}
}

// Quiet has only danger reported until end is called: for what may run, or what is
// examined a second time.
func (w *Walker) Quiet() (end func()) {
	w.quiet++
	return func() { w.quiet-- }
}

// Command notes a command that runs, as its fields.
func (w *Walker) Command(fields []string) {
	if w.quiet > 0 {
		return
	}
	c := Command{Words: make([]string, len(fields)), Text: Shown(Rejoin(fields))}
	for i, f := range fields {
		c.Words[i] = Shown(f)
	}
	if fields[0] == ">" {
		c.Text = Shown("> " + Rejoin(fields[1:]))
	}
	if slices.ContainsFunc(w.r.Commands, func(o Command) bool { return o.Text == c.Text && slices.Equal(o.Words, c.Words) }) {
		return
	}
	if len(w.r.Commands) >= maxField {
		w.Hidden("it has too many commands")
		return
	}
	w.r.Commands = append(w.r.Commands, c)
}

// Name notes a name that may be of a file.
func (w *Walker) Name(s *State, f string) {
	f = Shown(s.At(f))
	if w.quiet == 0 && f != "" && !slices.Contains(w.r.Names, f) && len(w.r.Names) < 4*maxField {
		w.r.Names = append(w.r.Names, f)
	}
}

// spent reports whether the examination has become too long.
func (w *Walker) spent() bool { return w.spend(1) }

func (w *Walker) spend(n int) bool {
	w.steps += n
	if w.steps > maxSteps {
		w.quiet = 0
		w.Hidden("it is too long to be followed")
		return true
	}
	return false
}

// An Input is what a command reads.
type Input struct {
	Text  string
	Known bool // Text is all of it
	Piped bool // it comes from a pipe or a file
}

// Run examines the text of a shell in state s.
func (w *Walker) Run(text string, s *State, in Input) {
	if w.depth++; w.depth > maxDepth || len(text) > maxText || w.spent() {
		w.Hidden("it is nested too deep or too long to be followed")
		w.depth--
		return
	}
	defer func() { w.depth-- }()
	if w.depth > 1 && strings.ContainsRune(text, Unknown) {
		w.Hidden("it runs a text that cannot be resolved")
		w.quiet++ // what is known of it may be forbidden
		defer func() { w.quiet-- }()
		text = strings.ReplaceAll(text, string(Unknown), "")
	}
	if w.depth > 1 {
		text = Shown(text)
	}
	if strings.ContainsFunc(text, marked) || strings.ContainsRune(text, 0) {
		w.Hidden("it holds characters that no command has")
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		w.Hidden("it cannot be parsed")
		if f == nil {
			return
		}
		w.quiet++
		defer func() { w.quiet-- }()
	}
	w.stmts(f.Stmts, s, in)
}

func (w *Walker) stmts(list []*syntax.Stmt, s *State, in Input) {
	for _, st := range list {
		w.stmt(st, s, in)
	}
}

func (w *Walker) stmt(st *syntax.Stmt, s *State, in Input) {
	if st == nil || w.spent() {
		return
	}
	if st.Background || st.Coprocess || st.Disown {
		s = s.Clone()
	}
	in = w.redirects(st.Redirs, s, in)
	switch c := st.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		w.call(c, s, in)
	case *syntax.BinaryCmd:
		w.binary(c, s, in)
	case *syntax.Block:
		w.stmts(c.Stmts, s, in)
	case *syntax.Subshell:
		w.stmts(c.Stmts, s.Clone(), in)
	case *syntax.IfClause:
		w.ifClause(c, s, in)
	case *syntax.WhileClause:
		w.loop(s, append(slices.Clone(c.Cond), c.Do...), in, nil)
	case *syntax.ForClause:
		w.forClause(c, s, in)
	case *syntax.CaseClause:
		w.caseClause(c, s, in)
	case *syntax.FuncDecl:
		if chain, ok := c.Body.Cmd.(*syntax.BinaryCmd); ok {
			w.binary(unchained(c, chain), s, in)
			return
		}
		w.function(c, s)
	case *syntax.DeclClause:
		w.declare(c, s)
	case *syntax.TimeClause:
		w.stmt(c.Stmt, s, in)
	case *syntax.CoprocClause:
		w.stmt(c.Stmt, s.Clone(), Input{Piped: true})
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause:
		w.inner(c, s)
	default:
		w.Hidden("it uses words that are not followed")
	}
}

func (w *Walker) binary(c *syntax.BinaryCmd, s *State, in Input) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		w.stmt(c.X, s.Clone(), in)
		out, known := w.output(c.X, s.Clone(), in)
		w.stmt(c.Y, s.Clone(), Input{out, known, true})
	default: // && and ||: the second may run or not
		w.stmt(c.X, s, in)
		other := s.Clone()
		w.stmt(c.Y, other, in)
		s.join(other)
	}
}

func (w *Walker) ifClause(c *syntax.IfClause, s *State, in Input) {
	w.stmts(c.Cond, s, in)
	then, other := s.Clone(), s.Clone()
	w.stmts(c.Then, then, in)
	if c.Else != nil {
		w.ifClause(c.Else, other, in)
	}
	then.join(other)
	*s = *then
}

func (w *Walker) caseClause(c *syntax.CaseClause, s *State, in Input) {
	w.word(c.Word, s)
	out := s.Clone()
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.word(p, s)
		}
		branch := s.Clone()
		w.stmts(item.Stmts, branch, in)
		out.join(branch)
	}
	*s = *out
}

func (w *Walker) forClause(c *syntax.ForClause, s *State, in Input) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		w.inner(c.Loop, s)
		w.loop(s, c.Do, in, nil)
		return
	}
	var values []string
	for _, word := range iter.Items {
		for _, fields := range w.word(word, s) {
			values = append(values, fields...)
		}
	}
	if !iter.InPos.IsValid() { // for x; do: the arguments
		values = append(values, s.Params...)
		if s.Lost {
			values = append(values, string(Unknown))
		}
	}
	if len(values) > 4*maxAlts {
		values = []string{string(Unknown)}
	}
	name := iter.Name.Value
	w.loop(s, c.Do, in, func(in *State) { w.Set(name, values, in) })
}

// loop examines a body that runs any number of times: what it assigns is
// unknown when it begins, except what set sets.
func (w *Walker) loop(s *State, body []*syntax.Stmt, in Input, set func(*State)) {
	inside := s.Clone()
	for _, st := range body {
		inside.forget(st)
	}
	if set != nil {
		set(inside)
	}
	w.stmts(body, inside, in)
	s.join(inside)
}
