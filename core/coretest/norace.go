//go:build !race

package coretest

// Race reports whether the race detector is on: tests that it would falsify, or that do
// nothing side by side and compute much, are left to make counts.
const Race = false
