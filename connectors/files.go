package connectors

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"gatehouse/core"
)

// OpenFile opens a file that is to be sent. The error's text is fit to be
// shown: the file is gone, is no file, or has more than most bytes. files may
// be nil: then nothing can be sent.
func OpenFile(files fs.FS, name string, most int64) (fs.File, int64, error) {
	if files == nil {
		return nil, 0, core.Errorf(core.Invalid, "files can't be sent here")
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, 0, core.Errorf(core.NotFound, "it is gone")
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = core.Errorf(core.Invalid, "it is not a file")
	case st.Size() == 0:
		err = core.Errorf(core.Invalid, "it is empty")
	case st.Size() > most:
		err = core.Errorf(core.TooLarge, "it is larger than %s, the most that can be sent here", core.ByteSize(int(most)))
	default:
		return f, st.Size(), nil
	}
	return nil, 0, errors.Join(err, f.Close())
}

// FileName is name as a platform shows it: its last part, on one line.
func FileName(name string) string {
	name = core.CleanName(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if name == "" || name == "." || name == "/" {
		return "file"
	}
	return name
}
