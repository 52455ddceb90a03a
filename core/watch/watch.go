// Package watch reports when files may have changed: from notices of the operating
// system and by time, as not every file system sends notices.
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
	// Anyway is the interval at which files are read without a notice.
	Anyway = 30 * time.Second
	// Soon is the delay before a retry.
	Soon = time.Second
	// settle is how long files must stay unchanged before they are read: one
	// change often causes several notices (truncate and write).
	settle = 200 * time.Millisecond
)

// Options for New. What, Clock and Log are needed.
type Options struct {
	What     string // the files, as the log names them
	Clock    core.Clock
	Log      *slog.Logger
	Concerns func(file string) bool // nil: every file of the directories does
	Asked    <-chan os.Signal       // requests to read them at once; may be nil
}

// A Watcher watches directories, not files, because files are replaced by renames
// and links. It is for one goroutine.
type Watcher struct {
	o Options
	w *fsnotify.Watcher // without Events where the system has none
}

// New returns a Watcher without directories. The caller closes it.
func New(o Options) *Watcher {
	w, err := fsnotify.NewWatcher()
	if err != nil { // files are still read every Anyway
		o.Log.Warn(o.What+" are not watched", "err", err, "read_every", Anyway)
		w = &fsnotify.Watcher{}
	}
	return &Watcher{o: o, w: w}
}

func (w *Watcher) Close() {
	if w.w.Events != nil {
		_ = w.w.Close()
	}
}

// Directories has just these watched, of which some may not exist. It reports
// whether a watch is new: what changed before it began is to be read.
func (w *Watcher) Folders(wanted []string) (news bool) {
	if w.w.Events == nil {
		return false
	}
	watched := w.w.WatchList()
	for _, dir := range watched {
		if !slices.Contains(wanted, dir) {
			_ = w.w.Remove(dir) // it may be deleted with its directory
		}
	}
	for _, dir := range wanted {
		if slices.Contains(watched, dir) {
			continue
		}
		watched = append(watched, dir)
		err := w.w.Add(dir)
		if news = news || err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.o.Log.Warn("a directory is not watched", "directory", dir, "err", err, "read_every", Anyway)
		}
	}
	return news
}

// Changed returns true when the files should be read again: after a change has
// settled, on a request, or after most; and false when ctx ends.
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
