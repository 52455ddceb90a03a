package walk

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A State is what a shell knows at one point of the text.
type State struct {
	Vars    map[string][]string // the values that a variable may have
	Params  []string
	Zero    string // $0; "" where it is not known
	Funcs   map[string]*syntax.FuncDecl
	Aliases map[string]string
	Cwd     string // relative to the starting directory, or absolute
	Lost    bool   // variables and arguments are those of a caller who is not known
	ifs     bool   // words are split at other characters
}

// NewState returns the state of a new shell.
func NewState() *State {
	return &State{Vars: map[string][]string{"HOME": {string(Home)}}, Funcs: map[string]*syntax.FuncDecl{}, Aliases: map[string]string{}, Cwd: "."}
}

func (s *State) Clone() *State {
	c := *s
	c.Vars, c.Funcs, c.Aliases = maps.Clone(s.Vars), maps.Clone(s.Funcs), maps.Clone(s.Aliases)
	return &c
}

// join makes s what is known when either s or o is the case.
func (s *State) join(o *State) {
	for name := range o.Vars {
		if _, ok := s.Vars[name]; !ok {
			s.Vars[name] = []string{string(Unknown)}
		}
	}
	for name, values := range s.Vars {
		other, ok := o.Vars[name]
		if !ok {
			other = []string{string(Unknown)}
		}
		s.Vars[name] = either(values, other)
	}
	maps.Copy(s.Funcs, o.Funcs)
	maps.Copy(s.Aliases, o.Aliases)
	if s.Cwd != o.Cwd {
		s.Cwd = string(Unknown)
	}
	if !slices.Equal(s.Params, o.Params) {
		s.Params, s.Lost = nil, true
	}
	s.Lost, s.ifs = s.Lost || o.Lost, s.ifs || o.ifs
}

func either(a, b []string) []string {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	if len(out) > 4*maxAlts {
		return []string{string(Unknown)}
	}
	return out
}

// forget makes what a node assigns unknown, or a number where it only counts.
func (s *State) forget(n syntax.Node) {
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
		s.Vars[name] = []string{string(Unknown)}
		if number {
			s.Vars[name] = []string{string(Digits)}
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
func (s *State) lend(from *State, assigns []*syntax.Assign) func() {
	before := s.Clone()
	s.ifs = from.ifs
	for _, a := range assigns {
		if a.Name != nil {
			s.Vars[a.Name.Value] = from.Vars[a.Name.Value]
		}
	}
	return func() {
		s.ifs = before.ifs
		for _, a := range assigns {
			if a.Name == nil {
				continue
			}
			delete(s.Vars, a.Name.Value)
			if v, ok := before.Vars[a.Name.Value]; ok {
				s.Vars[a.Name.Value] = v
			}
		}
	}
}

// At returns a file's name relative to where the command line starts.
func (s *State) At(f string) string {
	if f == "" || strings.HasPrefix(f, "/") || strings.HasPrefix(f, string(Home)) || s.Cwd == "." {
		return f
	}
	return path.Join(s.Cwd, f)
}

// values returns what a variable or parameter may hold.
func (s *State) values(name string) []string {
	if v, ok := s.Vars[name]; ok {
		return v
	}
	n, err := strconv.Atoi(name)
	switch {
	case err == nil && n > 0 && !s.Lost:
		if n <= len(s.Params) {
			return []string{s.Params[n-1]}
		}
		return []string{""}
	case name == "@" && !s.Lost:
		return []string{strings.Join(s.Params, string(next))}
	case name == "*" && !s.Lost:
		return []string{strings.Join(s.Params, " ")}
	case name == "0" && s.Zero != "":
		return []string{s.Zero}
	case len(name) == 1 && strings.Contains(numbers, name), name == "RANDOM", name == "LINENO", name == "SECONDS", name == "UID", name == "EUID", name == "PPID":
		return []string{string(Digits)}
	case name == "PWD":
		return []string{s.Cwd}
	}
	return []string{string(Unknown)}
}
