// Package discover takes in the sessions that Claude Code's command line began in
// the vault: while the gateway serves, and those of before at its start.
package discover

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"gatehouse/core"
	"gatehouse/core/session"
	"gatehouse/core/session/reindex"
	"gatehouse/core/store"
	"gatehouse/core/vault"
	"gatehouse/core/watch"
)

const (
	projects   = ".claude/projects"
	maxFolders = 512             // directories of transcripts that are watched, further ones are read every so often
	maxNews    = 1024            // files of which a notice has come; with more, everything is read
	every      = 5 * time.Minute // everything is read, with or without notices
	step       = 64              // files between two pauses
	pause      = 20 * time.Millisecond
)

// Options for New. All are needed.
type Options struct {
	DB       *store.DB
	Vault    *vault.Vault
	Sessions *session.Store
	Owner    int64      // whose the sessions are
	Trust    core.Trust // of the owner, and so of the sessions
	Clock    core.Clock
	Log      *slog.Logger
}

// A Discoverer watches the transcripts of a vault.
type Discoverer struct {
	o Options

	mu   sync.Mutex
	news map[string]bool // absolute names of files; at most maxNews
	all  bool            // there were more

	// Of Run alone, at most maxSizes each.
	sizes  map[string]int64 // of files of sessions that are taken in, or are not to be
	others map[string]bool  // files whose sessions are not to be taken in, as most are the gateway's own
}

// maxSizes bounds the files that need not be read again because they are as before.
const maxSizes = 20_000

// New returns a Discoverer that has read nothing.
func New(o Options) *Discoverer {
	return &Discoverer{o: o, news: map[string]bool{}, sizes: map[string]int64{}, others: map[string]bool{}}
}

// Run takes in what there is, then what comes, until ctx ends.
func (d *Discoverer) Run(ctx context.Context) {
	w := watch.New(watch.Options{What: "transcripts of Claude Code", Clock: d.o.Clock, Log: d.o.Log, Concerns: d.concerns})
	defer w.Close()
	if err := d.o.Vault.Root().MkdirAll(projects, 0o700); err != nil { // what is not there cannot be watched
		d.o.Log.Warn("the directory of transcripts", "err", err)
	}
	for last := (time.Time{}); ; {
		folders, err := d.folders()
		if err != nil {
			d.o.Log.Warn("directories of transcripts", "err", err)
		}
		news := w.Folders(append([]string{d.path("")}, folders[:min(len(folders), maxFolders)]...))
		names, all := d.take()
		if now := d.o.Clock.Now(); news || all || now.Sub(last) >= every {
			last = now
			err = d.readAll(ctx, folders)
		} else {
			err = d.readEach(ctx, names)
		}
		if err != nil && ctx.Err() == nil {
			d.o.Log.Warn("sessions of Claude Code are not taken in", "err", err)
		}
		if !w.Changed(ctx, watch.Anyway) {
			return
		}
	}
}

func (d *Discoverer) path(rel string) string {
	return filepath.Join(d.o.Vault.Path(), filepath.FromSlash(projects), rel)
}

// concerns notes a file of which a notice has come. One whose session is not to be taken in
// changes with each message: it is read again when everything is.
func (d *Discoverer) concerns(file string) bool {
	if filepath.Dir(file) == d.path("") { // perhaps a new directory
		return true
	}
	if !strings.HasSuffix(file, ".jsonl") || d.others[file] {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.news) >= maxNews {
		d.all = true
	} else {
		d.news[file] = true
	}
	return true
}

func (d *Discoverer) take() (names []string, all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.news {
		names = append(names, name)
	}
	all, d.all = d.all, false
	clear(d.news)
	return names, all
}

// folders returns the directories of transcripts, absolute.
func (d *Discoverer) folders() (list []string, err error) {
	err = d.each(projects, func(e fs.DirEntry) error {
		if e.IsDir() {
			list = append(list, d.path(e.Name()))
		}
		return nil
	})
	return list, err
}

