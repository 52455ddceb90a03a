package main

import "errors"

func (a *app) closing(f func() error) { a.closers = append(a.closers, f) }

// Close ends every part in the reverse order of build.
func (a *app) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	a.closers = nil
	return errors.Join(errs...)
}
