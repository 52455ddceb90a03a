package find

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"gatehouse/admin/page"
	"gatehouse/core"
)

const (
	maxDocument = 1 << 20 // bytes of a file that are shown
	maxLines    = 20_000  // of them, around the line that was found
)

type documentBody struct {
	Path  string
	Size  int64
	Back  string // address of the results
	Plain bool   // it is text
	Cut   bool   // only the first maxDocument bytes are shown
	Lines []string
	Start int // number of the first of them
	At    int // index in them of the line that was found; -1 for none
	Above int // lines before those shown
	Below int // and after
}

// documentURL returns the address of a line of a document, with the way back to q.
func documentURL(name string, line int, q question) string {
	values := map[string]string{"path": name, "q": q.Query, "type": q.Type}
	if line < 1 {
		return page.Address(documentPath, values)
	}
	values["line"] = strconv.Itoa(line)
	return page.Address(documentPath, values) + "#line"
}

// documentPage shows a file of the vault as plain text. A file that the account may not
// read is not there.
func (p *Pages) documentPage(w http.ResponseWriter, r *http.Request) error {
	who, _ := page.Principal(r)
	name := r.URL.Query().Get("path")
	if !fs.ValidPath(name) || !p.o.MayRead(who.Trust, who.User, name) {
		return noDocument()
	}
	data, size, err := read(p.o.Files, name)
	if err != nil {
		return err
	}
	q := questionOf(r)
	b := documentBody{Path: name, Size: size, Back: q.address(), At: -1}
	line, _ := strconv.Atoi(r.URL.Query().Get("line")) // what is no number is no line
	b.fill(data, line)
	return p.frame.Show(w, r, http.StatusOK, "search-document", page.View{Title: path.Base(name), Still: true, Query: q.Query, Body: b})
}

func noDocument() error { return core.Errorf(core.NotFound, "there is no such document") }

// read returns the first maxDocument bytes of a regular file, and its size. Of anything else
// it returns core.NotFound.
func read(files fs.FS, name string) (data []byte, size int64, err error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrPermission) {
		return nil, 0, fmt.Errorf("read a document: %w", err)
	}
	if err != nil { // it is gone, or its name goes through a link
		return nil, 0, noDocument()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, fmt.Errorf("read a document: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, noDocument()
	}
	data, err = io.ReadAll(io.LimitReader(f, maxDocument))
	if err != nil {
		return nil, 0, fmt.Errorf("read a document: %w", err)
	}
	return data, max(info.Size(), int64(len(data))), nil
}

// fill fills in the lines around line.
func (b *documentBody) fill(data []byte, line int) {
	if b.Cut = int64(len(data)) < b.Size; b.Cut {
		data = data[:len(data)-cutRune(data)]
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if b.Plain = utf8.Valid(data) && !bytes.ContainsRune(data, 0); !b.Plain || len(data) == 0 {
		return
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	from := max(0, min(line-1-maxLines/2, len(lines)-maxLines))
	to := min(from+maxLines, len(lines))
	b.Start, b.Above, b.Below = from+1, from, len(lines)-to
	if b.Lines = lines[from:to]; line > from && line <= to {
		b.At = line - b.Start
	}
}

// cutRune returns how many bytes at the end of data are the beginning of a character.
func cutRune(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if tail := data[len(data)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
