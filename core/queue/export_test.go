package queue

import "runtime"

// Stopping returns when no lane is claimed any more.
func (q *Queue) Stopping() {
	for {
		q.mu.Lock()
		serving := q.serving
		q.mu.Unlock()
		if !serving {
			return
		}
		runtime.Gosched()
	}
}
