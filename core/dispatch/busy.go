package dispatch

// Busy reports whether a run of the person is at work, with any bot.
func (d *Dispatcher) Busy(user int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range d.running {
		if a.user == user {
			return true
		}
	}
	return false
}
