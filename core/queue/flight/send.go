package flight

import (
	"errors"
	"sync"
)

var errEnded = errors.New("the send has ended")

// A Send is one attempt, which is recorded if it has a slot. Its methods do nothing on nil, and are safe
// for concurrent use.
type Send struct {
	r      *Recorder
	slot   int
	mark   Mark
	number uint64

	mu    sync.Mutex
	phase Phase // as recorded
	back  bool  // the request has ended: a connector that is late sends nothing
	stale func() bool
}

var errStale = errors.New("the gateway was frozen, and another one may have taken its place")

// Until has Writing return an error from when on stale reports true. Call it before the send.
func (s *Send) Until(stale func() bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = stale
}

// Writing records that bytes of the request leave from now on. After an error no
// byte may leave; it returns one when the request has ended.
func (s *Send) Writing() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.back:
		return errEnded // its outcome is known by now
	case s.phase >= Writing:
		return nil
	case s.stale != nil && s.stale():
		return errStale
	}
	return s.record(Writing, "")
}

// Written records that the operating system has the whole request.
func (s *Send) Written() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.back && s.phase == Writing {
		_ = s.record(Written, "") // Writing remains, which states no less
	}
}

// Accepted records that the platform has accepted the message under an id. The
// request has ended.
func (s *Send) Accepted(id string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = true
	if s.phase != Unrecorded && len(id) <= maxID {
		_ = s.record(Answered, id)
	}
}

// NotAccepted records that the platform does not have the message. The request has
// ended.
func (s *Send) NotAccepted() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = true
	if s.phase > Marked {
		_ = s.record(Marked, "")
	}
}

// Unanswered records that the request has ended, and nothing else is known.
func (s *Send) Unanswered() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.back = true
	s.mu.Unlock()
}

// Release frees the slot. Call it after the commit that stores the outcome, or when
// the transaction of the mark has failed.
func (s *Send) Release() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.back = true
	if s.phase == Unrecorded {
		return
	}
	s.phase = Unrecorded
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.free = append(s.r.free, s.slot)
}

// record writes the slot. The caller holds s.mu.
func (s *Send) record(p Phase, id string) error {
	if s.phase == Unrecorded {
		return nil
	}
	if err := s.r.put(s.slot, s.encode(p, id)); err != nil {
		return err
	}
	s.phase = p
	return nil
}
