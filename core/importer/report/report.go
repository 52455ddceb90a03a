// Package report describes what an import has done so far and in the end.
package report

import "time"

// MaxFaults bounds the faults of a Report; the entries have all of them.
const MaxFaults = 500

// A Report is what an import has done.
type Report struct {
	Name      string    `json:"name"`   // of the file or directory
	Format    string    `json:"format"` // what it is, for users; "" until it is known
	DryRun    bool      `json:"dry_run"`
	Stopped   bool      `json:"stopped"` // before its end; the same import again goes on
	Read      int64     `json:"bytes_read"`
	Size      int64     `json:"bytes"` // to read, approximately
	Added     int       `json:"added"`
	Updated   int       `json:"updated"`
	Unchanged int       `json:"unchanged"`
	Continued int       `json:"continued"` // continued here, and so left as they are
	Deleted   int       `json:"deleted"`   // deleted here, and so left out
	Empty     int       `json:"empty"`     // nothing was written in them, and so left out
	Failed    int       `json:"failed"`    // see Faults
	Messages  int       `json:"messages"`  // of what was added and updated
	Missing   int       `json:"notes"`     // what the entries note: files that the export does not hold, texts that were cut
	Faults    []Entry   `json:"faults"`    // the first 500
	Began     time.Time `json:"began_at"`
	Ended     time.Time `json:"ended_at,omitzero"`
}

// Seen returns how many conversations were read.
func (r *Report) Seen() int {
	return r.Added + r.Updated + r.Unchanged + r.Continued + r.Deleted + r.Empty + r.Failed
}

// An Entry is what became of one conversation.
type Entry struct {
	File    string   `json:"file"`
	Index   int      `json:"index,omitempty"` // in its file, from 1
	Title   string   `json:"title,omitempty"` // hostile text
	Session string   `json:"session_id,omitempty"`
	Outcome string   `json:"outcome"` // added, updated, unchanged, continued, deleted, empty, failed
	Reason  string   `json:"reason,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// A State is how an import is.
type State struct {
	ID      string `json:"id"`
	State   string `json:"state"` // running, done, failed
	Error   string `json:"error,omitempty"`
	Report  Report `json:"report"`
	HasFile bool   `json:"-"` // its entries can be downloaded
}

// States.
const (
	Running = "running"
	Done    = "done"
	Failed  = "failed"
)

// An Order is what is to be imported, and how.
type Order struct {
	Path    string // on the gateway's machine; "" for an upload
	DryRun  bool
	Archive bool
	Again   bool // what was deleted here, too
}
