package connectors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// What is remembered of chats, channels and places is bounded: the one that
// was used longest ago gives way.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	l := NewLRU[string, int](3)
	for n, key := range []string{"a", "b", "c"} {
		l.Put(key, n)
	}
	l.Get("a")
	l.Put("b", 7)
	l.Put("d", 3)
	if _, ok := l.Get("c"); ok || l.Len() != 3 || len(l.nodes) != 4 {
		t.Errorf("c is there: %v; %d keys, %d places", ok, l.Len(), len(l.nodes)-1)
	}
	for key, want := range map[string]int{"a": 0, "b": 7, "d": 3} {
		if got, ok := l.Get(key); !ok || got != want {
			t.Errorf("%s: %d, %v", key, got, ok)
		}
	}
	l.Remove("a")
	l.Put("e", 4)
	if _, ok := l.Get("b"); !ok || l.Len() != 3 {
		t.Errorf("a removed key left no room: %d keys", l.Len())
	}
}

// The order of use is right after any sequence of calls.
func TestAnLRUKeepsTheOrderOfUse(t *testing.T) {
	const most, seed = 5, 1
	draw := rand.New(rand.NewPCG(seed, seed))
	l, values := NewLRU[int, int](most), map[int]int{}
	var order []int // most recently used first
	for n := range 20_000 {
		key := draw.IntN(8)
		at := slices.Index(order, key)
		if at >= 0 {
			order = slices.Delete(order, at, at+1)
		}
		switch what := draw.IntN(5); {
		case what == 0:
			l.Remove(key)
			delete(values, key)
			at = -1
		case what < 3:
			l.Put(key, n)
			values[key], at = n, 0
		default:
			if got, ok := l.Get(key); ok != (at >= 0) || got != values[key] {
				t.Fatalf("call %d: %d is %d, %v; want %d", n, key, got, ok, values[key])
			}
		}
		if at >= 0 {
			order = slices.Insert(order, 0, key)
		}
		if len(order) > most {
			delete(values, order[most])
			order = order[:most]
		}
		got, want := []string{}, []string{}
		for k, v := range l.All() {
			got = append(got, fmt.Sprint(k, v))
		}
		for _, k := range order {
			want = append(want, fmt.Sprint(k, values[k]))
		}
		if !slices.Equal(got, want) || l.Len() != len(want) || len(l.nodes) > most+1 {
			t.Fatalf("call %d: %v of %d in %d places, want %v", n, got, l.Len(), len(l.nodes)-1, want)
		}
	}
}
