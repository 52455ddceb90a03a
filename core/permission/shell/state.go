package shell

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is what a shell knows at one point of the text.
type state struct {
	vars    map[string][]string // the values that a variable may have
	params  []string
	zero    string // $0, where it is told
	funcs   map[string]*syntax.FuncDecl
	aliases map[string]string
	cwd     string // relative to where it starts, or absolute
	lost    bool   // variables and arguments are those of a caller who is not known
	ifs     bool   // words are split at other characters
}

func newState() *state {
	return &state{vars: map[string][]string{"HOME": {string(home)}}, funcs: map[string]*syntax.FuncDecl{}, aliases: map[string]string{}, cwd: "."}
}

func (s *state) clone() *state {
	c := *s
	c.vars, c.funcs, c.aliases = maps.Clone(s.vars), maps.Clone(s.funcs), maps.Clone(s.aliases)
	return &c
}

// join makes s what is known when either s or o is the case.
func (s *state) join(o *state) {
	for name := range o.vars {
		if _, ok := s.vars[name]; !ok {
			s.vars[name] = []string{string(unknown)}
		}
	}
	for name, values := range s.vars {
		other, ok := o.vars[name]
		if !ok {
			other = []string{string(unknown)}
		}
		s.vars[name] = either(values, other)
	}
	maps.Copy(s.funcs, o.funcs)
	maps.Copy(s.aliases, o.aliases)
	if s.cwd != o.cwd {
		s.cwd = string(unknown)
	}
	if !slices.Equal(s.params, o.params) {
		s.params, s.lost = nil, true
	}
	s.lost, s.ifs = s.lost || o.lost, s.ifs || o.ifs
}

func either(a, b []string) []string {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	if len(out) > 4*maxAlts {
		return []string{string(unknown)}
	}
	return out
}

// forget makes what a node assigns unknown, or a number where it only counts.
func (s *state) forget(n syntax.Node) {
	counts := map[string]bool{}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				before, seen := counts[n.Name.Value]
				counts[n.Name.Value] = (before || !seen) && counting(n.Value) && !n.Append
			}
		case *syntax.WordIter:
			counts[n.Name.Value] = false
		case *syntax.CallExpr:
			if len(n.Args) > 1 && slices.Contains([]string{"read", "mapfile", "readarray", "printf", "getopts", "let", "export"}, n.Args[0].Lit()) {
				for _, a := range n.Args[1:] {
					counts[a.Lit()] = false
				}
			}
		}
		return true
	})
	for name, number := range counts {
		s.vars[name] = []string{string(unknown)}
		if number {
			s.vars[name] = []string{string(digits)}
		}
	}
}

func counting(w *syntax.Word) bool {
	if w == nil || len(w.Parts) != 1 {
		return false
	}
	_, arithmetic := w.Parts[0].(*syntax.ArithmExp)
	_, err := strconv.Atoi(w.Lit())
	return arithmetic || err == nil
}

// lend gives s what is assigned for one command, until the function it returns
// is called.
func (s *state) lend(from *state, assigns []*syntax.Assign) func() {
	before := s.clone()
	s.ifs = from.ifs
	for _, a := range assigns {
		if a.Name != nil {
			s.vars[a.Name.Value] = from.vars[a.Name.Value]
		}
	}
	return func() {
		s.ifs = before.ifs
		for _, a := range assigns {
			if a.Name == nil {
				continue
			}
			delete(s.vars, a.Name.Value)
			if v, ok := before.vars[a.Name.Value]; ok {
				s.vars[a.Name.Value] = v
			}
		}
	}
}

// at returns a file's name seen from where the command line starts.
func (s *state) at(f string) string {
	if f == "" || strings.HasPrefix(f, "/") || strings.HasPrefix(f, string(home)) || s.cwd == "." {
		return f
	}
	return path.Join(s.cwd, f)
}

// values returns what a variable or parameter may hold.
func (s *state) values(name string) []string {
	if v, ok := s.vars[name]; ok {
		return v
	}
	n, err := strconv.Atoi(name)
	switch {
	case err == nil && n > 0 && !s.lost:
		if n <= len(s.params) {
			return []string{s.params[n-1]}
		}
		return []string{""}
	case name == "@" && !s.lost:
		return []string{strings.Join(s.params, string(next))}
	case name == "*" && !s.lost:
		return []string{strings.Join(s.params, " ")}
	case name == "0" && s.zero != "":
		return []string{s.zero}
	case len(name) == 1 && strings.Contains(numbers, name), name == "RANDOM", name == "LINENO", name == "SECONDS", name == "UID", name == "EUID", name == "PPID":
		return []string{string(digits)}
	case name == "PWD":
		return []string{s.cwd}
	}
	return []string{string(unknown)}
}
