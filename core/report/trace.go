package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"
	"syscall"

	"gatehouse/core"
)

const maxFrames = 16

var kinds = map[core.Kind]string{core.Invalid: "invalid", core.Denied: "denied", core.NotFound: "not found", core.Conflict: "conflict", core.Busy: "busy", core.TooLarge: "too large"}

// cause returns what kind of error is at the beginning of err: a text that is the same
// whatever the error is about, or its type; "" where neither is useful.
func cause(err error) string {
	var number syscall.Errno
	var late interface{ Timeout() bool }
	switch kind := core.KindOf(err); {
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "unexpected end"
	case kind != core.Other:
		return kinds[kind]
	}
	name := fmt.Sprintf("%T", innermost(err))
	if name == "*errors.errorString" || name == "*fmt.wrapError" { // any
		return ""
	}
	return name
}

// innermost follows the errors that err wraps, the first of several.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if all, ok := err.(interface{ Unwrap() []error }); ok && len(all.Unwrap()) > 0 {
			next = all.Unwrap()[0]
		}
		if next == nil {
			return err
		}
		err = next
	}
}

// panicked returns what kind of panic it is. Other values than the runtime's may have texts
// of users.
func panicked(value any) string {
	if err, ok := value.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", value)
}

// framesOf returns the functions and lines of a stack (debug.Stack) below its last panic,
// without the values of their arguments; none where the text has no stack of a panic.
func framesOf(text string) (frames []string) {
	if first := strings.Index(text, "goroutine "); first >= 0 {
		if next := strings.Index(text[first:], "\ngoroutine "); next >= 0 {
			text = text[:first+next] // the first stack is that of the panic, a later one of who passed it on
		}
	}
	at := strings.LastIndex(text, "\npanic(")
	if at < 0 {
		return nil
	}
	name := ""
	for line := range strings.Lines(text[at+1:]) {
		line = strings.TrimRight(line, "\n")
		where, isPlace := strings.CutPrefix(line, "\t")
		switch {
		case !isPlace:
			name, _, _ = cutLast(line, "(")
			if created, ok := strings.CutPrefix(line, "created by "); ok {
				name, _, _ = strings.Cut(created, " ")
			}
		case name != "" && name != "panic" && !strings.HasPrefix(name, "runtime."):
			where, _, _ = strings.Cut(where, " ") // without the offset
			_, number, _ := cutLast(path.Base(where), ":")
			frames = append(frames, ours(name)+":"+number)
		}
		if line == "" || len(frames) == maxFrames {
			break
		}
	}
	return frames
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// ours returns the name of a function, without the name of our module.
func ours(name string) string { return strings.TrimPrefix(name, "gatehouse/") }
