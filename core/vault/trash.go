package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

const trashStamp = "20060102T150405.000000Z"

// Trash moves the file or folder name to .parachute/trash/<stamp>-<its last
// part> and says where it lies now. A missing one is fs.ErrNotExist.
func (v *Vault) Trash(name string, now time.Time) (string, error) {
	if _, err := v.root.Lstat(name); err != nil {
		return "", explain("trash", err)
	}
	if err := v.root.MkdirAll(trashDir, 0o700); err != nil {
		return "", explain("trash", err)
	}
	stamp, base := now.UTC().Format(trashStamp), path.Base(name)
	for n := range 100 { // two of one name within a microsecond
		to := fmt.Sprintf("%s/%s-%s", trashDir, stamp, base)
		if n > 0 {
			to = fmt.Sprintf("%s/%s-%d-%s", trashDir, stamp, n, base)
		}
		if _, err := v.root.Lstat(to); err == nil {
			continue
		}
		return to, explain("trash", v.root.Rename(name, to))
	}
	return "", fmt.Errorf("trash %s: %w", base, fs.ErrExist)
}

// Prune deletes for good what lies in the trash for more than days days and
// says how many entries that were. Entries without a stamp stay.
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
		if err := v.root.RemoveAll(path.Join(trashDir, e.Name())); err != nil {
			return n, explain("prune", err)
		}
		n++
	}
	return n, nil
}

// RemoveTrashed deletes for good what was trashed under the name base, such as
// "<id>.jsonl", however often.
func (v *Vault) RemoveTrashed(base string) error {
	entries, err := fs.ReadDir(v.root.FS(), trashDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain("empty the trash", err)
	}
	for _, e := range entries {
		stamp, rest, ok := strings.Cut(e.Name(), "-")
		if _, err := time.Parse(trashStamp, stamp); !ok || err != nil || rest != base && !strings.HasSuffix(rest, "-"+base) {
			continue
		}
		if err := v.root.RemoveAll(path.Join(trashDir, e.Name())); err != nil {
			return explain("empty the trash", err)
		}
	}
	return nil
}
