package agent

import (
	"context"
	"os"
	"path"
	"path/filepath"

	"gatehouse/core/watch"
)

// Watch reads agents, skills and workspaces again when their files change, and logs it.
// The directories may come and go. It returns when ctx ends.
func (a *Agents) Watch(ctx context.Context) {
	w := watch.New(watch.Options{What: "files of agents", Clock: a.o.Clock, Log: a.o.Log, Concerns: a.concerns})
	defer w.Close()
	if s := a.now.Load(); s.agents != nil || s.skills != nil || len(s.spaces) > 0 || s.faults != nil {
		a.tell()
	}
	for {
		news := w.Folders(a.folders())
		if a.Reload() {
			a.tell()
		}
		if news && ctx.Err() == nil {
			continue // what changed before the watch began
		}
		if !w.Changed(ctx, watch.Anyway) {
			return
		}
	}
}

// tell logs the definitions.

func (a *Agents) tell() {
	s := a.now.Load()
	a.o.Log.Info("agents, skills and workspaces read", "agents", len(s.agents)+1, "skills", len(s.skills), "workspaces", len(s.spaces), "faults", len(s.faults), "warnings", len(s.notes))
	for _, f := range s.notes {
		a.o.Log.Warn("a file of an agent is used with a warning", "file", f.File, "line", f.Line, "reason", f.Text)
	}
	for _, f := range s.faults {
		a.o.Log.Warn("a file of an agent, a skill or a workspace cannot be used", "file", f.File, "line", f.Line, "reason", f.Text)
	}
}

// folders returns the vault, for the directory that may appear in it, and the directories
// of definitions that exist, with no link on the way to them; at most
// maxDefinitions workspaces among them.
func (a *Agents) folders() []string {
	full := func(dir string) string { return filepath.Join(a.vault.Path(), filepath.FromSlash(dir)) }
	dirs := []string{full(".")}
	for _, dir := range []string{path.Dir(agentsDir), agentsDir, skillsDir, workspacesDir} {
		d, err := openFolder(a.vault, dir)
		if err != nil {
			continue
		}
		dirs = append(dirs, full(dir))
		if dir == workspacesDir {
			for _, space := range subfolders(d) {
				dirs = append(dirs, full(space))
			}
		}
		_ = d.Close()
	}
	return dirs
}

// subfolders returns the first maxDefinitions directories of workspaces.
func subfolders(d *os.File) (dirs []string) {
	entries, _ := d.ReadDir(maxListed)
	for _, e := range entries {
		if e.IsDir() && len(dirs) < maxDefinitions {
			dirs = append(dirs, path.Join(workspacesDir, e.Name()))
		}
	}
	return dirs
}

// concerns leaves out what else happens in the vault's top directory.
func (a *Agents) concerns(name string) bool {
	rel, err := filepath.Rel(a.vault.Path(), name)
	return err != nil || filepath.Dir(rel) != "." || rel == path.Dir(agentsDir)
}
