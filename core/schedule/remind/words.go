package remind

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/core"
	"gatehouse/core/texts"
)

var (
	spanOf  = core.Pattern(`(?i)^(?:in\s+)?((?:\d{1,4}\s*(?:weeks?|days?|hours?|hrs?|minutes?|mins?|min|w|d|h|m)\s*)+)(?:\s|$)`)
	unitOf  = core.Pattern(`(?i)(\d{1,4})\s*([a-z])`)
	oneOf   = core.Pattern(`(?i)^in\s+(half\s+an|half|an?|one)\s+(minute|hour|day|week)(?:\s|$)`)
	clockOf = core.Pattern(`^(\d{1,2})(?::(\d{2}))?(am|pm|a\.m\.?|p\.m\.?)?$`)
	isoOf   = core.Pattern(`^(\d{4})-(\d{2})-(\d{2})$`)
	nthOf   = core.Pattern(`^(\d{1,2})(?:st|nd|rd|th|\.)?,?$`)
	yearOf  = core.Pattern(`^20\d{2}$`)
)

var units = map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

// cutSpan returns the span at the beginning of s, and what follows it.
func cutSpan(s string) (d time.Duration, rest string, found bool) {
	if m := oneOf().FindStringSubmatch(s); m != nil {
		d = units[strings.ToLower(m[2][:1])]
		if strings.HasPrefix(strings.ToLower(m[1]), "half") {
			d /= 2
		}
		return d, strings.TrimSpace(s[len(m[0]):]), true
	}
	m := spanOf().FindStringSubmatch(s)
	if m == nil {
		return 0, s, false
	}
	for _, u := range unitOf().FindAllStringSubmatch(m[1], -1) {
		n, _ := strconv.Atoi(u[1]) // at most four digits
		d += time.Duration(n) * units[strings.ToLower(u[2])]
	}
	return d, strings.TrimSpace(s[len(m[0]):]), true
}

// words are what is left of a text, word by word.
type words struct{ rest string }

// next returns the next word in lower case, and what follows it.
func (w *words) next() (word, rest string) {
	end := strings.IndexAny(w.rest, " \t\n\r")
	if end < 0 {
		end = len(w.rest)
	}
	return strings.ToLower(w.rest[:end]), strings.TrimSpace(w.rest[end:])
}

// skip takes the next words where they are these.
func (w *words) skip(phrase ...string) bool {
	ahead := *w
	for _, want := range phrase {
		word, rest := ahead.next()
		if word != want {
			return false
		}
		ahead.rest = rest
	}
	*w = ahead
	return true
}

// skipAny takes the next word where it is one of these.
func (w *words) skipAny(of ...string) bool {
	word, rest := w.next()
	if word == "" || !slices.Contains(of, word) {
		return false
	}
	w.rest = rest
	return true
}

// A clock is a time of day; of one without am or pm the hour may be of the evening.
type clock struct {
	hour, minute int
	plain        bool
}

// A part is a part of the day that was written with a time.
type part int

const (
	anyPart part = iota
	afternoon
	evening
	night
)

// part takes "afternoon", "evening" or "night".
func (w *words) part(p *part) bool {
	for i, name := range []string{"afternoon", "evening", "night"} {
		if w.skip(name) {
			*p = afternoon + part(i)
			return true
		}
	}
	return false
}

// in reads "tonight at 8" as 20:00. It returns false for a time that is of another day or
// another half of it, such as "tonight at 12", "every evening at 1" and "this afternoon at 11".
func (c *clock) in(p part) bool {
	switch {
	case p == anyPart || !c.plain || c.hour == 0:
	case p >= evening && (c.hour == 12 || c.hour < 5), p == afternoon && (c.hour == 10 || c.hour == 11):
		return false
	case c.hour < 12:
		c.hour += 12
	}
	return true
}

// clock takes a time of day: "18:30", "8pm", "8:30 pm", "at 8", "9 o'clock", "noon",
// "midnight". A number alone is none: it may belong to the text.
func (w *words) clock(p part) (c clock, found bool, err error) {
	ahead := *w
	at := ahead.skipAny("at", "@")
	if ahead.skipAny("noon", "midday") {
		*w = ahead
		return clock{hour: 12}, true, nil
	}
	if ahead.skip("midnight") {
		*w = ahead
		return clock{}, true, nil
	}
	word, rest := ahead.next()
	m := clockOf().FindStringSubmatch(strings.TrimSuffix(word, ","))
	if m == nil {
		return c, false, nil
	}
	ahead.rest = rest
	half := strings.ReplaceAll(m[3], ".", "")
	if half == "" {
		switch next, rest := ahead.next(); strings.ReplaceAll(next, ".", "") {
		case "am", "pm":
			half, ahead.rest = strings.ReplaceAll(next, ".", ""), rest
		case "o'clock", "o’clock", "oclock":
			at, ahead.rest = true, rest
		}
	}
	if m[2] == "" && half == "" && !at {
		return c, false, nil
	}
	c.hour, _ = strconv.Atoi(m[1]) // at most two digits
	c.minute, _ = strconv.Atoi(m[2])
	c.plain = half == "" && len(m[1]) == 1 || half == "" && c.hour >= 10
	switch {
	case c.minute > 59, half == "" && c.hour > 23, half != "" && (c.hour < 1 || c.hour > 12):
		return c, false, unclear(strings.TrimSpace(strings.TrimSuffix(w.rest, ahead.rest)))
	case half == "am" && c.hour == 12:
		c.hour = 0
	case half == "pm" && c.hour < 12:
		c.hour += 12
	}
	if !c.in(p) {
		return c, false, unclear(strings.TrimSpace(strings.TrimSuffix(w.rest, ahead.rest)))
	}
	*w = ahead
	return c, true, nil
}

