package activity

// Between has f called between reading a file and replacing it.
func (w *Worker) Between(f func(name string)) { w.between = f }

// Sweep does what a start does first.
func (w *Worker) Sweep() { w.sweep() }

// TempOf is the temporary name of a new content.
func TempOf(name string, was, now []byte) string { return tempOf(name, was, now) }
