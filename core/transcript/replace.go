package transcript

import (
	"sync"

	"gatehouse/core"
)

// Writers are who writes to transcripts now: turns append to the open file, so no one may
// give its name to another one until they close it.
type writers struct {
	mu   sync.Mutex
	free *sync.Cond
	busy map[string]int // turns by name, or replacing; at most one entry for each running turn and import
}

const replacing = -1

func newWriters() *writers {
	w := &writers{busy: map[string]int{}}
	w.free = sync.NewCond(&w.mu)
	return w
}

// begin notes a turn that is about to open the transcript name. It waits until one that is
// being replaced has its new content.
func (w *writers) begin(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.busy[name] == replacing {
		w.free.Wait()
	}
	w.busy[name]++
}

// end notes that a turn has closed the transcript name.
func (w *writers) end(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[name]--; w.busy[name] <= 0 {
		delete(w.busy, name)
	}
}

// Replace calls replace, which gives the transcript name another content, while no turn
// writes to it: one that begins waits. core.Conflict where one writes now.
func (s *Files) Replace(name string, replace func() error) error {
	w := s.writers
	w.mu.Lock()
	if w.busy[name] != 0 {
		w.mu.Unlock()
		return core.Errorf(core.Conflict, "the conversation is being continued: import it again later")
	}
	w.busy[name] = replacing
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.busy, name)
		w.free.Broadcast()
		w.mu.Unlock()
	}()
	return replace()
}
