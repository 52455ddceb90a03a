// Package watch tells when files may have changed: by the word of the operating
// system, and by time, for not every file system gives one.
package watch

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"gatehouse/core"
)

const (
	// Anyway is how often files are read without any sign of a change.
	Anyway = 30 * time.Second
	// Soon is when what did not work is tried again.
	Soon = time.Second
	// settle is how long files must be left alone before they are read: a
	// change is often several (truncate and write, or two links of a mount).
	settle = 200 * time.Millisecond
)

// Options for New. What, Clock and Log are needed.
type Options struct {
	What     string // the files, as the log names them
	Clock    core.Clock
	Log      *slog.Logger
	Concerns func(file string) bool // nil: every file of the folders does
	Asked    <-chan os.Signal       // asks to read them at once; nil: nobody can
}

// A Watcher watches folders, and not the files themselves: they are replaced,
// by a rename or by another link to a folder. One goroutine uses it.
type Watcher struct {
	o Options
	w *fsnotify.Watcher // without Events where the system has none
}

// New is a watcher of no folder yet; Close ends it.
func New(o Options) *Watcher {
	w, err := fsnotify.NewWatcher()
	if err != nil { // there is still the look from time to time
		o.Log.Warn(o.What+" are not watched", "err", err, "looking_every", Anyway)
		w = &fsnotify.Watcher{}
	}
	return &Watcher{o: o, w: w}
}

func (w *Watcher) Close() {
	if w.w.Events != nil {
		_ = w.w.Close()
	}
}

// Folders has just these watched, of which some may not exist. It reports
// whether a watch is new: what changed before it began is to be read.
func (w *Watcher) Folders(wanted []string) (news bool) {
	if w.w.Events == nil {
		return false
	}
	watched := w.w.WatchList()
	for _, dir := range watched {
		if !slices.Contains(wanted, dir) {
			_ = w.w.Remove(dir) // it may be gone with its folder
		}
	}
	for _, dir := range wanted {
		if slices.Contains(watched, dir) {
			continue
		}
		watched = append(watched, dir)
		err := w.w.Add(dir)
		if news = news || err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.o.Log.Warn("a folder is not watched", "folder", dir, "err", err, "looking_every", Anyway)
		}
	}
	return news
}

// Changed returns true when the files should be read again: something changed
// and has settled, somebody asked, or most is over; false when ctx ends.
func (w *Watcher) Changed(ctx context.Context, most time.Duration) bool {
	over, settled := w.o.Clock.After(most), (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-settled:
			return true
		case <-w.o.Asked:
			w.o.Log.Info("asked to read " + w.o.What + " again")
			return true
		case err := <-w.w.Errors:
			w.o.Log.Warn("watching "+w.o.What, "err", err)
			return core.Sleep(ctx, w.o.Clock, Soon)
		case e := <-w.w.Events:
			if e.Op != fsnotify.Chmod && (w.o.Concerns == nil || w.o.Concerns(e.Name)) {
				settled = w.o.Clock.After(settle)
			}
		}
	}
}
