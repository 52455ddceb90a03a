// Package crawl brings the documents of the vault into the index, and keeps them up to
// date while others change them.
package crawl

import (
	"context"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/core"
	"gatehouse/core/index/document"
)

// A Library keeps what is indexed.
type Library interface {
	// Files returns what is known, in the order of the paths' bytes, after a path.
	Files(ctx context.Context, after string, limit int) ([]document.File, error)
	// Put replaces all that is indexed of a document.
	Put(ctx context.Context, d document.Document) error
	// Mark notes a change of anything but the content.
	Mark(ctx context.Context, f document.File) error
	// Remove deletes documents.
	Remove(ctx context.Context, paths []string) error
}

// A Journal knows which files are of journals, and what is in them.
type Journal interface {
	// IsDay reports whether the file at name is of a journal.
	IsDay(name string) bool
	// Parts returns the entries of such a file in their order, and texts outside of them.
	Parts(name string, data []byte) []Part
}

// A Part is an entry of a journal, or with ID "" a text of its file that is none.
type Part struct {
	ID    string // content id
	Title string
	Text  string // Markdown
	Line  int    // of the file, where Text begins
	At    time.Time
}

// Options for New. Files, Path, Library, MayRead, Open, Clock and Log are needed.
type Options struct {
	Files    fs.FS  // the vault, without links
	Path     string // of the vault, to watch its directories
	Library  Library
	MayRead  func(name string) bool // whether a file is indexed at all: the deny list and .parachuteignore
	Rules    string                 // a file in the vault of which MayRead depends; "": none
	Forget   func()                 // drops what MayRead remembers; called before each pass over the whole vault; may be nil
	Open     func(name string) bool // whether guests may read it
	PDF      func(ctx context.Context, data []byte) (text string, read, pages int, err error)
	Journal  Journal     // nil: no file is one of a journal
	MaxBytes int64       // of the files that are indexed; 0: no limit
	Busy     func() bool // messages are being answered: the crawler waits a little; may be nil
	Clock    core.Clock
	Log      *slog.Logger
	Registry prometheus.Registerer // may be nil
}

// Timing.
const (
	Anyway    = 10 * time.Minute       // between passes over the whole vault
	settle    = 200 * time.Millisecond // without a change, before changes are read
	unsettled = 2 * time.Second        // at most, when changes do not end
	giveWay   = 50 * time.Millisecond  // a step of waiting for messages
	maxWays   = 20                     // steps for one document, so that it always goes on
)

// A Status is what the crawler does and has done.
type Status struct {
	Running bool
	Seen    int           // files of the pass that runs, or of the last over the whole vault
	Indexed int           // of them with passages
	Faults  int           // of them without, see document.Store.Faults
	Ended   time.Time     // of the last pass over the whole vault; zero: none yet
	Took    time.Duration // of it
	Err     string        // why it was not finished; "" if it was
}

// A Crawler is run by one goroutine; Pass, Status and Kick may be called by any.
type Crawler struct {
	o       Options
	kick    chan struct{} // one request at most
	metrics metrics
	told    map[string]bool // directories whose error was logged, at most maxTold
	bytes   int64           // indexed, as the last pass over the whole vault found, and changes since

	passes sync.Mutex // held by the one that runs

	// What the last finished pass over the whole vault has counted; for the one that holds passes.
	indexed, faults int

	mu     sync.Mutex
	status Status
	asked  int // how often Kick was called
	met    int // of those, before the last whole pass that reached its end
	ended  bool
}

// New returns a crawler that has not begun.
func New(o Options) *Crawler {
	return &Crawler{o: o, kick: make(chan struct{}, 1), metrics: newMetrics(o.Registry, o.Clock.Now()), told: map[string]bool{}}
}

// Status returns what goes on.
func (c *Crawler) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *Crawler) set(change func(s *Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

// Current reports whether a pass over the whole vault has reached its end since Kick was
// last called, and the last one has.
func (c *Crawler) Current() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended && c.met == c.asked
}

// Kick has the whole vault read again soon, as settings have changed.
func (c *Crawler) Kick() {
	c.mu.Lock()
	c.asked++
	c.mu.Unlock()
	select {
	case c.kick <- struct{}{}:
	default: // it is asked already
	}
}

// Pass brings the index up to date with the whole vault. Files that did not change, by
// size and time, are not read. When it ends early, with ctx or an error, the next pass
// goes on: what was done is done. A directory that cannot be read keeps what is indexed
// of it, and so does a vault that is suddenly empty.
func (c *Crawler) Pass(ctx context.Context) error { return c.pass(ctx, "", nil) }

// pass is Pass for the files below a directory, "" for the whole vault. seen is called
// for each directory.
func (c *Crawler) pass(ctx context.Context, below string, seen func(dir string)) error {
	c.passes.Lock()
	defer c.passes.Unlock()
	began := c.o.Clock.Now()
	p := &pass{c: c, below: below, seen: seen, log: c.o.Log, whole: below == ""}
	c.mu.Lock()
	asked := c.asked
	c.mu.Unlock()
	if p.whole && c.o.Forget != nil {
		c.o.Forget()
	}
	if p.whole {
		c.set(func(s *Status) { s.Running, s.Seen, s.Indexed, s.Faults = true, 0, 0, 0 })
	}
	err := p.run(ctx)
	if p.whole {
		now := c.o.Clock.Now()
		if c.bytes = max(c.bytes, p.bytes); err == nil {
			c.bytes = p.bytes
		}
		c.set(func(s *Status) {
			s.Running, s.Seen, s.Indexed, s.Faults = false, p.files, p.indexed, p.faults
			s.Ended, s.Took, s.Err = now, now.Sub(began), ""
			if c.ended = err == nil; c.ended {
				c.met = asked
			}
			if err != nil {
				s.Err = err.Error()
			}
		})
		if err == nil {
			c.indexed, c.faults = p.indexed, p.faults
			c.metrics.counted(c.indexed, c.faults)
			c.metrics.passed(now, now.Sub(began))
		}
	}
	return err
}
