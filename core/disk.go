package core

import (
	"errors"
	"os"
)

// SyncDir writes the entries of a directory to the disk, so that files renamed or
// created in it are there after a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
