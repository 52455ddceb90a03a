package connectors

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/texts"
)

// OpenFile opens a file to send. Its error can be shown to users: the file does
// not exist, is not a regular file, or has more than most bytes. With files nil
// no file can be sent.
func OpenFile(files fs.FS, name string, most int64) (fs.File, int64, error) {
	if files == nil {
		return nil, 0, texts.Error(core.Invalid, "send_nowhere")
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, 0, texts.Error(core.NotFound, "send_gone")
	}
	st, err := f.Stat()
	switch {
	case err != nil:
	case !st.Mode().IsRegular():
		err = texts.Error(core.Invalid, "send_no_file")
	case st.Size() == 0:
		err = texts.Error(core.Invalid, "send_empty")
	case st.Size() > most:
		err = texts.Error(core.TooLarge, "send_large", texts.With{"Most": core.ByteSize(int(most))})
	default:
		return f, st.Size(), nil
	}
	return nil, 0, errors.Join(err, f.Close())
}

// FileTries is after how many tries a file that fails, over a connection, is replaced by a text:
// it must not hold its chat.
const FileTries = 10

// NotSent returns the line that replaces a file that could not be sent.
func NotSent(name, why string) string {
	return texts.Text("not_sent", texts.With{"Name": core.CutRunes(core.CleanName(name), 200), "Why": why})
}

// FileName returns the last element of name, on one line.
func FileName(name string) string {
	name = core.CleanName(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if name == "" || name == "." || name == "/" {
		return "file"
	}
	return name
}
