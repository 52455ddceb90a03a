package tool

import (
	"path"
	"strings"

	"gatehouse/core"
)

// Bounds of the area of one guest, Guests/<user>: what one guest leaves there
// must not slow others down.
const (
	MaxAreaEntries = 10_000    // files and directories
	MaxAreaDepth   = 16        // directories between the area and a file in it
	MaxAreaBytes   = 512 << 20 // of all files
)

// Area returns the directory of the vault that belongs to user, "" where user is
// no stored person.
func Area(user int64) string {
	if user <= 0 {
		return ""
	}
	return core.GuestDir(user)
}

// AreaDepth returns how many directories lie between area and name: 0 for an entry
// of area itself. ok is false where name is not inside area.
func AreaDepth(area, name string) (depth int, ok bool) {
	rest, ok := strings.CutPrefix(path.Clean(name), area+"/")
	if !ok || area == "" {
		return 0, false
	}
	return strings.Count(rest, "/"), true
}

// InGuests reports whether name, a slash path relative to the vault, is the
// directory of guests or in it. It ignores case: some file systems do.
func InGuests(name string) bool {
	first, _, _ := strings.Cut(path.Clean(name), "/")
	return strings.EqualFold(first, core.GuestsDir)
}

// Bounded reports whether t works within an area that is bounded.
func (t *Turn) Bounded() bool { return t.Trust <= core.Sandboxed }
