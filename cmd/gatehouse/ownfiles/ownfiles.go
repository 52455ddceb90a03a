// Package ownfiles knows the files and directories that are the gateway's own, and
// hides them from programs at full trust.
package ownfiles

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gatehouse/configs"
	"gatehouse/core/backup/directory"
	"gatehouse/core/sandbox"
)

// usable are the directories of .parachute that belong to the vault's owner rather
// than to the gateway.
var usable = []string{"agents", "skills", "workspaces"}

// A Vault is a directory of files; *vault.Vault is one.
type Vault interface {
	Path() string
	Root() *os.Root
}

// Options of New. All are needed.
type Options struct {
	Config  *configs.Config
	Vault   Vault
	Runtime string          // directory
	Tokens  func() []string // the bots' files
}

// Files lists the gateway's own files. It remembers where they are as they were
// first found: a link that is changed later uncovers nothing. It is safe for
// concurrent use, but for OpenVeil.
type Files struct {
	o    Options
	veil func() *sandbox.Veil // nil, or returns nil: nothing is hidden

	mu   sync.Mutex
	real map[string]string // path as configured → without links; at most maxOwn
}

// New returns the files of a gateway.
func New(o Options) *Files { return &Files{o: o} }

// maxOwn bounds the remembered paths: two for each bot and some more are in use.
const maxOwn = 1000

// find returns where path really is, and where it was when it was first found.
func (f *Files) find(path string) []string {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	first, known := f.real[path]
	switch {
	case !known && len(f.real) < maxOwn && err == nil:
		if f.real == nil {
			f.real = map[string]string{}
		}
		f.real[path] = now
	case known && first != now:
		return []string{first, now}
	}
	return []string{now}
}

// Paths returns the files and directories of the gateway itself, absolute and
// without links: database, state directory, backups, runtime directory, env file,
// key file of encrypted columns, and files of tokens. Some of the paths may not exist.
func (f *Files) Paths() []string {
	cfg, root := f.o.Config, f.o.Vault.Path()
	list := []string{f.o.Runtime, root + "/.parachute", cfg.EnvFile()}
	if db := cfg.DatabasePath(); !strings.Contains(db, "://") {
		list = append(list, db, db+"-wal", db+"-shm", db+"-journal")
	}
	list = append(list, cfg.ContentKeyPath())
	for _, file := range cfg.SecretFiles() {
		list = append(list, file)
	}
	list = append(list, f.o.Tokens()...)
	list = append(list, cfg.Providers().Files()...)
	list = append(list, directory.Within(cfg.BackupDir(), root)...)
	var real []string
	for _, path := range list {
		if path != "" {
			real = append(real, f.find(path)...)
		}
	}
	slices.Sort(real)
	return slices.Compact(real)
}

// Visible returns Paths where commands at full trust can see them: the permission
// guard asks about commands that name one. With a veil it returns none.
func (f *Files) Visible() []string {
	if f.veil != nil && f.veil() != nil {
		return nil
	}
	return f.Paths()
}

// cover returns what programs at full trust do not see.
func (f *Files) cover() sandbox.Cover {
	c := sandbox.Cover{Hidden: f.Paths()}
	for _, name := range usable {
		c.Open = append(c.Open, filepath.Join(f.o.Vault.Path(), ".parachute", name))
	}
	return c
}

// OpenVeil returns a function that waits for the veil that hides the files, and returns it; nil
// where none can be made. By then the directories in .parachute that stay open behind it are
// made, so that they can be written there.
func (f *Files) OpenVeil(tried func() sandbox.VeilTrial, log *slog.Logger) (veil func() *sandbox.Veil) {
	f.veil = sync.OnceValue(func() *sandbox.Veil {
		veil, text := tried().Open(f.cover)
		if veil == nil {
			log.Warn("the gateway's own files are " + text)
			return nil
		}
		log.Info("the gateway's own files are " + text)
		for _, name := range usable {
			if err := f.o.Vault.Root().MkdirAll(".parachute/"+name, 0o700); err != nil {
				log.Warn("folder of the vault", "err", err)
			}
		}
		return veil
	})
	go f.veil()
	return f.veil
}
