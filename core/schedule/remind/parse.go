package remind

import (
	"regexp"
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

var (
	spanOf  = core.Pattern(`(?i)^(?:in\s+)?((?:\d{1,4}\s*(?:weeks?|days?|hours?|hrs?|minutes?|mins?|min|w|d|h|m)\s*)+)(?:\s|$)`)
	unitOf  = core.Pattern(`(?i)(\d{1,4})\s*([a-z])`)
	clockOf = core.Pattern(`^(?:at\s+)?(\d{1,2}:\d{2})(?:\s|$)`)
	isoOf   = core.Pattern(`^\d{4}-\d{2}-\d{2}t\d{2}:\d{2}(:\d{2})?$`)
	dateOf  = core.Pattern(`^(\d{4}-\d{2}-\d{2})\s+`)
	wordOf  = core.Pattern(`(?i)^(?:on\s+)?(today|tomorrow|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\s+`)
	everyOf = core.Pattern(`(?i)^every\s+(?:day\s+)?(?:at\s+)?(?:(monday|tuesday|wednesday|thursday|friday|saturday|sunday)\s+)?(?:at\s+)?`)
)

var weekdays = map[string]time.Weekday{"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6}

// Parse splits what a user wrote, "20m tea", "18:30 call", "tomorrow 9:00 post", "every 8:00
// pills", into a time and a text. Times are of zone. ok is false where no time is found.
func Parse(s string, now time.Time, zone *time.Location) (t Time, text string, ok bool, err error) {
	s = strings.TrimSpace(s)
	if m := spanOf().FindStringSubmatch(s); m != nil {
		t, err = In(m[1], now, zone)
		return t, strings.TrimSpace(s[len(m[0]):]), true, err
	}
	day, rest := "", s
	if m := everyOf().FindStringSubmatch(s); m != nil {
		if c := clockOf().FindStringSubmatch(s[len(m[0]):]); c != nil {
			rule := c[1]
			if weekday, ok := weekdays[strings.ToLower(m[1])]; ok {
				hour, minute, err := when.Clock(c[1])
				if err != nil {
					return t, "", true, unclear()
				}
				rule = strconv.Itoa(minute) + " " + strconv.Itoa(hour) + " * * " + strconv.Itoa(int(weekday))
			}
			t, err = Every(rule, now, zone)
			return t, strings.TrimSpace(s[len(m[0])+len(c[0]):]), true, err
		}
	}
	for _, of := range []*regexp.Regexp{dateOf(), wordOf()} {
		if m := of.FindStringSubmatch(rest); m != nil {
			day, rest = strings.ToLower(m[1]), rest[len(m[0]):]
			break
		}
	}
	m := clockOf().FindStringSubmatch(rest)
	if m == nil {
		return t, "", false, nil
	}
	t, err = At(strings.TrimSpace(day+" "+m[1]), now, zone)
	return t, strings.TrimSpace(rest[len(m[0]):]), true, err
}

// In returns the time after a span such as 20m, 2h30m, 1d or "3 hours". What is not wholly a
// span is refused.
func In(span string, now time.Time, zone *time.Location) (Time, error) {
	span = strings.TrimSpace(span)
	if spanOf().FindString(span) != span { // "1 month" begins like a minute
		return Time{}, unclear()
	}
	total := time.Duration(0)
	for _, m := range unitOf().FindAllStringSubmatch(span, -1) {
		n, _ := strconv.Atoi(m[1]) // at most four digits
		unit := map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[strings.ToLower(m[2])]
		total += time.Duration(n) * unit
	}
	return once(now.Add(total), now, zone)
}

// At returns a time of day, today or, where it has passed, tomorrow: "18:30"; with a day in
// front, of that day: "tomorrow 9:00", "friday 9:00", "2026-12-24 18:00". RFC 3339 works too.
func At(s string, now time.Time, zone *time.Location) (Time, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(s)); err == nil {
		return once(t, now, zone)
	}
	if isoOf().MatchString(s) {
		s = s[:10] + " " + s[11:16]
	}
	day, clock, found := strings.Cut(s, " ")
	if !found {
		day, clock = "", s
	}
	hour, minute, err := when.Clock(strings.TrimSpace(clock))
	if err != nil {
		return Time{}, unclear()
	}
	today := now.In(zone)
	on := func(year int, month time.Month, d int) time.Time {
		return when.At(time.Date(year, month, d, hour, minute, 0, 0, time.UTC), zone)
	}
	weekday, named := weekdays[day]
	switch {
	case day == "":
		if t := on(today.Date()); t.After(now) {
			return once(t, now, zone)
		}
		fallthrough
	case day == "tomorrow":
		return once(on(today.Year(), today.Month(), today.Day()+1), now, zone)
	case day == "today":
		return once(on(today.Date()), now, zone)
	case named:
		ahead := (int(weekday) - int(today.Weekday()) + 7) % 7
		t := on(today.Year(), today.Month(), today.Day()+ahead)
		if !t.After(now) {
			t = on(today.Year(), today.Month(), today.Day()+ahead+7)
		}
		return once(t, now, zone)
	}
	date, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return Time{}, unclear()
	}
	return once(on(date.Year(), date.Month(), date.Day()), now, zone)
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
		return Time{}, unclear()
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

func unclear() error { return texts.Error(core.Invalid, "remind_unclear") }
