package main

import (
	"errors"
	"time"
)

// closers end what was opened.
type closers []func() error

// closing adds what ends a part that was just opened.
func (c *closers) closing(f func() error) { *c = append(*c, f) }

// lastWords is how long a gateway may take to end once another one has its place: what it still does is of no use,
// and it may wait for a vault that does not answer.
const lastWords = 15 * time.Second

// within has exit called unless Close has ended all that was opened later within limit of the close of begun.
func (c *closers) within(limit time.Duration, begun <-chan struct{}, exit func()) {
	closed := make(chan struct{})
	go func() {
		select {
		case <-begun:
		case <-closed:
			return
		}
		select {
		case <-time.After(limit):
			exit()
		case <-closed:
		}
	}()
	c.closing(func() error { close(closed); return nil })
}

// Close ends every part in the reverse order of opening. A second call ends nothing.
func (c *closers) Close() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}
