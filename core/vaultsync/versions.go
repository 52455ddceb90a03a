package vaultsync

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"gatehouse/core"
	"gatehouse/core/store"
	"gatehouse/core/vaultsync/merge"
	"gatehouse/core/vaultsync/place"
	"gatehouse/core/vaultsync/wire"
)

// versionsDir has the contents that are kept, by area and hash.
const versionsDir = ".parachute/versions"

// itself is the base of a row of sync_versions for what the file had.
const itself = "-"

// contentOf returns where a content of the file name is kept: those of a guest in a
// directory of their own, which is removed with them.
func contentOf(name, hash string) string {
	digits := wire.Hex(hash)
	return path.Join(versionsDir, areaOf(name), digits[:2], digits)
}

// areaOf returns the number of the guest in whose directory a file is, or "vault".
func areaOf(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) == 3 && parts[0] == core.GuestsDir {
		return parts[1]
	}
	return "vault"
}

// keep keeps a content as the base of later merges. It is not needed for anything else,
// so an error is logged.
func (s *Store) keep(name, hash string, size int64, content io.Reader) {
	at := contentOf(name, hash)
	if size > merge.MaxSize {
		return
	}
	if _, err := s.o.Vault.Root().Lstat(at); err == nil {
		return
	}
	if areaOf(name) != "vault" && s.guests.Add(size) > maxGuests {
		return // the next merge of the file has no base, and keeps everything
	}
	data, err := io.ReadAll(content)
	if err == nil && wire.Hash(data) == hash {
		err = s.o.Vault.WriteFileNoSync(at, data)
	}
	if err != nil {
		s.o.Log.Warn("a content is not kept as the base of merges", "file", name, "err", err)
	}
}

// kept returns a content that was kept.
func (s *Store) kept(name, hash string) ([]byte, bool) {
	data, err := s.o.Vault.ReadNoLinks(contentOf(name, hash), merge.MaxSize)
	return data, err == nil && wire.Hash(data) == hash // after a power cut it may be cut off
}

// keepPresent keeps what a file has before it is replaced.
func (s *Store) keepPresent(ctx context.Context, tree place.Tree, name, hash string) error {
	f, err := tree.Open(name)
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	s.keep(name, hash, st.Size(), io.LimitReader(f, merge.MaxSize+1))
	return s.note(ctx, name, hash, itself)
}

// note notes that a file had a content, or that a device edited it from base.
func (s *Store) note(ctx context.Context, name, hash, base string) error {
	var last struct{ Hash, Base string }
	err := s.o.DB.Get(ctx, &last, `SELECT hash, base FROM sync_versions WHERE path = $1 ORDER BY seq DESC LIMIT 1`, name)
	if err == nil && last.Hash == hash && last.Base == base {
		return nil
	}
	return s.o.DB.TxSoon(ctx, func(tx *store.Tx) error { return note(ctx, tx, name, hash, base) })
}

func note(ctx context.Context, tx *store.Tx, name, hash, base string) error {
	_, err := tx.Exec(ctx, `INSERT INTO sync_versions (path, hash, base, seq) VALUES ($1, $2, $3, (SELECT coalesce(max(seq), 0) + 1 FROM sync_versions WHERE path = $1))
		ON CONFLICT (path, hash, base) DO UPDATE SET seq = excluded.seq`, name, hash, base)
	if err != nil {
		return fmt.Errorf("note a version: %w", err)
	}
	_, err = tx.Exec(ctx, `DELETE FROM sync_versions WHERE path = $1 AND seq <= (SELECT max(seq) FROM sync_versions WHERE path = $1) - $2`, name, notedPer)
	return err
}

// repeated reports whether this edit was brought in before: the device did not get the
// answer, and sends it again. It is none if the device can have got its base again since.
func (p *pushed) repeated(ctx context.Context) (bool, error) {
	var done, again int64
	err := p.o.DB.Get(ctx, &done, `SELECT seq FROM sync_versions WHERE path = $1 AND hash = $2 AND base = $3`, p.name, p.hash, p.in.Meta.BaseHash)
	if errors.Is(err, store.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		err = p.o.DB.Get(ctx, &again, `SELECT coalesce(max(seq), 0) FROM sync_versions WHERE path = $1 AND hash = $2`, p.name, p.in.Meta.BaseHash)
	}
	return again < done, err
}

