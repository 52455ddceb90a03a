package find

import (
	"net/http"
	"slices"
	"time"

	"gatehouse/admin/page"
	"gatehouse/core"
)

// MaxFaults are the files without text in the index that are listed.
const MaxFaults = 50

// statusEvery is how often the page with the state of the index refetches itself, in
// seconds.
const statusEvery = 10

// A Status is the state of the index. Err, ModelErr and the texts of faults are hostile.
type Status struct {
	Documents int64     // that have text in the index
	Without   int64     // files that have none
	Faults    []Fault   // the first of those by path, at most MaxFaults
	Running   bool      // the whole vault is being compared with the index
	Last      time.Time // when that was done last; zero: not yet
	Err       string    // why it was not finished; "" if it was

	Conversations int64 // of which something is yet to be indexed

	Model         string // that embeds the passages; "": documents are found by their words alone
	Embedded, All int64  // passages
	ModelErr      string // why it does not go on; "" while it does
}

// A Fault is a file without text in the index.
type Fault struct{ Path, Reason string }

// Count returns the number of documents as text.
func (s Status) Count() string { return page.Grouped(s.Documents) }

// ToIndex returns how many conversations are to be indexed as text; "" for none.
func (s Status) ToIndex() string {
	if s.Conversations == 0 {
		return ""
	}
	return page.Grouped(s.Conversations)
}

// Passages returns how many passages are embedded as text.
func (s Status) Passages() string {
	if s.Embedded == s.All {
		return page.Grouped(s.All)
	}
	return page.Grouped(s.Embedded) + " of " + page.Grouped(s.All)
}

// More returns how many files without text are not listed.
func (s Status) More() string {
	if n := s.Without - int64(len(s.Faults)); n > 0 {
		return page.Grouped(n)
	}
	return ""
}

// showsIndex reports whether there is a state of the index, and the account of r sees it.
func (p *Pages) showsIndex(r *http.Request) bool {
	who, _ := page.Principal(r)
	return p.o.Index != nil && who.Trust >= core.Vault
}

// status returns the state of the index, without files that the account of r may not read;
// nil where none is known, and for viewers, who may read few files: the numbers and errors
// are about all.
func (p *Pages) status(r *http.Request) *page.Part[Status] {
	if !p.showsIndex(r) {
		return nil
	}
	who, _ := page.Principal(r)
	part := page.Load(r.Context(), p.frame, "The state of the search index", p.o.Index.Status)
	s := &part.Value
	all := len(s.Faults)
	s.Faults = slices.DeleteFunc(slices.Clone(s.Faults), func(f Fault) bool {
		return p.o.MayRead == nil || !p.o.MayRead(who.Trust, who.User, f.Path)
	})
	s.Without -= int64(all - len(s.Faults))
	return &part
}
