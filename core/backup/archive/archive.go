// Package archive writes and reads the format of a backup: one tar file with gzip
// compression. It begins with its description; after every 10,000 entries and at
// the end it lists the entries, each file with its SHA-256. So a reader of a large
// backup needs little memory, and detects what is cut off, changed, added or
// missing.
//
//	about.json         About
//	database/…         files of the program's own
//	vault/…            the user's directory
//	sums/000001.json   []Entry: the entries since the last of these files
//	sums/total.json    Total; the last entry
//
// A backup may come from anywhere, so Read trusts nothing in it: it accepts only
// plain files, directories and symbolic links, with names below the archive's
// root, up to the caller's limit of bytes.
package archive

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/core"
)

// Format is the newest form that this program reads, and the one it writes.
const Format = 1

// Names in an archive.
const (
	aboutName = "about.json"
	sumsDir   = "sums/"
	totalName = sumsDir + "total.json"
	// Database and Vault begin the names of entries.
	Database = "database/"
	Vault    = "vault/"
)

// Bounds of what Read takes from an archive before it knows whether to believe it.
const (
	maxAbout   = 64 << 10
	perSums    = 10_000     // entries between two lists of sums
	maxSums    = 128 << 20  // bytes of one list
	maxName    = 4096       // bytes
	maxPart    = 255        // bytes of a part of a name
	maxEntries = 50_000_000 // of one archive
	maxRest    = 1 << 20    // bytes behind the end of the tar file
)

// An About describes an archive; it is the first entry.
type About struct {
	Format    int       `json:"format"`
	Program   string    `json:"program"` // the version that wrote it
	CreatedAt time.Time `json:"created_at"`
	Schema    int64     `json:"schema"` // number of the database's newest migration
}

// A Kind is what an entry is.
type Kind string

const (
	File   Kind = "file"
	Folder Kind = "folder"
	Link   Kind = "link" // a symbolic link
)

// An Entry is one file, directory or link.
type Entry struct {
	Name   string      `json:"name"` // with slashes, beginning with Database or Vault
	Kind   Kind        `json:"kind"`
	Size   int64       `json:"size,omitempty"` // of a file
	Mode   fs.FileMode `json:"mode,omitempty"` // the permission bits
	Time   time.Time   `json:"time,omitzero"`  // of the last change, in seconds
	Target string      `json:"target,omitempty"`
	SHA256 string      `json:"sha256,omitempty"` // of a file; Read's callback gets it without
}

// A Total is what an archive holds; it is the last entry.
type Total struct {
	Files   int64  `json:"files"`
	Folders int64  `json:"folders"`
	Links   int64  `json:"links"`
	Bytes   int64  `json:"bytes"`
	ID      string `json:"id"` // SHA-256 of all lists of sums: two archives with one id hold the same
}

func (t *Total) add(e *Entry) {
	switch e.Kind {
	case File:
		t.Files++
		t.Bytes += e.Size
	case Folder:
		t.Folders++
	case Link:
		t.Links++
	}
}

// Unstorable returns why no archive can hold a file, directory or link of that name
// in the vault, for users; "" if one can. Lists are JSON, which is UTF-8; a name
// with a backslash is like any other.
func Unstorable(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "its name is not UTF-8"
	case len(Vault)+len(name) > maxName:
		return fmt.Sprintf("its path is longer than %d bytes", maxName-len(Vault))
	case len(path.Base(name)) > maxPart:
		return fmt.Sprintf("its name is longer than %d bytes", maxPart)
	}
	return ""
}

// checkName refuses names that are not plainly inside the archive's directories.
func checkName(name string) error {
	rest, ok := strings.CutPrefix(name, Vault)
	if !ok {
		rest, ok = strings.CutPrefix(name, Database)
	}
	if !ok || len(name) > maxName || !fs.ValidPath(rest) || rest == "." || strings.ContainsRune(rest, 0) {
		return core.Errorf(core.Invalid, "the archive holds an entry with a name that is not allowed: %s", core.CutRunes(core.CleanName(name), 100))
	}
	for part := range strings.SplitSeq(rest, "/") {
		if len(part) > maxPart {
			return core.Errorf(core.Invalid, "the archive holds an entry with a name that is too long: %s", core.CutRunes(core.CleanName(name), 100))
		}
	}
	return nil
}

// Inside reports whether the target of a link at name (in the archive) is a
// relative path that stays in the restored directory.
func Inside(name, target string) bool {
	if target == "" || path.IsAbs(target) || strings.ContainsRune(target, 0) {
		return false
	}
	to := path.Join(path.Dir(strings.TrimPrefix(name, Vault)), target)
	return fs.ValidPath(to) && len(target) <= maxName
}
