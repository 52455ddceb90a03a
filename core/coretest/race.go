//go:build race

package coretest

import "runtime/debug"

// Race reports whether the race detector is on: tests that it would falsify, or that do
// nothing side by side and compute much, are left to make counts.
const Race = true

// Tests have memory to spare and lack processor time, of which collecting garbage takes a
// tenth with the race detector.
func init() { debug.SetGCPercent(400) }
