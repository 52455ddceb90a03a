package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// Listen binds the socket in dir for this user alone. A socket that exists is
// stale: the caller holds the vault's lock.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, "socket")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}
