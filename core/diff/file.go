package diff

import (
	"net/http"
	"strings"
)

// A File is what changes in a file.
type File struct {
	Path    string   `json:"path"`
	New     bool     `json:"new,omitempty"` // there is no such file yet
	Before  *Content `json:"before,omitempty"`
	After   *Content `json:"after,omitempty"`
	Binary  bool     `json:"binary,omitempty"`  // one of the contents is no text: there are no hunks
	Problem string   `json:"problem,omitempty"` // why the change cannot be shown; then there is only a path
	Diff
}

// A Content is the size and type of a file.
type Content struct {
	Bytes int    `json:"bytes"`
	Lines int    `json:"lines"`
	Type  string `json:"type"`
}

// Files returns the change of a file from before to after; a nil before is a new file.
func Files(path string, before *string, after string) File {
	f := File{Path: path, New: before == nil, After: contentOf(after)}
	old := ""
	if before != nil {
		old, f.Before = *before, contentOf(*before)
	}
	if f.Binary = binary(old) || binary(after); !f.Binary {
		f.Diff = Of(old, after)
	}
	return f
}

// Same reports whether nothing would change.
func (f File) Same() bool { return f.Problem == "" && !f.New && !f.Binary && f.Added+f.Removed == 0 }

// Large reports whether the change is counted only.
func (f File) Large() bool { return f.More > 0 && len(f.Hunks) == 0 }

func contentOf(s string) *Content {
	kind, _, _ := strings.Cut(http.DetectContentType([]byte(s[:min(len(s), 512)])), ";")
	return &Content{Bytes: len(s), Lines: lines(s), Type: kind}
}

// binary reports whether s is no text: text has no NUL.
func binary(s string) bool { return strings.IndexByte(s, 0) >= 0 }
