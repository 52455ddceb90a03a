package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

const (
	maxEvent  = 4 << 20  // bytes of one line and of one event's data
	maxStream = 64 << 20 // bytes of one whole answer on the wire
)

// What Next returns of a stream that is too long.
var (
	ErrEventTooLong  = errors.New("an event of the stream is longer than 4 MiB")
	ErrStreamTooLong = errors.New("the stream is longer than 64 MiB")
)

// Events reads server-sent events as the HTML standard defines them
// (https://html.spec.whatwg.org/multipage/server-sent-events.html): lines end
// in CR, LF or CRLF, a blank line ends an event, several data lines are joined
// by LF, comments and unknown fields are skipped. Two liberties: a line that
// begins with "{" is taken as data, and so is a field "error", because some
// servers write a bare error object into a running stream.
type Events struct {
	Name   string // of the event that Next returned, "" where it has none
	r      *bufio.Reader
	line   []byte // the current line, at most maxEvent
	data   []byte // the current event's data, at most maxEvent
	has    bool   // data has at least one line
	skipLF bool   // the last line ended in CR: an LF belongs to it
	begun  bool   // the first line was read; a byte order mark is gone
	total  int64
}

// NewEvents returns a reader of the events in r.
func NewEvents(r io.Reader) *Events {
	return &Events{r: bufio.NewReaderSize(r, WaitBuffer)}
}

// Next returns the next event's data, valid until the next call. At the end of
// the stream it is io.EOF. An event without a blank line behind it is dropped there, as
// the standard states, unless its data is whole: [DONE] or JSON. Servers close right behind
// it, and behind an error.
func (e *Events) Next() ([]byte, error) {
	e.Name, e.data, e.has = "", e.data[:0], false
	for {
		line, err := e.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if e.has && errors.Is(err, io.EOF) && (IsDone(e.data) || isObject(e.data)) {
				return e.data, nil
			}
			return nil, err
		}
		if len(line) == 0 {
			if e.has {
				return e.data, nil
			}
			e.Name = "" // without data it is no event
			continue
		}
		if bad := e.field(line); bad != nil {
			return nil, bad
		}
	}
}

// IsDone reports whether an event is [DONE], by which many servers end a stream.
func IsDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

// isObject reports whether data is a whole JSON object.
func isObject(data []byte) bool { return bytes.HasPrefix(data, []byte("{")) && json.Valid(data) }

// field adds one line to the event.
func (e *Events) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	switch {
	case line[0] == '{':
		value = line
	case string(name) == "event":
		e.Name = string(bytes.TrimPrefix(value, []byte(" ")))
		return nil
	case string(name) == "data" || string(name) == "error":
		value = bytes.TrimPrefix(value, []byte(" "))
	default:
		return nil
	}
	if len(e.data)+len(value) >= maxEvent {
		return ErrEventTooLong
	}
	if e.has {
		e.data = append(e.data, '\n')
	}
	e.data, e.has = append(e.data, value...), true
	return nil
}

// readLine returns the next line without its end; at the end of the stream the
// rest with io.EOF.
func (e *Events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		if _, err := e.r.Peek(1); err != nil {
			return e.trimMark(), err
		}
		buf, _ := e.r.Peek(e.r.Buffered())
		if e.skipLF {
			e.skipLF = false
			if buf[0] == '\n' {
				e.take(1)
				continue
			}
		}
		end := bytes.IndexAny(buf, "\r\n")
		n := end
		if end < 0 {
			n = len(buf)
		}
		if len(e.line)+n > maxEvent {
			return nil, ErrEventTooLong
		}
		e.line = append(e.line, buf[:n]...)
		if end >= 0 {
			e.skipLF = buf[end] == '\r'
			n++
		}
		if e.take(n); e.total > maxStream {
			return nil, ErrStreamTooLong
		}
		if end >= 0 {
			return e.trimMark(), nil
		}
	}
}

// Total returns how many bytes were read.
func (e *Events) Total() int64 { return e.total }

func (e *Events) take(n int) {
	e.r.Discard(n) // n bytes are buffered: cannot fail
	e.total += int64(n)
}

// trimMark drops a byte order mark in front of the first line.
func (e *Events) trimMark() []byte {
	if !e.begun {
		e.begun = true
		return bytes.TrimPrefix(e.line, []byte("\xef\xbb\xbf"))
	}
	return e.line
}
