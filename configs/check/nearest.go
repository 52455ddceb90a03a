package check

import (
	"cmp"
	"maps"
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

// Meant returns "; did you mean NAME?" for the known name that given is a typo of, in any case
// and with or without prefix, and "" where none is near.
func Meant(prefix, given string, known []string) string {
	given = strings.TrimPrefix(strings.ToUpper(given), prefix)
	best, least := "", 1+max(1, len(given)/4)
	for _, name := range known {
		if n := edits(given, strings.TrimPrefix(strings.ToUpper(name), prefix)); n < least {
			best, least = name, n
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// MeantOf is Meant with the keys of a map.
func MeantOf(prefix, given string, known map[string]string) string {
	return Meant(prefix, given, slices.Sorted(maps.Keys(known)))
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
