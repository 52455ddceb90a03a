// Package static holds the style sheets, scripts and the icon of all pages,
// written by hand and embedded in the program.
package static

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
)

//go:embed *.css *.js *.svg
var files embed.FS

// kinds doesn't ask the machine's tables, which differ.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

type file struct {
	body []byte
	sum  string // of it
	kind string
}

// read gives the embedded files by name. The first page that needs one pays for it, not the start.
var read = sync.OnceValue(func() map[string]file {
	all := map[string]file{} // one for each embedded file
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		switch path.Ext(name) {
		case ".js":
			body = uncommented(body)
		case ".css":
			body = squeezed(body)
		}
		sum := sha256.Sum256(body)
		all[name] = file{body: body, sum: hex.EncodeToString(sum[:8]), kind: kinds[path.Ext(name)]}
		return err
	})
	if err != nil {
		panic(err) // they are in the program
	}
	return all
})

// uncommented returns a script without the lines that are comments alone and without
// the blanks that lines begin with: they are for readers of the source, and a
// page has only that many bytes. Nothing is written over several lines in
// backquotes there (a test looks).
func uncommented(script []byte) []byte {
	out := make([]byte, 0, len(script))
	for line := range bytes.Lines(script) {
		line = bytes.TrimLeft(line, " \t\n")
		if len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			out = append(out, line...)
		}
	}
	return out
}

// remark is a comment of a style sheet, blanks are what separates its words.
var (
	remark = regexp.MustCompile(`(?s)/\*.*?\*/`)
	blanks = regexp.MustCompile(`\s+`)
)

// tight takes out the blanks that say nothing: those around braces, and behind
// colons, commas and semicolons. Before a colon a blank means something.
var tight = strings.NewReplacer(" { ", "{", "; }", "}", ";}", "}", "; ", ";", ": ", ":", ", ", ",", " {", "{", "{ ", "{", " }", "}", "} ", "}")

// squeezed returns a style sheet without the bytes that mean nothing. Quoted
// text is left as it is.
func squeezed(sheet []byte) []byte {
	parts := strings.Split(remark.ReplaceAllString(string(sheet), ""), `"`)
	for i := 0; i < len(parts); i += 2 {
		parts[i] = tight.Replace(blanks.ReplaceAllString(parts[i], " "))
	}
	return []byte(strings.TrimSpace(strings.Join(parts, `"`)) + "\n")
}

// Address returns the address of a file under prefix ("/static/"). It changes
// with the file, so that browsers keep what it names without asking again.
func Address(prefix, name string) string {
	if f, ok := read()[name]; ok {
		return prefix + name + "?v=" + f.sum
	}
	return prefix + name
}

// Handler serves the files under prefix ("/static/"). Browsers keep what they
// asked for by its Address; without that they ask with If-None-Match whether it
// still holds.
func Handler(prefix string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := read()[strings.TrimPrefix(r.URL.Path, prefix)]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		etag := `"` + f.sum + `"`
		h.Set("ETag", etag)
		h.Set("Cache-Control", "no-cache")
		if r.URL.RawQuery == "v="+f.sum {
			h.Set("Cache-Control", "max-age=31536000, immutable")
		}
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(f.body)
	})
}
