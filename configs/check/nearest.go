package check

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the name that takes the fewest edits to reach, of those that say
// all that this one reports where there are such (GATEHOUSE_TOKEN).
func Nearest(name string, names []string) string {
	if _, said, ok := strings.Cut(name, "_"); ok {
		more := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasSuffix(n, "_"+said) })
		if len(more) > 0 {
			names = more
		}
	}
	return slices.MinFunc(names, func(a, b string) int { return cmp.Compare(edits(name, a), edits(name, b)) })
}

// edits counts the insertions, removals and changes of bytes from a to b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
