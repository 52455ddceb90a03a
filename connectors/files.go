package connectors

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"

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

// FileTries is how often a file may fail over a connection before it is replaced by a text: it must not hold its chat.
const FileTries = 10

// FileFailures counts them, since the program has started. The zero value is ready, and it is safe for concurrent use.
type FileFailures struct {
	mu sync.Mutex
	n  map[int64]int // by row of the outbox; begins anew at maxFailing
}

// maxFailing bounds the files that are counted.
const maxFailing = 1000

// Enough notes that the file of an outbox row has failed over a connection, and reports whether that was often enough.
func (f *FileFailures) Enough(row int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == nil || len(f.n) >= maxFailing {
		f.n = map[int64]int{}
	}
	f.n[row]++
	return f.n[row] > FileTries
}

// Done forgets a row that was sent.
func (f *FileFailures) Done(row int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.n, row)
}

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
