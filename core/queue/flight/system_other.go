//go:build !linux

package flight

import (
	"errors"
	"os"
)

var errSystem = errors.New("only Linux has a boot id")

func bootID() (string, error) { return "", errSystem }

func fileID(*os.File) (device, inode uint64, err error) { return 0, 0, errSystem }
