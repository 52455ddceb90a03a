// Package shell reads a command line the way a shell would and reports what it
// runs, without running anything.
//
// It reads each command twice. The package vetted reads the small part of the
// language that is wholly understood: only a command that it accepts
// (Report.Unknown is empty) may run without a question. This package follows
// everything else as far as it can: simple commands in lists, pipes, subshells,
// substitutions, functions, here-documents and behind wrappers such as env,
// xargs, eval and sh -c. What it finds is used to refuse (Report.Danger) and to
// show users what a command runs; what it does not find proves nothing, so it
// never allows.
//
// It is larger than a package of ours should be: the grammar, the values and the
// programs that run others depend on each other, and are better read in one place.
package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"gatehouse/core/permission/shell/vetted"
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

// Quote returns words as one would type them, each standing for itself.
func Quote(words []string) string {
	out := make([]string, len(words))
	for i, f := range words {
		q, err := syntax.Quote(f, syntax.LangBash)
		if err != nil {
			q = "…"
		}
		out[i] = q
	}
	return strings.Join(out, " ")
}

// A Report is what a command line would do.
type Report struct {
	Commands []Command // in the order of the text; none twice
	// Danger explains why it must not run at all; "" when nothing is known.
	Danger string
	// Unknown explains why the command is not wholly understood; empty when it is. Then
	// Commands are all that it runs, and Paths all the files that it names.
	Unknown []string
	Paths   []Path
	// Hidden reports what the list of Commands cannot show; empty when it is complete.
	Hidden []string
	// Names are what may be names of files in it, relative to where it starts or
	// absolute; "~" is the home directory. Unquoted "*", "?" and "[" are kept.
	Names []string
}

// A Path is a file that an understood command names.
type Path = vetted.Path

// Examine reads a command line as bash does.
func Examine(text string) Report {
	r := follow(text)
	v := vetted.Read(text)
	if r.Unknown, r.Paths = v.Why, v.Paths; len(v.Why) > 0 {
		r.Paths = nil
		return r
	}
	r.Commands = nil
	for _, words := range v.Commands {
		c := understood(words)
		if !slices.ContainsFunc(r.Commands, func(o Command) bool { return o.Text == c.Text && slices.Equal(o.Words, c.Words) }) {
			r.Commands = append(r.Commands, c)
		}
	}
	return r
}

func understood(words []vetted.Word) Command {
	var c Command
	texts := make([]string, len(words))
	for i, w := range words {
		c.Words = append(c.Words, w.Text)
		if texts[i] = w.Text; !w.Pattern && !strings.HasPrefix(w.Text, "~") && w.Text != "[" && !(i == 0 && w.Text == ">") {
			texts[i] = Quote([]string{w.Text})
		}
	}
	c.Text = strings.Join(texts, " ")
	return c
}

// follow reads a command line as far as it can be followed.
func follow(text string) (r Report) {
	w := &walker{fixed: map[string]bool{}}
	defer func() {
		if recover() != nil { // the parser met what it does not expect
			w.quiet = 0
			w.hidden("it cannot be followed")
		}
		r = w.r
	}()
	w.run(text, newState(), input{})
	return w.r
}

// walker collects the report.
type walker struct {
	r     Report
	steps int
	depth int
	quiet int             // above 0: only danger is reported
	calls []string        // the functions that run, at most maxDepth
	fixed map[string]bool // variables that may be read-only; bounded by the text
}

func (w *walker) danger(why string) {
	if w.r.Danger == "" {
		w.r.Danger = why
	}
}

func (w *walker) hidden(why string) {
	if w.quiet == 0 && !slices.Contains(w.r.Hidden, why) && len(w.r.Hidden) < maxAlts {
		w.r.Hidden = append(w.r.Hidden, why)
	}
}

func (w *walker) command(fields []string) {
	if w.quiet > 0 {
		return
	}
	c := Command{Words: make([]string, len(fields)), Text: shown(rejoin(fields))}
	for i, f := range fields {
		c.Words[i] = shown(f)
	}
	if fields[0] == ">" {
		c.Text = shown("> " + rejoin(fields[1:]))
	}
	if slices.ContainsFunc(w.r.Commands, func(o Command) bool { return o.Text == c.Text && slices.Equal(o.Words, c.Words) }) {
		return
	}
	if len(w.r.Commands) >= maxField {
		w.hidden("it has too many commands")
		return
	}
	w.r.Commands = append(w.r.Commands, c)
}

