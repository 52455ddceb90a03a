package bus

// Lingering is how many bytes of events finished runs hold.
func (b *Bus) Lingering() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, run := range b.done {
		n += b.runs[run].size()
	}
	return n
}

// Waiting returns how many readers wait for runs of a session to begin.
func (b *Bus) Waiting(session string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting[session])
}
