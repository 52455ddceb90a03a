package vaultsync

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/vaultsync/wire"
)

// A Query limits a listing.
type Query struct {
	Root    string
	Pattern string // of the last element of paths (path.Match); "": all
	Binary  bool   // include files that are no text, by their names
	Date    string // only files of this date: an element of the path begins with it; "": all
	Since   string // a cursor: only changes since it; "": all
	Epoch   string // of the cursor; "": the present one
}

// List returns the files of an area as JSON of a wire.Listing, which the caller closes. Changes
// since a cursor that is not known, or of another epoch, are all files. It is made a row at a time, and a long one on
// the disk, so that it takes the same memory for any number of files.
func (s *Store) List(ctx context.Context, a Area, q Query) (*Listing, error) {
	if a.User <= 0 || a.Trust == core.Stranger {
		return nil, core.Errorf(core.Denied, "only users with access have files to sync")
	}
	if _, err := path.Match(q.Pattern, ""); err != nil {
		return nil, core.Errorf(core.Invalid, "the pattern %q is not valid: write one such as *.md", core.CutRunes(q.Pattern, 60))
	}
	s.scans.Lock() // what is listed is what the table had at one time
	defer s.scans.Unlock()
	if err := s.scan(ctx, a.Dir()); err != nil {
		return nil, err
	}
	l := &listing{Store: s, area: a, q: q, root: path.Join(a.Dir(), path.Clean("/" + q.Root)[1:]), out: &Listing{open: s.o.Vault.Unnamed}}
	if err := l.write(ctx); err != nil {
		return nil, errors.Join(err, l.out.Close())
	}
	return l.out, l.out.rewind()
}

// listing is a Listing that is being made.
type listing struct {
	*Store
	area  Area
	q     Query
	root  string // in the vault
	since int64
	all   bool
	out   *Listing
}

func (l *listing) write(ctx context.Context) error {
	last, err := l.last(ctx)
	if err != nil {
		return err
	}
	pruned, err := l.pruned(ctx, l.o.DB)
	if err != nil {
		return err
	}
	last = max(last, pruned)
	epoch, err := l.epoch(ctx)
	if err != nil {
		return err
	}
	l.since, err = strconv.ParseInt(l.q.Since, 10, 64)
	l.all = err != nil || l.since < pruned || l.since > last || l.q.Epoch != "" && l.q.Epoch != epoch
	head := wire.Listing{Root: strings.TrimPrefix(l.root, "."), Complete: l.all, Cursor: strconv.FormatInt(last, 10), Epoch: epoch, GeneratedAt: l.o.Clock.Now().UTC().Format(time.RFC3339)}
	digest := wire.NewDigest()
	return wire.Write(l.out, head, func(file func(wire.File) error) error {
		return l.each(ctx, " AND deleted = ''", func(rel string, r *row) error {
			digest.Add(rel, r.Hash)
			return l.file(rel, r, file)
		})
	}, func(file func(wire.File) error) error {
		return l.each(ctx, " AND deleted <> ''", func(rel string, r *row) error { return l.file(rel, r, file) })
	}, digest.Sum)
}

// last returns the number of the last change in the area.
func (l *listing) last(ctx context.Context) (last int64, err error) {
	query, args := `SELECT coalesce(max(seq), 0) FROM sync_files`, []any{}
	if dir := l.area.Dir(); dir != "." {
		query, args = query+` WHERE path > $1 AND path < $2`, append(args, dir+"/", dir+"0")
	}
	return last, l.o.DB.Get(ctx, &last, query, args...)
}

// each calls f with the rows that the query wants, in order.
func (l *listing) each(ctx context.Context, cond string, f func(rel string, r *row) error) error {
	for c := l.rows(l.area.Dir(), cond); ; {
		head, err := c.head(ctx)
		if err != nil || head == nil {
			return err
		}
		r := c.take()
		rel, below := relative(l.root, r.Path)
		if !below || !l.q.wants(rel) || !l.area.May(l.area.Trust, l.area.User, r.Path, false) {
			continue
		}
		if err := f(rel, &r); err != nil {
			return err
		}
	}
}

// file writes a row that has changed.
func (l *listing) file(rel string, r *row, write func(wire.File) error) error {
	if !l.all && r.Seq <= l.since {
		return nil
	}
	f := wire.File{Path: rel, Hash: r.Hash, Size: r.Size, Modified: float64(r.Modified/1e6) / 1e3}
	if r.Entries != "" {
		_ = json.Unmarshal([]byte(r.Entries), &f.Entries) // as it was written
	}
	return write(f)
}

// relative returns name below root.
func relative(root, name string) (string, bool) {
	if root == "." {
		return name, true
	}
	return strings.CutPrefix(name, root+"/")
}

// wants reports whether a listing has a file.
func (q Query) wants(name string) bool {
	if ok, _ := path.Match(q.Pattern, path.Base(name)); q.Pattern != "" && !ok {
		return false
	}
	if !q.Binary && Binary(name) {
		return false
	}
	return q.Date == "" || slices.ContainsFunc(strings.Split(name, "/"), func(p string) bool { return strings.HasPrefix(p, q.Date) })
}

// binaries are the ends of names of files that are no text.
var binaries = []string{".wav", ".mp3", ".m4a", ".ogg", ".opus", ".flac", ".mp4", ".mov", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".pdf", ".zip"}

// Binary reports whether a file is no text, by its name.
func Binary(name string) bool { return slices.Contains(binaries, strings.ToLower(path.Ext(name))) }
