package ask

// Changed returns a channel that is closed when any ask is opened or settled.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) ring() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Watch returns a channel that is closed when the ask is settled by this process,
// until stop is called.
func (s *Store) Watch(id string) (settled <-chan struct{}, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan struct{})
	s.waiters[id] = c
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiters, id)
	}
}

func (s *Store) wake(id string) {
	s.mu.Lock()
	c := s.waiters[id]
	delete(s.waiters, id)
	s.mu.Unlock()
	if c != nil {
		close(c)
	}
	s.ring()
}
