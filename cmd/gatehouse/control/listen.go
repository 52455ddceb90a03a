package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Listen binds the socket in dir for this user alone. A socket that exists is
// stale: the caller holds the vault's lock. Close removes the socket, unless it is another
// gateway's that has taken this one's place.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, "socket")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	bound, err := os.Stat(path)
	if err = errors.Join(err, os.Chmod(path, 0o600)); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	return &own{l, path, bound}, nil
}

// An own listener removes its own file alone.
type own struct {
	*net.UnixListener
	path  string
	bound os.FileInfo
}

func (s *own) Close() error {
	if now, err := os.Stat(s.path); err == nil && os.SameFile(now, s.bound) {
		_ = os.Remove(s.path)
	}
	return s.UnixListener.Close()
}
