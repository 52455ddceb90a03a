package queue

import "runtime"

// Stopping returns when no lane is claimed any more.
func (q *Queue) Stopping() {
	for {
		if !q.slots.isOpen() {
			return
		}
		runtime.Gosched()
	}
}

// Busy returns how many lanes and chats are in memory after running work has ended.
func (q *Queue) Busy() int {
	for range 1_000_000 {
		q.mu.Lock()
		n := q.slots.count() + q.outbox.Active() + len(q.stuck)
		q.mu.Unlock()
		if n == 0 {
			return 0
		}
		runtime.Gosched()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.slots.count() + q.outbox.Active() + len(q.stuck)
}
