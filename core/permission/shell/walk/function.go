package walk

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// unchained returns c with what follows its body by && || or | after the declaration,
// as the shell reads it. The parser has it in the body.
func unchained(c *syntax.FuncDecl, chain *syntax.BinaryCmd) *syntax.BinaryCmd {
	out, decl, first := *chain, *c, *chain.X
	if deeper, ok := first.Cmd.(*syntax.BinaryCmd); ok {
		first.Cmd = unchained(c, deeper)
	} else {
		decl.Body = chain.X
		first = syntax.Stmt{Position: first.Position, Cmd: &decl}
	}
	out.X = &first
	return &out
}

// function keeps a function for when it is called. What it holds is checked
// now, too: what is forbidden is so in a function that is never called.
func (w *Walker) function(c *syntax.FuncDecl, s *State) {
	if c.Name == nil {
		w.Hidden("it uses words that are not followed")
		return
	}
	if bomb(c) {
		w.Danger("a fork bomb")
		return
	}
	s.Funcs[c.Name.Value] = c
	w.quiet++
	probe := s.Clone()
	probe.Lost, probe.Vars, probe.Params = true, map[string][]string{}, nil
	delete(probe.Funcs, c.Name.Value)
	w.stmt(c.Body, probe, Input{})
	w.quiet--
}

// invoke examines a call of a function that the text declares.
func (w *Walker) invoke(c *syntax.FuncDecl, args []string, s *State, in Input) {
	if slices.Contains(w.calls, c.Name.Value) || w.depth > maxDepth {
		if len(w.calls) > 0 && w.forks(c, s) {
			w.Danger("a fork bomb")
		}
		w.Hidden("a function calls itself")
		return
	}
	w.calls = append(w.calls, c.Name.Value)
	w.depth++
	before, lost := s.Params, s.Lost
	s.Params, s.Lost = args, false
	w.stmt(c.Body, s, in)
	s.Params, s.Lost = before, lost
	w.depth--
	w.calls = w.calls[:len(w.calls)-1]
}

// forks reports whether any function in the running circle calls in the
// background or in a pipe.
func (w *Walker) forks(c *syntax.FuncDecl, s *State) bool {
	for _, name := range append(slices.Clone(w.calls), c.Name.Value) {
		f := s.Funcs[name]
		if f == nil {
			continue
		}
		for _, callee := range w.calls {
			if spawns(f.Body, callee) > 0 {
				return true
			}
		}
	}
	return false
}

// bomb reports whether a function starts itself more than once, or starts
// itself aside and goes on.
func bomb(c *syntax.FuncDecl) bool {
	calls := 0
	syntax.Walk(c.Body, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && named(call, c.Name.Value) {
			calls++
		}
		return true
	})
	return calls > 1 || spawns(c.Body, c.Name.Value) > 0
}

// spawns counts where body calls name in the background or in a pipe.
func spawns(body *syntax.Stmt, name string) (n int) {
	has := func(st *syntax.Stmt) (yes bool) {
		syntax.Walk(st, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			yes = yes || ok && named(call, name)
			return !yes
		})
		return yes
	}
	syntax.Walk(body, func(node syntax.Node) bool {
		switch c := node.(type) {
		case *syntax.Stmt:
			if (c.Background || c.Disown || c.Coprocess) && has(c) {
				n++
			}
		case *syntax.BinaryCmd:
			if (c.Op == syntax.Pipe || c.Op == syntax.PipeAll) && (has(c.X) || has(c.Y)) {
				n++
			}
		}
		return true
	})
	return n
}

func named(call *syntax.CallExpr, name string) bool {
	return len(call.Args) > 0 && call.Args[0].Lit() == name
}
