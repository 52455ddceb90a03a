package vault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"gatehouse/core/beneath"
)

const trashStamp = "20060102T150405.000000Z"

// Trash moves the file or directory name to .parachute/trash/<stamp>-<its last
// part> and returns its name there. No part of name may be a symbolic link but
// the last, which is moved as a link. A missing one is fs.ErrNotExist.
func (v *Vault) Trash(name string, now time.Time) (string, error) {
	top, err := v.Beneath()
	if err != nil {
		return "", explain("trash", err)
	}
	defer top.Close()
	dir, err := top.Dir(path.Dir(name))
	if err != nil {
		return "", explain("trash", err)
	}
	defer dir.Close()
	base := path.Base(name)
	info, err := dir.Stat(base)
	if err != nil {
		return "", explain("trash", err)
	}
	return v.TrashFrom(dir, base, info.ID, 0, now)
}

// TrashFrom is Trash for name, an entry of the open directory dir: it is moved only
// where it still is the file that id names. With guest it was in that guest's folder, and is
// deleted with them.
func (v *Vault) TrashFrom(dir *beneath.Dir, name string, id beneath.ID, guest int64, now time.Time) (string, error) {
	top, err := v.Beneath()
	if err != nil {
		return "", explain("trash", err)
	}
	defer top.Close()
	trash, err := top.MkdirAll(trashDir)
	if err != nil {
		return "", explain("trash", err)
	}
	defer trash.Close()
	as := name
	switch {
	case guest > 0:
		as = OfGuest(guest, name)
	case strings.HasPrefix(name, guestMark):
		as = "_" + name // is nobody's
	}
	if err := v.Fenced(); err != nil {
		return "", err
	}
	stamp, base := now.UTC().Format(trashStamp), shortened(as)
	for n := range 100 { // two of one name within a microsecond
		to := stamp + "-" + base
		if n > 0 {
			to = fmt.Sprintf("%s-%d-%s", stamp, n, base)
		}
		if err := dir.Move(name, id, trash, to); !errors.Is(err, fs.ErrExist) {
			return trashDir + "/" + to, explain("trash", err)
		}
	}
	return "", fmt.Errorf("trash %s: %w", base, fs.ErrExist)
}

// maxTrashed limits what is kept of a name in the trash, in bytes: with the
// stamp it must not be longer than the 255 that file systems take.
const maxTrashed = 200

// shortened returns name without its middle where it is too long; the end, with
// the extension, stays.
func shortened(name string) string {
	if len(name) <= maxTrashed {
		return name
	}
	half := maxTrashed / 2
	return strings.ToValidUTF8(name[:half], "") + strings.ToValidUTF8(name[len(name)-half:], "")
}

// Prune deletes what has been in the trash for more than days days and returns
// the number of entries. Entries without a stamp stay.
func (v *Vault) Prune(now time.Time, days int) (int, error) {
	before := now.AddDate(0, 0, -days)
	entries, err := fs.ReadDir(v.root.FS(), trashDir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, explain("prune", err)
	}
	n := 0
	for _, e := range entries {
		stamp, _, ok := strings.Cut(e.Name(), "-")
		at, err := time.Parse(trashStamp, stamp)
		if !ok || err != nil || !at.Before(before) {
			continue
		}
		if err := v.RemoveAll(path.Join(trashDir, e.Name())); err != nil {
			return n, explain("prune", err)
		}
		n++
	}
	return n, nil
}

// A Trashed is a file or directory in the trash.
type Trashed struct {
	Name string    // in the vault
	Base string    // what it was called, where it was not too long
	At   time.Time // when it was moved there
}

// Trashed lists the trash, oldest first. Entries without a stamp are left out.
func (v *Vault) Trashed() (list []Trashed, err error) {
	entries, err := fs.ReadDir(v.root.FS(), trashDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("read the trash", err)
	}
	for _, e := range entries {
		stamp, base, ok := strings.Cut(e.Name(), "-")
		if at, err := time.Parse(trashStamp, stamp); ok && err == nil {
			list = append(list, Trashed{Name: path.Join(trashDir, e.Name()), Base: base, At: at})
		}
	}
	return list, nil
}

// TrashedAs lists what was trashed under the name base, however often.
func (v *Vault) TrashedAs(base string) (names []string, err error) {
	trashed, err := v.Trashed()
	for _, t := range trashed {
		if t.Base == base || t.unnumbered() == base {
			names = append(names, t.Name)
		}
	}
	return names, err
}

// unnumbered returns the name without the number of one of several within a microsecond.
func (t Trashed) unnumbered() string {
	n, rest, ok := strings.Cut(t.Base, "-")
	if ok && n != "" && strings.Trim(n, "0123456789") == "" {
		return rest
	}
	return t.Base
}

// OfGuest returns the name in the trash of a file that was the guest's, by which it is found
// when the guest is forgotten.
func OfGuest(user int64, name string) string { return fmt.Sprintf("%s%d-%s", guestMark, user, name) }

// guestMark begins the names in the trash of what was a guest's, and no others.
const guestMark = "guest-"

// GiveTrashed makes what was trashed of one guest another's.
func (v *Vault) GiveTrashed(from, to int64) error {
	trashed, err := v.Trashed()
	if err != nil {
		return err
	}
	for _, t := range trashed {
		name, theirs := strings.CutPrefix(t.unnumbered(), OfGuest(from, ""))
		if !theirs {
			continue
		}
		free := t.Name[:len(t.Name)-len(t.unnumbered())] + OfGuest(to, name) // with the stamp and the number
		if err := v.root.Rename(t.Name, free); err != nil {
			return explain("trash", err)
		}
	}
	return nil
}

// RemoveTrashedOf deletes what was trashed under a name of OfGuest.
func (v *Vault) RemoveTrashedOf(user int64) error {
	trashed, err := v.Trashed()
	if err != nil {
		return err
	}
	own := OfGuest(user, "")
	for _, t := range trashed {
		if !strings.HasPrefix(t.unnumbered(), own) {
			continue
		}
		if err := v.RemoveAll(t.Name); err != nil {
			return explain("empty the trash", err)
		}
	}
	return nil
}

// RemoveTrashed deletes what was trashed under the name base, such as
// "<id>.jsonl", however often.
func (v *Vault) RemoveTrashed(base string) error {
	names, err := v.TrashedAs(base)
	for _, name := range names {
		err = cmp.Or(err, v.RemoveAll(name))
	}
	return explain("empty the trash", err)
}

// RemoveAll deletes the file or directory name with everything in it,
// however deep its directories are nested. No part of name may be a symbolic link
// but the last, which is deleted as a link. A missing one is no error.
func (v *Vault) RemoveAll(name string) error {
	top, err := v.Beneath()
	if err != nil {
		return explain("remove", err)
	}
	defer top.Close()
	dir, err := top.Dir(path.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain("remove", err)
	}
	defer dir.Close()
	if err := v.Fenced(); err != nil {
		return err
	}
	return explain("remove", dir.Remove(context.Background(), path.Base(name)))
}
