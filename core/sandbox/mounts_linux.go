package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"gatehouse/core/beneath"
)

// A mounted is what must be at a path inside: the file with that identity or,
// masked, any other. A program that mounts resolves names, and others may
// exchange names while it does so; so each is compared before anything runs.
type mounted struct {
	Path   string
	ID     beneath.ID
	Masked bool
}

// mountsOf returns the paths of s with the identities that the caller decided on,
// or else those of now.
func mountsOf(s Spec) []mounted {
	all := make([]mounted, 0, len(s.ReadOnly)+len(s.Writable)+len(s.Masked))
	visible := len(s.ReadOnly) + len(s.Writable)
	for i, p := range slices.Concat(s.ReadOnly, s.Writable, s.Masked) {
		id, ok := s.IDs[p]
		if !ok {
			var st unix.Stat_t
			if unix.Lstat(p, &st) != nil {
				continue // gone: it cannot be mounted, and there is nothing to hide
			}
			id = beneath.ID{Dev: st.Dev, Ino: st.Ino}
		}
		all = append(all, mounted{p, id, i >= visible})
	}
	return all
}

// checkMounts returns an error where something else is at a path than must be.
func checkMounts(all []mounted) error {
	for _, m := range all {
		fd, err := unix.Openat2(unix.AT_FDCWD, m.Path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			fd, err = unix.Open(m.Path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		}
		if errors.Is(err, os.ErrNotExist) && m.Masked {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errReplaced, err)
		}
		var st unix.Stat_t
		err = errors.Join(unix.Fstat(fd, &st), unix.Close(fd))
		if err != nil {
			return err
		}
		if same := m.ID == (beneath.ID{Dev: st.Dev, Ino: st.Ino}); same == m.Masked {
			return errReplaced
		}
	}
	return nil
}
