package page

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"gatehouse/core"
)

// Sentence returns s with a capital first letter and a full stop.
func Sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return s
	}
	rs := []rune(s)
	rs[0] = unicode.ToUpper(rs[0])
	if last := rs[len(rs)-1]; last != '.' && last != '!' && last != '?' {
		rs = append(rs, '.')
	}
	return string(rs)
}

// Ago returns how long ago something was; admin.js continues in the same form.
func Ago(d time.Duration) string {
	if d < 45*time.Second {
		return "just now"
	}
	return Span(d) + " ago"
}

// Span returns a duration in its one largest unit.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	}
	return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
}

// Brief returns a duration, exact to 1 % or less below an hour.
func Brief(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return "at once"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return Span(d)
}

// initial returns the letter in the circle next to a name.
func initial(name string) string {
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return "?"
}

// DisplayName returns a name, or what to show without one.
func DisplayName(s string) string {
	if strings.TrimSpace(s) == "" {
		return "No name given"
	}
	return s
}

// Platform returns a platform's name with a capital letter.
func Platform(s string) string {
	r := []rune(s)
	switch {
	case len(r) == 0:
		return "Unknown platform"
	case s == core.APIBot:
		return "API"
	}
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// Shorten returns s, or its first n bytes at most and true.
func Shorten(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, false
	}
	return core.CutRunes(s, n), true
}

// Count returns "1 person" or "3 users".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Grouped returns n with its thousands set apart: 1,234,567.
func Grouped(n int64) string {
	s := fmt.Sprint(n)
	var b strings.Builder
	for i, r := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Size returns n bytes in their largest unit.
func Size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return core.ByteSize(int(n))
}

// Exact returns s with everything in it to be seen, so that nothing reads as
// something else or is pushed out of sight: what is drawn as nothing, or turns
// the direction of writing, is spelled out, and so are empty lines and long
// runs of spaces.
func Exact(s string) string {
	s = spaces().ReplaceAllStringFunc(s, func(run string) string { return fmt.Sprintf(" (%d spaces) ", len(run)) })
	s = emptyLines().ReplaceAllStringFunc(s, func(run string) string { return strings.Repeat(`\n`, len(run)-1) + "\n" })
	return core.Visible(s)
}

var (
	spaces     = core.Pattern(` {9,}`)
	emptyLines = core.Pattern(`\n{2,}`)
)

// Seconds returns d in whole seconds, rounded up.
func Seconds(d time.Duration) int { return int((max(0, d) + time.Second - 1) / time.Second) }

// State returns the colour and the label of a bot's state.
func State(s core.Phase) (tone, word string) {
	switch s {
	case core.Running:
		return "good", "Running"
	case core.Starting:
		return "warn", "Starting"
	case core.Degraded:
		return "warn", "Degraded"
	case core.Reconnecting:
		return "warn", "Reconnecting"
	case core.FailedPhase:
		return "bad", "Failed"
	}
	return "idle", "Stopped"
}

// Step returns the colour and the label of the state of a received update.
func Step(s string) (tone, word string) {
	switch s {
	case "ready":
		return "note", "Waiting to be answered"
	case "held":
		return "warn", "Held until its sender is approved"
	case "limited":
		return "warn", "Over the rate limit: waits"
	case "done":
		return "good", "Done with"
	case "refused":
		return "idle", "Refused"
	case "dead":
		return "bad", "Given up"
	}
	return "idle", Platform(s)
}

// Price returns ", $1.84" for millionths of a dollar, as far as prices are
// known; unpriced is how many calls have none.
func Price(micro, unpriced int64) string {
	if micro == 0 {
		return ""
	}
	text := ", " + core.Dollars(micro)
	if unpriced > 0 {
		text += " and calls without a known price"
	}
	return text
}
