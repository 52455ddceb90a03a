package admin

import "slices"

// Patterns are all routes of a panel.
func (p *Panel) Patterns() []string { return slices.Clone(p.patterns) }
