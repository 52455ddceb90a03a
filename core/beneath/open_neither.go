//go:build !linux && !darwin

package beneath

import "errors"

// swapNames swaps two names.
func swapNames(int, string, string) error { return errors.ErrUnsupported }

// renameFree renames without replacing an existing file.
func renameFree(from int, name string, to int, as string) error {
	return renameStepwise(from, name, to, as)
}
