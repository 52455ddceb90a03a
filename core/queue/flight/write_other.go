//go:build !linux || !(amd64 || arm64)

package flight

import "os"

func writeAt(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	return err
}
