package backup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"unicode/utf8"

	"gatehouse/core/backup/archive"
	"gatehouse/core/beneath"
)

// maxShown bounds a shown name, in bytes.
const maxShown = 300

// shownName returns a name for users: quoted where it is not UTF-8 or has control
// characters, and without its middle where it is long.
func shownName(name string) string {
	cut := name
	if len(name) > maxShown {
		cut = name[:maxShown/2] + "…" + name[len(name)-maxShown/2:]
	}
	quoted := strconv.Quote(cut)
	if utf8.ValidString(cut) && quoted == `"`+cut+`"` {
		return cut
	}
	return quoted
}

// Unstorable returns what in the vault no backup can hold, with the reason: at most
// most, and how many there are. After looking at maxEntries entries it ends with
// whole false. What cannot be read is passed over.
func Unstorable(ctx context.Context, vault string, most, maxEntries int) (named []string, n int, whole bool, err error) {
	root, err := os.OpenRoot(vault)
	if err != nil {
		return nil, 0, false, err
	}
	defer root.Close()
	seen := 0
	err = fs.WalkDir(beneath.FS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > maxEntries || ctx.Err() != nil {
			return errEnough
		}
		if why := archive.Unstorable(name); why != "" {
			if n++; len(named) < most {
				named = append(named, shownName(name)+" ("+why+")")
			}
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil && d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return named, n, false, nil
	}
	return named, n, true, err
}

var errEnough = errors.New("enough was read")
