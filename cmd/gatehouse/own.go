package main

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gatehouse/core/backup/archives"
	"gatehouse/core/sandbox"
)

// usable are the directories of .parachute that belong to the vault's owner rather
// than to the gateway.
var usable = []string{"agents", "skills", "workspaces"}

// ownFiles remembers where the gateway's own files really are, as they were
// first found: links that are changed later lead nowhere else.
type ownFiles struct {
	mu   sync.Mutex
	real map[string]string // path as configured → without links; at most maxOwn
}

// maxOwn bounds the remembered paths: two for each bot and some more are in use.
const maxOwn = 1000

// find returns where path really is, and where it was when it was first found.
func (o *ownFiles) find(path string) []string {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	now, err := filepath.EvalSymlinks(path)
	if err != nil { // the file does not exist yet, or not any more
		if now, err = filepath.EvalSymlinks(filepath.Dir(path)); err != nil {
			now = filepath.Dir(path)
		}
		now = filepath.Join(now, filepath.Base(path))
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	first, known := o.real[path]
	switch {
	case !known && len(o.real) < maxOwn && err == nil:
		if o.real == nil {
			o.real = map[string]string{}
		}
		o.real[path] = now
	case known && first != now:
		return []string{first, now}
	}
	return []string{now}
}

// ownPaths lists the files and directories of the gateway itself, absolute and
// without links: database, state directory, backups, runtime directory, env file, and
// files of tokens. Commands at full trust do not see them (joinVeil). Where no
// veil can be made, the permission guard asks about commands that name one of
// them (unveiledPaths). Some of the paths may not exist.
func (a *app) ownPaths() []string {
	list := []string{a.runtime, a.vault.Path() + "/.parachute", a.cfg.EnvFile()}
	if db := a.cfg.DatabasePath(); !strings.Contains(db, "://") {
		list = append(list, db, db+"-wal", db+"-shm", db+"-journal")
	}
	for _, file := range a.cfg.SecretFiles() {
		list = append(list, file)
	}
	list = append(list, a.bots.Files(a.cfg)...)
	list = append(list, archives.Within(a.cfg.BackupDir(), a.vault.Path())...)
	var real []string
	for _, path := range list {
		if path != "" {
			real = append(real, a.own.find(path)...)
		}
	}
	slices.Sort(real)
	return slices.Compact(real)
}

// unveiledPaths returns ownPaths where commands at full trust can see them.
func (a *app) unveiledPaths() []string {
	if a.veil != nil {
		return nil
	}
	return a.ownPaths()
}

// cover returns what programs at full trust do not see.
func (a *app) cover() sandbox.Cover {
	c := sandbox.Cover{Hidden: a.ownPaths()}
	for _, name := range usable {
		c.Open = append(c.Open, filepath.Join(a.vault.Path(), ".parachute", name))
	}
	return c
}

// joinVeil opens the veil. The directories in .parachute that stay open behind it are
// made, so that they can be written there.
func (a *app) joinVeil() {
	var text string
	a.veil, text = sandbox.OpenVeil(a.cfg.Sandbox, a.cover)
	if a.veil == nil {
		a.log.Warn("the gateway's own files are " + text)
		return
	}
	a.log.Info("the gateway's own files are " + text)
	for _, name := range usable {
		if err := a.vault.Root().MkdirAll(".parachute/"+name, 0o700); err != nil {
			a.log.Warn("folder of the vault", "err", err)
		}
	}
}
