package search

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"gatehouse/core"
	"gatehouse/core/tool"
	"gatehouse/core/tool/files/place"
	"gatehouse/core/vault"
)

// Limits of one search.
const (
	maxEntries = 200_000 // files and directories that are checked
	maxDepth   = 64      // directories in directories
	searchTime = 20 * time.Second
)

// errEnough ends a search that has found or checked enough.
var errEnough = errors.New("enough")

// A walk goes through the files below a directory, in the order of their names. It
// follows no links, enters no directory and shows no file that the Turn may not
// read, and leaves out what it cannot open.
type walk struct {
	open    place.Opener
	t       *tool.Turn
	visit   func(context.Context, hit) error // errEnough ends the walk
	entries int
	cut     string // why the walk ended early, as text; "" when it did not
}

// A hit is a regular file that may be read.
type hit struct {
	name string // as Turn.Name makes it
	rel  string // relative to where the walk began
	at   place.Place
}

// run walks from the directory name, or visits name alone when it is a file. ctx
// ending is an error; the search's own time is not, but is reported in cut.
func (w *walk) run(ctx context.Context, name string) error {
	if !place.May(w.t.MayRead, name) {
		return core.Errorf(core.Denied, "this folder may not be searched here")
	}
	p, err := place.At(w.t, name)
	if err != nil {
		return err
	}
	defer p.Close()
	st, err := p.Lstat()
	if errors.Is(err, fs.ErrNotExist) && w.t.Bounded() && name == tool.Area(w.t.User) {
		return nil // made with the first file in it
	}
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	if st.Mode().IsRegular() {
		err = w.visit(timed, hit{name, path.Base(name), p})
	} else {
		err = w.dir(timed, p, "", 0)
	}
	switch {
	case errors.Is(err, errEnough):
		return nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		w.cut = "the search ended after " + searchTime.String()
		return nil
	}
	return err
}

// dir walks one directory; rel is its path from where the walk began.
func (w *walk) dir(ctx context.Context, p place.Place, rel string, depth int) error {
	list, err := w.list(p)
	if err != nil {
		if depth == 0 {
			return err
		}
		return nil
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if w.entries++; w.entries > maxEntries {
			w.cut = "the search ended after 200,000 files and folders"
			return errEnough
		}
		next := p.Child(e.Name())
		name := next.Name(w.t)
		if !e.IsDir() && !e.Type().IsRegular() || vault.IsTemporary(name) || !place.May(w.t.MayRead, name) || place.System(name) {
			continue
		}
		below := path.Join(rel, e.Name())
		switch {
		case !e.IsDir():
			err = w.visit(ctx, hit{name, below, next})
		case depth == maxDepth:
			w.cut = "folders more than 64 deep were left out"
		default:
			err = w.dir(ctx, next, below, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list returns what is in a directory, by name.
func (w *walk) list(p place.Place) ([]fs.DirEntry, error) {
	dir, _, err := w.open.Open(p, syscall.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.ReadDir(max(maxEntries-w.entries, 0) + 1)
	if err != nil && len(list) == 0 && !strings.Contains(err.Error(), "EOF") {
		return nil, err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}
