package connectors

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"gatehouse/core"
	"gatehouse/core/texts"
)

// OpenFile opens a file that is to be sent. The error's text is fit to be
// shown: the file is gone, is no file, or has more than most bytes. files may
// be nil: then nothing can be sent.
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

// NotSent is the line that stands for a file that could not be sent.
func NotSent(name, why string) string {
	return texts.Text("not_sent", texts.With{"Name": core.CutRunes(core.CleanName(name), 200), "Why": why})
}

// FileName is name as a platform shows it: its last part, on one line.
func FileName(name string) string {
	name = core.CleanName(path.Base(strings.ReplaceAll(name, `\`, "/")))
	if name == "" || name == "." || name == "/" {
		return "file"
	}
	return name
}
