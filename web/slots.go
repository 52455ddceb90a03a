package web

import "sync"

// Slots bound how many requests each caller holds open.
type Slots struct {
	most int

	mu   sync.Mutex
	open map[string]int // caller → requests, never 0; as many as there are open connections
}

// NewSlots gives each caller at most so many.
func NewSlots(most int) *Slots { return &Slots{most: most, open: map[string]int{}} }

// Take is one more request of caller, to be released once when it ends; ok is
// false when they have as many open as they may.
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

// Most is how many each caller may hold.
func (s *Slots) Most() int { return s.most }

// Open is how many are held now, by all callers.
func (s *Slots) Open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, held := range s.open {
		n += held
	}
	return n
}
