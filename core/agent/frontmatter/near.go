package frontmatter

import (
	"strings"
	"unicode"
)

// Plain returns the letters and digits of a field's name in one case.
func Plain(k string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, k)
}

// Near reports whether a name may be a typo of another: at most two letters are missing,
// added, exchanged for others or for each other.
func Near(a, b string) bool {
	x, y := []rune(a), []rune(b)
	most := 2
	if len(y) <= 5 {
		most = 1
	}
	if len(x) > len(y)+most || len(y) > len(x)+most {
		return false
	}
	before, row := make([]int, len(y)+1), make([]int, len(y)+1)
	var last []int
	for j := range row {
		row[j] = j
	}
	for i := range x {
		last, before, row = before, row, make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, before[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], last[j-1]+1)
			}
		}
	}
	return row[len(y)] <= most
}
