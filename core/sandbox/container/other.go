//go:build !linux

// Package container runs programs isolated by a container engine, which needs Linux.
package container

import (
	"log/slog"

	"gatehouse/core/sandbox"
)

// Options of Open and Probe.
type Options struct {
	Stage, Dir, Image, Home string
	Log                     *slog.Logger
}

// Main does nothing on systems other than Linux.
func Main() {}

// Probe returns that this system has no back end.
func Probe(Options) sandbox.Backend {
	return sandbox.Backend{Name: sandbox.Container, Text: "containers need Linux", Fix: "run the gateway on Linux, or in a virtual machine"}
}

// Open returns no Box: containers need Linux.
func Open(Options) (sandbox.Box, string) { return nil, "containers need Linux" }

// Close does nothing on systems other than Linux.
func Close(sandbox.Box) {}
