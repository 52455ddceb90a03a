package queue

// Park frees the slot of t while it waits for a user; Unpark takes one back at
// once, even if none is free. Call Unpark once after each Park, before the turn
// is settled.
func (q *Queue) Park(t *Turn) {
	q.mu.Lock()
	*q.slots(t.Control)++
	q.mu.Unlock()
	q.ring()
}

// Unpark takes back the slot that Park freed.
func (q *Queue) Unpark(t *Turn) {
	q.mu.Lock()
	*q.slots(t.Control)--
	q.mu.Unlock()
}
