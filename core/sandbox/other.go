//go:build !linux

package sandbox

import (
	"context"
	"log/slog"
	"os/exec"
	"time"
)

// Main does nothing on systems other than Linux.
func Main() {}

// Open gives no Box: the only back end needs Linux.
func Open(mode, _ string) (Box, string) {
	if mode == None {
		return nil, "isolation is switched off (SANDBOX is none)"
	}
	return nil, "bubblewrap needs Linux"
}

// Groups are control groups, which need Linux.
type Groups struct{}

// OpenGroups gives none.
func OpenGroups(string, *slog.Logger) (*Groups, string) { return nil, "control groups need Linux" }

// Limited returns box.
func Limited(box Box, _ *Groups) Box { return box }

// Probe returns the state of every back end on this machine, for doctor and panel.
func Probe(string) []Backend {
	return []Backend{{Name: Bubblewrap, Text: "bubblewrap needs Linux", Fix: "run the gateway on Linux, or in a virtual machine"}}
}

// A Veil needs Linux: none is ever made.
type Veil struct{}

// TryVeil sees that none can be made.
func TryVeil(string) VeilTrial {
	return noVeil("bubblewrap needs Linux", "run the gateway on Linux, or in a virtual machine")
}

// Open returns nil, and why.
func (t VeilTrial) Open(func() Cover) (*Veil, string) { return t.veil, t.b.Text }

// Tree calls the function Tree.
func (*Veil) Tree(ctx context.Context, stage, dir string, env []string, argv ...string) (*exec.Cmd, error) {
	return Tree(ctx, stage, dir, env, argv...)
}

// Tree returns a program that is not isolated. On systems other than Linux only its
// own process ends with ctx.
func Tree(ctx context.Context, _, dir string, env []string, argv ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, 5*time.Second
	return cmd, nil
}
