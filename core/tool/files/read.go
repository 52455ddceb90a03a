package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
)

// Limits of one Read.
const (
	maxLines  = 2000      // lines, unless limit states otherwise
	maxLine   = 2000      // characters of a line
	maxOutput = 100_000   // bytes of text
	maxScan   = 256 << 20 // bytes of the file that are checked
)

type readInput struct {
	Path   string `json:"file_path" tool:"required"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func decodeRead(raw json.RawMessage) (in readInput, err error) {
	if err := tool.Decode(raw, &in); err != nil {
		return in, err
	}
	switch {
	case in.Path == "":
		return in, core.Errorf(core.Invalid, "file_path is empty")
	case in.Offset < 0 || in.Limit < 0:
		return in, core.Errorf(core.Invalid, "offset and limit count lines and are not negative")
	}
	return in, nil
}

func touchRead(t *tool.Turn, raw json.RawMessage) (tool.Access, error) {
	in, err := decodeRead(raw)
	if err != nil {
		return tool.Access{}, err
	}
	name, err := t.Name(in.Path)
	return tool.Access{Read: []string{name}}, err
}

func (f *files) read(ctx context.Context, c *tool.Call) (tool.Result, error) {
	in, err := decodeRead(c.Input)
	if err != nil {
		return tool.Result{}, err
	}
	shown := place.Shown(c.Turn, in.Path)
	name, err := place.Decided(c.Access.Read, shown)
	if err != nil {
		return tool.Result{}, err
	}
	file, st, err := f.openFile(c.Turn, name)
	if err != nil {
		return tool.Result{}, place.Explain(shown, err)
	}
	defer file.Close()
	result, err := content(ctx, file, st, name, in)
	if err == nil {
		f.seen.add(c.Turn, name, st)
	}
	return result, place.Explain(shown, err)
}

// openFile opens the regular file name for reading, within the Turn's bounds.
// What may not be read is refused before anything is checked.
func (f *files) openFile(t *tool.Turn, name string) (*os.File, fs.FileInfo, error) {
	if !place.May(t.MayRead, name) {
		return nil, nil, core.Errorf(core.Denied, "this file may not be read here")
	}
	p, err := place.At(t, name)
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	file, st, err := f.open.Open(p, 0)
	if err != nil {
		return nil, nil, err
	}
	if st.IsDir() {
		err = core.Errorf(core.Invalid, "it is a folder; list it with Glob")
	} else {
		err = place.Single(t, st)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, st, nil
}

// content returns what the model gets of an open file, by what is in it, not by its name.
func content(ctx context.Context, file io.Reader, st fs.FileInfo, name string, in readInput) (tool.Result, error) {
	bounded := &io.LimitedReader{R: file, N: maxScan}
	r := bufio.NewReaderSize(bounded, 64<<10)
	head, err := r.Peek(8000)
	if err != nil && err != io.EOF {
		return tool.Result{}, err
	}
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	switch {
	case len(head) == 0:
		return tool.Result{Text: "(the file is empty)"}, nil
	case strings.HasPrefix(kind, "image/") && pictures[kind]:
		return picture(r, st, kind, path.Base(name))
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return document(r, st, path.Base(name))
	case place.Binary(head):
		return tool.Result{}, core.Errorf(core.Invalid, "it is a binary file (%s, %d bytes) and cannot be shown as text", kind, st.Size())
	}
	text, err := numbered(ctx, r, in)
	if err == nil && bounded.N <= 0 {
		text += fmt.Sprintf("\n(only the first %d MiB of the file were searched)", maxScan>>20)
	}
	return tool.Result{Text: text}, err
}

// numbered returns a text with line numbers, from line in.Offset on.
func numbered(ctx context.Context, r *bufio.Reader, in readInput) (string, error) {
	first, limit := max(in.Offset, 1), in.Limit
	if limit == 0 {
		limit = maxLines
	}
	var b strings.Builder
	for n := 1; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		line, size, cut, err := readLine(r, n >= first)
		switch {
		case err == io.EOF && n <= first && first > 1:
			return fmt.Sprintf("(the file ends before line %d: it has %d lines)", first, n-1), nil
		case err == io.EOF:
			return b.String(), nil
		case err != nil:
			return "", err
		case n < first:
			continue
		case n-first >= limit || b.Len()+len(line) > maxOutput:
			fmt.Fprintf(&b, "\n(there is more: go on with offset %d)", n)
			return b.String(), nil
		}
		fmt.Fprintf(&b, "%6d\t%s", n, line)
		if cut {
			fmt.Fprintf(&b, "… (the line is cut: it has %d bytes)", size)
		}
		b.WriteByte('\n')
	}
}

// readLine returns the next line without its end and at most maxLine characters of
// it, and its size in bytes. keep false only skips it.
func readLine(r *bufio.Reader, keep bool) (line string, size int, cut bool, err error) {
	var kept []byte
	for {
		part, err := r.ReadSlice('\n')
		size += len(part)
		if room := maxLine*utf8.UTFMax - len(kept); keep && room > 0 {
			kept = append(kept, part[:min(room, len(part))]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && (err != io.EOF || size == 0) {
			return "", size, false, err
		}
		break
	}
	if whole := len(kept) == size; whole {
		kept = bytes.TrimSuffix(bytes.TrimSuffix(kept, []byte("\n")), []byte("\r"))
	} else {
		cut = keep
	}
	text := strings.ToValidUTF8(string(kept), "\uFFFD")
	n := 0
	for i := range text {
		if n++; n > maxLine {
			return text[:i], size, true, nil
		}
	}
	return text, size, cut, nil
}