// Prune forgets old deletions and removes contents that are not needed any more: all but
// the newest of each file, and the oldest beyond a limit of all. It returns how many.
func (s *Store) Prune(ctx context.Context) (n int, err error) {
	s.guests.Store(0)
	if err := s.forgetDeletions(ctx); err != nil {
		return 0, err
	}
	wanted, err := s.wanted(ctx)
	if err != nil {
		return 0, err
	}
	return s.removeContents(ctx, wanted)
}

// page is how many rows of versions are read at a time: those of a file, at most notedPer and
// one more, fit.
const page = 5000

// places are those of contents, by placed; at most keptPerFile and one for each file. Two may
// have the same number: then one is kept for nothing.
type places map[uint64]bool

// placed returns the number of a place.
func placed(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// wanted returns the places of the newest contents of each file.
func (s *Store) wanted(ctx context.Context) (places, error) {
	wanted, of := places{}, ""
	for {
		var list []struct{ Path, Hash string }
		if err := s.o.DB.Select(ctx, &list, `SELECT path, hash FROM sync_versions WHERE hash <> '' AND path > $1 ORDER BY path, seq DESC LIMIT `+strconv.Itoa(page), of); err != nil {
			return nil, err
		}
		end := len(list)
		if end == page && list[0].Path != list[page-1].Path { // the last file is read whole with the next page
			end = slices.IndexFunc(list, func(r struct{ Path, Hash string }) bool { return r.Path == list[page-1].Path })
		}
		var have []string
		for i, r := range list[:end] {
			if r.Path != of || i == 0 {
				of, have = r.Path, nil
			}
			if !slices.Contains(have, r.Hash) && len(have) <= keptPerFile {
				have = append(have, r.Hash)
				wanted[placed(contentOf(r.Path, r.Hash))] = true
			}
		}
		if len(list) < page {
			return wanted, nil
		}
	}
}

// forgetDeletions removes rows of files that were deleted long ago.
func (s *Store) forgetDeletions(ctx context.Context) error {
	return s.o.DB.Tx(ctx, func(tx *store.Tx) error {
		before := core.Stamp(s.o.Clock.Now().Add(-tombstones))
		var last, over int64
		err := tx.Get(ctx, &over, `SELECT seq FROM sync_files WHERE deleted <> '' ORDER BY seq DESC LIMIT 1 OFFSET $1`, s.o.Deletions)
		if err != nil && !errors.Is(err, store.ErrNoRows) {
			return err
		}
		if err := tx.Get(ctx, &last, `SELECT coalesce(max(seq), 0) FROM sync_files WHERE deleted <> '' AND (deleted < $1 OR seq <= $2)`, before, over); err != nil || last == 0 {
			return err
		}
		if err := s.prune(ctx, tx, last); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM sync_versions WHERE path IN (SELECT path FROM sync_files WHERE deleted <> '' AND (deleted < $1 OR seq <= $2))`, before, over); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM sync_files WHERE deleted <> '' AND (deleted < $1 OR seq <= $2)`, before, over)
		return err
	})
}

// A content is a file of versionsDir.
type content struct {
	name string
	size int64
	at   int64
}

// removeContents removes the contents that are not wanted, and the oldest of the others
// beyond maxKept bytes.
func (s *Store) removeContents(ctx context.Context, wanted places) (n int, err error) {
	var all []content // at most those of wanted
	total := int64(0)
	err = fs.WalkDir(s.o.Vault.FS(), versionsDir, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return errors.Join(err, context.Cause(ctx))
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone since
		}
		if !wanted[placed(name)] {
			if core.FileAge(s.o.Clock, info.ModTime()) < staleTemp {
				return nil // its row may be about to be written
			}
			n++
			return s.o.Vault.Remove(name)
		}
		all, total = append(all, content{name, info.Size(), info.ModTime().UnixNano()}), total+info.Size()
		return nil
	})
	core.Sort(all, func(a, b content) int { return int(a.at/1e9 - b.at/1e9) })
	for _, c := range all {
		if err != nil || total <= maxKept {
			break
		}
		n, total, err = n+1, total-c.size, s.o.Vault.Remove(c.name)
	}
	return n, err
}
