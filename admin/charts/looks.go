package charts

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"gatehouse/core"
)

// A Look is a colour and a pattern (lines: dashes), so that no series is distinguished from
// another by its colour alone. Charts.css has the colours.
type Look struct {
	Colour  string // "good", "bad", "warn", "note" or "idle" by meaning, or "0" to "6"
	Pattern int    // 0: plain
}

// Fill returns the pattern to fill with; "" where there is none.
func (l Look) Fill() string {
	if l.Pattern == 0 {
		return ""
	}
	return "url(#" + l.ID() + ")"
}

// ID returns the id of the pattern.
func (l Look) ID() string { return "p-" + l.Colour + "-" + strconv.Itoa(l.Pattern) }

// The looks that mean something: each is used for nothing else.
var (
	Answered = Look{"good", 0}
	Stopped  = Look{"idle", 2}
	Failed   = Look{"bad", 1}
	GivenUp  = Look{"warn", 2}
	Doubtful = Look{"note", 3}
	Waited   = Look{"warn", 0}
	Half     = Look{"0", 0}
	Most     = Look{"2", 1}
	Others   = Look{"idle", 3}
)

// There are 7 colours and 4 patterns without a meaning. As these have no common divisor,
// looks that follow each other differ in both.
const (
	colours, patterns = 7, 4
	slots             = colours * patterns
)

func slot(n int) Look { return Look{strconv.Itoa(n % colours), n % patterns} }

// Named returns the looks of what has a name: each depends on the name and not on how
// large its values are. Of names that would look alike, the later ones take the next
// free look, as far as there are any; known come first and thus keep theirs.
func Named(known, others []string) map[string]Look {
	names := slices.Concat(known, slices.Sorted(slices.Values(others)))
	return assign(names, func(name string) int {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name)) // never fails
		return int(h.Sum32() % slots)
	})
}

// Numbered returns the looks of what has a number, such as users.
func Numbered(ids []string) map[string]Look {
	number := func(id string) int {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return int(n % slots)
	}
	ids = slices.SortedFunc(slices.Values(ids), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return assign(ids, number)
}

func assign(names []string, first func(string) int) map[string]Look {
	out, taken := make(map[string]Look, len(names)), map[int]bool{}
	for _, name := range names {
		if _, known := out[name]; known {
			continue
		}
		n := first(name)
		for i := 0; taken[n] && i < slots; i++ {
			n = (n + 1) % slots
		}
		taken[n] = true
		out[name] = slot(n)
	}
	return out
}

// Patterns returns the looks with a pattern that charts use, each once.
func Patterns(list []Chart) []Look {
	used := map[Look]bool{}
	for _, c := range list {
		for _, g := range c.Groups {
			if g.Look.Pattern > 0 {
				used[g.Look] = true
			}
		}
	}
	looks := slices.Collect(maps.Keys(used))
	core.Sort(looks, func(a, b Look) int { return cmp.Compare(a.ID(), b.ID()) })
	return looks
}
