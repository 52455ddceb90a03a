package permission

// Changed is closed when any ask is opened or settled: look again then.
func (d *Desk) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *Desk) ring() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.changed = make(chan struct{})
}

// watch gives a channel that is closed when the ask is settled by this process,
// until stop is called.
func (d *Desk) watch(id string) (settled <-chan struct{}, stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := make(chan struct{})
	d.waiters[id] = c
	return c, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiters, id)
	}
}

func (d *Desk) wake(id string) {
	d.mu.Lock()
	c := d.waiters[id]
	delete(d.waiters, id)
	d.mu.Unlock()
	if c != nil {
		close(c)
	}
	d.ring()
}
