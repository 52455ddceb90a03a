package original

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mattn/go-sqlite3"

	"gatehouse/core"
)

// PutBack restores the copy of an adopted database, which no one has open, to its
// place at path, so that the original system can use the file. It needs no space on
// the disk.
func PutBack(path, copied string) error {
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		if err := os.Remove(path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the original system's database is kept as %s: %w", copied, err)
		}
	}
	if err := os.Rename(copied, path); err != nil {
		return fmt.Errorf("the original system's database is kept as %s: %w", copied, err)
	}
	return nil
}

// FullDisk adds to an error for want of space in the adoption of the database at
// path, what to do; any other error it returns as it is.
func FullDisk(path string, err error) error {
	var full sqlite3.Error
	if !errors.As(err, &full) || full.Code != sqlite3.ErrFull {
		return err
	}
	room := "some"
	if info, statErr := os.Stat(path); statErr == nil {
		room = core.ByteSize(int(3 * info.Size()))
	}
	return fmt.Errorf("%w: the disk is full and the database is still the original system's; make %s of room and start again", err, room)
}
