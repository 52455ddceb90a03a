package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/beneath"
	"gatehouse/core/paraid/entry"
	"gatehouse/core/vault"
)

// Days returns the days of the user's journal that have a file, oldest first: those of
// the month, such as 2026-01, or all where it is "".
func (s *Store) Days(_ context.Context, user int64, month string) (days []string, err error) {
	if _, err := time.Parse("2006-01", month); month != "" && err != nil {
		return nil, core.Errorf(core.Invalid, "%q is not a month: write year and month, such as 2026-01", core.CutRunes(month, 40))
	}
	dir := DirOf(user)
	if dir == "" {
		return nil, core.Errorf(core.Denied, "only users with access have a journal")
	}
	entries, err := fs.ReadDir(s.o.Vault.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the journal: %w", err)
	}
	for _, e := range entries {
		if date, ok := dateOf(e.Name()); ok && e.Type().IsRegular() && strings.HasPrefix(date, month) {
			days = append(days, date)
		}
	}
	slices.Sort(days)
	return days, nil
}

// Kinds of attachments, as their files are named.
const (
	Recording = "audio"
	Picture   = "photo"
)

// MaxFile is the largest attachment, in bytes.
const MaxFile = 64 << 20

// maxSameMinute limits the attachments of one kind and minute.
const maxSameMinute = 100

var extension = core.Pattern(`^\.[a-z0-9]{1,8}$`)

// Attach copies r to Daily/assets/{date}/{kind}-10-30-am{ext} of the user's journal and
// returns the path relative to the day's file. A name that is taken gets a number. The
// file is on the disk when Attach returns. More than MaxFile bytes are core.Invalid.
func (s *Store) Attach(ctx context.Context, user int64, kind, ext string, at time.Time, r io.Reader, size int64) (string, error) {
	name, err := PathOf(user, at.Format(time.DateOnly))
	if err != nil {
		return "", err
	}
	ext = strings.ToLower(ext)
	if !extension().MatchString(ext) {
		ext = ".bin"
	}
	rel := "assets/" + at.Format(time.DateOnly)
	first := path.Join(path.Dir(name), rel, kind+"-"+strings.ToLower(at.Format("3-04-pm"))+ext)
	if s.o.Room != nil {
		if err := s.o.Room(ctx, user, first, true, size); err != nil {
			return "", err
		}
	}
	base, err := s.copyTo(path.Dir(first), path.Base(first), r)
	return rel + "/" + base, err
}

// copyTo creates a file with the content of r in dir, under a free name like base.
func (s *Store) copyTo(dir, base string, r io.Reader) (free string, err error) {
	top, err := s.o.Vault.Beneath()
	if err != nil {
		return "", err
	}
	defer top.Close()
	d, err := top.MkdirAll(dir)
	if beneath.Replaced(err) {
		return "", &core.Error{Kind: core.Invalid, Text: dir + " is a link or no folder: move it away", Err: err}
	}
	if err != nil {
		return "", vault.Explain("attach to the journal", err)
	}
	defer d.Close()
	temp := "." + base + "." + entry.Random() + tempSuffix
	if err := fill(d, temp, r); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = d.Unlink(temp)
		}
	}()
	stem, ext := strings.TrimSuffix(base, path.Ext(base)), path.Ext(base)
	for n := 1; n <= maxSameMinute; n++ {
		if free = base; n > 1 {
			free = stem + "-" + strconv.Itoa(n) + ext
		}
		if err = d.Rename(temp, free, true); !errors.Is(err, fs.ErrExist) {
			return free, errors.Join(err, d.Sync())
		}
	}
	return "", err
}

// fill creates the file name in d with the content of r, on the disk.
func fill(d *beneath.Dir, name string, r io.Reader) error {
	f, err := d.Create(name)
	if err != nil {
		return vault.Explain("attach to the journal", err)
	}
	n, err := io.Copy(f, io.LimitReader(r, MaxFile+1))
	if err == nil && n > MaxFile {
		err = core.Errorf(core.TooLarge, "the file is larger than %s and was not added to the journal", core.ByteSize(MaxFile))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = d.Unlink(name)
	}
	return vault.Explain("attach to the journal", err)
}

// FileOf returns the file of the vault that an attachment's path means in the user's
// journal: one below its directory assets. Both "assets/…" and "../assets/…" are that,
// as the original system wrote the second. Any other path is core.NotFound.
func FileOf(user int64, given string) (string, error) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(given, "./"), "../"), "assets/")
	if !ok || !fs.ValidPath(rest) || rest == "." || DirOf(user) == "" {
		return "", core.Errorf(core.NotFound, "the journal has no such attachment")
	}
	return DirOf(user) + "/assets/" + rest, nil
}
