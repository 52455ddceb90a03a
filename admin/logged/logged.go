// Package logged shows the log of the owner's conversations on the overview.
package logged

import (
	"context"
	"strconv"
	"time"

	"gatehouse/admin/page"
)

// An Item is one exchange.
type Item struct {
	Session, Title, Summary string
	Number                  int // in its conversation
	At                      time.Time
	Fault                   string // why it is in no file; "" if it is, or will be
}

// A Fault is a file that cannot be written.
type Fault struct {
	File, Text string
	Since      time.Time
}

// A Log is the log of the owner's conversations in the vault.
type Log interface {
	// Recent returns the newest exchanges, newest first.
	Recent(ctx context.Context, limit int) ([]Item, error)
	// Unread returns exchanges that cannot be read, newest first.
	Unread(ctx context.Context, limit int) ([]Item, error)
	Faults() []Fault // files that cannot be written
}

// A View is the log as the overview shows it.
type View struct {
	frame *page.Frame
	log   Log
}

// New returns the view of a log; nil: nothing is shown.
func New(f *page.Frame, log Log) *View { return &View{f, log} }

// Lines of the overview.
const (
	recentShown = 6
	faultsShown = 5
)

// Newest returns the owner's newest exchanges, for the overview.
func (v *View) Newest(ctx context.Context) page.Part[[]Item] {
	if v.log == nil {
		return page.Part[[]Item]{}
	}
	return page.Load(ctx, v.frame, "The log of your conversations", func(ctx context.Context) ([]Item, error) {
		return v.log.Recent(ctx, recentShown)
	})
}

// Answer reports what the log of conversations cannot do, for the overview; false
// where nothing fails.
func (v *View) Answer(ctx context.Context) (a page.Answer, ok bool) {
	if v.log == nil {
		return a, false
	}
	a = page.Answer{Key: "log", Question: "Is your log of conversations complete?", Tone: "warn", Short: "the log of conversations has faults"}
	files := v.log.Faults()
	if len(files) > 0 {
		a.Answer = "It cannot be written in the vault. It is tried again every minute, and nothing is lost."
	} else {
		a.Answer = "Some exchanges are missing in it, because they could not be read."
	}
	for _, f := range page.Head(files, faultsShown) {
		a.Detail = append(a.Detail, page.Detail{Text: f.File, Reason: f.Text})
	}
	unread := page.Load(ctx, v.frame, "What is missing in the log of your conversations", func(ctx context.Context) ([]Item, error) {
		return v.log.Unread(ctx, faultsShown)
	})
	if a.Broken = unread.Broken; a.Broken != "" && len(files) == 0 {
		a.Short = "the log of conversations can’t be read"
	}
	for _, u := range unread.Value {
		a.Detail = append(a.Detail, page.Detail{Text: "Exchange " + strconv.Itoa(u.Number) + " of the conversation " + u.Session, Reason: u.Fault})
	}
	return a, len(a.Detail) > 0 || a.Broken != ""
}
