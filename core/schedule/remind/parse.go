package remind

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/schedule/when"
	"gatehouse/core/texts"
)

// A Time is when a reminder is due: once, or by a rule.
type Time struct {
	Due  time.Time
	Rule string // of one that is repeated; "" is once
	Zone string // in which it is shown, and of the rule
}

// Limits of times.
const (
	farthest = 5 * 366 * 24 * time.Hour
	shortest = 10 * time.Minute // between two deliveries of one that is repeated
)

// Parse splits what a user wrote into a time, which is at the beginning, and a text: "20m
// tea", "18:30 call", "8pm call", "tomorrow at 9 post", "next monday 9am bins", "every day at
// 8 pills". Times are of zone. ok is false where no time is found; a time that is begun and
// not understood, or has no time of day, is an error for the user.
func Parse(s string, now time.Time, zone *time.Location) (t Time, text string, ok bool, err error) {
	w := words{strings.TrimSpace(s)}
	if w.skip("me") { // /remind me in 20m to call
		defer func() { text, _ = strings.CutPrefix(text, "to ") }()
	}
	if span, rest, found := cutSpan(w.rest); found {
		t, err = in(span, now, zone)
		return t, rest, true, err
	}
	if r, found, err := w.every(); err != nil {
		return t, "", true, err
	} else if found {
		c, found, err := w.clock(r.part)
		switch {
		case err != nil:
			return t, "", true, err
		case !found:
			return t, "", true, texts.Error(core.Invalid, "remind_clock", texts.With{"Day": strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), w.rest))})
		}
		t, err = Every(c.rule(r.days), now, zone)
		return t, w.rest, true, err
	}
	t, err = w.time(now, zone)
	return t, w.rest, t.Due != (time.Time{}) || err != nil, err
}

// In returns the time after a span such as 20m, 2h30m, 1d or "3 hours". What is not wholly a
// span is refused.
func In(span string, now time.Time, zone *time.Location) (Time, error) {
	d, rest, found := cutSpan(strings.TrimSpace(span))
	if !found || rest != "" { // "1 month" begins like a minute
		return Time{}, unclear(span)
	}
	return in(d, now, zone)
}

func in(d time.Duration, now time.Time, zone *time.Location) (Time, error) {
	return once(now.Add(d), now, zone)
}

// At returns a time of day, today or, where it has passed, tomorrow: "18:30", "8pm"; with a
// day in front, of that day: "tomorrow 9:00", "friday 9am", "2026-12-24 18:00", "24 december
// 18:00". RFC 3339 works too.
func At(s string, now time.Time, zone *time.Location) (Time, error) {
	s = strings.TrimSpace(s)
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		return once(t, now, zone)
	}
	w := words{s}
	if t, err := time.Parse("2006-01-02T15:04:05", strings.ToUpper(s)); err == nil {
		w.rest = t.Format("2006-01-02 15:04")
	} else if t, err := time.Parse("2006-01-02T15:04", strings.ToUpper(s)); err == nil {
		w.rest = t.Format("2006-01-02 15:04")
	}
	t, err := w.time(now, zone)
	if err == nil && (t.Due.IsZero() || w.rest != "") {
		err = unclear(s)
	}
	return t, err
}

// time reads a day and a time of day, in either order; the zero time where there is neither.
func (w *words) time(now time.Time, zone *time.Location) (Time, error) {
	before := w.rest
	d, dayFound, err := w.day(false)
	if err != nil {
		return Time{}, err
	}
	c, found, err := w.clock(d.part)
	switch {
	case err != nil:
		return Time{}, err
	case !found && dayFound:
		return Time{}, texts.Error(core.Invalid, "remind_clock", texts.With{"Day": strings.TrimSpace(strings.TrimSuffix(before, w.rest))})
	case !found:
		return Time{}, nil
	case !dayFound:
		if d, _, err = w.day(true); err != nil {
			return Time{}, err
		}
		if !c.in(d.part) {
			return Time{}, unclear(strings.TrimSpace(strings.TrimSuffix(before, w.rest)))
		}
	}
	return d.at(c, now, zone)
}

// at returns when a clock shows a time on a day.
func (d day) at(c clock, now time.Time, zone *time.Location) (Time, error) {
	today := now.In(zone)
	on := func(year int, month time.Month, day int) time.Time {
		return when.At(time.Date(year, month, day, c.hour, c.minute, 0, 0, time.UTC), zone)
	}
	t := on(today.Year(), today.Month(), today.Day()+d.ahead)
	switch {
	case d.weekday >= 0:
		ahead := (d.weekday - int(today.Weekday()) + 7) % 7
		if ahead == 0 && d.next {
			ahead = 7
		}
		if t = on(today.Year(), today.Month(), today.Day()+ahead); !t.After(now) {
			t = on(today.Year(), today.Month(), today.Day()+ahead+7)
		}
	case d.month > 0:
		year := d.year
		if year == 0 {
			year = today.Year()
		}
		if t = on(year, d.month, d.date); d.year == 0 && !t.After(now) {
			year++
			t = on(year, d.month, d.date)
		}
		if date := time.Date(year, d.month, d.date, 0, 0, 0, 0, time.UTC); date.Month() != d.month { // 30 February
			return Time{}, unclear(fmt.Sprintf("%d %s", d.date, d.month))
		}
	case d.open && !t.After(now):
		t = on(today.Year(), today.Month(), today.Day()+1)
	}
	return once(t, now, zone)
}

// once checks a time.
func once(t, now time.Time, zone *time.Location) (Time, error) {
	switch {
	case !t.After(now):
		return Time{}, texts.Error(core.Invalid, "remind_past")
	case t.Sub(now) > farthest:
		return Time{}, texts.Error(core.Invalid, "remind_far")
	}
	return Time{Due: t, Zone: zone.String()}, nil
}

// Every returns the next time of a rule, as when.Parse reads it.
func Every(rule string, now time.Time, zone *time.Location) (Time, error) {
	r, err := when.Parse(rule, zone)
	if err != nil {
		return Time{}, unclear(rule)
	}
	t := Time{Due: r.Next(now), Rule: r.String(), Zone: zone.String()}
	for next, i := t.Due, 0; i < 5; i++ { // enough to recognize a rule that applies often
		after := r.Next(next)
		if !after.IsZero() && after.Sub(next) < shortest {
			return Time{}, texts.Error(core.Invalid, "remind_often")
		}
		next = after
	}
	return t, nil
}

// rule returns the rule of a time of day on days of the week, as cron names them; "" is all.
func (c clock) rule(days string) string {
	if days == "" {
		return fmt.Sprintf("%d:%02d", c.hour, c.minute)
	}
	return strconv.Itoa(c.minute) + " " + strconv.Itoa(c.hour) + " * * " + days
}

func unclear(said string) error {
	return texts.Error(core.Invalid, "remind_unclear", texts.With{"Said": texts.Excerpt(said)})
}
