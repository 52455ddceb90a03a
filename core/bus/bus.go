// Package bus carries live events in process: what a run says while it runs,
// to SSE readers, previews and the panel, and a doorbell per topic.
//
// A broadcast never waits for a reader. A run keeps its newest events in
// memory until they are stored; a reader that joins late gets the stored ones
// through a function, then the kept ones, then the live ones, without a gap or
// a repeat. A reader that falls behind is cut off with ErrLagged and comes
// back by the id of its last event.
package bus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"gatehouse/core"
)

// Bounds.
const (
	readerBuffer = 1024    // events a reader may be behind
	keptEvents   = 4096    // events of one run in memory
	keptBytes    = 1 << 20 // and their size
	lingers      = 256     // finished runs still in memory for readers that join late
	lingerBytes  = 8 << 20 // and the size of their events in all
)

// ErrLagged ends a reader that fell behind: it may come back with the id of
// the last event it got.
var ErrLagged = errors.New("the reader fell behind")

// An Entry is one event of one run.
type Entry struct {
	ID      string // <run>.<attempt>:<n>, n from 1
	Session string
	Run     string
	Attempt int
	N       int
	Type    string
	Data    []byte     // JSON, one line
	Event   core.Event // nil unless it is live
}

// Info is what is known of a run in progress.
type Info struct {
	Run, Session, Bot, Chat string
	User                    int64
	Attempt                 int
	Started                 time.Time
}

// A Load reads stored events of a run's attempt after number n, in order.
type Load func(ctx context.Context, run string, attempt, n int) ([]Entry, error)

// A Latest says which attempt of a run is the newest stored; 0 for none.
type Latest func(ctx context.Context, run string) (int, error)

// A Bus is the node's one.
type Bus struct {
	load   Load
	latest Latest

	mu      sync.Mutex
	runs    map[string]*Stream          // by run: active ones (bounded by the queue's slots) and up to lingers finished
	done    []string                    // finished runs in runs, oldest first
	waiting map[string]map[*reader]bool // by session: readers waiting for its next run; bounded by the streams' limit
	rings   map[chan string]map[string]bool
}

// New makes a Bus. load and latest may be nil where nothing is stored.
func New(load Load, latest Latest) *Bus {
	if load == nil {
		load = func(context.Context, string, int, int) ([]Entry, error) { return nil, nil }
	}
	if latest == nil {
		latest = func(context.Context, string) (int, error) { return 0, nil }
	}
	return &Bus{load: load, latest: latest, runs: map[string]*Stream{}, waiting: map[string]map[*reader]bool{}, rings: map[chan string]map[string]bool{}}
}

// A Stream is the writing end of one run's attempt.
type Stream struct {
	bus  *Bus
	info Info

	mu      sync.Mutex
	n       int
	kept    []kept // the newest; older ones are stored
	bytes   int
	stored  int // events up to this number are in storage
	readers map[*reader]bool
	closed  bool
}

// A kept event is an Entry without what the Stream knows already: words come
// one by one, and finished runs linger.
type kept struct {
	n    int
	kind string
	data []byte
}

// usualEvents is how many events a short answer has: room for them is made once.
const usualEvents = 32

// entry is k with the Stream's part.
func (s *Stream) entry(k kept) Entry {
	return Entry{ID: EventID(s.info.Run, s.info.Attempt, k.n), Session: s.info.Session, Run: s.info.Run,
		Attempt: s.info.Attempt, N: k.n, Type: k.kind, Data: k.data}
}

// entries are the kept events after number n.
func (s *Stream) entries(n int) []Entry {
	for i, k := range s.kept {
		if k.n > n {
			out := make([]Entry, 0, len(s.kept)-i)
			for _, k := range s.kept[i:] {
				out = append(out, s.entry(k))
			}
			return out
		}
	}
	return nil
}

type reader struct {
	ch  chan Entry // closed when cut off or ended
	cut bool       // under the Stream's mu, or the Bus's while waiting
}

// Begin opens the stream of a run's attempt. Readers of an earlier attempt
// that are still there go on with this one.
func (b *Bus) Begin(info Info) *Stream {
	s := &Stream{bus: b, info: info, readers: map[*reader]bool{}}
	b.mu.Lock()
	old := b.runs[info.Run]
	if b.runs[info.Run] = s; old != nil { // no longer one of the finished
		b.done = slices.DeleteFunc(b.done, func(run string) bool { return run == info.Run })
	}
	for r := range b.waiting[info.Session] {
		s.readers[r] = true
	}
	delete(b.waiting, info.Session)
	b.mu.Unlock()
	if old != nil {
		old.hand(s)
	}
	return s
}

