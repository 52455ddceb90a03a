// Package vetted reads a shell command and reports whether it is wholly
// understood: whether everything that it runs, reads and writes follows from its
// text, and all of it is harmless as far as the program and its options go.
//
// It accepts a small part of the shell's language and a list of programs with
// their harmless options (programs.go); whatever is not in them is reported as
// not understood. It is deliberately narrow: a construct that this package does
// not know costs a question, a construct that it misreads costs the boundary.
package vetted

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Limits of one command; what exceeds them is not understood.
const (
	maxText     = 16 << 10 // bytes
	maxCommands = 200      // simple commands, loops unrolled
	maxWords    = 2000     // of all commands together
	maxDirs     = 8        // working directories that a command may be in
	maxDepth    = 20       // nested lists, loops and substitutions
	maxSteps    = 4000     // statements, loops unrolled
	maxSize     = 1 << 20  // bytes of all words as they are put together
)

// A Word is one argument as the program gets it. Pattern means that it holds a
// glob, which the shell expands to the names of existing files.
type Word struct {
	Text    string
	Pattern bool
}

// A Path is a file that a command names. Name is relative to the directory that
// the command starts in, absolute, or begins with "~/" (the home directory); it
// is not cleaned, because ".." behind a symbolic link is not textual.
type Path struct {
	Name    string
	Pattern bool // Name holds a glob
	Write   bool // the file is created, changed or removed
	Deep    bool // all files below it are read or written
	List    bool // of Deep: only their names are read
	Copy    bool // of Deep: it is copied as a whole, or links in it are followed; of Write: into what is there
}

// A Result is what a command does. Where Why is not empty the command is not
// understood, and Commands and Paths are incomplete.
type Result struct {
	Commands [][]Word // simple commands in the order in which they may run
	Paths    []Path
	Why      []string // what is not understood, as phrases for users
}

// Read reads a command as bash -c would.
func Read(text string) Result {
	r := &reader{vars: map[string]value{}, dirs: []string{"."}}
	if why := unprintable(text); why != "" {
		r.fail(why)
		return r.out
	}
	defer func() {
		if recover() != nil { // the parser failed on unexpected input
			r.fail("it cannot be parsed")
		}
	}()
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	switch {
	case err != nil:
		r.fail("it cannot be parsed")
	case len(f.Stmts) == 0:
		r.fail("it holds no command")
	default:
		r.stmts(f.Stmts)
	}
	return r.out
}

// unprintable returns why a text is not plain text, or "".
func unprintable(text string) string {
	if len(text) > maxText {
		return "it is too long"
	}
	if !utf8.ValidString(text) {
		return "it is not valid UTF-8"
	}
	if strings.Contains(text, "\\\n") { // parsers differ in where it continues a line
		return "a line ends with a backslash"
	}
	for _, c := range text {
		if !Plain(c) {
			return "it holds control or invisible characters"
		}
	}
	return ""
}

// Plain reports whether a character is visible on its own, or a space, tab or
// newline.
func Plain(c rune) bool {
	switch {
	case c == '\n' || c == '\t':
		return true
	case c < utf8.RuneSelf:
		return c >= ' ' && c != 0x7f
	case c == '\u2800' || c == utf8.RuneError || c >= '\uFFF0' && c <= '\uFFFF':
		return false
	}
	return unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) &&
		!unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Cf) &&
		c != '\u034F' && c != '\u115F' && c != '\u1160' && c != '\u17B4' && c != '\u17B5' && c != '\u3164' && c != '\uFFA0'
}

// A value is what a shell variable holds: a text, or a glob whose expansion it
// holds one name of.
type value struct {
	text    string
	pattern bool
}

type reader struct {
	out         Result
	vars        map[string]value
	dirs        []string // directories that the next command may run in
	words       int
	depth       int
	steps       int
	size        int
	copying     bool     // the program copies all below the files that it names
	listing     bool     // the program reads the names of files only
	links       []string // targets of copies and moves
	conditional int      // above 0: what is read may not run, or runs in a subshell
}

func (r *reader) fail(why string) {
	for _, w := range r.out.Why {
		if w == why {
			return
		}
	}
	if len(r.out.Why) < 8 {
		r.out.Why = append(r.out.Why, why)
	}
}

func (r *reader) failed() bool { return len(r.out.Why) > 0 }

// path notes a file that a command names, for each directory that it may run in.
func (r *reader) path(w word, write, deep bool) {
	if w.dynamic {
		r.fail("the name of a file is only known when it runs")
		return
	}
	if w.process {
		return
	}
	for _, name := range r.from(w) {
		if len(r.links) > 0 && (strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || strings.Contains("/"+name+"/", "/../")) {
			r.fail("it names a file from elsewhere after it has moved or copied files, which may be links")
			return
		}
		for _, l := range r.links {
			if l == "." && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "~") || within(name, l) {
				r.fail("it uses a file that it has moved or copied, which may be a link")
				return
			}
		}
		r.addPath(Path{Name: name, Pattern: w.glob, Write: write, Deep: deep, List: deep && r.listing, Copy: r.copying})
	}
}

// from returns a word as a path seen from where the command starts, for each
// directory that it may run in.
func (r *reader) from(w word) []string {
	switch {
	case w.text == "":
		return nil
	case w.home || strings.HasPrefix(w.text, "/"):
		return []string{w.text}
	}
	var out []string
	for _, d := range r.dirs {
		switch {
		case d != ".":
			out = append(out, strings.TrimSuffix(d, "/")+"/"+w.text)
		case strings.HasPrefix(w.text, "~"):
			out = append(out, "./"+w.text)
		default:
			out = append(out, w.text)
		}
	}
	return out
}

// within reports whether a path is top or below it, or may be by a glob.
func within(name, top string) bool {
	name, top = path.Clean(name), path.Clean(top)
	if strings.ContainsAny(name, "*?[") {
		a, b := strings.Split(name, "/"), strings.Split(top, "/")
		for i := range min(len(a), len(b)) {
			if ok, err := path.Match(strings.ReplaceAll(a[i], "[!", "[^"), b[i]); !ok && err == nil {
				return false
			}
		}
		return len(a) >= len(b)
	}
	return name == top || strings.HasPrefix(name, top+"/")
}

func (r *reader) addPath(p Path) {
	for _, o := range r.out.Paths {
		if o == p {
			return
		}
	}
	if len(r.out.Paths) >= maxWords {
		r.fail("it names too many files")
		return
	}
	r.out.Paths = append(r.out.Paths, p)
}

// command notes a simple command.
func (r *reader) command(words []word) {
	c := make([]Word, len(words))
	for i, w := range words {
		c[i] = Word{w.text, w.glob}
	}
	if r.words += len(words); len(r.out.Commands) >= maxCommands || r.words > maxWords {
		r.fail("it runs too many commands")
		return
	}
	r.out.Commands = append(r.out.Commands, c)
}
