package admin

import "slices"

// Routes are the patterns that are served, for the tests that walk all of them.
func (p *Panel) Routes() []string { return slices.Clone(p.patterns) }
