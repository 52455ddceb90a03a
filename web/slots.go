package web

import "sync"

// Slots bound how many requests each caller holds open.
type Slots struct {
	most int

	mu   sync.Mutex
	open map[string]int // caller → requests, never 0; bounded by the open connections
}

// NewSlots returns slots with a limit for each caller.
func NewSlots(most int) *Slots { return &Slots{most: most, open: map[string]int{}} }

// Take counts one more request of caller, to be released once when it ends; ok
// is false when the caller has reached the limit.
func (s *Slots) Take(caller string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[caller] >= s.most {
		return nil, false
	}
	s.open[caller]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open[caller]--; s.open[caller] <= 0 {
			delete(s.open, caller)
		}
	}, true
}

// Most returns the limit of each caller.
func (s *Slots) Most() int { return s.most }

// Open returns how many are open now, of all callers.
func (s *Slots) Open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, held := range s.open {
		n += held
	}
	return n
}
