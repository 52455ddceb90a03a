package permission

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
)

// maxBelow bounds the files below a directory that are checked for one path.
const maxBelow = 20_000

// hiddenTrees are not searched for secrets: the gateway hides its own from
// commands, and what git and Claude Code keep is asked about by name.
var hiddenTrees = []string{".git", ".parachute", ".claude"}

var errFound = errors.New("found")

// find returns the first file below a directory that match accepts, or the
// directory itself where it holds more than can be checked. It follows no link.
func (w where) find(top string, match func(abs string) bool) (found string) {
	seen := 0
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == top:
			return nil
		case slices.Contains(hiddenTrees, d.Name()) && d.IsDir():
			return fs.SkipDir
		case match(name):
			found = name
			return errFound
		}
		if seen++; seen > maxBelow {
			found = top
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return top
	}
	return found
}

// copiesMore reports whether one of the directories holds links or a repository:
// a copy of them writes elsewhere, or brings settings that run programs.
func (w where) copiesMore(list []string) bool {
	for _, top := range list {
		seen, more := 0, false
		_ = filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if seen++; seen > maxBelow || d.Name() == ".git" || d.Type()&fs.ModeSymlink != 0 {
				more = true
				return fs.SkipAll
			}
			return nil
		})
		if more {
			return true
		}
	}
	return false
}
