package store

import (
	"strconv"
	"strings"
)

// Conditions collects the conditions of a statement and their values.
type Conditions struct {
	Where []string
	Args  []any
}

// And adds a condition in which each ? is the next of values.
func (c *Conditions) And(cond string, values ...any) {
	for _, v := range values {
		c.Args = append(c.Args, v)
		cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(c.Args)), 1)
	}
	c.Where = append(c.Where, cond)
}
