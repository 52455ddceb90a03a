//go:build !linux

package pdftext

// limit is the kernel's part of the bounds, which other systems do not have.
func limit(uint64) {}
