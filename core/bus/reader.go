package bus

import (
	"context"
	"slices"
	"sync"
)

// idleRoom is the room, in events, that a reader with nothing to read may hold.
const idleRoom = 32

// A reader is where a stream leaves events for one who reads them. Most
// readers wait most of the time, so room is made as it is needed.
type reader struct {
	wake chan struct{} // holds one token when there may be something new

	mu    sync.Mutex
	queue []Entry // from head on: not yet read, at most readerBuffer
	head  int
	cut   bool
}

func newReader() *reader { return &reader{wake: make(chan struct{}, 1)} }

// push leaves e, or cuts off a reader that is too far behind and reports false.
// It never blocks.
func (r *reader) push(e Entry) bool {
	r.mu.Lock()
	ok := !r.cut && len(r.queue)-r.head < readerBuffer
	if ok {
		if len(r.queue) == cap(r.queue) && r.head > 0 { // what was read makes room
			r.queue, r.head = slices.Delete(r.queue, 0, r.head), 0
		}
		r.queue = append(r.queue, e)
	} else {
		r.cut = true
	}
	r.mu.Unlock()
	r.ring()
	return ok
}

// end cuts the reader off after what it was left.
func (r *reader) end() {
	r.mu.Lock()
	r.cut = true
	r.mu.Unlock()
	r.ring()
}

func (r *reader) ring() {
	select {
	case r.wake <- struct{}{}:
	default: // it is to look anyway
	}
}

// next waits for an event. ok is false when ctx has ended; the error is
// ErrLagged when the reader was cut off and has read what it was left.
func (r *reader) next(ctx context.Context) (e Entry, ok bool, err error) {
	for {
		if ctx.Err() != nil {
			return Entry{}, false, nil
		}
		e, ok, cut := r.pop()
		if ok {
			return e, true, nil
		}
		if cut {
			return Entry{}, false, ErrLagged
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		}
	}
}

func (r *reader) pop() (e Entry, ok, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.head == len(r.queue) {
		return Entry{}, false, r.cut
	}
	e = r.queue[r.head]
	r.queue[r.head] = Entry{}
	if r.head++; r.head == len(r.queue) {
		if r.queue, r.head = r.queue[:0], 0; cap(r.queue) > idleRoom {
			r.queue = nil
		}
	}
	return e, true, r.cut
}
