package crawl

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"gatehouse/core"
)

// Bounds of what is watched.
const (
	maxWatched = 512 // directories; changes in others are found by the next pass
	maxTouched = 32  // directories that are read alone; after more the whole vault is
)

// Run keeps the index up to date until ctx ends: at once, after changes, every ten
// minutes, and when it is asked to. Errors are logged.
func (c *Crawler) Run(ctx context.Context) {
	w := &watching{c: c, watched: map[string]bool{}}
	if fsw, err := fsnotify.NewWatcher(); err != nil {
		c.o.Log.Warn("changes in the vault are not noticed at once", "err", err, "read_every", Anyway)
	} else {
		w.w = fsw
		defer fsw.Close()
	}
	for touched, whole := []string(nil), true; ctx.Err() == nil; touched, whole = w.wait(ctx) {
		if whole {
			touched = []string{""}
		}
		for _, dir := range touched {
			if err := c.pass(ctx, dir, w.add); err != nil && ctx.Err() == nil {
				c.o.Log.Error("the vault was not indexed to the end", "directory", dir, "err", err)
			}
		}
	}
}

// watching is what Run watches.
type watching struct {
	c       *Crawler
	w       *fsnotify.Watcher // nil: the system has none
	watched map[string]bool   // by path relative to the vault, at most maxWatched
	full    bool              // that there are more was logged
}

// add watches a directory.
func (w *watching) add(dir string) {
	if w.w == nil || w.watched[dir] {
		return
	}
	if len(w.watched) >= maxWatched {
		if !w.full {
			w.c.o.Log.Info("the vault has many directories: changes in some of them are found later", "watched", maxWatched, "read_every", Anyway)
		}
		w.full = true
		return
	}
	if w.w.Add(filepath.Join(w.c.o.Path, filepath.FromSlash(dir))) == nil {
		w.watched[dir] = true
	}
}

// wait returns which directories have changed, or that the whole vault is to be read.
func (w *watching) wait(ctx context.Context) (touched []string, whole bool) {
	var events chan fsnotify.Event
	var errs chan error
	if w.w != nil {
		events, errs = w.w.Events, w.w.Errors
	}
	clock := w.c.o.Clock
	anyway := clock.After(Anyway)
	var settled, latest <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil, false
		case <-anyway:
			return nil, true
		case <-w.c.kick:
			return nil, true
		case <-settled:
			return touched, len(touched) > maxTouched
		case <-latest:
			return touched, len(touched) > maxTouched
		case <-errs: // notices were lost
			if !core.Sleep(ctx, clock, settle) {
				return nil, false
			}
			return nil, true
		case e := <-events:
			dir, ok := w.dirOf(e)
			if !ok {
				continue
			}
			if touched = addDir(touched, dir); latest == nil {
				latest = clock.After(unsettled)
			}
			settled = clock.After(settle)
		}
	}
}

// dirOf returns the directory that a notice is about, "" for the vault itself.
func (w *watching) dirOf(e fsnotify.Event) (dir string, ok bool) {
	name, err := filepath.Rel(w.c.o.Path, e.Name)
	name = filepath.ToSlash(name)
	if err == nil && name == "." { // the vault itself was moved
		w.drop("")
		return "", true
	}
	if err == nil && name == w.c.o.Rules {
		return "", true
	}
	if err != nil || e.Op == fsnotify.Chmod || skipped(name) {
		return "", false
	}
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		w.drop(name)
	}
	if dir = path.Dir(name); dir == "." {
		dir = ""
	}
	return dir, true
}

// drop ends the watches of a directory that is gone or has another name, and of those
// in it: they would be taken for watches of directories that get these names again.
func (w *watching) drop(dir string) {
	for name := range w.watched {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			_ = w.w.Remove(filepath.Join(w.c.o.Path, filepath.FromSlash(name))) // it may have ended with the directory
			delete(w.watched, name)
		}
	}
}

// addDir adds a directory, unless one above it is there, in place of those below it.
func addDir(dirs []string, dir string) []string {
	out := dirs[:0:0]
	for _, d := range dirs {
		if d == dir || d == "" || strings.HasPrefix(dir, d+"/") {
			return dirs
		}
		if dir != "" && !strings.HasPrefix(d, dir+"/") {
			out = append(out, d)
		}
	}
	return append(out, dir)
}
