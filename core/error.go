package core

import (
	"errors"
	"fmt"
)

// A Kind reports what the caller may do about an error; nothing else is in it.
type Kind uint8

const (
	Other    Kind = iota // our fault: log it, show "internal error"
	Invalid              // the request makes no sense: the text explains why
	Denied               // not allowed
	NotFound             // no such thing, or not yours
	Conflict             // someone was first, or the state is another
	Busy                 // try again later
	TooLarge             // over a limit that the text names
)

// An Error carries a kind and a sentence fit to be shown to anyone who asked.
// Err is the cause, for the log only.
type Error struct {
	Kind Kind
	Text string
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Text
	}
	return e.Text + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error of kind k. A %w in format becomes the cause's chain,
// but its text is then part of what is shown: wrap only what may be shown.
func Errorf(k Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Text: err.Error(), Err: errors.Unwrap(err)}
}

// KindOf finds the kind in err's chain; Other when there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Other
}

// TextOf returns the sentence to show for err; "internal error" when none is meant to be
// shown.
func TextOf(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Kind != Other {
		return e.Text
	}
	return "internal error"
}
