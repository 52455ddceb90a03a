//go:build !linux

package vault

import "golang.org/x/sys/unix"

// stepFlags open a folder to go on from.
const stepFlags = unix.O_RDONLY | unix.O_NONBLOCK

// openNoLinks opens name below the folder at without following a link.
func openNoLinks(at int, name string) (int, error) { return openStepwise(at, name) }