// A day is one that was written: so many days ahead, a day of the week, or a date.
type day struct {
	open    bool // none was written: today, or tomorrow
	ahead   int
	weekday int  // -1 for none
	next    bool // not today
	month   time.Month
	date    int
	year    int // 0: the next such date
	part    part
}

var weekdays = map[string]int{
	"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6,
	"sun": 0, "mon": 1, "tue": 2, "tues": 2, "wed": 3, "thu": 4, "thur": 4, "thurs": 4, "fri": 5, "sat": 6,
}

// day takes a day. behind is after a time of day, where the name of a day alone may belong to
// the text: "18:30 friday drinks".
func (w *words) day(behind bool) (d day, found bool, err error) {
	d = day{weekday: -1}
	ahead := *w
	on, this := ahead.skip("on"), false
	switch {
	case ahead.skip("today"):
	case ahead.skip("this"): // needs a word behind it: "this friday", "this evening"
		this = true
	case ahead.skip("tonight"):
		d.part = night
	case ahead.skip("tomorrow"):
		d.ahead = 1
	case ahead.skip("the", "day", "after", "tomorrow"), ahead.skip("day", "after", "tomorrow"):
		d.ahead = 2
	default:
		d.next = ahead.skip("next")
		if found = ahead.weekday(&d) || !d.next && ahead.dateOf(&d); !found || behind && !on && !d.next {
			d = day{weekday: -1, open: true}
			return d, false, nil
		}
	}
	if this && !ahead.weekday(&d) {
		if word, _ := ahead.next(); !slices.Contains([]string{"morning", "afternoon", "evening", "night"}, word) {
			return day{weekday: -1, open: true}, false, nil
		}
	}
	if !ahead.part(&d.part) {
		ahead.skip("morning")
	}
	*w = ahead
	return d, true, nil
}

// weekday takes the name of a day of the week.
func (w *words) weekday(d *day) bool {
	word, rest := w.next()
	word = strings.TrimSuffix(word, ",")
	n, ok := weekdays[word]
	if !ok {
		n, ok = weekdays[strings.TrimSuffix(word, "s")]
	}
	if ok {
		d.weekday, w.rest = n, rest
	}
	return ok
}

// dateOf takes a date: "2026-12-24", "24 december", "the 24th of december 2026", "dec 24".
func (w *words) dateOf(d *day) bool {
	ahead := *w
	word, rest := ahead.next()
	if m := isoOf().FindStringSubmatch(word); m != nil {
		month, _ := strconv.Atoi(m[2])
		d.year, _ = strconv.Atoi(m[1])
		d.date, _ = strconv.Atoi(m[3])
		if d.month = time.Month(month); month < 1 || month > 12 || d.date < 1 {
			d.month, d.date = time.February, 31 // no date: it is refused
		}
		w.rest = rest
		return true
	}
	ahead.skip("the")
	dateFirst := ahead.nth(d)
	if dateFirst {
		ahead.skip("of")
	}
	word, rest = ahead.next()
	if d.month = monthOf(strings.Trim(word, ".,")); d.month == 0 {
		return false
	}
	ahead.rest = rest
	if !dateFirst && !ahead.nth(d) {
		d.month = 0
		return false
	}
	if word, rest := ahead.next(); yearOf().MatchString(strings.TrimSuffix(word, ",")) {
		d.year, _ = strconv.Atoi(strings.TrimSuffix(word, ","))
		ahead.rest = rest
	}
	*w = ahead
	return true
}

// nth takes the number of a day of a month.
func (w *words) nth(d *day) bool {
	word, rest := w.next()
	m := nthOf().FindStringSubmatch(word)
	if m == nil {
		return false
	}
	if d.date, _ = strconv.Atoi(m[1]); d.date < 1 || d.date > 31 {
		return false
	}
	w.rest = rest
	return true
}

// monthOf returns the month of a name, or of its first three letters; 0 for none.
func monthOf(word string) time.Month {
	for m := time.January; m <= time.December; m++ {
		if name := strings.ToLower(m.String()); word == name || word == name[:3] || word == "sept" && m == time.September {
			return m
		}
	}
	return 0
}

// A rhythm is the days of a repeated time, as cron names them; "" is all.
type rhythm struct {
	days string
	part part
}

// every takes the days of a repeated time.
func (w *words) every() (r rhythm, found bool, err error) {
	if w.skip("daily") {
		return r, true, nil
	}
	ahead := *w
	if !ahead.skipAny("every", "each") {
		return r, false, nil
	}
	switch {
	case ahead.skipAny("day", "morning"):
	case ahead.part(&r.part):
	case ahead.skipAny("weekday", "workday"):
		r.days = "1-5"
	case ahead.skip("weekend"):
		r.days = "6,0"
	default:
		var all []string
		for d := (day{}); ahead.weekday(&d); ahead.skip("and") {
			all = append(all, strconv.Itoa(d.weekday))
		}
		r.days = strings.Join(all, ",")
		_, clocked, err := (&words{ahead.rest}).clock(anyPart)
		if len(all) == 0 && !clocked {
			if err == nil {
				err = texts.Error(core.Invalid, "remind_repeats", texts.With{"Said": texts.Excerpt(ahead.rest)})
			}
			return r, false, err
		}
	}
	*w = ahead
	return r, true, nil
}