func (w *walker) name(s *state, f string) {
	f = shown(s.at(f))
	if w.quiet == 0 && f != "" && !slices.Contains(w.r.Names, f) && len(w.r.Names) < 4*maxField {
		w.r.Names = append(w.r.Names, f)
	}
}

// spent reports whether the examination has become too long.
func (w *walker) spent() bool { return w.spend(1) }

func (w *walker) spend(n int) bool {
	w.steps += n
	if w.steps > maxSteps {
		w.quiet = 0
		w.hidden("it is too long to be followed")
		return true
	}
	return false
}

// input is what a command reads: text that is known, or what is not.
type input struct {
	text  string
	known bool
	piped bool // something comes in
}

// run examines the text of a shell in state s.
func (w *walker) run(text string, s *state, in input) {
	if w.depth++; w.depth > maxDepth || len(text) > maxText || w.spent() {
		w.hidden("it is nested too deep or too long to be followed")
		w.depth--
		return
	}
	defer func() { w.depth-- }()
	if w.depth > 1 && strings.ContainsRune(text, unknown) {
		w.hidden("it runs a text that cannot be resolved")
		w.quiet++ // what is known of it may be forbidden
		defer func() { w.quiet-- }()
		text = strings.ReplaceAll(text, string(unknown), "")
	}
	if w.depth > 1 {
		text = shown(text)
	}
	if strings.ContainsFunc(text, marked) || strings.ContainsRune(text, 0) {
		w.hidden("it holds characters that no command has")
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		w.hidden("it cannot be parsed")
		if f == nil {
			return
		}
		w.quiet++
		defer func() { w.quiet-- }()
	}
	w.stmts(f.Stmts, s, in)
}

func (w *walker) stmts(list []*syntax.Stmt, s *state, in input) {
	for _, st := range list {
		w.stmt(st, s, in)
	}
}

func (w *walker) stmt(st *syntax.Stmt, s *state, in input) {
	if st == nil || w.spent() {
		return
	}
	if st.Background || st.Coprocess || st.Disown {
		s = s.clone()
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
		w.stmts(c.Stmts, s.clone(), in)
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
		w.stmt(c.Stmt, s.clone(), input{piped: true})
	case *syntax.ArithmCmd, *syntax.LetClause, *syntax.TestClause:
		w.inner(c, s)
	default:
		w.hidden("it uses words that are not followed")
	}
}

func (w *walker) binary(c *syntax.BinaryCmd, s *state, in input) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		w.stmt(c.X, s.clone(), in)
		out, known := w.output(c.X, s.clone(), in)
		w.stmt(c.Y, s.clone(), input{out, known, true})
	default: // && and ||: the second may run or not
		w.stmt(c.X, s, in)
		other := s.clone()
		w.stmt(c.Y, other, in)
		s.join(other)
	}
}

func (w *walker) ifClause(c *syntax.IfClause, s *state, in input) {
	w.stmts(c.Cond, s, in)
	then, other := s.clone(), s.clone()
	w.stmts(c.Then, then, in)
	if c.Else != nil {
		w.ifClause(c.Else, other, in)
	}
	then.join(other)
	*s = *then
}

func (w *walker) caseClause(c *syntax.CaseClause, s *state, in input) {
	w.word(c.Word, s)
	out := s.clone()
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.word(p, s)
		}
		branch := s.clone()
		w.stmts(item.Stmts, branch, in)
		out.join(branch)
	}
	*s = *out
}

func (w *walker) forClause(c *syntax.ForClause, s *state, in input) {
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
		values = append(values, s.params...)
		if s.lost {
			values = append(values, string(unknown))
		}
	}
	if len(values) > 4*maxAlts {
		values = []string{string(unknown)}
	}
	name := iter.Name.Value
	w.loop(s, c.Do, in, func(in *state) { w.set(name, values, in) })
}

// loop examines a body that runs any number of times: what it assigns is
// unknown when it begins, except what set sets.
func (w *walker) loop(s *state, body []*syntax.Stmt, in input, set func(*state)) {
	inside := s.clone()
	for _, st := range body {
		inside.forget(st)
	}
	if set != nil {
		set(inside)
	}
	w.stmts(body, inside, in)
	s.join(inside)
}
