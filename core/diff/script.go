package diff

import (
	"slices"
	"strings"
	"unicode"
)

// Script returns the shortest list of Same, Remove and Add that makes b of a, by
// Myers' algorithm. Where that takes more than limit changes, all of a is removed and
// all of b added.
func Script(a, b []string, limit int) []string {
	trace, ok := furthest(a, b, min(limit, len(a)+len(b)))
	out := make([]string, 0, len(a)+len(b))
	if !ok {
		return append(append(out, slices.Repeat([]string{Remove}, len(a))...), slices.Repeat([]string{Add}, len(b))...)
	}
	x, y := len(a), len(b)
	for d := len(trace) - 1; d >= 0; d-- {
		fromX, fromY := 0, 0
		if d > 0 {
			v, k := trace[d], x-y // v[d] is diagonal 0
			from := k - 1
			if k == -d || k != d && v[d+k-1] < v[d+k+1] {
				from = k + 1
			}
			fromX = int(v[d+from])
			fromY = fromX - from
		}
		for x > fromX && y > fromY {
			out, x, y = append(out, Same), x-1, y-1
		}
		switch {
		case d == 0:
		case x == fromX:
			out = append(out, Add)
		default:
			out = append(out, Remove)
		}
		x, y = fromX, fromY
	}
	slices.Reverse(out)
	return out
}

// furthest returns the furthest x of each diagonal before each number of changes: entry d
// has the diagonals -d to d. ok is false beyond limit changes.
func furthest(a, b []string, limit int) (list [][]int32, ok bool) {
	v := make([]int32, 2*limit+3)
	mid := limit + 1
	for d := 0; d <= limit; d++ {
		list = append(list, slices.Clone(v[mid-d:mid+d+1]))
		for k := -d; k <= d; k += 2 {
			x := int(v[mid+k-1]) + 1
			if k == -d || k != d && v[mid+k-1] < v[mid+k+1] {
				x = int(v[mid+k+1])
			}
			y := x - k
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			v[mid+k] = int32(x)
			if x >= len(a) && y >= len(b) {
				return list, true
			}
		}
	}
	return nil, false
}

// markBlocks marks the words that differ between removed lines and those that replace
// them, the first with the first and so on, in at most maxKept lines.
func markBlocks(list []Line) {
	left := maxKept
	for i := 0; i < len(list); {
		from := i
		for i < len(list) && list[i].Op == Remove {
			i++
		}
		mid := i
		for i < len(list) && list[i].Op == Add {
			i++
		}
		for n := range min(mid-from, i-mid, left) {
			left--
			mark(&list[from+n], &list[mid+n])
		}
		if i == from {
			i++
		}
	}
}

// mark marks the words that differ between two lines, unless little is common.
func mark(before, after *Line) {
	a, b := words(before.Text()), words(after.Text())
	if len(a) > maxWords || len(b) > maxWords {
		return
	}
	var old, fresh []Part
	common, all, i, j := 0, 0, 0, 0
	for _, op := range Script(a, b, maxWords) {
		switch op {
		case Same:
			common += 2 * weight(a[i])
			old, fresh = add(old, a[i], false), add(fresh, b[j], false)
			i, j = i+1, j+1
		case Remove:
			old, i = add(old, a[i], true), i+1
		case Add:
			fresh, j = add(fresh, b[j], true), j+1
		}
	}
	for _, w := range append(a, b...) {
		all += weight(w)
	}
	if common*3 < all {
		return
	}
	before.Parts, after.Parts = old, fresh
}

// weight returns how much of a line a word is: its bytes, and none for blanks.
func weight(w string) int { return len(strings.TrimSpace(w)) }

func add(list []Part, text string, mark bool) []Part {
	if n := len(list); n > 0 && list[n-1].Mark == mark {
		list[n-1].Text += text
		return list
	}
	return append(list, Part{Text: text, Mark: mark})
}

// words splits a line into words, blanks, and single other characters.
func words(s string) (out []string) {
	last := 0
	for _, r := range s {
		kind := 0
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			kind = 1
		case unicode.IsSpace(r):
			kind = 2
		}
		if kind != 0 && kind == last {
			out[len(out)-1] += string(r)
		} else {
			out = append(out, string(r))
		}
		last = kind
	}
	return out
}
