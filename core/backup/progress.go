package backup

import (
	"context"
	"io"
)

// Progress is called with the entries and bytes so far, for each entry and each
// read, by the goroutine that does the work.
type Progress func(entries int, bytes int64)

// A counter counts for a Progress, which may be nil.
type counter struct {
	entries int
	bytes   int64
	report  Progress
}

func (c *counter) entry() { c.add(1, 0) }

func (c *counter) add(entries, bytes int) {
	c.entries += entries
	c.bytes += int64(bytes)
	if c.report != nil {
		c.report(c.entries, c.bytes)
	}
}

// A reader counts what is read and fails once ctx ends.
type reader struct {
	ctx   context.Context
	r     io.Reader
	count *counter
}

func (r *reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.count.add(0, n)
	return n, err
}
