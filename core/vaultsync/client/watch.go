package client

import (
	"context"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/vaultsync/wire"
	"gatehouse/core/watch"
)

// Timing of Watch.
const (
	every      = 5 * time.Second // between questions to the server
	maxPause   = time.Minute     // after failures
	maxWatched = 8000            // directories; changes in others are noticed every time
)

// Watch syncs at each change in the directory, and regularly, until ctx ends. After a
// failure it tries again later. report is called after each run that did something, or
// whose errors are new.
func (c *Client) Watch(ctx context.Context, report func(Report)) error {
	own := filepath.Join(c.o.Dir, wire.StateDir)
	w := watch.New(watch.Options{What: "the synced folder", Clock: c.o.Clock, Log: c.o.Log, Concerns: func(file string) bool {
		return !strings.HasPrefix(file, own) && !strings.HasSuffix(file, ".gatehouse-tmp")
	}})
	defer w.Close()
	pause, told := every, ""
	for {
		r, err := c.Once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			c.o.Log.Warn("the folder is not synced", "err", err, "again_in", pause)
			if !core.Sleep(ctx, c.o.Clock, pause) {
				return nil
			}
			pause = min(2*pause, maxPause)
			continue
		}
		pause = every
		if errs := strings.Join(r.Errors, "\n"); r.Sent+r.Fetched+r.DeletedHere+r.DeletedOut > 0 || errs != told {
			told = errs
			report(r)
		}
		if w.Folders(c.folders()) {
			continue // what changed before they were watched
		}
		if !w.Changed(ctx, every) {
			return nil
		}
	}
}

// folders returns the directories that have synced files.
func (c *Client) folders() []string {
	have := map[string]bool{".": true} // at most maxWatched
	for name, k := range c.state.Files {
		if k.seen != c.scans {
			continue
		}
		for at := path.Dir(name); !have[at] && len(have) < maxWatched; at = path.Dir(at) {
			have[at] = true
		}
	}
	list := make([]string, 0, len(have))
	for at := range have {
		list = append(list, filepath.Join(c.o.Dir, filepath.FromSlash(at)))
	}
	return list
}
