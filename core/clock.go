package core

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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

// Shared is the clock of a program that others take the place of on other machines: it goes by
// the time of a server that all of them know. That the machine's clock is set has no effect. It
// is safe for concurrent use; NewShared makes one.
type Shared struct {
	System
	begun time.Time
	ahead atomic.Int64 // ns
}

// NewShared returns a clock that shows the machine's time until Agree.
func NewShared() *Shared { return &Shared{begun: System{}.Now()} }

// apart is how much the clock may differ from the server's, which takes time to answer.
const apart = 500 * time.Millisecond

func (s *Shared) Now() time.Time { return s.begun.Add(s.System.Now().Sub(s.begun) + s.off()) }

func (s *Shared) off() time.Duration { return time.Duration(s.ahead.Load()) }

// Agree moves the clock if it is far from now, the time of the server, and returns by how much.
func (s *Shared) Agree(now time.Time) (moved time.Duration) {
	if moved = now.Sub(s.Now()); moved.Abs() <= apart {
		return 0
	}
	s.ahead.Add(int64(moved))
	return moved
}

// FileTime returns the time of a file, which the machine has stamped, as c shows it.
func FileTime(c Clock, t time.Time) time.Time {
	if s, ok := c.(*Shared); ok {
		return t.Add(s.Now().Round(0).Sub(s.System.Now().Round(0))) // as the machine's clock is set now
	}
	return t
}

// FileAge returns how far the time of a file is from now. The file may be on another machine, which has
// stamped it: with a clock that differs from this machine's it is the shorter of both.
func FileAge(c Clock, t time.Time) time.Duration {
	return min(c.Now().Sub(t).Abs(), c.Now().Sub(FileTime(c, t)).Abs())
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

// Period returns a period that is written as 30m, 24h or 7d; of days there are at most maxDays.
func Period(text string, maxDays int) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	return 0, fmt.Errorf("%q is not a period: write 30m, 24h or 7d", text)
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
