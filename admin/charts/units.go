package charts

import (
	"fmt"
	"strconv"
)

// maxSteps is how many steps a scale has at most.
const maxSteps = 4

// A Unit is what values are: how one is written, which are round, and how those at
// the side of a chart are written.
type Unit struct {
	name  string
	Text  func(v int64) string
	round func(n int) int64 // the n-th round step, ascending
	mark  func(v, step int64) string
}

// A Writer writes one value.
type Writer = func(v int64) string

// Counted returns the unit of things that are counted.
func Counted(things string, text Writer) Unit {
	return Unit{things, text, func(n int) int64 { return decimal(n, 1) }, func(v, step int64) string { return countMark(v, step, text) }}
}

// Money returns the unit of millionths of a dollar.
func Money(text Writer) Unit {
	return Unit{"", text, func(n int) int64 { return decimal(n, 100) }, moneyMark}
}

// Durations returns the unit of milliseconds.
func Durations(text Writer) Unit { return Unit{"", text, duration, durationMark} }

// scale returns the step of the values at the side, and how many steps reach top.
func (u Unit) scale(top int64) (step int64, n int) {
	for i := 0; ; i++ {
		step = u.round(i)
		if need := (top + step - 1) / step; need <= maxSteps {
			return step, int(max(1, need))
		}
	}
}

// decimal returns 1, 2 or 5 times a power of ten, times least.
func decimal(n int, least int64) int64 {
	for range n / 3 {
		least *= 10
	}
	return least * [...]int64{1, 2, 5}[n%3]
}

// rounds are the steps of durations below ten hours, in milliseconds.
var rounds = [...]int64{10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 18_000_000}

func duration(n int) int64 {
	if n < len(rounds) {
		return rounds[n]
	}
	return decimal(n-len(rounds), 36_000_000)
}

func countMark(v, step int64, text Writer) string {
	switch {
	case v == 0:
		return "0"
	case step >= 500_000:
		return fraction(v, 1_000_000) + " M"
	case step >= 5000:
		return fraction(v, 1000) + " k"
	}
	return text(v)
}

func moneyMark(v, step int64) string {
	places := 4
	switch {
	case v == 0:
		return "$0"
	case step >= 1_000_000:
		places = 0
	case step >= 10_000:
		places = 2
	}
	return fmt.Sprintf("$%.*f", places, float64(v)/1e6)
}

func durationMark(v, step int64) string {
	switch {
	case v == 0:
		return "0"
	case step >= 1_800_000:
		return fraction(v, 3_600_000) + " h"
	case step >= 30_000:
		return fraction(v, 60_000) + " min"
	case step >= 500:
		return fraction(v, 1000) + " s"
	}
	return strconv.FormatInt(v, 10) + " ms"
}

// fraction returns v in units of one, with the places that it needs.
func fraction(v, one int64) string {
	return strconv.FormatFloat(float64(v)/float64(one), 'f', -1, 64)
}
