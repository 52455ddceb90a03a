package agent

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"gatehouse/core"
)

const (
	// settleTime is how long the files must be left alone before they are read.
	settleTime = 200 * time.Millisecond
	// lookAnyway is how often they are read without a sign of a change: not
	// every file system gives one.
	lookAnyway = 30 * time.Second
	// afterTrouble is the pause when watching does not work.
	afterTrouble = time.Second
)

// Watch reads agents, skills and workspaces again when their files change, and
// says so in the log. The folders may come and go. It returns when ctx ends.
func (a *Agents) Watch(ctx context.Context) {
	w, err := fsnotify.NewWatcher()
	if err != nil { // without one there is still the look from time to time
		a.o.Log.Warn("files of agents are not watched", "err", err, "looking_every", lookAnyway)
		w = &fsnotify.Watcher{}
	} else {
		defer func() { _ = w.Close() }()
	}
	if s := a.now.Load(); s.agents != nil || s.skills != nil || len(s.spaces) > 0 || s.faults != nil {
		a.tell()
	}
	for {
		news := a.watchFolders(w)
		if a.Reload() {
			a.tell()
		}
		if news && ctx.Err() == nil {
			continue // what changed before the watch began
		}
		if !a.untilChanged(ctx, w) {
			return
		}
	}
}

// tell logs what there is.
func (a *Agents) tell() {
	s := a.now.Load()
	a.o.Log.Info("agents, skills and workspaces read", "agents", len(s.agents)+1, "skills", len(s.skills), "workspaces", len(s.spaces), "faults", len(s.faults))
	for _, f := range s.faults {
		a.o.Log.Warn("a file of an agent, a skill or a workspace cannot be used", "file", f.File, "line", f.Line, "reason", f.Text)
	}
}

// watchFolders watches the vault, for the folder that may appear in it, and the
// folders of definitions; at most maxDefinitions workspaces among them. It
// reports whether a watch is new.
func (a *Agents) watchFolders(w *fsnotify.Watcher) (news bool) {
	if w.Events == nil {
		return false
	}
	watched := w.WatchList()
	for _, dir := range a.folders() {
		full := filepath.Join(a.vault.Path(), filepath.FromSlash(dir))
		if slices.Contains(watched, full) {
			continue
		}
		err := w.Add(full)
		if news = news || err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.o.Log.Warn("a folder is not watched", "folder", dir, "err", err, "looking_every", lookAnyway)
		}
	}
	return news
}

// folders are those that exist, with no link on the way to them.
func (a *Agents) folders() []string {
	dirs := []string{"."}
	for _, dir := range []string{path.Dir(agentsDir), agentsDir, skillsDir, workspacesDir} {
		d, err := openFolder(a.vault.Root(), dir)
		if err != nil {
			continue
		}
		dirs = append(dirs, dir)
		if dir == workspacesDir {
			dirs = append(dirs, subfolders(d.FS())...)
		}
		_ = d.Close()
	}
	return dirs
}

// subfolders are the first maxDefinitions folders of workspaces.
func subfolders(fsys fs.FS) (dirs []string) {
	f, err := fsys.Open(".")
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.(fs.ReadDirFile).ReadDir(maxListed)
	for _, e := range entries {
		if e.IsDir() && len(dirs) < maxDefinitions {
			dirs = append(dirs, path.Join(workspacesDir, e.Name()))
		}
	}
	return dirs
}

// untilChanged returns true when the files should be read again: one changed
// and has settled, or it is time.
func (a *Agents) untilChanged(ctx context.Context, w *fsnotify.Watcher) bool {
	over := a.o.Clock.After(lookAnyway)
	settled := (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-over:
			return true
		case <-settled:
			return true
		case err := <-w.Errors:
			a.o.Log.Warn("watching files of agents", "err", err)
			return core.Sleep(ctx, a.o.Clock, afterTrouble)
		case e := <-w.Events:
			if e.Op != fsnotify.Chmod && a.concerns(e.Name) {
				settled = a.o.Clock.After(settleTime)
			}
		}
	}
}

// concerns leaves out what else happens in the vault's top folder.
func (a *Agents) concerns(name string) bool {
	rel, err := filepath.Rel(a.vault.Path(), name)
	return err != nil || filepath.Dir(rel) != "." || rel == path.Dir(agentsDir)
}
