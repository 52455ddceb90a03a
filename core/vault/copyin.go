package vault

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strconv"

	"gatehouse/core"
)

// CopyIn creates the file name from r in one step. An existing file is left as it
// is: its creator may have written more into it. A file of more than most bytes
// is core.Invalid, and nothing is created. The file is on the disk when CopyIn
// returns.
func (v *Vault) CopyIn(name string, r io.Reader, most int64) error {
	temp := path.Join(path.Dir(name), "."+strconv.FormatUint(rand.Uint64(), 36)+tempSuffix)
	f, err := v.open(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return explain("copy", err)
	}
	n, err := io.Copy(f, io.LimitReader(r, most+1))
	if err == nil && n > most {
		err = core.Errorf(core.Invalid, "the file is larger than %d MB and was not copied", most>>20)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close(), v.Fenced()); err == nil {
		if err = v.root.Link(temp, name); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err = errors.Join(err, v.root.Remove(temp)); err == nil {
		err = v.syncDir(path.Dir(name))
	}
	return explain("copy", err)
}
