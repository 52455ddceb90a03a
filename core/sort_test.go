package core_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gatehouse/core"
)

// A type of its own, as most callers' lists are of structures.
type entry struct{ key, place int }

func TestSortKeepsTheOrderOfEqualElements(t *testing.T) {
	byKey := func(a, b entry) int { return cmp.Compare(a.key, b.key) }
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 3, 19, 20, 21, 500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			list := make([]entry, n)
			for i := range list {
				list[i] = entry{r.IntN(1 + n/3), i}
			}
			want := slices.Clone(list)
			slices.SortStableFunc(want, byKey)
			core.Sort(list, byKey)
			if !slices.Equal(list, want) {
				t.Errorf("sorted:\n%v\nwant:\n%v", list, want)
			}
		})
	}
}
