package vault

import (
	"io/fs"
	"os"

	"gatehouse/core/beneath"
)

// OpenNoLinks opens the existing regular file or directory name for reading. No
// part of name may be a symbolic link, also when another process swaps parts of
// it during the call. It never blocks on a pipe. Errors are *fs.PathError and
// hold the name as given, never a path of the host.
func (v *Vault) OpenNoLinks(name string) (*os.File, error) {
	d, err := v.Beneath()
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Open(name)
}

// Beneath returns the vault's directory for work by descriptors, which the caller
// closes.
func (v *Vault) Beneath() (*beneath.Dir, error) { return beneath.Of(v.root) }

// FS returns the vault's files without links: a name that goes through one
// cannot be opened. It is for directories in which others swap names.
func (v *Vault) FS() fs.FS { return beneath.FS(v.root) }
