package backup

import (
	"io/fs"
	"strings"
	"time"

	"gatehouse/core/backup/archive"
)

// A Report describes a backup.
type Report struct {
	File      string    `json:"file"`
	Size      int64     `json:"size"` // bytes of the archive
	CreatedAt time.Time `json:"created_at"`
	Schema    int64     `json:"schema"` // version of the database
	archive.Total
	Left []string `json:"left_out"` // what is in the vault and not in the backup, with the reason; at most maxLeftOut
	// Missed is what should be in the backup and cannot be, with the reason; at most
	// maxLeftOut of the Misses.
	Missed []string `json:"missed"`
	Misses int      `json:"misses"`
	// KeyFile is the key file of encrypted columns, which no backup has; "" where there is none yet.
	KeyFile string `json:"content_key_file,omitempty"`
}

// KeyNote returns what the operator has to know of the key file; "" where there is none.
func (r *Report) KeyNote() string {
	if r.KeyFile == "" {
		return ""
	}
	return "Not in it: the key file " + r.KeyFile + ". A restore on another machine needs it to read the encrypted texts: keep a copy of it, elsewhere than the backup."
}

// maxLeftOut bounds what a report names.
const maxLeftOut = 100

// left adds a name to the report of what is left out.
func (b *making) left(name, why string) {
	if b.listing && (why != "" || strings.HasSuffix(name, ".bak")) && len(b.kept) <= maxKept {
		b.kept = append(b.kept, name)
	}
	if why != "" && len(b.report.Left) < maxLeftOut {
		b.report.Left = append(b.report.Left, name+" ("+why+")")
	}
}

// miss leaves out what no archive can hold, with everything in it.
func (b *making) miss(name, why string, d fs.DirEntry) error {
	b.report.Misses++
	if len(b.report.Missed) < maxLeftOut {
		b.report.Missed = append(b.report.Missed, shownName(name)+" ("+why+")")
	}
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}
