//go:build !linux

package flight

import "os"

func mapFile(*os.File, int) ([]byte, error) { return nil, errSystem }

func store([]byte, []byte) error { return errSystem }
