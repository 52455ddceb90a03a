// Package sandbox runs programs where they see and change only what they are
// given. It knows nothing of users, trust or tools: a Spec says what is seen.
package sandbox

import (
	"context"
	"os/exec"
	"time"
)

// A Spec is what one program sees. Paths are absolute on the host and stand at
// the same place inside.
type Spec struct {
	// ReadOnly and Writable are files and folders of the host; a later, longer
	// path wins over a shorter one above it.
	ReadOnly, Writable []string
	// Masked are hidden again: a file reads as empty, a folder as empty and read-only.
	Masked []string
	Dir    string   // working directory; must be visible
	Env    []string // KEY=VALUE; nothing else is passed on
	Limits Limits
}

// Limits of one program with everything it starts; zero values mean the defaults.
type Limits struct {
	Memory    int64         // bytes; 1 GiB
	Processes int           // 128
	FileSize  int64         // bytes of one file; 256 MiB
	CPU       time.Duration // 10 min
}

// A Box makes programs run isolated: own user, mount, pid, net and ipc
// namespaces, no network, no way to the host's processes.
type Box interface {
	Name() string // "bubblewrap"
	// Command is argv ready to start inside. Its process group ends with ctx,
	// children included. The caller sets Stdin, Stdout, Stderr, starts and waits.
	Command(ctx context.Context, s Spec, argv ...string) (*exec.Cmd, error)
}
