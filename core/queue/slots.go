package queue

import "sync"

// slots bounds the turns that run on this node, and knows which lanes they are
// of. It is safe for concurrent use.
type slots struct {
	mu       sync.Mutex
	open     bool             // lanes are claimed
	free     int              // for runs
	controls int              // for control turns
	running  map[string]*Turn // lane → running turn; bounded by the slots
	turns    sync.WaitGroup
}

// setOpen allows or ends claims.
func (s *slots) setOpen(open bool) {
	s.mu.Lock()
	s.open = open
	s.mu.Unlock()
}

// isOpen reports whether lanes may be claimed.
func (s *slots) isOpen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// of returns the counter of free slots. The caller holds s.mu.
func (s *slots) of(control bool) *int {
	if control {
		return &s.controls
	}
	return &s.free
}

// hasRoom reports whether a turn of a kind may be claimed now.
func (s *slots) hasRoom(control bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open && *s.of(control) > 0
}

// reserve takes a slot for a turn, which counts until done is called. It returns
// false when none is free.
func (s *slots) reserve(control bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.of(control); s.open && *n > 0 {
		*n--
		s.turns.Add(1) // while open is set, so that a stop waits for it
		return true
	}
	return false
}

// cancel returns a reserved slot for which no turn was found.
func (s *slots) cancel(control bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.of(control)++
	s.turns.Done()
}

// cancelTurn returns the slot of a claimed turn after its transaction has failed.
func (s *slots) cancelTurn(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.canceled = true
	if s.running[t.Lane] == t {
		if delete(s.running, t.Lane); t.before != nil && !t.before.canceled { // it is not settled after all
			s.running[t.Lane] = t.before
		}
	}
	*s.of(t.Control)++
	s.turns.Done()
}

// begin records that a turn of a lane runs.
func (s *slots) begin(t *Turn) {
	s.mu.Lock()
	t.before, s.running[t.Lane] = s.running[t.Lane], t
	s.mu.Unlock()
}

// leave frees the slot of t, once. It is called before the transaction that
// settles t, so that this transaction may claim the next lane into the slot.
func (s *slots) leave(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.left {
		t.left = true
		*s.of(t.Control)++
	}
}

// end removes t from the running lanes, unless the lane was claimed again.
func (s *slots) end(t *Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[t.Lane] == t {
		delete(s.running, t.Lane)
	}
	t.before = nil
}

// shift adds n, 1 or -1, to the free slots while a turn waits for a user.
func (s *slots) shift(t *Turn, n int) {
	s.mu.Lock()
	*s.of(t.Control) += n
	s.mu.Unlock()
}

// runs reports whether a turn of the lane runs.
func (s *slots) runs(lane string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.running[lane]
	return ok
}

// count returns how many turns run.
func (s *slots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}

// Park frees the slot of t while it waits for a user; Unpark takes one back at
// once, even if none is free. Call Unpark once after each Park, before the turn
// is settled.
func (q *Queue) Park(t *Turn) {
	q.slots.shift(t, 1)
	q.ring()
}

// Unpark takes back the slot that Park freed.
func (q *Queue) Unpark(t *Turn) { q.slots.shift(t, -1) }

// Running returns how many turns run on this node.
func (q *Queue) Running() int { return q.slots.count() }
