package values

import (
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ReadBounded returns the content of a regular file of at most most bytes, and its
// mode.
func ReadBounded(path string, most int64) (text []byte, mode fs.FileMode, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is not a file", path)
	}
	if text, err = io.ReadAll(io.LimitReader(f, most+1)); err == nil && int64(len(text)) > most {
		err = fmt.Errorf("the file %s is larger than %d bytes", path, most)
	}
	return text, info.Mode(), err
}
