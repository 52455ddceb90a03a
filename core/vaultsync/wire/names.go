package wire

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gatehouse/core"
)

// StateDir is where a client keeps its state, in the directory that it syncs.
const StateDir = ".gatehouse-sync"

// Synced reports whether a file of the vault is synced at all, by its path: its form is
// valid, and it is in no directory and has no name that begins with a dot, but for
// Daily/.agents, .activity, .mcp.json and .parachuteignore. Databases and lock files are
// not synced either.
func Synced(name string) bool {
	if name == "." || !fs.ValidPath(name) || len(name) > MaxPath || !utf8.ValidString(name) {
		return false
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || unicode.Is(unicode.C, r) }) {
		return false
	}
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	for i, p := range parts[:last] {
		if !EnterDir(parts[:i], p) {
			return false
		}
	}
	base := parts[last]
	if len(base) > MaxName || strings.TrimRight(base, ". ") != base && strings.Trim(base, ". ") == "" {
		return false
	}
	switch {
	case base == ".mcp.json", base == ".parachuteignore":
		return last == 0
	case strings.HasPrefix(base, "."), strings.HasSuffix(base, "~"), strings.HasPrefix(base, "~$"), strings.HasPrefix(base, "#") && strings.HasSuffix(base, "#"):
		return false
	}
	lower := strings.ToLower(base)
	return !strings.HasSuffix(lower, ".lock") && lower != "lock" && !strings.HasSuffix(lower, ".gatehouse-tmp") &&
		!(strings.EqualFold(parts[0], "chat") && strings.Contains(lower, ".db"))
}

// EnterDir reports whether files in the directory name, in the directory above, may be
// synced.
func EnterDir(above []string, name string) bool {
	if len(name) > MaxName || strings.Trim(name, ". ") == "" {
		return false
	}
	switch name {
	case ".agents":
		return len(above) > 0 && above[len(above)-1] == "Daily"
	case ".activity":
		return true
	}
	return !strings.HasPrefix(name, ".") && !strings.EqualFold(name, "node_modules")
}

// ConflictName returns the n-th name of what a device sent for name and could not be
// merged.
func ConflictName(name, device string, at time.Time, n int) string {
	dir, base := path.Split(name)
	ext := path.Ext(base)
	if len(ext) > 20 || ext == base {
		ext = ""
	}
	mark := " (conflict " + device + " " + at.UTC().Format(time.DateOnly)
	if n > 1 {
		mark += " " + strconv.Itoa(n)
	}
	mark += ")"
	stem := strings.TrimSuffix(base, ext)
	for len(stem)+len(mark)+len(ext) > MaxName {
		_, size := utf8.DecodeLastRuneInString(stem)
		stem = stem[:len(stem)-size]
	}
	return dir + stem + mark + ext
}

// Device returns the name of a device as conflicts show it.
func Device(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_' || r == '.' || r == ' ' {
			return r
		}
		return '-'
	}, core.CutRunes(strings.ToValidUTF8(name, ""), 40))
	if name = strings.Trim(name, " ."); name == "" {
		return "device"
	}
	return name
}
