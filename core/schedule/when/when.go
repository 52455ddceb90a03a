// Package when reads times of day, cron expressions and time zones, and returns the
// times that follow from them. It reads no clock.
package when

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones by name also on machines without a database of them

	"github.com/robfig/cron/v3"
)

// A Rule is a repeated time on the wall clock of a zone.
//
// Where the clock is set forward over a time, the rule applies one hour later by the new
// clock; where it is set back, a time that occurs twice applies once. The cron package
// alone would skip the first and repeat the second.
type Rule struct {
	spec string
	each cron.Schedule // on a wall clock: its times are read as UTC
	zone *time.Location
}

// maxSpec bounds a rule's text, in bytes.
const maxSpec = 100

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads "8:00" or a cron expression of five fields, or @daily, @weekly and so on.
// Errors are sentences for the author of the text. The zone must not be nil.
func Parse(spec string, zone *time.Location) (Rule, error) {
	spec = strings.TrimSpace(spec)
	switch {
	case spec == "":
		return Rule{}, fmt.Errorf("there is no time")
	case len(spec) > maxSpec:
		return Rule{}, fmt.Errorf("the schedule is longer than %d bytes", maxSpec)
	}
	expression := spec
	if !strings.ContainsAny(spec, " \t@*") {
		hour, minute, err := Clock(spec)
		if err != nil {
			return Rule{}, err
		}
		spec = fmt.Sprintf("%d:%02d", hour, minute)
		expression = fmt.Sprintf("%d %d * * *", minute, hour)
	} else if strings.Contains(spec, "=") || strings.HasPrefix(spec, "@every") {
		return Rule{}, fmt.Errorf("the schedule is neither a time such as 8:00 nor a cron expression of five fields such as 30 7 * * 1-5; the time zone is a field of its own")
	}
	each, err := parser.Parse(expression)
	if err != nil {
		return Rule{}, fmt.Errorf("the schedule is neither a time such as 8:00 nor a cron expression of five fields such as 30 7 * * 1-5")
	}
	if s, ok := each.(*cron.SpecSchedule); ok {
		s.Location = time.UTC
	}
	r := Rule{spec: spec, each: each, zone: zone}
	if each.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Rule{}, fmt.Errorf("there is no such day: the schedule never applies")
	}
	return r, nil
}

// Clock reads a time of day: "8:00", "08:00", "23:59".
func Clock(s string) (hour, minute int, err error) {
	h, m, found := strings.Cut(s, ":")
	hour, err1 := strconv.Atoi(h)
	minute, err2 := strconv.Atoi(m)
	if !found || err1 != nil || err2 != nil || len(h) > 2 || len(m) != 2 || strings.ContainsAny(s, "+-") {
		return 0, 0, fmt.Errorf("this is no time of day; write hours and minutes, such as 8:00 or 18:30")
	}
	if hour > 23 || minute > 59 {
		return 0, 0, fmt.Errorf("this is no time of day: hours are 0 to 23 and minutes 0 to 59")
	}
	return hour, minute, nil
}

// Zone returns the time zone of that name, such as Europe/Berlin; "" is UTC.
func Zone(name string) (*time.Location, error) {
	name = strings.TrimSpace(name)
	if name == "Local" || strings.ContainsAny(name, "\\\x00") || strings.HasPrefix(name, "/") || strings.Contains(name, "..") {
		return nil, fmt.Errorf("there is no time zone of this name; write one such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("there is no time zone of this name; write one such as Europe/Berlin")
	}
	return zone, nil
}

// String returns the rule as it was written.
func (r Rule) String() string { return r.spec }

// Zone returns the rule's time zone.
func (r Rule) Zone() *time.Location { return r.zone }

// gap is the longest stretch that a clock is set forward by.
const gap = 3 * time.Hour

// Next returns the first time after t, in the rule's zone; the zero time where none comes
// within five years.
func (r Rule) Next(t time.Time) time.Time {
	t = t.In(r.zone)
	wall := wallOf(t)
	_, before := t.Add(-gap).Zone()
	if _, now := t.Zone(); now > before { // a skipped time applies as much later as was skipped
		wall = wall.Add(time.Duration(before-now) * time.Second)
	}
	for range 6 * 60 { // where the clock is set back or forward, at most three hours of minutes lie behind t again
		wall = r.each.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if next := r.at(wall); next.After(t) {
			return next
		}
	}
	return time.Time{}
}

// Last returns the rule's last time after from and up to t, and false where there is none.
// It looks back from t at most over limit.
func (r Rule) Last(from, t time.Time, limit time.Duration) (last time.Time, ok bool) {
	if earliest := t.Add(-limit); from.Before(earliest) {
		from = earliest
	}
	for next := r.Next(from); !next.IsZero() && !next.After(t); next = r.Next(next) {
		last, ok = next, true
	}
	return last, ok
}

// wallOf returns what the clock on the wall shows, as a time in UTC.
func wallOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// at returns when the clock on the wall of the rule's zone shows a time: the first time
// where it does twice, and an hour later by the new clock where it never does.
func (r Rule) at(wall time.Time) time.Time { return At(wall, r.zone) }

// At returns the instant at which the clock on the wall of a zone shows what wall shows in
// UTC, as Rule describes it.
func At(wall time.Time, zone *time.Location) time.Time {
	first := time.Time{}
	for _, around := range []time.Time{wall.Add(-26 * time.Hour), wall.Add(26 * time.Hour)} { // the offsets before and after a change
		_, offset := around.In(zone).Zone()
		t := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if wallOf(t).Equal(wall) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if !first.IsZero() {
		return first
	}
	// A skipped time: by the offset before the change it is after it.
	_, offset := wall.Add(-26 * time.Hour).In(zone).Zone()
	return wall.Add(-time.Duration(offset) * time.Second).In(zone)
}
