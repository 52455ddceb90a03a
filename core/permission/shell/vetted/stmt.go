package vetted

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

func (r *reader) stmts(list []*syntax.Stmt) {
	for _, st := range list {
		if r.stmt(st); r.failed() {
			return
		}
	}
}

func (r *reader) stmt(st *syntax.Stmt) {
	r.depth++
	if r.steps++; r.depth > maxDepth || r.steps > maxSteps {
		r.fail("it is nested too deep, or too long")
	}
	defer func() { r.depth-- }()
	if st.Background || st.Coprocess || st.Disown {
		r.fail("it runs a command in the background")
	}
	for _, d := range st.Redirs {
		r.redirect(d)
	}
	if r.failed() {
		return
	}
	if _, simple := st.Cmd.(*syntax.CallExpr); len(st.Redirs) > 0 && !simple {
		// Where a redirection fails, nothing of it runs, and the next command does.
		r.conditionally(func() { r.run(st) })
		return
	}
	r.run(st)
}

// run reads what a statement runs.
func (r *reader) run(st *syntax.Stmt) {
	switch c := st.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		r.call(c)
	case *syntax.BinaryCmd:
		r.binary(c)
	case *syntax.Block:
		r.stmts(c.Stmts)
	case *syntax.Subshell:
		r.subshell(c.Stmts)
	case *syntax.IfClause:
		r.ifClause(c)
	case *syntax.ForClause:
		r.forClause(c)
	case *syntax.TestClause:
		r.testClause(c.X)
	default:
		r.fail(unread(st.Cmd))
	}
}

// unread names a construct that is not read.
func unread(c syntax.Command) string {
	switch c := c.(type) {
	case *syntax.FuncDecl:
		return "it declares a function"
	case *syntax.DeclClause:
		return "it uses " + c.Variant.Value
	case *syntax.ArithmCmd, *syntax.LetClause:
		return "it evaluates arithmetic"
	case *syntax.WhileClause:
		return "it uses a while or until loop"
	case *syntax.CaseClause:
		return "it uses case"
	case *syntax.TimeClause:
		return "it uses time"
	}
	return "it uses a construct that is not read"
}

func (r *reader) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		r.subshell([]*syntax.Stmt{c.X})
		r.subshell([]*syntax.Stmt{c.Y})
	case syntax.AndStmt, syntax.OrStmt:
		r.stmt(c.X)
		r.conditionally(func() { r.stmt(c.Y) })
	default:
		r.fail("it uses an operator that is not read")
	}
}

func (r *reader) conditionally(read func()) {
	r.conditional++
	read()
	r.conditional--
}

// subshell reads what runs in a process of its own: its variables and working
// directory end with it.
func (r *reader) subshell(list []*syntax.Stmt) {
	vars, dirs := maps.Clone(r.vars), slices.Clone(r.dirs)
	r.stmts(list)
	r.vars, r.dirs = vars, dirs
}

func (r *reader) ifClause(c *syntax.IfClause) {
	r.stmts(c.Cond)
	r.conditionally(func() {
		r.stmts(c.Then)
		if c.Else != nil {
			r.ifClause(c.Else)
		}
	})
}

// forClause reads the body once for each value.
func (r *reader) forClause(c *syntax.ForClause) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok || c.Select || c.Braces {
		r.fail("it uses a loop that is not read")
		return
	}
	if !iter.InPos.IsValid() || !harmlessName(iter.Name.Value) {
		r.fail("it loops over arguments, or with a variable that may have a meaning")
		return
	}
	values := r.fields(iter.Items)
	// Where there is no value the body does not run; what it changes is refused
	// by conditional.
	for _, v := range values {
		if v.dynamic || v.home || v.process {
			r.fail("it loops over values that are only known when it runs")
			return
		}
		r.vars[iter.Name.Value] = value{v.text, v.glob}
		dirs := slices.Clone(r.dirs)
		if r.conditionally(func() { r.stmts(c.Do) }); r.failed() {
			return
		}
		if v.glob && !slices.Equal(dirs, r.dirs) { // how often it runs is not known
			r.fail("it changes its directory in a loop")
			return
		}
	}
	if r.conditional > 0 {
		delete(r.vars, iter.Name.Value)
	}
}

// harmlessName reports whether a variable affects only the text of the command line:
// the shell and other programs do not read it.
func harmlessName(name string) bool {
	return variable().MatchString(name) && !slices.Contains([]string{"auto_resume", "histchars"}, name) && !strings.Contains(name, "proxy")
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`) })

// inherited are variables that may be set for one command: they choose language,
// time zone and colour.
var inherited = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"LC_ALL": plainLocale(), "LANG": plainLocale(), "LC_COLLATE": plainLocale(), "LC_CTYPE": plainLocale(), "LC_TIME": plainLocale(), "LC_NUMERIC": plainLocale(),
		"TZ":       regexp.MustCompile(`^[A-Za-z][A-Za-z_]*(/[A-Za-z_]+)?([+-]?[0-9]{1,2})?$`),
		"NO_COLOR": regexp.MustCompile(`^[01]?$`),
		"TERM":     regexp.MustCompile(`^(dumb|xterm|xterm-256color|linux)$`),
	}
})

var plainLocale = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(C|POSIX|[a-z]{2}_[A-Z]{2})(\.(UTF-8|utf8))?$`) })

