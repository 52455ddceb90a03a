package check

import (
	"fmt"
	"slices"
	"strings"
)

// A Problem is one thing wrong with the configuration. No secret is in it.
type Problem struct {
	Name    string `json:"name"`              // of the variable
	Fault   string `json:"fault"`             // what is wrong
	Example string `json:"example,omitempty"` // a line that would be right
}

func (p Problem) String() string {
	s := p.Name + ": " + p.Fault
	if p.Example != "" {
		s += "; for example: " + p.Example
	}
	return s
}

// Problems is everything wrong with the configuration; at least one thing.
type Problems []Problem

func (p Problems) Error() string {
	var b strings.Builder
	b.WriteString("the configuration has a problem:")
	if len(p) > 1 {
		b.Reset()
		fmt.Fprintf(&b, "the configuration has %d problems:", len(p))
	}
	for _, one := range p {
		b.WriteString("\n  " + one.String())
	}
	return b.String()
}

// Named reports whether one of the problems is of the variable name.
func (p Problems) Named(name string) bool {
	return slices.ContainsFunc(p, func(one Problem) bool { return one.Name == name })
}
