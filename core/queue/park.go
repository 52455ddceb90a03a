package queue

// Park gives t's slot to others while it waits for a person; Unpark takes one
// back at once, so that for a moment more turns than slots may be at work. One
// Unpark follows each Park, before the turn is settled.
func (q *Queue) Park(t *Turn) {
	q.mu.Lock()
	*q.slots(t.Control)++
	q.mu.Unlock()
	q.ring()
}

// Unpark ends what Park began.
func (q *Queue) Unpark(t *Turn) {
	q.mu.Lock()
	*q.slots(t.Control)--
	q.mu.Unlock()
}
