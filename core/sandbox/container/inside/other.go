//go:build !linux

// Package inside is the first process of a container, which needs Linux.
package inside
