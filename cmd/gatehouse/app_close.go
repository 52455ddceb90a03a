package main

import "errors"

// closers end what was opened.
type closers []func() error

// closing adds what ends a part that was just opened.
func (c *closers) closing(f func() error) { *c = append(*c, f) }

// Close ends every part in the reverse order of opening. A second call ends nothing.
func (c *closers) Close() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}
