package bus

import (
	"sync"
	"time"

	"gatehouse/core"
)

// A Stream is the writing end of one run's attempt.
type Stream struct {
	bus   *Bus
	info  Info
	ended time.Time // End; under bus.mu

	mu      sync.Mutex
	n       int
	kept    []kept // the newest; older ones are stored
	bytes   int
	stored  int    // events up to this number are in storage
	owed    int    // bytes of the later ones
	offered bool   // some were taken to be stored
	ask     func() // Durable; nil: nothing is stored
	asked   bool   // since the last Stored
	full    chan struct{}
	last    []final // Seal: what Finish publishes; nothing else is published any more
	sealed  bool
	readers map[*reader]bool
	closed  bool
	gone    chan struct{} // AwaitEnd: closed with the stream; nil while no one waits
}

// A kept event is an Entry without what the Stream has: deltas are many, and
// finished runs stay for a while.
type kept struct {
	n    int
	kind string
	data []byte
}

// A final event is numbered before it is published.
type final struct {
	kept
	event core.Event
}

// usualEvents is how many events a short answer has: room for them is made once.
const usualEvents = 32

// entry returns k as an Entry.
func (s *Stream) entry(k kept) Entry {
	return Entry{Session: s.info.Session, Run: s.info.Run,
		Attempt: s.info.Attempt, N: k.n, Type: k.kind, Data: k.data}
}

// entries returns the kept events after number n.
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

// Durable makes the stream keep every event until Stored is called for it. ask is
// called, in Publish, when many wait for that; it must not block. A stream that is
// not durable keeps only the newest events.
func (s *Stream) Durable(ask func()) {
	s.mu.Lock()
	s.ask = ask
	s.mu.Unlock()
}

// Publish sends e to every reader and keeps it for late ones. It never blocks; the
// publisher of a durable stream waits for Full. After Seal, and after the end of
// the attempt, it does nothing.
func (s *Stream) Publish(e core.Event) Entry {
	data := encode(e)
	s.mu.Lock()
	if s.sealed || s.closed {
		s.mu.Unlock()
		return Entry{}
	}
	s.n++
	entry := s.publish(kept{s.n, e.EventType(), data}, e)
	ask := s.ask
	if s.asked || s.owed < keptBytes/2 && s.n-s.stored < keptEvents/2 {
		ask = nil
	}
	s.asked = s.asked || ask != nil
	s.mu.Unlock()
	if ask != nil {
		ask()
	}
	return entry
}

func encode(e core.Event) []byte {
	data, err := core.EncodeEvent(e)
	if err != nil { // a bug: an event type that JSON cannot encode
		data, _ = core.EncodeEvent(core.Warning{Code: "internal", Message: "an event could not be shown"})
	}
	return data
}

// publish keeps an event and sends it to the readers; s.mu is held.
func (s *Stream) publish(k kept, e core.Event) Entry {
	if s.kept == nil {
		s.kept = make([]kept, 0, usualEvents)
	}
	s.kept = append(s.kept, k)
	s.bytes += len(k.data)
	s.owed += len(k.data)
	s.trim()
	entry := s.entry(k)
	entry.Event = e
	for r := range s.readers {
		if !r.push(entry) {
			delete(s.readers, r)
		}
	}
	return entry
}

// trim drops the oldest events beyond the bounds, of a durable stream only
// those that are stored; s.mu is held.
func (s *Stream) trim() {
	for len(s.kept) > keptEvents || s.bytes > keptBytes && len(s.kept) > 1 {
		if s.ask != nil && s.kept[0].n > s.stored {
			return
		}
		s.bytes -= len(s.kept[0].data)
		s.kept[0] = kept{}
		s.kept = s.kept[1:]
	}
}

// Full returns nil while a durable stream has room, else a channel that is closed
// once there is room again: until then the run must wait. What is published before
// that is kept beyond the limit.
func (s *Stream) Full() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ask == nil || s.closed || !s.over() {
		return nil
	}
	if s.full == nil {
		s.full = make(chan struct{})
	}
	return s.full
}

// over reports whether more waits to be stored than may; s.mu is held.
func (s *Stream) over() bool { return s.owed > keptBytes || s.n-s.stored > keptEvents }

// Unstored returns what was published after the last call of Stored; nothing
// after Seal.
func (s *Stream) Unstored() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed || s.n == s.stored {
		return nil
	}
	s.offered = true
	return s.entries(s.stored)
}

// Stored notes that the events up to n are in storage.
func (s *Stream) Stored(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.kept) - 1; i >= 0 && s.kept[i].n > s.stored; i-- {
		if s.kept[i].n <= n {
			s.owed -= len(s.kept[i].data)
		}
	}
	s.stored, s.asked = max(s.stored, n), false
	s.trim()
	if s.full != nil && !s.over() {
		close(s.full)
		s.full = nil
	}
}

// Seal ends publishing and numbers the run's last events. begun reports whether
// some events are in storage or being stored, so that the caller must store Rest.
// A second Seal replaces the first.
func (s *Stream) Seal(last ...core.Event) (begun bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sealed, s.last = true, make([]final, len(last))
	for i, e := range last {
		s.last[i] = final{kept{s.n + 1 + i, e.EventType(), encode(e)}, e}
	}
	return s.offered
}

// Rest returns the events that are not in storage, with those of Seal.
func (s *Stream) Rest() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.entries(s.stored)
	for _, k := range s.last {
		rest = append(rest, s.entry(k.kept))
	}
	return rest
}

// Finish publishes the events of Seal and ends the stream as End does; stored
// states that they are in storage.
func (s *Stream) Finish(stored bool) {
	s.mu.Lock()
	for _, k := range s.last {
		s.n = k.n
		s.publish(k.kept, k.event)
	}
	n := s.n
	s.last = nil
	s.mu.Unlock()
	if stored {
		s.Stored(n)
	}
	s.End()
}

// Info returns the argument of Begin.
func (s *Stream) Info() Info { return s.info }

func (s *Stream) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
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
			if !r.push(s.entry(k)) {
				continue next
			}
		}
		s.readers[r] = true
	}
	return true
}
