package core

import (
	"context"
	"sync/atomic"
	"time"
)

// A Clock returns the time. Everything that waits or stamps takes one, so that tests can
// stop it (coretest.Clock).
type Clock interface {
	Now() time.Time
	// After delivers once, d from now. An abandoned channel is collected.
	After(d time.Duration) <-chan time.Time
}

// System is the machine's clock.
type System struct{}

func (System) Now() time.Time                         { return time.Now() }
func (System) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Shared is the clock of a program that others take the place of on other machines: the
// machine's, moved to the time of a server that all of them know. The zero value is not moved. It
// is safe for concurrent use.
type Shared struct {
	System
	ahead atomic.Int64 // ns
}

// apart is how much the clock may differ from the server's, which takes time to answer.
const apart = 500 * time.Millisecond

func (s *Shared) Now() time.Time { return s.System.Now().Add(time.Duration(s.ahead.Load())) }

// Agree moves the clock if it is far from now.
func (s *Shared) Agree(now time.Time) {
	if off := now.Sub(s.Now()); off.Abs() > apart {
		s.ahead.Add(int64(off))
	}
}

// Sleep waits d on c, or until ctx ends; it reports whether the time passed.
func Sleep(ctx context.Context, c Clock, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-c.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

const timeLayout = "2006-01-02T15:04:05.000000Z"

// Stamp returns t as every table stores it: RFC 3339, UTC, six fractional digits,
// so that text order is time order. The zero time is "".
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// ParseStamp reads what Stamp wrote (and any RFC 3339); "" is the zero time.
func ParseStamp(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, s)
}

// TimeOf returns the time that Stamp wrote as s, or the zero time for any other text.
func TimeOf(s string) time.Time {
	t, _ := ParseStamp(s)
	return t
}