// each calls f with the entries of a directory of the vault, 256 at a time.
func (d *Discoverer) each(dir string, f func(fs.DirEntry) error) error {
	in, err := d.o.Vault.Root().Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	for {
		entries, err := in.ReadDir(256)
		for _, e := range entries {
			if err := f(e); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (d *Discoverer) readAll(ctx context.Context, folders []string) (first error) {
	for _, folder := range folders {
		n := 0
		err := d.each(path.Join(projects, filepath.Base(folder)), func(e fs.DirEntry) error {
			if n++; n%step == 0 && !core.Sleep(ctx, d.o.Clock, pause) {
				return ctx.Err()
			}
			first = cmp.Or(first, d.read(ctx, filepath.Join(folder, e.Name()))) // the other files do not wait for this one
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return first
}

func (d *Discoverer) readEach(ctx context.Context, names []string) (first error) {
	for _, name := range names {
		first = cmp.Or(first, d.read(ctx, name))
	}
	return first
}

// read takes in the session of a file, or what was added to it. A last line that is
// not whole yet is left for the next time.
func (d *Discoverer) read(ctx context.Context, file string) error {
	name := path.Join(projects, filepath.Base(filepath.Dir(file)), filepath.Base(file))
	id, ok := strings.CutSuffix(path.Base(name), ".jsonl")
	if u, err := uuid.Parse(id); !ok || err != nil || u.String() != id {
		return nil
	}
	st, err := d.o.Vault.Stat(name)
	if err != nil || !st.Mode().IsRegular() || d.sizes[name] == st.Size() {
		return nil // gone, or as it was
	}
	was, err := d.o.Sessions.ByID(ctx, d.o.DB, id)
	isNew := core.KindOf(err) == core.NotFound
	if err != nil && !isNew {
		return err
	}
	if !isNew && (was.Source != reindex.CommandLine || was.User != d.o.Owner) {
		d.seen(name, st.Size())
		if len(d.others) >= maxSizes {
			clear(d.others)
		}
		d.others[file] = true
		return nil
	}
	delete(d.others, file)
	sess, ok := reindex.Find(d.o.Sessions, d.o.Vault, d.o.Log, name, id, !isNew)
	err = nil
	if ok {
		err = d.o.DB.Tx(ctx, func(tx *store.Tx) error { return d.keep(ctx, tx, &sess, isNew, st.ModTime()) })
	}
	if err == nil {
		d.seen(name, st.Size())
	}
	return err
}

func (d *Discoverer) seen(name string, size int64) {
	if len(d.sizes) >= maxSizes {
		clear(d.sizes)
	}
	d.sizes[name] = size
}

// cutShort is how long after its deletion a session's file shows that the deletion was
// interrupted. Later it was brought back on purpose.
const cutShort = time.Hour

// keep takes in sess, of a file that was changed last at that time. If the session was deleted
// after that, and not long ago, the deletion was interrupted: keep finishes it.
func (d *Discoverer) keep(ctx context.Context, tx *store.Tx, sess *session.Session, isNew bool, changed time.Time) error {
	if !isNew {
		return d.o.Sessions.Grown(ctx, tx, sess.ID, sess.MessageCount, sess.Title, sess.LastAccessed)
	}
	if deleted, err := d.o.Sessions.DeletedAt(ctx, tx, sess.ID); err != nil || !deleted.IsZero() {
		if core.FileTime(d.o.Clock, changed).Before(deleted) && d.o.Clock.Now().Sub(deleted) < cutShort {
			tx.OnCommit(func() {
				if err := d.o.Sessions.Discard(sess.ID); err != nil {
					d.o.Log.Error("a deleted session's files are still in the vault", "session", sess.ID, "error", err)
				}
			})
		}
		return err
	}
	if _, err := d.o.Sessions.ByID(ctx, tx, sess.ID); core.KindOf(err) != core.NotFound {
		return err // a turn was faster
	}
	sess.User, sess.TrustLevel = d.o.Owner, d.o.Trust
	tx.OnCommit(func() { d.o.Log.Info("a session of Claude Code is taken in", "session", sess.ID) })
	return d.o.Sessions.Take(ctx, tx, *sess)
}
