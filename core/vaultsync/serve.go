package vaultsync

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vaultsync/merge"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// Delete deletes a file that has the content base. A file that was changed since is kept.
func (s *Store) Delete(ctx context.Context, a Area, root, rel, base string) (done wire.Done, err error) {
	defer func() {
		err = unwritable(rel, err)
		s.count(done.Outcome, err)
	}()
	done = wire.Done{Path: rel}
	name, err := a.writable(root, rel)
	if err != nil {
		return done, err
	}
	tree, err := s.tree()
	if err != nil {
		return done, err
	}
	defer tree.Top.Close()
	defer s.locks.Lock(name)()
	now, _, err := tree.Hash(name)
	if errors.Is(err, place.ErrInWay) {
		now, err = "", nil
	}
	if err != nil {
		return done, err
	}
	existed := now != ""
	if existed && now == base {
		if err := s.keepPresent(ctx, tree, name, now); err != nil {
			return done, err
		}
		s.meant.remove(name)
		err = tree.Delete(name, now)
		if err == nil {
			now = ""
		} else if !errors.Is(err, place.ErrChanged) {
			return done, err
		}
		err = nil
	}
	if now != "" {
		done.Outcome, done.Hash = wire.Kept, now
		return done, nil
	}
	done.Outcome = wire.Deleted
	var n int
	if err := s.o.DB.Get(ctx, &n, `SELECT count(*) FROM sync_files WHERE path = $1`, name); err != nil {
		return done, err
	}
	if n > 0 || existed { // of names that never were nothing is kept
		err = s.note(ctx, name, "", itself)
	}
	return done, errors.Join(err, s.record(ctx, tree, name))
}

// Served is a file that is sent to a device.
type Served struct {
	wire.Meta
	*os.File
}

// Open opens a file for a device, which the caller closes. A missing one is core.NotFound.
func (s *Store) Open(ctx context.Context, a Area, root, rel string) (Served, error) {
	name, err := a.in(root, rel)
	if err != nil {
		return Served{}, err
	}
	tree, err := s.tree()
	if err != nil {
		return Served{}, err
	}
	defer tree.Top.Close()
	f, err := tree.Open(name)
	if err == nil && f == nil || errors.Is(err, place.ErrInWay) {
		return Served{}, core.Errorf(core.NotFound, "there is no file %q", core.CutRunes(rel, 100))
	}
	if why, ok := place.Alone(err); ok {
		err = core.Errorf(core.Denied, "%q cannot be read on the server: %w", core.CutRunes(rel, 100), why)
	}
	if err != nil {
		return Served{}, err
	}
	out := Served{Meta: wire.Meta{Path: rel}, File: f}
	if err := s.serve(ctx, name, &out); err != nil {
		_ = f.Close()
		return Served{}, err
	}
	return out, nil
}

// serve finds out what a file has, and keeps it as the base of what the device will edit.
func (s *Store) serve(ctx context.Context, name string, out *Served) error {
	h := wire.New()
	var copied bytes.Buffer // at most merge.MaxSize
	n, err := io.Copy(io.MultiWriter(h, &capped{&copied}), io.LimitReader(out.File, wire.MaxFile+1))
	if err != nil {
		return err
	}
	if n > wire.MaxFile {
		return tooLarge(out.Path)
	}
	st, err := out.Stat()
	if err != nil {
		return err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	out.Meta.Hash, out.Meta.Size, out.Modified = wire.Sum(h), n, float64(st.ModTime().UnixMilli())/1e3
	if n <= merge.MaxSize {
		s.keep(name, out.Hash, n, &copied)
	}
	return s.note(ctx, name, out.Hash, itself)
}

// capped is a buffer of at most merge.MaxSize; what is longer is dropped.
type capped struct{ *bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if c.Len()+len(p) <= merge.MaxSize {
		return c.Buffer.Write(p)
	}
	return len(p), nil
}

// Audit notes in the audit log what a device did.
func (s *Store) Audit(ctx context.Context, by core.Actor, device, action string, done []wire.Done) error {
	counts := map[string]any{"device": wire.Device(device)}
	for _, d := range done {
		n, _ := counts[d.Outcome].(int)
		counts[d.Outcome] = n + 1
	}
	return s.o.DB.TxSoon(ctx, func(tx *store.Tx) error { return store.Audit(ctx, tx, by, action, "", counts) })
}
