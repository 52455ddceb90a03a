// Package bus delivers live events within the process: the events of a run to SSE
// readers, previews and the panel, and change notices by topic.
//
// A broadcast never waits for a reader. A run keeps its newest events in memory
// until they are stored; a reader that joins late gets the stored ones through a
// function, then the kept ones, then the live ones, without a gap or a repeat. A
// reader that falls behind gets ErrLagged and may continue from its last event.
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

// JustEnded is how long after its end a run is still delivered to a new reader of
// its session (Follow.JustEnded), if it is in memory.
const JustEnded = time.Minute

// ErrLagged ends a reader that fell behind: it may come back with the id of
// the last event it got.
var ErrLagged = errors.New("the reader fell behind")

// An Entry is one event of one run.
type Entry struct {
	Session string
	Run     string
	Attempt int
	N       int // from 1
	Type    string
	Data    []byte     // JSON, one line
	Event   core.Event // nil unless it is live
}

// ID returns the event's id in SSE, as EventID makes it.
func (e *Entry) ID() string { return EventID(e.Run, e.Attempt, e.N) }

// Info is what is known of a run in progress.
type Info struct {
	Run, Session, Bot, Chat string
	Lane                    string // of the chat's messages, also after the chat got another id
	User                    int64
	Attempt                 int
	Started                 time.Time
}

// A Load reads stored events of a run's attempt after number n, in order.
type Load func(ctx context.Context, run string, attempt, n int) ([]Entry, error)

// A Latest returns the newest attempt of a run with stored events; 0 for none. gone is then the
// attempt of a run that has ended and has no stored events any more, else 0.
type Latest func(ctx context.Context, run string) (stored, gone int, err error)

// A Bus is the node's one.
type Bus struct {
	Clock core.Clock // New sets the system's

	load   Load
	latest Latest

	mu      sync.Mutex
	runs    map[string]*Stream          // by run: active ones (bounded by the queue's slots) and up to lingers finished
	done    []string                    // finished runs in runs, oldest first
	waiting map[string]map[*reader]bool // by session: readers waiting for its next run; bounded by the streams' limit
	rings   map[chan core.Topic]map[core.Topic]bool
}

// New makes a Bus. load and latest may be nil where nothing is stored.
func New(load Load, latest Latest) *Bus {
	if load == nil {
		load = func(context.Context, string, int, int) ([]Entry, error) { return nil, nil }
	}
	if latest == nil {
		latest = func(context.Context, string) (int, int, error) { return 0, 0, nil }
	}
	return &Bus{Clock: core.System{}, load: load, latest: latest, runs: map[string]*Stream{}, waiting: map[string]map[*reader]bool{}, rings: map[chan core.Topic]map[core.Topic]bool{}}
}

// Begin opens the stream of a run's attempt. Readers of an earlier attempt
// that are still there go on with this one.
func (b *Bus) Begin(info Info) *Stream {
	s := &Stream{bus: b, info: info, readers: map[*reader]bool{}}
	b.mu.Lock()
	old := b.runs[info.Run]
	if b.runs[info.Run] = s; old != nil { // not one of the finished any more
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
	b.Ring(core.TopicChats)
	return s
}

// End closes the run for good: readers of the session go on with its next run,
// readers of this run end. The run stays readable for a while.
func (s *Stream) End() {
	b := s.bus
	defer b.Ring(core.TopicChats) // after the lock is released
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(s)
	if b.runs[s.info.Run] != s {
		return
	}
	s.ended = b.Clock.Now()
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

// Leave closes an attempt that did not end (given back, failed): the run is no
// longer active; its readers wait for the next attempt.
func (s *Stream) Leave() {
	b := s.bus
	defer b.Ring(core.TopicChats) // after the lock is released
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(s)
	if b.runs[s.info.Run] == s {
		delete(b.runs, s.info.Run)
	}
}

// release closes s; its readers wait for the session's next run. b.mu is held.
// The next run may have begun: the transaction that settles one turn claims the
// next, before the first one's end is published. Its readers then get the events
// so far.
func (b *Bus) release(s *Stream) {
	s.mu.Lock()
	readers := s.readers
	s.readers, s.closed = map[*reader]bool{}, true
	if s.gone != nil {
		close(s.gone)
		s.gone = nil
	}
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
			r.end()
		}
		delete(b.waiting, session)
	}
	for _, s := range b.runs {
		s.mu.Lock()
		for r := range s.readers {
			r.end()
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