func (r *reader) assign(a *syntax.Assign, command bool) {
	if a.Name == nil || a.Index != nil || a.Array != nil || a.Append || a.Naked {
		r.fail("it assigns an array, or adds to a variable")
		return
	}
	name := a.Name.Value
	v := word{}
	if a.Value != nil {
		v = r.word(a.Value, true)
	}
	switch {
	case r.failed():
	case v.dynamic || v.home || v.glob:
		r.fail("it assigns a value that is only known when it runs")
	case command:
		if re := inherited()[name]; re == nil || !re.MatchString(v.text) {
			r.fail("it sets " + name + " for a command")
		}
	case !harmlessName(name):
		r.fail("it sets " + name)
	case r.conditional > 0:
		r.fail("it sets " + name + " only under a condition")
	default:
		r.vars[name] = value{text: v.text}
	}
}

func (r *reader) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		r.assign(a, len(c.Args) > 0)
	}
	if len(c.Args) == 0 || r.failed() {
		return
	}
	first := c.Args[0].Lit()
	if first == "" || strings.ContainsAny(first, `\$*?~{`) {
		r.fail("the name of a command is not plain text")
		return
	}
	words := r.fields(c.Args)
	if r.failed() || len(words) == 0 {
		return
	}
	words[0] = word{text: first}
	r.command(words)
	r.program(first, words[1:])
}

// redirect reads one redirection.
func (r *reader) redirect(d *syntax.Redirect) {
	if d.N != nil && (len(d.N.Value) != 1 || d.N.Value[0] < '0' || d.N.Value[0] > '2') {
		r.fail("it uses a file descriptor beyond 0, 1 and 2")
		return
	}
	switch d.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		r.hereDoc(d)
	case syntax.WordHdoc:
		r.word(d.Word, false)
	case syntax.DplOut:
		if to := d.Word.Lit(); to != "1" && to != "2" {
			r.fail("it redirects to something that is not read")
		}
	case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		w := r.word(d.Word, false)
		switch {
		case r.failed():
		case holdsBrace(d.Word), w.glob || w.dynamic || w.text == "":
			r.fail("a redirection cannot be resolved")
		case d.Op == syntax.RdrIn:
			r.path(w, false, false)
		default:
			r.path(w, true, false)
			if w.text != "/dev/null" {
				r.command([]word{{text: ">"}, w.in(r.dirs)})
			}
		}
	default:
		r.fail("it uses a redirection that is not read")
	}
}

var delimiter = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

func (r *reader) hereDoc(d *syntax.Redirect) {
	quoted, name := false, d.Word.Lit()
	if len(d.Word.Parts) == 1 {
		if q, ok := d.Word.Parts[0].(*syntax.SglQuoted); ok && !q.Dollar {
			quoted, name = true, q.Value
		}
	}
	if !delimiter().MatchString(name) {
		r.fail("the delimiter of a here-document is not plain text")
		return
	}
	if quoted || d.Hdoc == nil {
		return
	}
	for _, p := range d.Hdoc.Parts {
		if l, ok := p.(*syntax.Lit); !ok || strings.ContainsAny(l.Value, "\\$`") {
			r.fail("a here-document is expanded")
		}
	}
}

// chdir is cd to one directory. It may fail, so the command may go on in the
// directory where it was.
func (r *reader) chdir(w word) {
	dirs := slices.Clone(r.dirs)
	for _, d := range r.dirs {
		to := w.text
		switch {
		case w.home || strings.HasPrefix(to, "/"):
		case climbsInside(to):
			r.fail("it changes to a directory behind ..")
			return
		default:
			to = path.Join(d, to)
		}
		if !slices.Contains(dirs, to) {
			dirs = append(dirs, to)
		}
	}
	if r.dirs = dirs; len(dirs) > maxDirs {
		r.fail("it changes its directory too often")
	}
}

// climbsInside reports whether ".." follows a name: what that means depends on
// symbolic links.
func climbsInside(name string) bool {
	seen := false
	for _, p := range strings.Split(name, "/") {
		switch p {
		case "", ".":
		case "..":
			if seen {
				return true
			}
		default:
			seen = true
		}
	}
	return false
}

// testClause reads [[ … ]], without what evaluates arithmetic or a pattern.
func (r *reader) testClause(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.ParenTest:
		r.testClause(x.X)
	case *syntax.UnaryTest:
		switch x.Op {
		case syntax.TsNot:
			r.testClause(x.X)
		case syntax.TsExists, syntax.TsRegFile, syntax.TsDirect, syntax.TsSmbLink, syntax.TsNoEmpty, syntax.TsRead, syntax.TsWrite, syntax.TsExec:
			if w, ok := x.X.(*syntax.Word); ok {
				r.path(r.word(w, false), false, false)
				return
			}
			r.fail("it uses a test that is not read")
		case syntax.TsEmpStr, syntax.TsNempStr:
			r.testClause(x.X)
		default:
			r.fail("it uses a test that is not read")
		}
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest, syntax.OrTest, syntax.TsMatchShort, syntax.TsMatch, syntax.TsNoMatch:
			r.testClause(x.X)
			r.testClause(x.Y)
		default:
			r.fail("it uses a test that is not read")
		}
	case *syntax.Word:
		r.word(x, false)
	default:
		r.fail("it uses a test that is not read")
	}
}