// hand moves the readers of an attempt that ended without a terminal event.
func (s *Stream) hand(to *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	for r := range s.readers {
		to.readers[r] = true
	}
	s.readers, s.closed = map[*reader]bool{}, true
}

// Publish shows e to every reader and keeps it for late ones. It never blocks.
func (s *Stream) Publish(e core.Event) Entry {
	data, err := core.EncodeEvent(e)
	if err != nil { // an event type that JSON cannot hold is a bug of ours
		data, _ = core.EncodeEvent(core.Warning{Code: "internal", Message: "an event could not be shown"})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	k := kept{s.n, e.EventType(), data}
	if s.kept == nil {
		s.kept = make([]kept, 0, usualEvents)
	}
	s.kept = append(s.kept, k)
	s.bytes += len(data)
	for len(s.kept) > keptEvents || s.bytes > keptBytes && len(s.kept) > 1 {
		s.bytes -= len(s.kept[0].data)
		s.kept = s.kept[1:]
	}
	entry := s.entry(k)
	entry.Event = e
	for r := range s.readers {
		select {
		case r.ch <- entry:
		default:
			r.cut = true
			close(r.ch)
			delete(s.readers, r)
		}
	}
	return entry
}

// Unstored is what has been published after the last Stored call.
func (s *Stream) Unstored() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries(s.stored)
}

// Stored says that events up to n are in storage.
func (s *Stream) Stored(n int) {
	s.mu.Lock()
	s.stored = max(s.stored, n)
	s.mu.Unlock()
}

// WasStored reports whether any event of the run is in storage.
func (s *Stream) WasStored() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored > 0
}

// Next is the number that the next event will have.
func (s *Stream) Next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n + 1
}

// Info is what Begin was told.
func (s *Stream) Info() Info { return s.info }

// End closes the run for good: readers of the session go on with its next run,
// readers of this run end. The run stays readable for a while.
func (s *Stream) End() {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(s)
	if b.runs[s.info.Run] != s {
		return
	}
	b.done = append(b.done, s.info.Run)
	bytes := 0
	for i := len(b.done) - 1; i >= 0; i-- { // the newest stay
		bytes += b.runs[b.done[i]].size()
		if kept := len(b.done) - i; kept > lingers || kept > 1 && bytes > lingerBytes {
			for _, run := range b.done[:i+1] {
				delete(b.runs, run)
			}
			b.done = b.done[i+1:]
			return
		}
	}
}

func (s *Stream) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Leave closes an attempt that did not end (given back, failed): the run is no
// longer active; its readers wait for the next attempt.
func (s *Stream) Leave() {
	b := s.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(s)
	if b.runs[s.info.Run] == s {
		delete(b.runs, s.info.Run)
	}
}

// release closes s and has its readers wait for the session's next run; b.mu
// is held. The next run may have begun already: the transaction that settles
// one turn claims the next, before the first one's end is told. Its readers
// then get what it has said so far.
func (b *Bus) release(s *Stream) {
	s.mu.Lock()
	readers := s.readers
	s.readers, s.closed = map[*reader]bool{}, true
	s.mu.Unlock()
	if len(readers) == 0 {
		return
	}
	for _, next := range b.runs {
		if next != s && next.info.Session == s.info.Session && next.adopt(readers) {
			return
		}
	}
	for r := range readers {
		b.wait(s.info.Session, r)
	}
}

// adopt takes readers over, with all that is kept; false when s is closed. One
// that cannot hold it is cut off, as by Publish, and comes back by id.
func (s *Stream) adopt(readers map[*reader]bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
next:
	for r := range readers {
		for _, k := range s.kept {
			select {
			case r.ch <- s.entry(k):
			default:
				r.cut = true
				close(r.ch)
				continue next
			}
		}
		s.readers[r] = true
	}
	return true
}

// wait notes a reader of a session without a run; b.mu is held.
func (b *Bus) wait(session string, r *reader) {
	if b.waiting[session] == nil {
		b.waiting[session] = map[*reader]bool{}
	}
	b.waiting[session][r] = true
}

// CutAll ends every reader with ErrLagged (a stop): they come back by id.
func (b *Bus) CutAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for session, rs := range b.waiting {
		for r := range rs {
			r.cut = true
			close(r.ch)
		}
		delete(b.waiting, session)
	}
	for _, s := range b.runs {
		s.mu.Lock()
		for r := range s.readers {
			r.cut = true
			close(r.ch)
			delete(s.readers, r)
		}
		s.mu.Unlock()
	}
}

// Active lists the runs in progress.
func (b *Bus) Active() []Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Info
	for _, s := range b.runs {
		s.mu.Lock()
		if !s.closed {
			out = append(out, s.info)
		}
		s.mu.Unlock()
	}
	return out
}
