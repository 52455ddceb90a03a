package mcp

import "slices"

// LookEvery is how often Watch looks.
const LookEvery = lookEvery

// Trying reports whether a connection is being made.
func (v *Servers) Trying() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.ContainsFunc(v.list, v.trying)
}
