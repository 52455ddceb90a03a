package detect

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"gatehouse/core"
)

// A pattern is a regular expression of a rule. Most texts lack the words that an expression
// needs: it is asked, and compiled, only where one of them occurs.
type pattern struct {
	needs    []string // a text that matches contains one of them; none: that is not known
	compiled func() *regexp.Regexp
}

func newPattern(source string) (*pattern, error) {
	re, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, err
	}
	return &pattern{needs: needs(re).least(), compiled: core.Pattern(source)}, nil
}

func (p *pattern) matches(t *text) bool {
	return (len(p.needs) == 0 || slices.ContainsFunc(p.needs, t.has)) && p.compiled().MatchString(t.string)
}

// A text is what rules are asked about.
type text struct {
	string
	pairs [pairs / 64]uint64 // a bit for each two bytes that stand together
}

const pairs = 1 << 12 // of the low six bits of each byte

func pairOf(s string, i int) uint { return uint(s[i]&63)<<6 | uint(s[i+1]&63) }

func newText(s string) *text {
	t := &text{string: s}
	for i := range len(s) - 1 {
		n := pairOf(s, i)
		t.pairs[n/64] |= 1 << (n % 64)
	}
	return t
}

// has reports whether the text contains s.
func (t *text) has(s string) bool {
	for i := range len(s) - 1 {
		if n := pairOf(s, i); t.pairs[n/64]&(1<<(n%64)) == 0 {
			return false
		}
	}
	return strings.Contains(t.string, s)
}

// A choice is a set of strings, of which each match contains one.
type choice struct {
	of    []string
	whole bool // each match is one of them, and not only contains it
}

// maxChoice bounds how many strings are told apart.
const maxChoice = 400

// unknown is the choice of an expression that may match anything.
func unknown() choice { return choice{of: []string{""}} }

// better reports whether fewer texts contain one of c than one of d: its shortest string is
// longer, or it has fewer.
func (c choice) better(d choice) bool {
	a, b := c.shortest(), d.shortest()
	return a > b || a == b && len(c.of) < len(d.of)
}

func (c choice) shortest() int {
	n := len(c.of[0])
	for _, s := range c.of {
		n = min(n, len(s))
	}
	return n
}

// least returns the strings of c without those that contain another one; none if every
// text contains one.
func (c choice) least() (out []string) {
	if c.shortest() == 0 {
		return nil
	}
	for i, s := range c.of {
		if !slices.ContainsFunc(c.of, func(o string) bool { return o != s && strings.Contains(s, o) }) && !slices.Contains(c.of[:i], s) {
			out = append(out, s)
		}
	}
	return out
}

// needs returns what each match of an expression contains.
func needs(re *syntax.Regexp) choice {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return choice{[]string{string(re.Rune)}, true}
		}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return choice{[]string{""}, true}
	case syntax.OpCapture:
		return needs(re.Sub[0])
	case syntax.OpPlus:
		return choice{of: needs(re.Sub[0]).of}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return choice{of: needs(re.Sub[0]).of}
		}
	case syntax.OpQuest:
		if c := needs(re.Sub[0]); c.whole {
			return choice{append([]string{""}, c.of...), true}
		}
	case syntax.OpCharClass:
		return classed(re.Rune)
	case syntax.OpAlternate:
		all := choice{whole: true}
		for _, sub := range re.Sub {
			c := needs(sub)
			all.of, all.whole = append(all.of, c.of...), all.whole && c.whole
		}
		if len(all.of) <= maxChoice {
			return all
		}
	case syntax.OpConcat:
		return sequence(re.Sub)
	}
	return unknown()
}

// classed returns the choice of a class of few characters, given as pairs of its first and
// last ones.
func classed(ranges []rune) choice {
	c := choice{whole: true}
	for i := 0; i+1 < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > 3 || len(c.of) > 4 {
			return unknown()
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			c.of = append(c.of, string(r))
		}
	}
	if len(c.of) == 0 {
		return unknown()
	}
	return c
}

// sequence returns the best choice of expressions that follow each other: of those in a row
// that are known whole, what they are together.
func sequence(all []*syntax.Regexp) choice {
	best, row := unknown(), choice{[]string{""}, true}
	whole := true
	for _, re := range all {
		c := needs(re)
		if !c.whole || len(row.of)*len(c.of) > maxChoice {
			whole = false
			if row.better(best) {
				best = choice{of: row.of}
			}
			row = choice{[]string{""}, true}
		}
		if !c.whole {
			if c.better(best) {
				best = c
			}
			continue
		}
		row.of = joins(row.of, c.of)
	}
	if whole {
		return row
	}
	if row.better(best) {
		best = choice{of: row.of}
	}
	return best
}

// joins returns each of a followed by each of b.
func joins(a, b []string) (out []string) {
	for _, s := range a {
		for _, t := range b {
			out = append(out, s+t)
		}
	}
	return out
}
